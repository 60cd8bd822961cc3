"""Exit codes and sentences of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cardfit.cli.main import run

PLAN = ["plan", "wan2.1-t2v-14b"]


def test_an_answer_is_zero_and_on_stdout(planned, capsys):
    assert run(PLAN) == 0
    out, err = capsys.readouterr()
    assert "everything resident" in out
    assert "Fastest" in out and "no time figures" not in err


def test_check_is_one_when_nothing_fits(nothing_fits, capsys):
    assert run([*PLAN, "--check"]) == 1
    assert run(PLAN) == 0


def test_check_is_zero_when_something_fits(planned):
    assert run([*PLAN, "--check"]) == 0


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["plan", "wan-14b"], "no such model"),
        (["cards", "rtx-9999"], "no such card"),
        (["offers", "--card", "rtx-9999"], "no such card"),
        ([*PLAN, "--width", "10"], "width is 10; it must be at least 16"),
        ([*PLAN, "--num-frames", "-3"], "num_frames is -3"),
        ([*PLAN, "--dtype", "fp64"], "Give bf16, fp16, fp32"),
        ([*PLAN, "--dtype", "=fp32"], "--dtype =fp32"),
        ([*PLAN, "--quantization", "int8"], "COMPONENT=SCHEME"),
        ([*PLAN, "--ram", "much"], "as in --ram 64GB"),
        ([*PLAN, "--outputs", "0"], "as in --outputs 40/month"),
        ([*PLAN, "--offload", "gpu"], "Choose from"),
        ([*PLAN, "--no-such"], "--no-such"),
        ([*PLAN, "--json", "--as", "line"], "leave one out"),
        (["plan"], "MODEL"),
        (["nope"], "plan, matrix, trace"),
        (["plan", "missing.yaml"], "missing.yaml"),
        ([*PLAN, "--cards-file", "missing.csv"], "missing.csv"),
    ],
)
def test_bad_input_is_two_with_one_sentence_and_no_traceback(words, part, capsys):
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert part in err and "Traceback" not in err
    assert err.count("\n") == 1


def test_flags_reach_the_verb_as_values(planned):
    words = [
        *PLAN,
        *"--width 832 --height 480 --num-frames 81 --steps 30 --fps 16 --batch 2".split(" "),
        *"--dtype bf16 --dtype vae=fp32 --quantization transformer=bnb-nf4".split(" "),
        *"--offload group-leaf --vae-tiling --vae-tile 256 --no-vae-slicing".split(" "),
        *"--card l4 --card rtx-4090 --ram 64GB --os windows --outputs 40/month --here".split(" "),
    ]
    assert run(words) == 0
    request, settings, more = planned[0]
    assert (request.width, request.num_inference_steps, request.batch) == (832, 30, 2)
    assert settings.dtype == {"*": "bfloat16", "vae": "float32"}
    assert settings.quantization == {"transformer": "bnb-nf4"}
    assert (settings.vae_tiling, settings.vae_slicing) == (True, False)
    assert more["cards"] == ("l4", "rtx-4090")
    assert more["ram_bytes"] == 64 * 1024**3
    assert (more["os"], more["here"], more["outputs_per_month"]) == ("windows", True, 40.0)


def test_what_is_not_asked_stays_open(planned):
    run(PLAN)
    request, settings, more = planned[0]
    assert request.model_dump(exclude_unset=True) == {"model": "wan2.1-t2v-14b"}
    assert settings.model_dump(exclude_unset=True) == {}
    assert more["cards"] is None and more["ram_bytes"] is None


def test_json_is_the_answer_alone(planned, capsys):
    assert run([*PLAN, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["schema"] == "cardfit.plan/1"
    assert err == ""


def test_as_line_and_as_code(planned, capsys):
    assert run([*PLAN, "--as", "line"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert run([*PLAN, "--as", "code"]) == 0
    source = capsys.readouterr().out
    compile(source, "printed", "exec")
    assert "WanPipeline.from_pretrained" in source


def test_code_for_nothing_is_refused_with_the_next_step(nothing_fits, capsys):
    assert run([*PLAN, "--as", "code"]) == 2
    assert "--all" in capsys.readouterr().err


def test_a_saved_plan_is_read_again_and_never_written_over(planned, tmp_path, capsys):
    file = tmp_path / "clip.yaml"
    assert run([*PLAN, "--save", str(file)]) == 0
    assert f"saved: {file}" in capsys.readouterr().err
    assert run([*PLAN, "--save", str(file)]) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*PLAN, "--save", str(file), "--force"]) == 0
    assert run(["plan", str(file), "--height", "480"]) == 0
    request, settings, _ = planned[-1]
    assert (request.width, request.height, request.num_frames) == (1280, 480, 81)
    assert settings.offload == "group-leaf" and settings.vae_tile == 256


def test_the_next_command_repeats_what_was_typed(planned, capsys):
    run([*PLAN, "--num-frames", "33", "--all"])
    assert "cardfit plan wan2.1-t2v-14b --num-frames 33 --save plan.yaml" in capsys.readouterr().out


def test_interrupting_is_130_without_a_traceback(monkeypatch, capsys):
    def interrupt(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("cardfit.api.plan", interrupt)
    assert run(PLAN) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("words", [["cards"], ["models"], ["offers", "--card", "l4"]])
def test_lists_print_tables_and_json(words, capsys):
    assert run(words) == 0
    table = capsys.readouterr().out
    assert max(map(len, table.splitlines())) <= 100
    assert run([*words, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == f"cardfit.{words[0]}/1" and body[words[0]]


def test_single_pages(capsys):
    assert run(["cards", "rtx-4090"]) == 0
    assert run(["models", "wan2.1-t2v-14b"]) == 0
    text = capsys.readouterr().out
    assert "RTX 4090" in text and "WanPipeline" in text


@pytest.mark.parametrize(
    "name",
    ["planfile", "requests", "request", "settings", "answer", "matrix", "accuracy", "sequence"],
)
def test_schemas_are_json_schema(name, capsys):
    assert run(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "object"


@pytest.mark.parametrize(
    "command", ["plan", "matrix", "trace", "cards", "models", "offers", "accuracy", "schema"]
)
def test_every_command_has_help_with_an_example(command, capsys):
    assert run([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"cardfit {command}" in text and "Try:" in text


def _process(words, **more):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), **more}
    command = [sys.executable, "-W", "error", "-m", "cardfit", *words]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=False
    )


def test_a_closed_pipe_is_quiet():
    process = _process(["offers", "--json"])
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert error == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_sentence():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "cardfit", "cards"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
    assert ran.returncode == 2
    assert "could not be written" in ran.stderr and "Traceback" not in ran.stderr


@pytest.mark.parametrize("model", ["x" * 5000, "a/" * 3000, "\x1b[31mred", "../nothing/there"])
def test_odd_model_names_are_unknown_models_and_steer_no_terminal(model, capsys):
    assert run(["plan", model]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_an_old_console_encoding_is_no_error():
    process = _process(["cards", "l4"], PYTHONIOENCODING="cp949")
    out, error = process.communicate()
    assert process.returncode == 0
    assert b"L4" in out and error == b""
