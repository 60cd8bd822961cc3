"""The verb and the command on the real library: shipped traces, real cards, files on disk."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

import cardfit
from cardfit.cli.main import run

MODEL = "sd1.5"
SHOTS = f"""
settings: {{vae_slicing: false}}
shots:
  - {{id: one, model: {MODEL}, count: 40, deadline: 2026-12-07 18:30:00}}
  - {{id: two, model: {MODEL}, count: 8, batch: 2}}
"""
FARM = """
machines:
  - {name: alpha, card: rtx-4090, count: 2, ram: 64GB}
  - {name: beta, card: rtx-3090, ram: 32GB, daily: "19:00-08:00"}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    shots, farm = tmp_path / "shots.yaml", tmp_path / "farm.yaml"
    shots.write_text(SHOTS)
    farm.write_text(FARM)
    return shots, farm


def test_verdicts_and_settings_are_those_of_a_plan(files):
    found = cardfit.assign(*files, start=datetime(2026, 12, 7, 18))
    assert all(row.place is not None for row in found.shots) and found.kept
    for planned in found.planned:
        answer = cardfit.plan(
            cardfit.Request(
                **planned.request.model_dump(include=set(cardfit.Request.model_fields))
            ),
            planned.settings,
            cards=[option.card for option in planned.options],
            ram_bytes=32 * 2**30,
        )
        rows = {row.card: row for row in answer.cards}
        for option in planned.options:
            row = rows[option.card]
            assert (option.verdict, option.settings) == (row.verdict, row.settings)
            assert option.seconds is not None and row.seconds is not None
            assert row.export_seconds is not None
            whole = row.seconds.likely + row.export_seconds.likely
            assert option.seconds.likely == pytest.approx(whole)


def test_the_command_prints_a_page_json_and_csv(files, capsys, tmp_path):
    shots, farm = map(str, files)
    asked = ["assign", shots, "--machines", farm, "--start", "2026-12-07T18:00"]
    assert run([*asked, "--check"]) == 0
    said = capsys.readouterr()
    assert "2 of 2 shots have a place." in said.out and "heuristic" in said.err
    assert run([*asked, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["start"] == "2026-12-07T18:00:00" and len(body["shots"]) == 2
    assert run([*asked, "--csv"]) == 0
    assert capsys.readouterr().out.startswith("shot,sequence,priority,deadline,model,")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--json", "--csv"], "two different things"),
        (["--start", "soon"], "--start soon: give a date or a time"),
        (["--chart", "x.txt"], ".png, .svg or .html"),
        (["--machines", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(files, capsys, more, said):
    shots, farm = map(str, files)
    machines = [] if "--machines" in more else ["--machines", farm]
    assert run(["assign", shots, *machines, *more]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_chart_is_never_written_over(files, capsys, tmp_path):
    shots, farm = map(str, files)
    chart = tmp_path / "chart.svg"
    chart.write_text("mine")
    assert run(["assign", shots, "--machines", farm, "--chart", str(chart)]) == 2
    assert chart.read_text() == "mine"


def test_check_ends_with_1_where_a_shot_has_no_place(files, capsys):
    shots, farm = files
    farm.write_text('machines: [{name: a, card: l4, windows: [{until: "2026-12-01"}]}]')
    asked = ["assign", str(shots), "--machines", str(farm), "--start", "2026-12-07"]
    assert run([*asked, "--check"]) == 1
    said = capsys.readouterr()
    assert "in none of their hours" in " ".join(said.out.split())
    assert "No free hours from the start on: a." in said.err
