"""Learn from records: what runs took on a card against what was predicted for them.

In: records with a prediction. Out: a `Calibration` with a factor and its residuals for each card: time in all, by stage
and by kind of kernel, allocated and reserved peaks, and the context beside the allocator. Kept for
`cardfit.predict.calibration`.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cardfit.errors import BadRequest
from cardfit.measure.compared import rows
from cardfit.measure.kinds import Seen, kind_factors, seen_in
from cardfit.measure.samples import typical_seconds
from cardfit.predict.calibration import Calibration, CardFactors, Factor, path
from cardfit.records.files import put
from cardfit.records.models import Record
from cardfit.records.opening import opened
from cardfit.records.store import readable

NAMED = (
    1000  # records that a calibration names: the latest; every factor says of how many runs it is
)


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
    if records is not None:
        found = _learnt(records)
    else:
        with opened(store) as base:
            found = _learnt(readable(base.each(short=True), unread=[]))
    if keep:
        put(file or path(), (found.model_dump_json(indent=1, by_alias=True) + "\n").encode())
    return found


def _learnt(records: Iterable[Record]) -> Calibration:
    """Factors from ``records``, each looked at once and let go."""
    left_out: Counter[str] = Counter()
    by_card: defaultdict[str, _Ratios] = defaultdict(_Ratios)
    latest: deque[str] = deque(maxlen=NAMED)
    for record in records:
        why = _why_not(record)
        if why is not None:
            left_out[why] += 1
            continue
        assert record.machine.card is not None
        by_card[record.machine.card].add(record)
        latest.append(record.id)
    if not by_card:
        said = ", ".join(f"{why} {count}" for why, count in sorted(left_out.items())) or "-"
        raise BadRequest("calibrate-nothing", count=left_out.total(), why=said)
    return Calibration(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        records=tuple(latest),
        cards={card: each.factors() for card, each in sorted(by_card.items())},
        left_out=dict(left_out),
    )


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


@dataclass
class _Ratios:
    """What the records of one card say: measured over predicted, and the contexts in bytes."""

    times: list[float] = field(default_factory=list)
    allocated: list[float] = field(default_factory=list)
    reserved: list[float] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)
    stages: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    kinds: list[Seen] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Take what ``record`` says."""
        assert record.predicted is not None
        seconds, lines = typical_seconds(record), rows(record)
        if record.predicted.seconds and seconds:
            self.times.append(seconds / record.predicted.seconds)
        for row in lines:
            measured = row.steady_seconds or row.first_seconds
            if row.predicted_seconds and measured:
                self.stages[row.name].append(measured / row.predicted_seconds)
        for name, kept in (("allocated", self.allocated), ("reserved", self.reserved)):
            measured_bytes = record.peak(f"{name}_peak_bytes")
            predicted_bytes = getattr(record.predicted, f"{name}_bytes")
            if measured_bytes and predicted_bytes:
                kept.append(measured_bytes / predicted_bytes)
        if (context := _context(record)) is not None:
            self.contexts.append(context)
        self.kinds += seen_in(record, lines)

    def factors(self) -> CardFactors:
        """The factors of the card."""
        made = {name: _factor(each) for name, each in self.stages.items()}
        contexts = self.contexts
        return CardFactors(
            time=_factor(self.times),
            stages={name: each for name, each in made.items() if each is not None},
            kinds=kind_factors(self.kinds),
            allocated=_factor(self.allocated),
            reserved=_factor(self.reserved),
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
