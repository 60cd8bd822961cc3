"""A workflow, picture or plan file that a visitor opens: the address that asks for it, fields for what it lacks."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import struct
import zlib
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardfit.cli.main import run
from cardfit.comfy.result import Reading
from cardfit.request import Request, Settings
from cardfit.trace.source import DRY_RUNS
from cardfit.web.options import Options
from cardfit.web.questions import PlanQuestion, from_query, to_query

_spec = importlib.util.spec_from_file_location(
    "make", Path(__file__).parents[1] / "comfy" / "make.py"
)
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)
TURBO = make.node(
    1, "CheckpointLoaderSimple", ["sd_xl_turbo_1.0_fp16.safetensors"], (), ("MODEL", "CLIP", "VAE")
)
PATIENT = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(autouse=True)
def from_the_atlas():
    token = DRY_RUNS.set(False)
    yield
    DRY_RUNS.reset(token)


def flow(**changes) -> dict:
    """SDXL-Turbo, 512 x 512, 4 steps without guidance."""
    latent = make.node(2, "EmptyLatentImage", [512, 512, 1], (), ("LATENT",))
    sampler = make.node(
        3,
        "KSampler",
        [7, "fixed", 4, 1, "euler", "normal", 1],
        [("model", "MODEL", 1), ("latent_image", "LATENT", 2)],
        ("LATENT",),
    )
    return make.text_to_image(**{"loader": TURBO, "latent": latent, "sampler": sampler, **changes})


def asking() -> dict:
    """A workflow whose size is that of a picture which nobody has seen."""
    picture = make.node(7, "LoadImage", ["x.png"], (), ("IMAGE", "MASK"), title="The <b>photo</b>")
    size = make.node(8, "GetImageSize", [], [("image", "IMAGE", 6)], ("INT", "INT", "INT"))
    sides = [("width", "INT", 7, "width"), ("height", "INT", 8, "height")]
    latent = make.node(2, "EmptyLatentImage", [64, 64, 1], sides, ("LATENT",))
    links = ((6, 7, 0, 8, 0, "IMAGE"), (7, 8, 0, 2, 0, "INT"), (8, 8, 1, 2, 1, "INT"))
    return flow(latent=latent, more=(picture, size), links=links)


def png(workflow: dict) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + crc

    text = b"workflow\0" + json.dumps(workflow).encode()
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"tEXt", text) + chunk(b"IEND", b"")


def webp(workflow: dict) -> bytes:
    text = b"II*\0workflow:" + json.dumps(workflow).encode() + b"\0"
    body = b"WEBP" + b"EXIF" + struct.pack("<I", len(text)) + text + b"\0" * (len(text) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def sent(client, content: bytes, name: str, **more):
    return client.post("/open", files={"file": (name, content, "image/png")}, **more)


def asked(response) -> PlanQuestion:
    assert response.status_code == 303, response.text
    path, _, query = response.headers["location"].partition("?")
    assert path == "/"
    return from_query(pair for pair in parse_qsl(query) if pair[0] != "lang")


# --- the address that asks for it


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("flow.json", lambda found: json.dumps(found).encode()),
        ("flow.json", lambda found: b"\xef\xbb\xbf  " + json.dumps(found).encode()),
        ("out.png", png),
        ("out.webp", webp),
        ("of another ending.txt", png),
    ],
)
def test_a_workflow_becomes_the_address_that_asks_for_it(client, name, written):
    question = asked(sent(client, written(flow()), name))
    assert question.request == Request(
        model="sdxl-turbo",
        task="text-to-image",
        width=512,
        height=512,
        batch=1,
        num_inference_steps=4,
        guidance_scale=1,
        runtime="comfyui",
    )


def test_the_configurator_shows_what_was_opened_and_keeps_what_it_has_no_control_for(client):
    target = sent(client, json.dumps(flow()).encode(), "flow.json").headers["location"]
    client.get("/api/v1/plan" + target.removeprefix("/"))
    page = client.get(target).text
    assert 'name="guidance_scale" value="1"' in page
    assert re.search(r'name="runtime"[^>]*value="comfyui" checked', page)
    assert 'name="model"' in page and "SDXL-Turbo" in page


def test_a_plan_file_becomes_the_address_that_asks_for_it(client):
    text = "request:\n  model: sdxl-turbo\n  batch: 3\nsettings:\n  offload: model\n  dtype: {vae: float32}\n"
    question = asked(sent(client, text.encode(), "mine.yaml"))
    assert (question.request.batch, question.settings.offload) == (3, "model")
    assert question.settings.dtype == {"vae": "float32"}


@pytest.mark.parametrize(
    ("request_", "settings_"),
    [
        (Request(model="svd", fps=7.5, seed=9), Settings()),
        (
            Request(
                model="svd",
                loras=[{"rank": 8, "fused": True}, {"rank": 4, "dtype": "float32"}],
                post=[{"upscale": {"tile": 256}}, {"upscale": {"model": "realesrgan-x2plus"}}],
            ),
            Settings(vae_tiling=False, vae_slicing=True, quantization={"unet": "bnb-nf4"}),
        ),
        (
            Request(
                model="sdxl-base",
                loras=[{"rank": 4, "targets": ["to_q", "to_v"], "dtype": "bfloat16"}],
                controlnets=[{}, {"model": "union"}, {"num_layers": 6, "num_single_layers": 0}],
                post=[{"interpolate": {"times": 4}}],
            ),
            Settings(),
        ),
        (Request(model="svd"), Settings(dtype={"*": "float16", "vae": "float32"}, offload="model")),
    ],
)
def test_what_is_written_as_an_address_is_read_back(request_, settings_):
    found = from_query(to_query(request_, settings_))
    assert found.request.model_dump() == request_.model_dump()
    assert found.settings == settings_


def test_the_language_of_the_reader_stays(client):
    found = sent(client, json.dumps(flow()).encode(), "flow.json", params={"lang": "ko"})
    assert found.headers["location"].endswith("&lang=ko")


# --- what the workflow does not say


def form_of(text: str) -> dict[str, str]:
    """What the page's second form would send."""
    area = re.search(r'<textarea name="workflow"[^>]*>(.*?)</textarea>', text, re.S)
    fields = re.findall(r'name="(answer\.[^"]+)"', text)
    return {"workflow": html.unescape(area[1]), "name": "flow.json", **dict.fromkeys(fields, "")}


