"""What a sampler is, and how its readings become figures.

In: readings ``(moment, {raw: number})``. Out: figures by name with the unit in it, ``None`` with a `Reason` where a
sampler was silent. A sampler that cannot read something leaves the key out and says why: silence is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from cardfit.records.models import Reason

Reading = Mapping[str, float]
Sample = tuple[float, Reading]  # monotonic seconds
Series = Sequence[tuple[float, float]]


class Sampler(Protocol):
    """One source of readings."""

    silent: dict[str, Reason]

    def mark(self) -> None:
        """A phase begins: peaks start anew."""

    def read(self, border: bool = False) -> Reading:
        """What can be read now; at the ``border`` of a phase also what costs more to read."""

    def close(self) -> None:
        """Let the source go."""


def peak(series: Series) -> float:
    """The highest reading."""
    return max(value for _, value in series)


def least(series: Series) -> float:
    """The lowest reading."""
    return min(value for _, value in series)


def mean(series: Series) -> float:
    """The plain mean of the readings."""
    return sum(value for _, value in series) / len(series)


def last(series: Series) -> float:
    """The last reading."""
    return series[-1][1]


def grown(series: Series) -> float:
    """How much a counter grew from the first reading to the last."""
    return series[-1][1] - series[0][1]


def integral(series: Series) -> float:
    """A rate summed over time, each reading held until the next.

    >>> integral([(0.0, 10.0), (2.0, 30.0), (3.0, 0.0)])
    50.0
    """
    return sum(value * (after - at) for (at, value), (after, _) in pairwise(series))


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the table: which raw reading it comes from, how, and what it says.

    ``per_stage`` figures make sense for a stretch of a phase too.
    """

    raw: str
    how: Callable[[Series], float]
    says: str
    per_stage: bool = False


@dataclass
class Figures:
    """Readings of one phase, and what becomes of them."""

    samples: list[Sample] = field(default_factory=list)

    def of(
        self,
        table: Mapping[str, Figure],
        between: Sequence[tuple[float, float]] | None = None,
    ) -> dict[str, float | None]:
        """Every figure of ``table`` over the phase, or over the stretches ``between`` two moments each."""
        found: dict[str, float | None] = {}
        for name, figure in table.items():
            if between is not None and not figure.per_stage:
                continue
            series = [
                (at, reading[figure.raw])
                for at, reading in self.samples
                if figure.raw in reading
                and (between is None or any(begin <= at <= end for begin, end in between))
            ]
            enough = 2 if figure.how in (grown, integral) else 1
            found[name] = figure.how(series) if len(series) >= enough else None
        return found
