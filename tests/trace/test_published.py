"""Published measurements, replayed: each within the bound that its row names."""

from __future__ import annotations

import importlib.util
import json
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _replay() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replay", ROOT / "benchmarks" / "replay.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["replay"] = module
    spec.loader.exec_module(module)
    return module


REPLAY = _replay()
ROWS = REPLAY.rows()


@pytest.mark.parametrize("row", [r for r in ROWS if r["within_pct"]], ids=lambda r: r["id"])
def test_a_published_figure_is_met(row: dict[str, str]) -> None:
    found = REPLAY.replay(row)
    assert abs(found.error_pct) <= found.within_pct, f"{found.error_pct:+.2f} %"


def test_every_row_has_a_source_and_a_unit() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS) >= 30
    for row in ROWS:
        assert row["source"], row["id"]
        assert row["unit"] in ("GiB", "MiB"), row["id"]
        assert float(row["measured"]) > 0, row["id"]


def test_the_page_lists_every_row() -> None:
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert all(f"| {row['id']} |" in page for row in ROWS)


def test_the_shipped_band_says_where_it_comes_from() -> None:
    band = json.loads(files("cardfit.predict").joinpath("data/bands.json").read_text("utf-8"))
    assert band["n"] == len(ROWS) - len(band["left_out"])
    assert len(band["sources"]) >= 3
    assert 0 <= band["reserved_high"] < 0.2
    assert 0 <= band["reserved_low"] < 0.25


def test_one_sided_takes_an_order_statistic() -> None:
    assert REPLAY.one_sided([n / 100 for n in range(1, 21)]) == pytest.approx(0.20)
    assert REPLAY.one_sided([n / 1000 for n in range(1, 101)]) == pytest.approx(0.096)
    assert REPLAY.one_sided([-0.5, -0.2]) == 0.0
