"""Whether a record that came from elsewhere can be true.

In: a record, what its card holds. Out: the first thing in it that no run can have done, or nothing. Only what cannot be
is refused: a record that merely contradicts the prediction is what records are for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from cardfit.records.models import Call, Reason, Record, Repetition, Stage
from cardfit.records.wanted import time_of
from cardfit.units import human_bytes, human_seconds

MemoryOf = Callable[[str], int | None]
"""A card's memory in bytes by its id; None for a card that nobody knows."""

_FIRST = datetime(2022, 7, 1, tzinfo=UTC)  # the month in which diffusers was first released
_AHEAD = timedelta(days=1)  # clocks are set wrong, time zones confused
_LONGEST_SECONDS = 1e7
_TIMES_QUICKER = 20.0  # than predicted: no card's rates are known so badly
_OVER = 1.02  # of a card's memory: the same card has some MiB more under another driver
_WEIGHTS = 0.5  # of the weights that must lie on the card: folders come with other dtypes
_MOST_HZ, _MOST_WATTS, _MOST_DEGREES = 2e10, 1e4, 200.0
_SPILLING = "windows"  # backs a card's memory with the host's
_AT_REST = ("encode_prompt", "denoise", "decode")


def doubt(
    record: Record, memory_of: MemoryOf = lambda _: None, now: datetime | None = None
) -> Reason | None:
    """The first thing that cannot be so in ``record``; None where nothing speaks against it."""
    for found in (
        _time(record, now or datetime.now(UTC)),
        *map(_seconds, record.repetitions),
        *map(_figures, record.repetitions),
        _memory(record, memory_of),
        _weights(record),
        _quick(record),
    ):
        if found is not None:
            return found
    return None


def _time(record: Record, now: datetime) -> Reason | None:
    if _FIRST <= time_of(record) <= now + _AHEAD:
        return None
    return Reason.of("doubt-time", found=time_of(record).date().isoformat())


def _seconds(repetition: Repetition) -> Reason | None:
    for name, seconds in _timed(repetition):
        if not 0 <= seconds <= _LONGEST_SECONDS:
            return Reason.of("doubt-seconds", what=name, found=seconds)
    if repetition.seconds == 0 and repetition.phase in ("first", "steady", "own"):
        return Reason.of("doubt-seconds", what=repetition.phase, found=0.0)
    return None


def _timed(repetition: Repetition) -> Iterator[tuple[str, float]]:
    yield repetition.phase, repetition.seconds
    for stage in repetition.stages:
        yield stage.name, stage.seconds
    for call in repetition.calls:
        yield call.component, call.seconds
    for step in repetition.step_seconds:
        yield repetition.phase, step


def _figures(repetition: Repetition) -> Reason | None:
    """Figures that are no figures: negative, infinite, or of no machine there is."""
    parts = (repetition.figures, *(stage.figures for stage in repetition.stages))
    for name, value in ((n, v) for figures in parts for n, v in figures.items()):
        if value is not None and not 0 <= value <= _most(name):
            return Reason.of("doubt-figure", what=name, found=value)
    return None


def _most(name: str) -> float:
    for end, most in (("_hz", _MOST_HZ), ("_w", _MOST_WATTS), ("_c", _MOST_DEGREES)):
        if name.endswith(end):
            return most
    return 1.0 + 1e-6 if name.endswith("_share") else math.nextafter(math.inf, 0)


def _memory(record: Record, memory_of: MemoryOf) -> Reason | None:
    """Peaks against each other and against the card."""
    parts: list[Stage | Call] = [s for each in record.repetitions for s in each.stages]
    parts += [call for each in record.repetitions for call in each.calls]
    for part in parts:
        allocated, reserved = part.allocated_peak_bytes, part.reserved_peak_bytes
        if min(allocated or 0, reserved or 0) < 0:
            return Reason.of("doubt-negative")
        if None not in (allocated, reserved) and (allocated or 0) > (reserved or 0):
            return Reason.of(
                "doubt-allocated", allocated=_size(allocated), reserved=_size(reserved)
            )
    card, told = record.machine.card, record.machine.card_memory_bytes
    known = memory_of(card) if card else None
    if known and told and told > _OVER * known:
        return Reason.of("doubt-card", card=card, told=_size(told), known=_size(known))
    room = known or told
    spills = record.machine.os == _SPILLING
    names = ("device_used_peak_bytes", *(() if spills else ("reserved_peak_bytes",)))
    peak = _highest(record.peak(name) for name in names)
    if room and peak > _OVER * room:
        return Reason.of("doubt-peak", peak=_size(peak), card=card or "?", known=_size(room))
    return None


def _weights(record: Record) -> Reason | None:
    """A peak below the weights that lay on the card the whole time."""
    settings, before = record.settings, record.predicted
    if settings is None or before is None or settings.offload not in (None, "none"):
        return None
    ran = [each for each in record.of_phase("first", "steady") if each.stages]
    peak = _highest(each.reserved_peak_bytes for each in ran)
    weights = max((s.weights_bytes for s in before.stages if s.name in _AT_REST), default=0)
    if record.outcome.kind != "ok" or not peak or peak >= _WEIGHTS * weights:
        return None
    return Reason.of("doubt-weights", peak=_size(peak), weights=_size(weights))


def _quick(record: Record) -> Reason | None:
    """A run so much quicker than predicted that no card can have made it."""
    steady: Sequence[Repetition] = record.of_phase("steady")
    before = record.predicted.seconds if record.predicted else None
    if record.outcome.kind != "ok" or not steady or not before:
        return None
    least = min(each.seconds for each in steady)
    if least * _TIMES_QUICKER >= before:
        return None
    return Reason.of("doubt-quick", seconds=human_seconds(least), predicted=human_seconds(before))


def _highest(values: Iterable[float | None]) -> float:
    return max((value for value in values if value is not None), default=0.0)


def _size(value: float | None) -> str:
    return human_bytes(round(value or 0))
