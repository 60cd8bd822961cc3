"""Published measurements, replayed: each within the bound that its row names."""

from __future__ import annotations

import importlib.util
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
