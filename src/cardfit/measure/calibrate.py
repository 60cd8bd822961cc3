"""Learn from records: what runs took on a card against what was predicted for them.

In: records with a prediction. Out: a `Calibration` with a factor and its residuals for each card: time in all, by stage
and by kind of kernel, allocated and reserved peaks, and the context beside the allocator. Kept for
`cardfit.predict.calibration`.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cardfit.errors import BadRequest
from cardfit.measure.compared import rows
from cardfit.measure.kinds import kind_factors
from cardfit.measure.samples import headline
from cardfit.predict.calibration import Calibration, CardFactors, Factor, path
from cardfit.records.files import put
from cardfit.records.models import Record
from cardfit.records.verbs import listed


def calibrate(
    records: Sequence[Record] | None = None,
    *,
    store: str | None = None,
    file: Path | None = None,
    keep: bool = True,
) -> Calibration:
    """Factors from ``records`` (all of the store when left out), kept unless told not to.

    A record counts when it ended well on a known card and a prediction stands beside it; ``left_out`` counts the
    others by reason. Raises BadRequest when none counts, BadFile where the factors cannot be written.
    """
    given = listed(store, unread=[]) if records is None else records
    left_out: Counter[str] = Counter()
    by_card: dict[str, list[Record]] = {}
    for record in given:
        why = _why_not(record)
        if why is not None:
            left_out[why] += 1
            continue
        assert record.machine.card is not None
        by_card.setdefault(record.machine.card, []).append(record)
    if not by_card:
        said = ", ".join(f"{why} {count}" for why, count in sorted(left_out.items())) or "-"
        raise BadRequest("calibrate-nothing", count=len(given), why=said)
    found = Calibration(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        records=tuple(record.id for each in by_card.values() for record in each),
        cards={card: _factors(each) for card, each in sorted(by_card.items())},
        left_out=dict(left_out),
    )
    if keep:
        put(file or path(), (found.model_dump_json(indent=1, by_alias=True) + "\n").encode())
    return found


def _why_not(record: Record) -> str | None:
    if record.fake:
        return "fake"
    if not record.ok:
        return "not-ok"
    if record.machine.card is None:
        return "no-card"
    if record.predicted is None:
        return "not-predicted"
    return None


def _factors(records: Sequence[Record]) -> CardFactors:
    times: list[float] = []
    allocated: list[float] = []
    reserved: list[float] = []
    contexts: list[int] = []
    stages: dict[str, list[float]] = {}
    for record in records:
        assert record.predicted is not None
        seen = headline(record)
        if record.predicted.seconds and seen.seconds:
            times.append(seen.seconds / record.predicted.seconds)
        for row in rows(record):
            measured = row.steady_seconds or row.first_seconds
            if row.predicted_seconds and measured:
                stages.setdefault(row.name, []).append(measured / row.predicted_seconds)
        for name, kept in (("allocated", allocated), ("reserved", reserved)):
            measured_bytes = record.peak(f"{name}_peak_bytes")
            predicted_bytes = getattr(record.predicted, f"{name}_bytes")
            if measured_bytes and predicted_bytes:
                kept.append(measured_bytes / predicted_bytes)
        if (context := _context(record)) is not None:
            contexts.append(context)
    return CardFactors(
        time=_factor(times),
        stages={name: made for name, each in stages.items() if (made := _factor(each)) is not None},
        kinds=kind_factors(records),
        allocated=_factor(allocated),
        reserved=_factor(reserved),
        context_low_bytes=min(contexts, default=None),
        context_likely_bytes=round(statistics.median(contexts)) if contexts else None,
        context_high_bytes=max(contexts, default=None),
    )


def _context(record: Record) -> int | None:
    """What the card held beside torch's segments, other processes included, at the run's peak."""
    device, reserved = record.peak("device_used_peak_bytes"), record.peak("reserved_peak_bytes")
    if device is None or reserved is None or device <= reserved:
        return None
    return round(device - reserved)


def _factor(ratios: Sequence[float]) -> Factor | None:
    """The median, and what is left after it."""
    if not ratios:
        return None
    middle = statistics.median(ratios)
    left = [ratio / middle for ratio in ratios]
    return Factor(factor=middle, low=min(left), high=max(left), n=len(ratios))