def test_what_is_open_is_asked_by_the_title_of_its_node_and_the_answers_open_the_rest(client):
    first = sent(client, json.dumps(asking()).encode(), "flow.json")
    assert first.status_code == 200
    assert "The &lt;b&gt;photo&lt;/b&gt; · width" in first.text and "<b>photo" not in first.text
    form = form_of(first.text)
    assert set(form) == {"workflow", "name", "answer.7.width", "answer.7.height"}
    wrong = client.post("/open", data={**form, "answer.7.width": "wide", "answer.7.height": "640"})
    assert wrong.status_code == 422
    assert "wide: give a whole number" in wrong.text and 'value="640"' in wrong.text
    good = client.post("/open", data={**form, "answer.7.width": "768", "answer.7.height": "640"})
    question = asked(good)
    assert (question.request.width, question.request.height) == (768, 640)


def test_a_request_that_the_configurator_cannot_hold_whole_is_shown_first(client):
    tiled = make.node(
        4,
        "VAEDecodeTiled",
        [512, 64, 64, 8],
        [("samples", "LATENT", 3), ("vae", "VAE", 4)],
        ("IMAGE",),
    )
    found = sent(client, json.dumps(flow(decode=tiled)).encode(), "flow.json")
    assert found.status_code == 200
    assert "without the tiles" in found.text and 'href="/?model=sdxl-turbo' in found.text


# --- what cannot be opened


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(40), "nothing that can be opened"),
        ("photo.png", png({})[:40], "holds no workflow"),
        ("other.json", b'{"a": 1}', "no ComfyUI workflow"),
        ("list.json", b"[1, 2]", "no ComfyUI workflow"),
        ("broken.json", b'{"nodes": [', "not JSON"),
        ("deep.json", b'{"a":' + b"[" * 100_000, "nested too deeply"),
        ("plan.yaml", b"request:\n  modl: svd\n", "modl"),
        ("plan.yaml", b"!!python/object/apply:os.system ['true']", "tag"),
        ("none.yaml", b"", "No file came"),
        ("blank.yaml", b" \n", "empty"),
        ("../../etc/passwd", b"root:x:0:0", "passwd"),
    ],
)  # fmt: skip
def test_what_cannot_be_opened_is_said_beside_the_field_and_the_page_stands(
    client, name, content, said
):
    found = sent(client, content, name)
    assert found.status_code == 422
    beside = re.search(r'<p class="beside error" id="beside-file"[^>]*>(.*?)</p>', found.text)[1]
    assert said in beside and "../.." not in beside
    assert 'type="file"' in found.text


def test_a_file_that_is_too_large_is_refused_on_the_page(serve):
    client = serve(upload_bytes=10_000)
    assert sent(client, b"{" + b" " * 9_000 + b"}", "a.json").status_code == 422
    found = sent(client, b"x" * 20_000, "a.json")
    assert found.status_code == 413
    assert "larger than the 10000 bytes" in found.text and 'type="file"' in found.text
    assert Options().upload_bytes > Options().body_bytes
    other = client.post("/autopsy", content=b"x" * (Options().body_bytes + 1))
    assert other.status_code == 413


