"""Price against time of the cards that hold a request: dots on two logarithmic axes and the front of the best.

In: rows of an `Answer`. Out: a `Chart` in the units of its picture. A card is on the front when no other is both
cheaper and quicker. Costs in other currencies than the most common one are left out, and so is what has no time or no
price.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cardfit.messages import say
from cardfit.plan.answer import CardRow
from cardfit.report import words
from cardfit.report.selected import HOLDS
from cardfit.units import human_seconds

WIDTH, HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 16, 44
_MARGIN = 1.25  # room around the outermost dots, as a factor
_LABELS = 7
_TIMES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800)
_HOUR = 3600
_ROUND = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Dot:
    """One card: where it stands, what it says, and whether its label is drawn and to which side."""

    card: str
    name: str
    x: float
    y: float
    front: bool
    label: bool
    left: bool
    shape: str
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid and its label."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """All that is drawn."""

    dots: tuple[Dot, ...]
    front: str  # points of the stepped line
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    bottom: int = HEIGHT - _BOTTOM
    right: int = WIDTH - _RIGHT
    top: int = _TOP


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)


def chart(rows: Sequence[CardRow]) -> Chart | None:
    """The picture of ``rows``; None with fewer than two cards to compare."""
    found = _comparable(rows)
    if len(found) < 2:
        return None
    times = [seconds for _, seconds, _ in found]
    costs = [cost for _, _, cost in found]
    across = _Axis(min(times) / _MARGIN, max(times) * _MARGIN, _LEFT, WIDTH - _RIGHT)
    up = _Axis(min(costs) / _MARGIN, max(costs) * _MARGIN, HEIGHT - _BOTTOM, _TOP)
    best = _front(found)
    dots = [
        _dot(row, across.at(seconds), up.at(cost), row.card in best)
        for row, seconds, cost in sorted(found, key=lambda each: each[0].card in best)
    ]
    currency = found[0][0].cost_per_output
    assert currency is not None
    return Chart(
        dots=tuple(_labelled(dots)),
        front=_steps([dot for dot in dots if dot.front]),
        across=tuple(Tick(across.at(v), human_seconds(v)) for v in _times(across)),
        up=tuple(Tick(up.at(v), words.money_text(v, currency.currency)) for v in _amounts(up)),
    )


def _comparable(rows: Sequence[CardRow]) -> list[tuple[CardRow, float, float]]:
    known = [
        (row, row.seconds.likely, row.cost_per_output)
        for row in rows
        if row.verdict in HOLDS and row.seconds is not None and row.cost_per_output is not None
    ]
    counted = Counter(cost.currency for _, _, cost in known)
    common = counted.most_common(1)[0][0] if counted else None
    return [
        (row, seconds, cost.amount)
        for row, seconds, cost in known
        if cost.currency == common and seconds > 0 and cost.amount > 0
    ]


def _front(found: Sequence[tuple[CardRow, float, float]]) -> frozenset[str]:
    """The cards that no other one beats in both."""
    best, cards = math.inf, []
    for row, _, cost in sorted(found, key=lambda each: (each[1], each[2])):
        if cost < best:
            best = cost
            cards.append(row.card)
    return frozenset(cards)


def _dot(row: CardRow, x: float, y: float, front: bool) -> Dot:
    assert row.seconds is not None and row.cost_per_output is not None
    name = words.card_name(row.name)
    said = {
        "card": name,
        "time": human_seconds(row.seconds.likely),
        "cost": words.money(row.cost_per_output),
        "settings": words.short_settings(row),
    }
    shape = words.shape_name(row.verdict, row.price_of_it)
    return Dot(row.card, name, x, y, front, False, False, shape, say("view-dot", said))


def _labelled(dots: Sequence[Dot]) -> list[Dot]:
    """Names beside the dots of the front, where they do not cover each other."""
    from dataclasses import replace

    taken: list[tuple[float, float, float]] = []
    found = []
    for dot in sorted(dots, key=lambda each: (each.front, -each.x)):
        left = dot.x > WIDTH - 170
        width = 7.2 * len(dot.name) + 12
        start = dot.x - width if left else dot.x
        free = all(start + width < x or x + w < start or abs(dot.y - y) > 14 for x, y, w in taken)
        label = dot.front and free and len(taken) < _LABELS
        if label:
            taken.append((start, dot.y, width))
        found.append(replace(dot, label=label, left=left))
    return found


def _steps(front: Sequence[Dot]) -> str:
    """A line that only ever goes down or right: what lies above it is beaten."""
    points: list[str] = []
    before: Dot | None = None
    for dot in sorted(front, key=lambda each: each.x):
        if before is not None:
            points.append(f"{dot.x},{before.y}")
        points.append(f"{dot.x},{dot.y}")
        before = dot
    return " ".join(points)


def _times(axis: _Axis) -> list[float]:
    hours = [_HOUR * step * 10**power for power in range(4) for step in _ROUND]
    inside = [value for value in (*_TIMES, *hours) if axis.low <= value <= axis.high]
    return inside[:: max(1, math.ceil(len(inside) / 7))]


def _amounts(axis: _Axis) -> list[float]:
    powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
    found = [step * 10.0**power for power in powers for step in _ROUND]
    inside = [value for value in found if axis.low <= value <= axis.high]
    return inside[:: max(1, math.ceil(len(inside) / 6))]
