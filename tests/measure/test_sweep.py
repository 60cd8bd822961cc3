"""Sweeps: every cell once, gone on with after kill -9, the hopeless left out."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cardfit import verbs
from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.measure import sweep as sweeping
from cardfit.measure.against import Against
from cardfit.measure.edge import near_the_edge
from cardfit.measure.sweep import Cell, sweep, sweep_id
from cardfit.measure.sweep_file import SweepFile, cells, read_sweep_file
from cardfit.records import files
from cardfit.records.models import Outcome, Predicted, Record
from cardfit.request import Request, Settings

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location(
    "make_record", ROOT / "tests" / "records" / "make_record.py"
)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)


def predicted(reserved_bytes: int, host_bytes: int = 0) -> Predicted:
    return Predicted(
        stages=(),
        allocated_bytes=reserved_bytes,
        reserved_bytes=reserved_bytes,
        host_bytes=host_bytes,
    )


def cell(key: str, need: Predicted | None = None) -> Cell:
    exact = make_record.request()
    return Cell(Request(model="flux.1-dev"), exact, Settings(), {"key": key}, key, need)


class Runner:
    """Runs cells as recorded: outcomes by key, everything kept as files."""

    def __init__(self, **outcomes: str) -> None:
        self.outcomes, self.ran = outcomes, list[str]()

    def __call__(self, each: Cell) -> Record:
        self.ran.append(each.key)
        kind: Any = self.outcomes.get(each.key, "ok")
        record = make_record.record(sweep="s", cell=each.key, outcome=Outcome(kind=kind))
        files.write(record)
        return record


def test_a_cell_with_a_finished_record_never_runs_again(data: Path) -> None:
    asked = [cell("a"), cell("b"), cell("c")]
    first = Runner(b="interrupted", c="error")
    found = sweep("s", "flux.1-dev", asked, first)
    assert (found.ran, found.kept, [row.outcome for row in found.rows]) == (
        3,
        0,
        ["ok", "interrupted", "error"],
    )
    second = Runner()
    found = sweep("s", "flux.1-dev", asked, second)
    assert second.ran == ["b"]  # what was cut off runs again, what failed has its answer
    assert (found.ran, found.kept) == (1, 2)


def test_what_needs_as_much_as_a_cell_that_ran_out_is_left_out(data: Path) -> None:
    runner = Runner(middle="oom")
    asked = [
        cell("large", predicted(30)), cell("small", predicted(10)), cell("middle", predicted(20)), cell("unknown"),
    ]  # fmt: skip
    states = []
    found = sweep("s", "flux.1-dev", asked, runner, said=states.append)
    assert runner.ran == ["small", "middle", "unknown"]
    assert [row.outcome for row in found.rows] == [None, "ok", "oom", "ok"]
    assert found.rows[0].skipped is not None and "as much of the card" in found.rows[0].skipped.text
    assert len(states) == 3


def test_host_memory_is_another_want_than_the_cards(data: Path) -> None:
    runner = Runner(one="host_oom")
    asked = [cell("one", predicted(10, host_bytes=50)), cell("two", predicted(20, host_bytes=40))]
    sweep("s", "flux.1-dev", asked, runner)
    assert runner.ran == ["one", "two"]


def test_a_refused_cell_says_why_and_the_others_run(data: Path) -> None:
    def run(each: Cell) -> Record:
        if each.key == "a":
            raise BadRequest("run-offload-needs-card", offload="model")
        return Runner()(each)

    found = sweep("s", "flux.1-dev", [cell("a"), cell("b")], run)
    assert found.rows[0].skipped is not None and "offload model" in found.rows[0].skipped.text
    assert found.rows[1].outcome == "ok"


def test_one_sweep_at_a_time(data: Path) -> None:
    def run(_each: Cell) -> Record:
        with pytest.raises(BadRequest, match="run by another process"):
            program = (
                "from cardfit.measure.sweep import sweep\n"
                "from cardfit.errors import BadRequest\n"
                "try: sweep('s', 'm', [], None)\n"
                "except BadRequest as error: raise SystemExit(str(error))"
            )
            ran = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ}
            )
            assert "run by another process" in ran.stderr
            sweep("s", "flux.1-dev", [], Runner())
        return Runner()(_each)

    assert sweep("s", "flux.1-dev", [cell("a")], run).ran == 1


def test_the_name_of_a_sweep_does_not_hang_on_order() -> None:
    assert sweep_id("m", [cell("a"), cell("b")]) == sweep_id("m", [cell("b"), cell("a")])
    assert sweep_id("m", [cell("a")]) != sweep_id("n", [cell("a")])


def test_cells_are_every_combination_checked_before_the_first_runs(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "request: {model: flux.1-dev}\nsettings:\nsweep:\n  vae_tiling: [false, true]\n  batch: [1, 2, 4]\n"
    )
    found = cells(read_sweep_file(file))
    assert len(found) == 6
    assert (found[-1][0].batch, found[-1][1].vae_tiling) == (4, True)
    request = Request(model="flux.1-dev")
    for axes, words in [
        ({"vea_tiling": [True]}, "no field of the request"),
        ({"vae_tiling": []}, "give a list of values"),
        ({"model": ["svd"]}, "the model itself cannot be varied"),
        ({"offload": ["everything"]}, "offload"),
        ({"seed": list(range(1001))}, "up to 1000"),
    ]:
        with pytest.raises(BadRequest, match=words):
            cells(SweepFile(request=request, sweep=axes))
    file.write_text("[]")
    with pytest.raises(BadFile):
        read_sweep_file(file)


def test_auto_takes_what_lies_near_the_edge_and_the_smallest() -> None:
    sizes = {
        ("none", False): 40,
        ("none", True): 30,
        ("model", False): 24,
        ("model", True): 21,
        ("sequential", True): 2,
    }

    def need(settings: Settings) -> Predicted | None:
        size = sizes.get((str(settings.offload), bool(settings.vae_tiling)))
        return None if size is None else predicted(size)

    chosen = near_the_edge(load("flux.1-dev"), Settings(), 23, need)
    assert [(each.offload, each.vae_tiling) for each in chosen] == [
        ("model", False), ("model", True), ("sequential", True),
    ]  # fmt: skip
    fixed = near_the_edge(load("flux.1-dev"), Settings(offload="none"), 38, need)
    assert [(each.offload, each.vae_tiling) for each in fixed] == [("none", False), ("none", True)]


def test_a_real_sweep_survives_kills(folder: Path, data: Path) -> None:
    """The benchmark with few kills: nothing lost, nothing half, nothing twice."""
    script = ROOT / "benchmarks" / "sweep_kills.py"
    words = [
        "--folder",
        str(folder),
        "--kills",
        "2",
        "--runs",
        "2",
        "--least",
        "2",
        "--most",
        "8",
        "--seed",
        "1",
    ]
    ran = subprocess.run(
        [sys.executable, str(script), *words], capture_output=True, text=True, env={**os.environ}
    )
    assert ran.returncode == 0, ran.stderr
    assert '"cells": 2' in ran.stdout and '"in_store": 2' in ran.stdout
    found = verbs.choose(sweep="kills")
    assert found.chosen is not None
    outcomes = found.candidates[0].outcomes  # a run cut off by a kill is kept as what it was
    assert outcomes[-2:] == ("ok", "ok") and set(outcomes) <= {"ok", "interrupted"}


def test_records_of_another_sweep_do_not_count(data: Path) -> None:
    files.write(make_record.record(sweep="other", cell="a"))
    assert sweeping.finished("s") == {}


def made(key: str, level: int) -> Record:
    """A record that kept a picture: stripes of ``level``."""
    import numpy as np

    from cardfit.media.pixels import write_png

    found = make_record.record(sweep="s", cell=key, outputs=("outputs/000.png",))
    target = files.records_folder() / found.id / "outputs"
    target.mkdir(parents=True)
    image = np.zeros((64, 64, 3), np.uint8)
    image[:, ::8] = level
    write_png(target / "000.png", image)
    files.write(found)
    return found


def test_the_reference_runs_first_and_every_output_is_held_against_it(data: Path) -> None:
    cells = [replace(cell(key, predicted(need)), values={"vae_tiling": tiled}) for key, need, tiled in
             (("small", 1, True), ("reference", 9, False))]  # fmt: skip
    order: list[str] = []

    def run(each: Cell) -> Record:
        order.append(each.key)
        return made(each.key, {"small": 180, "reference": 200}[each.key])

    against = Against.of("vae-tiling=false", cells, None)
    assert against.cell == "reference"
    found = sweep("s", "flux.1-dev", cells, run, first=against.cell, judge=against.judge)
    assert order == ["reference", "small"]
    small, reference = found.rows
    assert reference.quality is not None and reference.quality.psnr_db is None
    assert small.quality is not None and small.quality.reference == reference.record
    assert 0.5 < small.quality.ssim < 1
    # it is kept, so that going on compares nothing again
    again = sweep(
        "s", "flux.1-dev", cells, run, judge=Against.of("vae_tiling=false", cells, None).judge
    )
    assert again.rows[0].quality == small.quality and again.ran == 0
    # an earlier record does as well, and a cell without an output is said to have none
    before = Against.of(reference.record or "", cells, None)
    assert before.cell is None
    bare = make_record.record(cell="small")
    files.write(bare)
    judged = before.judge(cells[0], bare)
    assert judged.quality is None and "kept no output" in judged.notes[0].text
    for words, count in (("vae_tiling=maybe", 0), ("batch=1", 0)):
        with pytest.raises(BadRequest, match=f"{count} cells"):
            Against.of(words, cells, None)
    with pytest.raises(BadRequest, match="kept no output"):
        Against.of(bare.id, cells, None)
