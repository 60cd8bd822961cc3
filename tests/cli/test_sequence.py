"""`plan --requests`: single plans line by line, one process with --sequence, and what goes not together."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from cardfit.cli.main import run

_spec = importlib.util.spec_from_file_location(
    "small_sequence", Path(__file__).parents[1] / "plan" / "test_sequence.py"
)
small = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small)

MIX = "settings: {offload: model}\nrequests:\n  - {model: sdxl-base, count: 2}\n  - flux.1-dev\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mix.yaml"
    path.write_text(MIX, encoding="utf-8")
    return path


def test_without_sequence_every_request_is_planned_by_itself(planned, file, capsys):
    assert run(["plan", "--requests", str(file), "--card", "l4", "--dtype", "bf16"]) == 0
    assert [request.model for request, _, _ in planned] == ["sdxl-base", "flux.1-dev"]
    for _, settings, _ in planned:  # flags go on top of the file's settings
        assert settings.offload == "model" and settings.dtype == {"*": "bfloat16"}
    lines = capsys.readouterr().out.splitlines()
    assert lines.index("") == 2  # one for each, then the card for all
    assert "cards fit every request" in " ".join(lines[3:])
    assert run(["plan", "--requests", str(file), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.plans/1" and len(body["plans"]) == 2
    assert body["counts"] == [2, 1] and body["cards"][0]["verdict"] == "fits"


def test_with_sequence_all_go_to_one_verb(monkeypatch, file, capsys):
    asked = []

    def sequence(found, **more):
        asked.append((found, more))
        return small.answer(1300)

    monkeypatch.setattr("cardfit.api.sequence", sequence)
    words = ["plan", "--requests", str(file), "--sequence", "--card", "l4"]
    assert run(words) == 0
    found, more = asked[0]
    assert [each.count for each in found.requests] == [2, 1] and more["cards"] == ("l4",)
    assert "in one process" in capsys.readouterr().out
    assert run([*words, "--json", "--check"]) == 1
    assert json.loads(capsys.readouterr().out)["schema"] == "cardfit.sequence/1"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["plan"], "--requests FILE"),
        (["plan", "--sequence"], "Add --requests FILE"),
        (["plan", "svd", "--sequence"], "Add --requests FILE"),
        (["plan", "svd", "--requests", "FILE"], "MODEL and --requests"),
        (["plan", "--requests", "FILE", "--width", "640"], "--requests and --width"),
        (["plan", "--requests", "FILE", "--as", "code"], "--requests and --as code"),
        (["plan", "--requests", "FILE", "--sequence", "--ram", "64GB"], "--sequence and --ram"),
    ],
)
def test_what_does_not_go_together_is_named(words, named, file, capsys):
    assert run([str(file) if word == "FILE" else word for word in words]) == 2
    assert named in capsys.readouterr().err
