"""The figures by which runs are compared: peak, host, seconds with their uncertainty.

In: a `Record`. Out: a `Headline`, and intervals for a mean of few repetitions (Student's t, 95 %, two-sided).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cardfit.records.models import Record, Repetition

# 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom; the normal one beyond
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960


@dataclass(frozen=True, slots=True)
class Headline:
    """What a run took. ``peak_bytes`` is the card's (all processes where NVML spoke, else reserved); on a CPU what its
    tensors held. ``seconds`` is the mean of ``repeats`` steady repetitions, of the first one where there is none.
    """

    peak_bytes: float | None
    host_bytes: float | None
    seconds: float | None
    repeats: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the half width of its 95 % interval; ``None`` from fewer than two values."""

    mean: float
    half: float | None
    n: int


def headline(record: Record) -> Headline:
    """The figures of ``record``."""
    peak = record.peak("device_used_peak_bytes") or record.peak("reserved_peak_bytes")
    return Headline(
        peak_bytes=peak or record.peak("cpu_allocated_peak_bytes"),
        host_bytes=record.peak("rss_peak_bytes"),
        seconds=typical_seconds(record),
        repeats=len(steady(record)),
    )


def typical_seconds(record: Record) -> float | None:
    """The mean of the steady repetitions, of the first one where there is none."""
    timed = steady(record) or record.of_phase("first")
    return sum(each.seconds for each in timed) / len(timed) if timed else None


def steady(record: Record) -> tuple[Repetition, ...]:
    """The repetitions whose time counts."""
    return record.of_phase("steady", "resume", "own")


def interval(values: Sequence[float]) -> Interval:
    """The mean of ``values`` with its interval. Raises ValueError for none.

    >>> found = interval([10.0, 11.0, 12.0])
    >>> found.mean, round(found.half, 3)
    (11.0, 2.484)
    """
    n = len(values)
    if n < 1:
        raise ValueError(values)
    mean = sum(values) / n
    if n < 2:
        return Interval(mean, None, n)
    return Interval(mean, quantile(n - 1) * statistics.stdev(values) / math.sqrt(n), n)


def quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t.

    >>> quantile(1), quantile(1000)
    (12.706, 1.96)
    """
    return _T[degrees - 1] if degrees <= len(_T) else _NORMAL


def repeats_for(values: Sequence[float], half: float) -> int:
    """How many repetitions in all bring the half width of the mean's interval down to ``half``; at least two.

    >>> repeats_for([10.0, 11.0, 12.0], 1.0) > 3
    True
    """
    if len(values) < 2:
        return 3
    spread = statistics.stdev(values)
    n = len(values)
    while n < 100_000 and quantile(n - 1) * spread / math.sqrt(n) > half:
        n += 1
    return n
