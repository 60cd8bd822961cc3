"""The generated page, the shipped bands and the kept errors belong together; a sample of rows is scored again."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from pathlib import Path

import pytest

from cardfit.accuracy.bands import MIN_ROWS, MIN_SOURCES
from cardfit.accuracy.rows import read
from cardfit.accuracy.score import score
from cardfit.predict.memory import bands

ROOT = Path(__file__).parents[2]
DATA = ROOT / "benchmarks" / "data"
ERRORS = json.loads((DATA / "errors.json").read_text(encoding="utf-8"))
SHIPPED = json.loads(files("cardfit.predict").joinpath("data/bands.json").read_text("utf-8"))
# quick ones of every kind: decodes, a denoiser alone, whole runs, quantized and offloaded
SAMPLE = (
    "vaeb-016",
    "vaeb-034-reserved",
    "qwv-001",
    "od-001",
    "dbm-001",
    "dbm-003",
    "vgen-004",
    "tao-001",
)
MOVED_PCT = 0.01


def test_the_measured_rows_can_all_be_read():
    good, bad = read(DATA / "measured.csv")
    assert not bad
    assert len({row.id for row in good}) == len(good) >= 450
    assert all(row.source for row in good)


def test_the_page_tells_every_scored_row_and_the_plot_stands_beside_it():
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert len(ERRORS) >= 100
    missing = [
        name
        for name, error in ERRORS.items()
        if f"| {name} |" not in page or f"{error:+.2f} %" not in page
    ]
    assert missing == []
    assert "(accuracy.svg)" in page
    assert (ROOT / "docs" / "accuracy.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("kind", ["allocated", "reserved", "device"])
def test_a_shipped_band_says_where_it_comes_from(kind):
    band = SHIPPED["bands"][kind]
    assert band["n"] >= MIN_ROWS
    assert len(band["sources"]) >= MIN_SOURCES
    assert 0 < band["held_out"] <= 1
    assert 0 <= band["high"] < 1
    assert 0 <= band["low"] < 1


def test_answers_carry_the_shipped_band():
    reserved = SHIPPED["bands"]["reserved"]
    assert bands() == {"low": reserved["low"], "high": reserved["high"]}


def test_no_row_of_the_sample_has_moved(tmp_path):
    table = DATA / "measured.csv"
    with table.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["id"] in SAMPLE]
    assert len(rows) == len(SAMPLE)
    chosen = tmp_path / "sample.csv"
    with chosen.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    found = {row.id: row.error_pct for row in score(chosen).rows}
    assert set(found) == set(SAMPLE)
    moved = {
        name: (ERRORS[name], now)
        for name, now in found.items()
        if abs(now - ERRORS[name]) > MOVED_PCT
    }
    assert moved == {}, "run `make accuracy` and look at what moved before committing it"
