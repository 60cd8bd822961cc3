"""The device ``fake``: a run that runs nothing, in milliseconds and without torch, to try whatever runs many of them.

In: a `Job` and a record, as `cardfit.measure.run` takes them. Out: a `Record` with made-up figures, kept in the same
way, whose device says that it is fake: `calibrate` and `choose` leave it out. Every repetition takes `REPETITION_S`.
``fake:CARD`` pretends to be a card of the catalog, and runs out of its memory where the prediction says so.
"""

from __future__ import annotations

import re
import time

from cardfit.measure.job import Job
from cardfit.measure.keep import Keeper
from cardfit.measure.run import Moment, Watcher
from cardfit.records.models import (
    FAKE,
    Outcome,
    PhaseName,
    PredictedStage,
    Reason,
    Record,
    Repetition,
    Stage,
)
from cardfit.request import ExactRequest

REPETITION_S = 0.01
_BYTES_PER_PIXEL = 512  # where nothing was predicted
_SHARES = {"encode_prompt": 0.05, "denoise": 0.75, "decode": 0.2}  # of a repetition's seconds


def is_fake(device: str) -> bool:
    """Whether ``device`` is the fake one.

    >>> is_fake("fake"), is_fake("fake:rtx-4090"), is_fake("cuda:0")
    (True, True, False)
    """
    return re.fullmatch(rf"{FAKE}(:[\w.-]+)?", device) is not None


def run(
    job: Job,
    record: Record,
    keeper: Keeper,
    *,
    timeout_s: float | None = None,
    watcher: Watcher | None = None,
) -> Record:
    """Pretend to run ``job``. Raises BadFile where the record cannot be written."""
    note = Reason.of("run-fake")
    record = record.model_copy(update={"notes": (*record.notes, note)})
    phases: list[tuple[PhaseName, int]] = [("load", 0)]
    if (outcome := _out_of_memory(record)) is None:
        phases += [("first", 0), *(("steady", number) for number in range(job.repeats))]
        outcome = Outcome(kind="ok")
    began = time.monotonic()
    rows: list[Repetition] = []
    for phase, number in phases:
        time.sleep(REPETITION_S)
        elapsed_s = time.monotonic() - began
        if timeout_s is not None and elapsed_s > timeout_s:
            why = Reason.of("run-timed-out", seconds=timeout_s)
            outcome = Outcome(kind="timeout", why=why, phase=phase)
            break
        rows.append(_repetition(record, job.request, phase, number))
        if watcher is not None:
            steps = job.request.num_inference_steps
            watcher(Moment(phase, number, None, steps, steps, None, elapsed_s), record)
    end = {"finished": True, "repetitions": tuple(rows), "outcome": outcome}
    return keeper.save(record.model_copy(update=end))


def _out_of_memory(record: Record) -> Outcome | None:
    """What becomes of a run that is predicted to need more than the card has; None where it does not."""
    room = record.machine.card_memory_bytes
    if room is None or record.predicted is None or record.predicted.reserved_bytes <= room:
        return None
    stage = max(record.predicted.stages, key=lambda each: each.reserved_bytes)
    return Outcome(
        kind="oom",
        why=Reason.of("run-fake"),
        phase="first",
        stage=stage.name,
        component=stage.component,
        reserved_bytes=room,
    )


def _repetition(record: Record, asked: ExactRequest, phase: PhaseName, number: int) -> Repetition:
    """A made-up repetition, the same for the same request."""
    if phase == "load":
        return Repetition(phase=phase, number=number, seconds=REPETITION_S)
    stages = record.predicted.stages if record.predicted else _stages(asked)
    total = sum(_SHARES.get(stage.name, 0.0) for stage in stages) or 1.0
    made = tuple(
        Stage(
            name=stage.name,
            component=stage.component,
            calls=stage.calls,
            seconds=REPETITION_S * _SHARES.get(stage.name, 0.0) / total,
            allocated_peak_bytes=stage.allocated_bytes,
            reserved_peak_bytes=stage.reserved_bytes,
        )
        for stage in stages
    )
    steps = asked.num_inference_steps
    step_s = REPETITION_S * _SHARES["denoise"] / max(1, steps)
    return Repetition(
        phase=phase,
        number=number,
        seconds=REPETITION_S,
        stages=made,
        step_seconds=(step_s,) * steps,
    )


def _stages(asked: ExactRequest) -> tuple[PredictedStage, ...]:
    """Stages by the pixels alone."""
    size = asked.width * asked.height * asked.num_frames * asked.batch * _BYTES_PER_PIXEL
    calls = {"encode_prompt": 1, "denoise": asked.num_inference_steps, "decode": 1}
    return tuple(
        PredictedStage(
            name=name,
            component=FAKE,
            calls=count,
            weights_bytes=0,
            activation_bytes=size,
            allocated_bytes=size,
            reserved_bytes=size,
        )
        for name, count in calls.items()
    )
