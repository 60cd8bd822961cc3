"""Predicted beside measured, stage by stage.

In: a `Record`. Out: rows that line both up by the stage's name: what was predicted for a card is held against torch's
allocated and reserved peaks, on a CPU the tensors' own bytes against the profiler's.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardfit.records.models import PhaseName, Record, Repetition, Stage

_TIMED: tuple[PhaseName, ...] = ("steady", "first", "resume", "own")


@dataclass(frozen=True, slots=True)
class Row:
    """One stage: bytes and seconds, ``None`` where one side has nothing."""

    name: str
    calls_predicted: int | None
    calls: int | None
    predicted_bytes: int | None
    measured_bytes: int | None
    predicted_reserved_bytes: int | None
    reserved_bytes: int | None
    predicted_seconds: float | None
    first_seconds: float | None
    steady_seconds: float | None


def rows(record: Record) -> tuple[Row, ...]:
    """Every stage that was predicted or measured, in the order of the run."""
    before = {stage.name: stage for stage in record.predicted.stages} if record.predicted else {}
    peaks = record.of_phase("memory") or record.of_phase(*_TIMED)
    names = list(
        dict.fromkeys([*before, *(s.name for each in record.repetitions for s in each.stages)])
    )
    on_card = any(each.reserved_peak_bytes is not None for each in record.repetitions)
    found = []
    for name in names:
        stage = before.get(name)
        seen = [s for each in peaks for s in each.stages if s.name == name]
        predicted = None if stage is None else stage.allocated_bytes if on_card else stage.cpu_bytes
        found.append(
            Row(
                name=name,
                calls_predicted=stage.calls if stage else None,
                calls=_calls(record, name),
                predicted_bytes=predicted,
                measured_bytes=_highest([s.allocated_peak_bytes for s in seen]),
                predicted_reserved_bytes=stage.reserved_bytes if stage and on_card else None,
                reserved_bytes=_highest([s.reserved_peak_bytes for s in seen]),
                predicted_seconds=stage.seconds if stage else None,
                first_seconds=_seconds(record.of_phase("first"), name),
                steady_seconds=_seconds(record.of_phase("steady", "resume", "own"), name),
            )
        )
    return tuple(found)


def step_seconds(record: Record) -> float | None:
    """The median of a denoising step over the steady repetitions, else the first one."""
    for phases in (("steady", "own"), ("first",)):
        steps = sorted(s for each in record.of_phase(*phases) for s in each.step_seconds)
        if steps:
            return steps[len(steps) // 2]
    return None


def _calls(record: Record, name: str) -> int | None:
    for each in reversed(record.repetitions):
        if own := [stage.calls for stage in each.stages if stage.name == name]:
            return sum(own)
    return None


def _highest(sizes: list[int | None]) -> int | None:
    return max((size for size in sizes if size is not None), default=None)


def _seconds(repetitions: tuple[Repetition, ...], name: str) -> float | None:
    """The mean over ``repetitions`` of what the stage took."""
    each = [_of(repetition.stages, name) for repetition in repetitions]
    known = [seconds for seconds in each if seconds is not None]
    return sum(known) / len(known) if known else None


def _of(stages: tuple[Stage, ...], name: str) -> float | None:
    own = [stage.seconds for stage in stages if stage.name == name]
    return sum(own) if own else None
