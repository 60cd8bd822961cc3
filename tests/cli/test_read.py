"""`read` and `plan SCRIPT.py`: exit codes, questions, files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cardfit.cli.main import run
from cardfit.request.read import read_plan_file

CASES = Path(__file__).parents[1] / "script" / "cases"
SCHNELL = str(CASES / "d18_flux_schnell_t4.py")
ASKING = str(CASES / "d17_wan22_image_to_video.py")
STAGES = str(CASES / "d05_ltx_two_pass.py")


def test_json_has_requests_settings_and_questions(capsys):
    assert run(["read", ASKING, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "cardfit.script/1"
    (request,) = found["requests"]
    assert (request["model"], request["width"], request["num_frames"]) == (
        "wan2.2-ti2v-5b",
        None,
        121,
    )
    assert request["settings"]["offload"] == "model"
    assert {each["input"] for each in found["missing"]} == {"width", "height"}


def test_a_page_names_the_lines(capsys):
    assert run(["read", ASKING]) == 0
    out = capsys.readouterr().out
    assert "Request 1 of 1: WanImageToVideoPipeline wan2.2-ti2v-5b, line 15" in out
    assert "num_frames 121: line 20" in out
    assert "--set height=" in out
    assert max(map(len, out.splitlines())) <= 100


def test_an_answered_script_becomes_a_plan_file(tmp_path, capsys):
    target = tmp_path / "request.yaml"
    words = ["read", ASKING, "-o", str(target)]
    assert run(words) == 2 and not target.exists()
    assert "are open" in capsys.readouterr().err
    assert run([*words, "--set", "height=704", "--set", "width=1280"]) == 0
    plan = read_plan_file(target)
    assert (plan.request.model, plan.request.width, plan.request.fps) == (
        "wan2.2-ti2v-5b",
        1280,
        24,
    )
    assert (plan.settings.offload, plan.settings.vae_tiling) == ("model", False)
    assert run([*words, "--set", "height=704", "--set", "width=1280"]) == 2
    assert "exists already" in capsys.readouterr().err


def test_several_requests_are_chosen_from(tmp_path, capsys):
    target = tmp_path / "request.yaml"
    assert run(["read", STAGES, "-o", str(target)]) == 2
    assert "2 requests" in capsys.readouterr().err
    assert run(["read", STAGES, "-o", str(target), "--request", "2"]) == 0
    asked = read_plan_file(target).request
    assert (asked.width, asked.num_inference_steps) == (1536, 4)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["read", "nothing.py"], "cannot be read"),
        (["read", SCHNELL, "--set", "width"], "name=value"),
        (["read", SCHNELL, "--set", "colour=red"], "nothing asks for it"),
        (["read", SCHNELL, "--models", "x"], "for ComfyUI"),
        (["read", "flow.json", "-o", "x.yaml"], "two different things"),
        (["plan", SCHNELL, "--vae-tiling"], "two different things"),
        (["plan", SCHNELL, "--seed", "3"], "two different things"),
        (["plan", SCHNELL, "--save", "x.yaml"], "two different things"),
    ],
)
def test_bad_words_are_one_sentence(words, part, capsys):
    assert run(words) == 2
    said = capsys.readouterr()
    assert part in said.err and "Traceback" not in said.err


def test_a_plan_of_an_open_script_asks(capsys):
    assert run(["plan", ASKING, "--card", "l4"]) == 2
    assert "input" not in capsys.readouterr().out


def test_a_script_is_planned_as_it_is_written(capsys):
    assert (
        run(["plan", SCHNELL, "--card", "t4", "--card", "h200-sxm", "--ram", "128GB", "--json"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    (plan,) = found["plans"]
    rows = {row["card"]: row for row in plan["answer"]["cards"]}
    assert rows["t4"]["verdict"] == "does_not_fit"
    assert rows["h200-sxm"]["verdict"] == "fits"
    assert rows["h200-sxm"]["settings"]["offload"] == "model"
    assert rows["h200-sxm"]["settings"]["vae_tiling"] is False


def test_flags_of_the_request_go_over_the_script(capsys):
    assert (
        run(["plan", SCHNELL, "--card", "h200-sxm", "--steps", "2", "--width", "512", "--json"])
        == 0
    )
    (plan,) = json.loads(capsys.readouterr().out)["plans"]
    assert plan["answer"]["request"]["num_inference_steps"] == 2
    assert plan["answer"]["request"]["width"] == 512
