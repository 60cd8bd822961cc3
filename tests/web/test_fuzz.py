"""Whatever is sent: an answer that the API describes, or a problem; never an error of the server's own."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardfit.web.app import application
from cardfit.web.options import Options

EXAMPLES = 5
PATIENT = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
app = application(Options(per_second=0, within_s=300, names=()))
schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)


@schema.parametrize()
@PATIENT
def test_the_api_keeps_to_its_description(case):
    case.call_and_validate(
        checks=[
            schemathesis.checks.not_a_server_error,
            schemathesis.checks.status_code_conformance,
            schemathesis.checks.content_type_conformance,
            schemathesis.checks.response_schema_conformance,
        ]
    )


hostile = st.one_of(
    st.text(max_size=300),
    st.sampled_from(
        [
            "<script>",
            "{{7*7}}",
            "{% raw %}",
            "../../etc/passwd",
            "%s%n",
            "\x00",
            "nan",
            "1e999",
            "-1",
        ]
    ),
)
NAMES = (
    "model",
    "width",
    "num_frames",
    "batch",
    "dtype",
    "card",
    "ram",
    "price",
    "sort",
    "lang",
    "was",
    "loras",
)


@PATIENT
@given(pairs=st.lists(st.tuples(st.sampled_from(NAMES), hostile), max_size=6))
def test_a_page_stands_whatever_its_address_says(client, pairs):
    found = client.get("/results", params=[("model", "sdxl-turbo"), *pairs])
    assert found.status_code in (200, 404, 414, 422)
    assert "Traceback" not in found.text and "<script>" not in found.text


@PATIENT
@given(body=st.binary(max_size=2000), kind=st.sampled_from(
    ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data", "text/plain", ""]
))  # fmt: skip
def test_an_upload_of_anything_is_answered_or_refused(client, body, kind):
    found = client.post("/autopsy", content=body, headers={"content-type": kind})
    assert found.status_code in (200, 400, 413, 422)


def test_files_in_a_form_are_not_taken(client):
    files = {"text": ("error.txt", b"x" * 1000, "text/plain")}
    assert client.post("/autopsy", files=files).status_code == 400


def test_text_that_looks_like_a_template_stays_text(client):
    found = client.post("/autopsy", data={"text": "{{ 7 * 7 }} <b>CUDA out of memory</b>"})
    assert found.status_code == 200
    assert "{{ 7 * 7 }} &lt;b&gt;" in found.text


def test_no_path_of_a_question_is_opened(client, tmp_path):
    secret = tmp_path / "secret.yaml"
    secret.write_text("request: {model: sdxl-turbo}\n")
    for path in (str(secret), f"../../../..{secret}", f"file://{secret}"):
        found = client.post("/api/v1/plan", json={"request": {"model": path}})
        assert (found.status_code, found.json()["code"]) == (404, "unknown-model")
    asked = {"model": "sdxl-turbo", "loras": [{"file": str(tmp_path / "a.safetensors")}]}
    found = client.post("/api/v1/plan", json={"request": asked})
    assert (found.status_code, found.json()["code"]) == (422, "lora-file-not-here")
    for name in ("..%2f..%2fapp.py", "../app.py", "%2e%2e/app.py", "vendor/../../app.py"):
        assert client.get(f"/static/{name}").status_code == 404
    assert client.get("/api/v1/records/..%2f..%2fetc%2fpasswd").status_code in (404, 422)
