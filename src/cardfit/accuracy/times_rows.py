"""Published times as a CSV file holds them, read with limits.

In: a file with the header of `benchmarks/data/times.csv`. Out: `PublishedTime` rows in seconds of one run, of one
step or of one call, and a `BadCell` for every row whose number or unit cannot be read. A row without an id is named by
its number in the file. Nothing here knows a model or a card.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cardfit.accuracy.rows import BadCell
from cardfit.cards import table

COLUMNS = tuple(
    "model card_id gpus precision width height frames steps batch framework attention_compile value unit time_s "
    "source notes".split()
)
OPTIONAL = ("id",)
Unit = Literal["run", "step"]
# unit as written -> what one value is of, and whether it is a rate
_UNITS: dict[str, tuple[Unit, bool]] = {
    "s": ("run", False),
    "s/it": ("step", False),
    "it/s": ("step", True),
}
MAX_SECONDS = 10_000_000.0
MAX_COUNT = 1_000_000


@dataclass(frozen=True, slots=True)
class PublishedTime:
    """One published time. ``seconds`` is of a whole run or, where ``of`` says so, of one denoising step.

    ``steps`` and sizes are None where the source does not print them.
    """

    id: str
    model: str
    card: str
    gpus: int | None
    precision: str
    width: int | None
    height: int | None
    num_frames: int | None
    steps: int | None
    batch: int | None
    framework: str
    how: str
    seconds: float
    of: Unit
    source: str
    notes: str


class _Bad(Exception):
    def __init__(self, column: str) -> None:
        self.column = column


def read(path: Path) -> tuple[tuple[PublishedTime, ...], tuple[BadCell, ...]]:
    """The rows of ``path`` that can be read, and the cells that cannot.

    Raises BadFile for a file that is missing, too large, no CSV or has another header.
    """
    good: list[PublishedTime] = []
    bad: list[BadCell] = []
    for row in table.read(path, columns=(*OPTIONAL, *COLUMNS), required=COLUMNS):
        name = row.cells.get("id", "") or f"row-{row.number}"
        try:
            good.append(_published(name, row.cells))
        except _Bad as fault:
            found = row.cells.get(fault.column, "")[:60]
            bad.append(BadCell(name[:60], row.number, fault.column, found))
    return tuple(good), tuple(bad)


def _published(name: str, cells: dict[str, str]) -> PublishedTime:
    if not cells["model"]:
        raise _Bad("model")
    known = _UNITS.get(cells["unit"].lower())
    if known is None:
        raise _Bad("unit")
    of, rate = known
    value = _number(cells, "value")
    return PublishedTime(
        id=name,
        model=cells["model"],
        card=cells["card_id"],
        gpus=_count(cells, "gpus"),
        precision=cells["precision"],
        width=_count(cells, "width"),
        height=_count(cells, "height"),
        num_frames=_count(cells, "frames"),
        steps=_count(cells, "steps"),
        batch=_count(cells, "batch"),
        framework=cells["framework"],
        how=cells["attention_compile"],
        seconds=1 / value if rate else value,
        of=of,
        source=cells["source"],
        notes=cells["notes"],
    )


def _number(cells: dict[str, str], column: str) -> float:
    try:
        value = float(cells[column])
    except ValueError:
        raise _Bad(column) from None
    if not math.isfinite(value) or not 0 < value < MAX_SECONDS:
        raise _Bad(column)
    return value


def _count(cells: dict[str, str], column: str) -> int | None:
    text = cells[column]
    if not text:
        return None
    if not text.isdecimal() or not 0 < int(text) < MAX_COUNT:
        raise _Bad(column)
    return int(text)
