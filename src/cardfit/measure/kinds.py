"""How much longer each kind of kernel takes on a card than predicted, from stages that records and predictions share.

In: what the records of one card show of their stages. Out: a `Factor` a kind, or nothing where there are too few
different stages to tell kinds apart. Only stages that wait for kernels count: where launches or transfers show in the
predicted time the kinds do not sum to it. Least squares on measured / predicted, held to the card's overall factor by
a ridge, so that a kind which is a small part of every stage stays there.
"""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cardfit.measure.compared import Row
from cardfit.predict.calibration import Factor
from cardfit.records.models import PredictedStage, Record

_NOT_KERNELS = frozenset({"launch", "transfer"})
_APART = 0.05  # of a stage's time: launches and transfers that show more leave the stage out
_RIDGE = (
    0.02  # what a factor twice the overall one costs, in stages that are off by all of their time
)
_SHARE = 0.25  # of a stage: from here on a kind is seen in it
_EACH = 2  # different stages for every kind


@dataclass(frozen=True, slots=True)
class Seen:
    """One stage of one request: what its kinds were predicted to take, as shares of what it took; None of them zero."""

    key: tuple[str, str, str]
    shares: Mapping[str, float]


def kind_factors(seen: Sequence[Seen]) -> dict[str, Factor]:
    """Measured over predicted by kind of kernel; empty where what was seen cannot tell the kinds apart."""
    every = {name for each in seen for name in each.shares}
    names = sorted(name for name in every if _is_seen(name, seen))
    if len(names) < 2 or len({each.key for each in seen}) < _EACH * len(names):
        return {}
    factors = _solved(seen, names, statistics.median(1 / sum(s.shares.values()) for s in seen))
    found = {}
    for name in names:
        left = [
            1 / sum(factors.get(kind, 1.0) * share for kind, share in each.shares.items())
            for each in seen
            if each.shares.get(name, 0.0) >= _SHARE * sum(each.shares.values())
        ]
        low, high = min(1.0, *left), max(1.0, *left)
        found[name] = Factor(factor=factors[name], low=low, high=high, n=len(left))
    return found


def _is_seen(name: str, seen: Sequence[Seen]) -> bool:
    return any(each.shares.get(name, 0.0) >= _SHARE * sum(each.shares.values()) for each in seen)


def seen_in(record: Record, lines: Sequence[Row]) -> list[Seen]:
    """The stages of ``record`` that were timed, and predicted as kernels alone; ``lines`` are its `rows`."""
    if record.predicted is None or record.request is None:
        return []
    took = {row.name: row.steady_seconds or row.first_seconds for row in lines}
    asked = sys.intern(record.request.model_dump_json())  # the same in many records
    found = []
    for stage in record.predicted.stages:
        seconds = took.get(stage.name)
        if seconds and _kernels_alone(stage):
            shares = {
                kind: part / seconds
                for kind, part in stage.kind_seconds.items()
                if kind not in _NOT_KERNELS and part > 0
            }
            found.append(Seen((record.model or "", asked, stage.name), shares))
    return found


def _kernels_alone(stage: PredictedStage) -> bool:
    parts = stage.kind_seconds
    kernels = sum(part for kind, part in parts.items() if kind not in _NOT_KERNELS)
    return bool(
        kernels and stage.seconds and abs(stage.seconds - kernels) <= _APART * stage.seconds
    )


def _solved(seen: Sequence[Seen], names: Sequence[str], overall: float) -> dict[str, float]:
    """Factors by kind; what is no kind of ``names`` takes the overall factor."""
    import numpy as np

    left = np.array([[each.shares.get(name, 0.0) for name in names] for each in seen])
    rest = [sum(s for kind, s in each.shares.items() if kind not in names) for each in seen]
    right = 1.0 - overall * np.array(rest)
    # stages in proportion: one request measured a hundred times is no more than one
    counts = Counter(each.key for each in seen)
    weights = np.array([counts[each.key] ** -0.5 for each in seen])
    ridge = _RIDGE**0.5 / overall * np.eye(len(names))
    rows_, values = (
        np.vstack([left * weights[:, None], ridge]),
        np.concatenate([right * weights, np.full(len(names), _RIDGE**0.5)]),
    )
    found = np.linalg.lstsq(rows_, values, rcond=None)[0]
    least, most = overall / 4, overall * 4
    return {name: float(min(max(f, least), most)) for name, f in zip(names, found, strict=True)}
