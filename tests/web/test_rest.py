"""The REST API gives what the command line prints, byte for byte, and says what is wrong in its words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from cardfit.cli.flags import REPEATED as FLAGS_REPEATED
from cardfit.cli.main import run
from cardfit.plan.answer import Answer
from cardfit.plan.vary import Vary
from cardfit.request import Request, Settings
from cardfit.trace.source import DRY_RUNS
from cardfit.web.questions import (
    PlanQuestion,
    from_query,
)

SDXL = {"model": "sdxl-turbo"}
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def from_the_atlas():
    """The command line too answers from the shipped traces, as where no torch is installed."""
    token = DRY_RUNS.set(False)
    yield
    DRY_RUNS.reset(token)


def printed(capsys, line: str) -> str:
    assert run([*line.split(), "--json"]) == 0
    return capsys.readouterr().out.rstrip("\n")


def sent(response) -> str:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.text


# --- the values of the command line


def test_plan_is_the_json_of_the_command(client, capsys):
    line = printed(capsys, "plan sdxl-turbo --width 512 --height 512 --card rtx-4090 --card l4")
    body = {"request": {**SDXL, "width": 512, "height": 512}, "cards": ["rtx-4090", "l4"]}
    assert sent(client.post("/api/v1/plan", json=body)) == line
    query = "model=sdxl-turbo&width=512&height=512&card=rtx-4090&card=l4"
    assert sent(client.get(f"/api/v1/plan?{query}")) == line
    assert Answer.model_validate_json(line).cards[0].card in ("rtx-4090", "l4")


def test_plan_takes_settings_and_the_host_as_the_command_does(client, capsys):
    flags = (
        "--offload model --quantization unet=bnb-int8 --ram 32GB --outputs 40/month --os windows"
    )
    line = printed(capsys, f"plan sdxl-turbo --card rtx-4090 {flags}")
    body = {
        "request": SDXL,
        "settings": {"offload": "model", "quantization": {"unet": "bnb-int8"}},
        "cards": ["rtx-4090"],
        "ram_bytes": 32 * 2**30,
        "outputs_per_month": 40,
        "os": "windows",
    }
    assert sent(client.post("/api/v1/plan", json=body)) == line
    query = (
        "model=sdxl-turbo&card=rtx-4090&offload=model&quantization=unet%3Dbnb-int8"
        "&ram=32GB&outputs=40/month&os=windows"
    )
    assert sent(client.get(f"/api/v1/plan?{query}")) == line


@pytest.mark.parametrize(
    ("path", "body", "line"),
    [
        ("trace", {"request": SDXL}, "trace sdxl-turbo"),
        (
            "largest",
            {"request": SDXL, "card": "rtx-4090", "vary": "batch", "most": 2},
            "largest sdxl-turbo --card rtx-4090 --vary batch --most 2",
        ),
        (
            "rent",
            {"monthly": 286, "hourly": 0.45, "hours_per_week": 20},
            "rent --monthly 286 --hourly 0.45 --hours-per-week 20",
        ),
    ],
)
def test_what_is_worked_out_is_the_json_of_the_command(client, capsys, path, body, line):
    assert sent(client.post(f"/api/v1/{path}", json=body)) == printed(capsys, line)


@pytest.mark.parametrize(
    "line",
    ["models", "models sdxl-turbo", "cards", "cards rtx-4090", "offers"],
)
def test_the_facts_are_the_json_of_the_command(client, capsys, line):
    path = line.replace(" ", "/")
    assert sent(client.get(f"/api/v1/{path}")) == printed(capsys, line)


def test_filters_are_those_of_the_command(client, capsys):
    line = printed(capsys, "models --task text-to-video")
    assert sent(client.get("/api/v1/models?task=text-to-video")) == line
    assert sent(client.get("/api/v1/offers?card=l4")) == printed(capsys, "offers --card l4")


def test_autopsy_is_the_json_of_the_command(client, capsys, tmp_path):
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of "
        "23.64 GiB of which 1.20 GiB is free."
    )
    file = tmp_path / "error.txt"
    file.write_text(text)
    found = sent(client.post("/api/v1/autopsy", json={"text": text}))
    assert found == printed(capsys, f"autopsy {file}")


def test_an_autopsy_that_cannot_be_planned_is_still_one(client):
    text = "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 23.64 GiB"
    body = {"text": text, "request": {"model": "flux.1-dev"}}
    found = json.loads(sent(client.post("/api/v1/autopsy", json=body)))
    assert found["numbers"]["tried_bytes"] == 4 * 2**30
    assert "autopsy-planner-failed" in [note["code"] for note in found["notes"]] or found["as_run"]


def test_records_are_read_and_hold_no_prompts(serve, tmp_path):
    client = serve(store=f"sqlite:///{tmp_path / 'store.db'}")
    assert json.loads(sent(client.get("/api/v1/records"))) == {
        "schema": "cardfit.records/1",
        "records": [],
    }
    missing = client.get("/api/v1/records/20261203t000000-00000000")
    assert missing.status_code == 422
    assert missing.json()["code"].startswith("record")


def test_accuracy_is_the_score_of_this_release(client):
    found = json.loads(sent(client.get("/api/v1/accuracy")))
    assert found["schema"] == "cardfit.accuracy/1"
    assert found["summary"]["allocated"]["n"] == sum(
        row["kind"] == "allocated" for row in found["rows"]
    )


def test_the_score_that_is_shown_is_the_one_that_tests_hold(client):
    kept = json.loads((ROOT / "benchmarks" / "data" / "errors.json").read_text(encoding="utf-8"))
    shown = {row["id"]: row["error_pct"] for row in client.get("/api/v1/accuracy").json()["rows"]}
    assert shown == kept


# --- names: flags, form fields and REST fields are one


def test_a_query_has_a_name_for_every_field_and_for_no_other():
    from cardfit.web.questions import PLACE_FIELDS, REQUEST_FIELDS, SETTINGS_FIELDS

    assert tuple(Request.model_fields) == REQUEST_FIELDS
    assert tuple(Settings.model_fields) == SETTINGS_FIELDS
    assert set(FLAGS_REPEATED) == {"loras", "controlnets", "ip_adapters", "components", "post"}
    values = {
        "model": "svd", "task": "text-to-image", "width": "64", "height": "64", "num_frames": "5",
        "fps": "8", "batch": "2", "num_inference_steps": "4", "guidance_scale": "1.5",
        "prompt_tokens": "9", "seed": "7", "loras": "8:fused", "runtime": "comfyui",
        "controlnets": "union", "t2i_adapters": "1", "ip_adapters": "ip-adapter",
        "reference_images": "2", "components": "safety_checker",
        "post": "upscale=realesrgan-x2plus", "export": "nvenc-av1",
        "dtype": "bf16", "quantization": "unet=bnb-nf4", "offload": "model", "vae_tiling": "true",
        "vae_tile": "256", "vae_overlap": "64", "vae_slicing": "false", "decode_chunk_size": "2",
        "attention": "math", "prompt_embeds": "true", "forward_chunking": "64",
        "fuse_qkv": "true", "compile": "false", "use_stream": "true", "num_blocks_per_group": "1",
        "low_cpu_mem_usage": "false", "offload_to_disk": "false", "blocks_to_swap": "3",
        "alloc_conf": "expandable_segments:True", "card": "l4", "ram": "64GB", "disk": "200GB",
        "os": "linux", "target": "24GB", "outputs": "40/month", "hours_per_week": "20",
    }  # fmt: skip
    assert set(values) == {*REQUEST_FIELDS, *SETTINGS_FIELDS, *PLACE_FIELDS}
    found = from_query(values.items())
    assert found.request.model_fields_set == set(REQUEST_FIELDS)
    assert found.settings.model_fields_set == set(SETTINGS_FIELDS)
    assert found.settings.quantization == {"unet": "bnb-nf4"} and found.request.loras[0].fused
    assert found.ram_bytes == 64 * 2**30 and found.disk_bytes == 200 * 10**9


def test_the_description_names_every_path_and_its_answers(client):
    found = client.get("/api/v1/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    paths = {path.removeprefix("/api/v1/") for path in found["paths"]}
    assert paths == {
        *("plan", "trace", "largest", "rent", "autopsy", "models", "models/{name}", "cards"),
        *("cards/{name}", "offers", "accuracy", "records", "records/{name}", "comfy", "comfy/file"),
    }
    assert "PlanQuestion" in found["components"]["schemas"]
    assert get_args(Vary) == tuple(
        found["components"]["schemas"]["LargestQuestion"]["properties"]["vary"]["enum"]
    )


# --- what is wrong


def problem_of(response) -> dict:
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found["status"] == response.status_code and found["detail"] and found["title"]
    return found


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"request": {"model": "no-such-model"}}, 404, "unknown-model"),
        ({"request": SDXL, "cards": ["no-such-card"]}, 404, "unknown-card"),
        ({"request": {**SDXL, "width": 1}}, 422, "field-at-least"),
        ({"request": {**SDXL, "width": "wide"}}, 422, "field-whole-number"),
        ({"request": {**SDXL, "widht": 512}}, 422, "unknown-field"),
        ({"request": {}}, 422, "missing-field"),
        ({}, 422, "missing-field"),
        ({"request": {**SDXL, "width": 500}}, 422, "size-not-multiple"),
        ({"request": SDXL, "settings": {"offload": "all"}}, 422, "field-one-of"),
        ({"request": SDXL, "ram_bytes": -1}, 422, "plan-bad-ram"),
        ({"request": {"model": "omnigen2"}}, 422, "web-no-model"),
        ({"request": SDXL, "settings": {"attention": "math"}}, 422, "web-not-shipped"),
    ],
)
def test_a_wrong_question_gets_a_problem_with_its_code(client, body, status, code):
    found = problem_of(client.post("/api/v1/plan", json=body))
    assert (found["status"], found["code"]) == (status, code)


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"nonsense", b"\xff\xfe", b'{"request": NaN}'])
def test_a_body_that_is_no_question_is_refused(client, body):
    headers = {"content-type": "application/json"}
    found = problem_of(client.post("/api/v1/plan", content=body, headers=headers))
    assert 400 <= found["status"] < 500


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("model=sdxl-turbo&model=svd", "web-given-twice"),
        ("model=sdxl-turbo&size=3", "unknown-field"),
        ("model=sdxl-turbo&ram=lots", "bad-ram"),
        ("model=sdxl-turbo&os=beos", "field-one-of"),
        ("model=sdxl-turbo&hours_per_week=x", "field-number"),
        ("model=sdxl-turbo&hours_per_week=nan", "field-number"),
        ("", "missing-field"),
        ("model=sdxl-turbo&dtype=fp64", "bad-dtype"),
    ],
)
def test_a_wrong_query_gets_a_problem_with_its_code(client, query, code):
    assert problem_of(client.get(f"/api/v1/plan?{query}"))["code"] == code


def test_unknown_paths_and_methods_are_problems_too(client):
    assert problem_of(client.get("/api/v1/nothing"))["code"] == "web-no-page"
    assert problem_of(client.ask("DELETE", "/api/v1/records"))["code"] == "web-no-method"
    assert problem_of(client.get("/static/nothing.js"))["status"] == 404


def test_a_question_has_the_same_key_however_it_is_written():
    one = PlanQuestion.model_validate({"request": {"width": 512, "model": "svd"}})
    other = from_query([("model", "svd"), ("width", "512")])
    assert one.key == other.key


def test_a_stranger_names_no_folder_file_or_repo_of_the_server(client, tmp_path, monkeypatch):
    """The command line answers for them; a server neither looks at its disk nor asks the hub for anybody."""
    from cardfit.library import sources

    (tmp_path / "model_index.json").write_text("{}")
    monkeypatch.setattr(sources, "_of_folder", None)
    monkeypatch.setattr(sources, "_of_repo", None)
    for word in (str(tmp_path), "somebody/something", "/etc/hostname"):
        body = {"request": {"model": word}}
        for path in ("plan", "trace"):
            answer = client.post(f"/api/v1/{path}", json=body)
            assert answer.status_code == 404 or answer.status_code == 422, answer.text
            assert "no such model" in answer.text
        assert "no such model" in client.get("/", params={"model": word}).text