def test_a_form_that_is_none_is_a_page_too(client):
    for kind in ("multipart/form-data", "multipart/form-data; boundary=x", "text/plain"):
        found = client.post("/open", content=b"nonsense", headers={"content-type": kind})
        assert found.status_code in (400, 422) and 'type="file"' in found.text
    two = {"file": ("a.json", b"{}"), "more": ("b.json", b"{}")}
    assert client.post("/open", files=two).status_code == 400


whole = json.dumps(asking()).encode()
pieces = st.one_of(
    st.binary(max_size=3000),
    st.builds(
        lambda base, at, more: base[:at] + more + base[at + len(more) :],
        st.sampled_from([whole, png(asking()), webp(asking()), b"request:\n  model: svd\n"]),
        st.integers(0, 2500),
        st.binary(min_size=1, max_size=8),
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["nodes", "links", "id", "type", "inputs", "1"]), inner
            )
        ),
        max_leaves=30,
    ).map(lambda found: json.dumps(found).encode()),
)


@PATIENT
@given(content=pieces, name=st.text(max_size=30) | st.sampled_from(["a.yaml", "a.png", "a.json"]))
def test_whatever_is_uploaded_is_answered_or_refused(client, content, name):
    found = client.post(
        "/open", files={"file": (name.encode("utf-8", "replace").decode() or "x", content)}
    )
    assert found.status_code in (200, 303, 400, 422), found.text
    assert "Traceback" not in found.text
    query = {"name": name} if name.strip() else {}
    rest = client.post(
        "/api/v1/comfy/file", content=content, params={**query, "requests_only": "true"}
    )
    assert rest.status_code in (200, 422), rest.text


# --- the API


def printed(capsys, line: list[str]) -> str:
    assert run([*line, "--json"]) == 0
    return capsys.readouterr().out.rstrip("\n")


def test_comfy_is_the_json_of_the_command(client, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("out.png").write_bytes(png(flow()))
    line = ["comfy", "plan", "out.png", "--card", "rtx-4090", "--ram", "32GB"]
    expected = printed(capsys, line)
    query = {"name": "out.png", "card": "rtx-4090", "ram": "32GB"}
    file = client.post("/api/v1/comfy/file", content=png(flow()), params=query)
    assert (file.status_code, file.text) == (200, expected)
    body = {"workflow": flow(), "name": "out.png", "cards": ["rtx-4090"], "ram_bytes": 32 * 2**30}
    assert client.post("/api/v1/comfy", json=body).text == expected


def test_comfy_reads_without_planning(client, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("flow.json").write_text(json.dumps(asking()))
    expected = printed(capsys, ["comfy", "plan", "flow.json", "--requests-only"])
    body = {"workflow": asking(), "name": "flow.json", "requests_only": True}
    found = client.post("/api/v1/comfy", json=body)
    assert (found.status_code, found.text) == (200, expected)
    assert [each.input for each in Reading.model_validate_json(expected).missing] == [
        "width",
        "height",
    ]


def test_comfy_says_what_is_missing_and_takes_answers(client):
    body = {"workflow": asking(), "cards": ["rtx-4090"]}
    open_ = client.post("/api/v1/comfy", json=body)
    assert (open_.status_code, open_.json()["code"]) == (422, "web-workflow-open")
    assert [(each["id"], each["input"]) for each in open_.json()["missing"]] == [
        ("7", "width"),
        ("7", "height"),
    ]
    answers = {"7.width": 512, "The <b>photo</b>.height": 512}
    found = client.post("/api/v1/comfy", json={**body, "answers": answers})
    assert found.status_code == 200
    assert found.json()["plans"][0]["answer"]["cards"][0]["card"] == "rtx-4090"
    query = {"card": "rtx-4090", "set": ["7.width=512", "7.height=512"]}
    file = client.post("/api/v1/comfy/file", content=json.dumps(asking()).encode(), params=query)
    assert file.json()["plans"] == found.json()["plans"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "missing-field"),
        ({"workflow": []}, "field-mapping"),
        ({"workflow": {"a": 1}}, "comfy-not-a-workflow"),
        (
            {"workflow": {}, "cards": ["no-such-card"], "requests_only": True},
            "comfy-not-a-workflow",
        ),
        ({"workflow": {}, "path": "/etc/passwd"}, "unknown-field"),
    ],
)
def test_a_wrong_workflow_gets_a_problem_with_its_code(client, body, code):
    found = client.post("/api/v1/comfy", json=body)
    assert (found.status_code, found.json()["code"]) == (422, code)
