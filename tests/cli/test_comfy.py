"""`comfy plan` and `plan WORKFLOW`: exit codes, questions, pages."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from pathlib import Path

import pytest

from cardfit.cli.main import run

_spec = importlib.util.spec_from_file_location(
    "make", Path(__file__).parents[1] / "comfy" / "make.py"
)
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


@pytest.fixture
def workflow(tmp_path):
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(make.text_to_image()))
    return str(path)


@pytest.fixture
def asking(tmp_path):
    """A workflow that needs the size of a picture."""
    encode = make.node(2, "VAEEncode", [], [("pixels", "IMAGE", 8)], ("LATENT",))
    picture = make.node(8, "LoadImage", ["x.png"], (), ("IMAGE", "MASK"), title="Photo")
    raw = make.text_to_image(latent=encode, more=[picture], links=[(8, 8, 0, 2, 0, "IMAGE")])
    path = tmp_path / "edit.json"
    path.write_text(json.dumps(raw))
    return str(path)


def test_requests_only(workflow, capsys):
    assert run(["comfy", "plan", workflow, "--requests-only", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"requests", "missing", "unknown_nodes"} <= set(found)
    (request,) = found["requests"]
    assert (request["model"], request["width"], request["num_inference_steps"]) == (
        "sdxl-base",
        1024,
        25,
    )
    assert found["missing"] == [] and found["unknown_nodes"] == []


def test_a_page_of_the_requests(workflow, capsys):
    assert run(["comfy", "plan", workflow, "--requests-only"]) == 0
    out = capsys.readouterr().out
    assert "Request 1 of 1: sdxl-base" in out and "1024x768" in out
    assert "models/checkpoints/sd_xl_base_1.0.safetensors" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("words", [["comfy", "plan"], ["plan"]])
def test_a_plan(planned, workflow, capsys, words):
    assert run([*words, workflow, "--card", "l4"]) == 0
    out, _ = capsys.readouterr()
    assert "Request 1 of 1" in out and "--as code" not in out.partition("Do this")[0]
    request, settings, more = planned[0]
    assert (request.runtime, request.width, more["cards"]) == ("comfyui", 1024, ("l4",))


def test_a_plan_as_json(planned, workflow, capsys):
    assert run(["comfy", "plan", workflow, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "cardfit.comfy-plan/1"
    assert found["plans"][0]["answer"]["cards"] and found["reading"]["requests"]


def test_check(nothing_fits, workflow, capsys):
    assert run(["comfy", "plan", workflow, "--check"]) == 1
    assert run(["plan", workflow, "--check"]) == 1


def test_open_questions_are_listed_and_the_code_is_2(planned, asking, capsys):
    assert run(["comfy", "plan", asking]) == 2
    out, err = capsys.readouterr()
    assert out == "" and not planned
    assert "Photo (#8), width" in err and "Photo (#8), height" in err and "--set" in err


def test_answers(planned, asking, capsys):
    words = ["comfy", "plan", asking, "--set", "Photo.width=640", "--set", "8.height=480"]
    assert run(words) == 0
    assert (planned[0][0].width, planned[0][0].height) == (640, 480)
    assert run(["comfy", "plan", asking, "--set", "width=640", "--set", "height=480"]) == 0


@pytest.mark.parametrize("answer", ["width", "=3", "Nobody.width=3", "Photo.width=-1"])
def test_answers_that_are_none(asking, capsys, answer):
    assert run(["comfy", "plan", asking, "--set", answer]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "--set" in err and len(err.splitlines()) == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_questions_at_a_terminal_have_defaults(planned, asking, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Terminal("640\n\n"))
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    assert run(["comfy", "plan", asking]) == 0
    assert "Photo, width" in screen.getvalue() and "[1024]" in screen.getvalue()
    assert (planned[0][0].width, planned[0][0].height) == (640, 1024)


@pytest.mark.parametrize(
    "words", [["--width", "64"], ["--vae-tiling"], ["--save", "x.yaml"], ["--as", "line"]]
)
def test_flags_of_a_request_mean_nothing_beside_a_workflow(planned, workflow, capsys, words):
    assert run(["plan", workflow, *words]) == 2
    assert words[0] in capsys.readouterr().err and not planned


def test_bad_files(tmp_path, capsys):
    (tmp_path / "a.json").write_text("{")
    for name in ("a.json", "none.json"):
        assert run(["comfy", "plan", str(tmp_path / name)]) == 2
        assert run(["plan", str(tmp_path / name)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err
    assert run(["comfy"]) == 0
    assert "plan" in capsys.readouterr().out
    assert run(["comfy", "nonsense"]) == 2


def test_schemas(capsys):
    for name in ("comfy", "comfy-plan"):
        assert run(["schema", name]) == 0
        assert "properties" in json.loads(capsys.readouterr().out)
