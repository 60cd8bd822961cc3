"""Rows made by hand: every column has a plain value that a test may replace."""

from __future__ import annotations

import csv

import pytest

from cardfit.accuracy.rows import COLUMNS, read

PLAIN = {
    "id": "a-1",
    "model": "FLUX.1-dev",
    "framework": "diffusers",
    "precision_weights": "bf16",
    "quantization": "none",
    "width": "1024",
    "height": "1024",
    "batch": "1",
    "steps": "28",
    "guidance_cfg": "no",
    "offload": "none",
    "vae_tiling": "no",
    "vae_slicing": "no",
    "scope": "full_pipeline",
    "peak_gib_reported": "33.851",
    "peak_unit_as_written": "GB",
    "peak_kind": "allocated",
    "source": "someone/benchmarks README.md, first table",
}


@pytest.fixture
def table(tmp_path):
    """Writes rows (each a dict of what differs) to a CSV file and returns its path."""

    def write(*rows, columns=COLUMNS):
        path = tmp_path / "measured.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows({**PLAIN, **row} for row in rows)
        return path

    return write


@pytest.fixture
def made(table):
    """One row as the reader gives it."""

    def make(**cells):
        good, bad = read(table(cells))
        assert not bad
        return good[0]

    return make
