"""Bars that a page draws: the parts of a peak, its band, and the line of a card, as places on a common scale.

In: stages and cards of an `Answer`. Out: numbers from 0 to `FULL` along one axis, with the texts that say the same. The
parts of a bar are weights, working memory and what the allocator keeps; they sum to the peak.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardfit.messages import say
from cardfit.plan.answer import Answer, CardRow, StageRow
from cardfit.report import words
from cardfit.units import gib, gib_text

FULL = 1000
_ROOM = 1.04  # free space behind the longest bar


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar; ``kind`` is weights, working or allocator."""

    kind: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class StageBar:
    """One stage: its parts, where its band begins and ends, and the same in words."""

    name: str
    where: str
    parts: tuple[Part, ...]
    low: float
    high: float
    weights: str
    working: str
    allocator: str
    peak: str
    band: str
    decides: bool
    over: bool


@dataclass(frozen=True, slots=True)
class Line:
    """What a card has to offer, on the scale of the bars."""

    x: float
    card: str
    usable: str


@dataclass(frozen=True, slots=True)
class Stages:
    """The bars of all stages and, where a card is meant, its line."""

    bars: tuple[StageBar, ...]
    line: Line | None


def stages(answer: Answer, against: CardRow | None) -> Stages:
    """The stages of ``answer`` on one scale that also holds the line of ``against``."""
    usable = None if against is None else against.usable_bytes
    whole = max([usable or 0, *(stage.high_bytes for stage in answer.stages)]) * _ROOM
    line = None
    if against is not None and usable:
        line = Line(_at(usable, whole), words.card_name(against.name), gib_text(usable))
    bars = [_stage(stage, whole, usable, answer.peak.stage) for stage in answer.stages]
    return Stages(tuple(bars), line)


def _stage(stage: StageRow, whole: float, usable: int | None, decides: str) -> StageBar:
    kept = stage.reserved_bytes - stage.allocated_bytes
    sizes = {
        "weights": stage.weights_bytes,
        "working": stage.allocated_bytes - stage.weights_bytes,
        "allocator": kept,
    }
    return StageBar(
        name=stage.name,
        where=f"{stage.component}, {stage.site}" if stage.site else stage.component,
        parts=_parts(sizes, whole),
        low=_at(stage.low_bytes, whole),
        high=_at(stage.high_bytes, whole),
        weights=gib(stage.weights_bytes),
        working=gib(sizes["working"]),
        allocator=gib(kept),
        peak=gib_text(stage.reserved_bytes),
        band=say("view-band", {"low": gib(stage.low_bytes), "high": gib_text(stage.high_bytes)}),
        decides=stage.name == decides,
        over=usable is not None and stage.reserved_bytes > usable,
    )


def _parts(sizes: dict[str, int], whole: float) -> tuple[Part, ...]:
    found, x = [], 0.0
    for kind, size in sizes.items():
        width = _at(size, whole)
        found.append(Part(kind, x, width))
        x = round(x + width, 1)
    return tuple(found)


def _at(size: float, whole: float) -> float:
    return round(FULL * size / whole, 1)


@dataclass(frozen=True, slots=True)
class CardBar:
    """What is needed of one card against what it has, on a scale of its own."""

    peak: float
    usable: float
    over: bool


def card_bar(row: CardRow) -> CardBar | None:
    """The bar of a card; None where its peak or its usable memory is not known."""
    peak, usable = row.peak_reserved_bytes, row.usable_bytes
    if peak is None or not usable:
        return None
    whole = max(peak, usable)
    return CardBar(_at(peak, whole), _at(usable, whole), peak > usable)
