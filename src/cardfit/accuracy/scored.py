"""How the published rows came out for this release: kept, so that a page can show it without running anything.

In: `data/scored.json`, which ``make accuracy`` writes. Out: an `Accuracy`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cardfit.accuracy.score import Accuracy

FILE = Path(__file__).with_name("data") / "scored.json"


@cache
def scored() -> Accuracy:
    """The scores of ``benchmarks/data/measured.csv``."""
    return Accuracy.model_validate_json(FILE.read_bytes())
