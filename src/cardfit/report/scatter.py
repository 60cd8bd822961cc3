"""Predicted against measured, as dots on two logarithmic axes with the line on which both are the same.

In: the rows of an `Accuracy`. Out: a `Scatter` in the units of its picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cardfit.accuracy.score import ScoredRow
from cardfit.messages import number, say
from cardfit.units import GIB, gib_text

SIDE, _LEFT, _BOTTOM, _EDGE = 420, 56, 40, 14
_POWERS = range(-4, 9)  # 1/16 to 256 GiB


@dataclass(frozen=True, slots=True)
class Dot:
    """One published figure."""

    x: float
    y: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A size, at its place across and up."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """All that is drawn."""

    dots: tuple[Dot, ...]
    ticks: tuple[Tick, ...]
    kinds: tuple[str, ...]
    side: int = SIDE
    left: int = _LEFT
    bottom: int = SIDE - _BOTTOM
    right: int = SIDE - _EDGE
    top: int = _EDGE


def scatter(rows: Sequence[ScoredRow]) -> Scatter | None:
    """The picture of ``rows``; None without any."""
    if not rows:
        return None
    sizes = [size for row in rows for size in (row.measured_bytes, row.predicted_bytes)]
    low, high = math.log(min(sizes) / 1.3), math.log(max(sizes) * 1.3)

    def share(size: float) -> float:
        return (math.log(size) - low) / (high - low)

    def x(size: float) -> float:
        return round(_LEFT + share(size) * (SIDE - _EDGE - _LEFT), 1)

    def y(size: float) -> float:
        return round(SIDE - _BOTTOM - share(size) * (SIDE - _BOTTOM - _EDGE), 1)

    marks = [GIB * 2.0**power for power in _POWERS]
    inside = [size for size in marks if low <= math.log(size) <= high]
    every = max(1, math.ceil(len(inside) / 6))
    return Scatter(
        dots=tuple(
            Dot(x(row.measured_bytes), y(row.predicted_bytes), row.kind, _text(row)) for row in rows
        ),
        kinds=tuple(dict.fromkeys(row.kind for row in rows)),
        ticks=tuple(Tick(x(size), y(size), _size(size)) for size in inside[::-every]),
    )


def _size(size: float) -> str:
    return gib_text(size, 0 if size >= GIB else 2)


def _text(row: ScoredRow) -> str:
    args = {
        "model": row.model,
        "kind": say(f"accuracy-kind-{row.kind}"),
        "measured": gib_text(row.measured_bytes, 2),
        "predicted": gib_text(row.predicted_bytes, 2),
        "error": number(f"{row.error_pct:+.1f} %"),
    }
    return say("view-scatter-dot", args)
