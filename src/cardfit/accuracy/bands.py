"""How far measurements lie from predictions: one-sided bands, and whether they hold on sources left out.

In: scored rows. Out: a `Band` for each kind of figure: the order statistics that 95 % of the residuals stay under,
from every row whose software matches, whatever its error. A kind with fewer than 19 rows or 3 sources takes the next
wider group, and says so. ``held_out`` is the share of rows inside a band that was made without their source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

LEVEL = 0.95
MIN_ROWS = 19  # the smallest n at which a one-sided 95 % order statistic exists: 19 / 20
MIN_SOURCES = 3


class Residual(Protocol):
    """What a band needs of a row."""

    @property
    def kind(self) -> str:
        """Allocated, reserved, device or unnamed."""
        ...

    @property
    def source(self) -> str:
        """Who published it."""
        ...

    @property
    def measured_bytes(self) -> int:
        """As published."""
        ...

    @property
    def predicted_bytes(self) -> int:
        """As predicted."""
        ...


class Band(BaseModel):
    """Relative distances below and above a predicted figure, and what they rest on.

    ``group`` names the rows that the band was made of; ``held_out`` is None below two sources.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    group: str
    n: int
    sources: tuple[str, ...]
    low: float = Field(ge=0)
    high: float = Field(ge=0)
    held_out: float | None


def residual(row: Residual) -> float:
    """Measured against predicted: 0.01 is a measurement one percent above."""
    return row.measured_bytes / row.predicted_bytes - 1


def one_sided(values: Sequence[float]) -> float:
    """The order statistic that a further value stays under with a chance of 95 %, at least zero.

    >>> one_sided([n / 100 for n in range(1, 21)])
    0.2
    """
    ordered = sorted(values)
    if not ordered:
        return 0.0
    index = min(len(ordered), math.ceil(LEVEL * (len(ordered) + 1))) - 1
    return max(0.0, ordered[index])


def edges(rows: Sequence[Residual]) -> tuple[float, float]:
    """Low and high of the band of ``rows``."""
    found = [residual(row) for row in rows]
    return one_sided([-value for value in found]), one_sided(found)


def coverage(rows: Sequence[Residual]) -> float | None:
    """The share of rows inside the band of all other sources; None below two sources."""
    sources = {row.source for row in rows}
    if len(sources) < 2:
        return None
    inside = 0
    for source in sources:
        low, high = edges([row for row in rows if row.source != source])
        inside += sum(-low <= residual(row) <= high for row in rows if row.source == source)
    return round(inside / len(rows), 4)


def _enough(rows: Sequence[Residual]) -> bool:
    return len(rows) >= MIN_ROWS and len({row.source for row in rows}) >= MIN_SOURCES


def band(rows: Sequence[Residual], kind: str) -> Band:
    """The band of one kind of figure: from its own rows where there are enough, else from all that name their kind,
    else from all."""
    groups: tuple[tuple[str, Callable[[Residual], bool]], ...] = (
        (kind, lambda row: row.kind == kind),
        ("allocated, reserved, device", lambda row: row.kind != "unnamed"),
        ("all", lambda row: True),
    )
    sized = [(name, [row for row in rows if member(row)]) for name, member in groups]
    name, chosen = next((each for each in sized if _enough(each[1])), sized[-1])
    low, high = edges(chosen)
    return Band(
        group=name,
        n=len(chosen),
        sources=tuple(sorted({row.source for row in chosen})),
        low=round(low, 4),
        high=round(high, 4),
        held_out=coverage(chosen),
    )
