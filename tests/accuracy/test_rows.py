"""Published rows: units, faults by row and column, what is left open."""

from __future__ import annotations

from pathlib import Path

import pytest

from cardfit.accuracy.rows import COLUMNS, read, source_name
from cardfit.errors import BadFile
from cardfit.units import GIB, MIB

SHIPPED = Path(__file__).parents[2] / "benchmarks" / "data" / "measured.csv"


@pytest.mark.parametrize(
    ("figure", "unit", "expected"),
    [
        ("24", "GB", 24 * GIB),
        ("24", "GiB", 24 * GIB),
        ("610.06", "MB", round(610.06 * MIB)),
        ("2", "mib", 2 * MIB),
    ],
)
def test_a_gb_is_counted_as_memory_is(made, figure, unit, expected):
    row = made(peak_gib_reported=figure, peak_unit_as_written=unit)
    assert row.peak_bytes == expected


def test_a_figure_without_a_unit_is_bytes_only_where_the_notes_say_so(made):
    bare = {"peak_gib_reported": "3860316672", "peak_unit_as_written": "unknown"}
    assert made(**bare).peak_bytes is None
    assert made(**bare, notes="UNIT IS BYTES as printed").peak_bytes == 3860316672


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("peak_gib_reported", "nan"),
        ("peak_gib_reported", "inf"),
        ("peak_gib_reported", "-3"),
        ("peak_gib_reported", "about 20"),
        ("peak_gib_reported", "1e300"),
        ("peak_unit_as_written", "furlong"),
        ("peak_kind", "guessed"),
        ("width", "1024px"),
        ("height", "10.5"),
        ("num_frames", "0"),
        ("batch", "99999999999"),
        ("time_s", "fast"),
    ],
)
def test_a_bad_cell_is_named_and_the_other_rows_stand(table, column, text):
    good, bad = read(table({"id": "first"}, {"id": "second", column: text}, {"id": "third"}))
    assert [row.id for row in good] == ["first", "third"]
    assert [(b.id, b.row, b.column, b.found) for b in bad] == [("second", 3, column, text)]


@pytest.mark.parametrize(
    "columns", [COLUMNS[1:], (*COLUMNS, "extra"), ("id", "model"), (*COLUMNS[:-1], "remarks")]
)
def test_another_header_is_refused(table, columns):
    with pytest.raises(BadFile):
        read(table({}, columns=columns))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadFile, match="nothing"):
        read(tmp_path / "nothing.csv")


def test_what_a_source_leaves_open_is_none(made):
    row = made(guidance_cfg="unknown", vae_tiling="unknown", batch="", peak_kind="unknown")
    assert (row.guidance, row.vae_tiling, row.batch, row.kind) == (None, None, None, "unnamed")


def test_a_source_is_its_publisher():
    assert source_name("someone/benchmarks README.md (scripts a.py, b.py)") == "someone/benchmarks"
    assert source_name("someone/engine pull requests 1608 and 1631") == "someone/engine"


def test_the_shipped_rows_are_readable_and_each_has_a_source():
    good, bad = read(SHIPPED)
    assert bad == ()
    assert len(good) > 400
    assert all(row.source for row in good)
    assert len({row.id for row in good}) == len(good)
