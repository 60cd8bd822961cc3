"""The answer for many requests in one process: the worst case over time, when it comes, which card lives through it.

In: planned requests with their order, and the cards. Out: a `SequenceAnswer` (schema ``cardfit.sequence/1``).
Positions count from 1. A verdict follows as in `plan.verdict`: the worst reserved peak with its band against what is
usable; between likely and allocated a replay with the card as the limit decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import Note
from cardfit.messages import say
from cardfit.plan.answer import Said, Verdict
from cardfit.plan.knobs import closed
from cardfit.plan.target import Target
from cardfit.predict.failure import expandable, failure_note, fragmented_note
from cardfit.predict.memory import bands
from cardfit.predict.sequence import MAX_REPLAYS, Line, Planned, Process, Took, worst
from cardfit.request import ExactRequest, Settings
from cardfit.request.mix import RequestsFile
from cardfit.trace.stream import Trace
from cardfit.units import human_bytes

SCHEMA: Literal["cardfit.sequence/1"] = "cardfit.sequence/1"
Progress = Callable[[str, float | None], None]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class MixedRow(_Frozen):
    """One request of the file: what it reserves alone, and at most in the sequence, with the position of that."""

    number: int
    request: ExactRequest
    count: int
    alone_reserved_bytes: int
    alone_stage: str
    reserved_bytes: int | None  # None when its turn never came
    stage: str | None
    position: int | None


class Worst(_Frozen):
    """The most that is reserved over time, with its band, and when it is reached first.

    ``alone_reserved_bytes`` is the most that any of the requests reserves in a process of its own.
    """

    position: int
    number: int
    stage: str
    reserved_bytes: int
    low_bytes: int
    high_bytes: int
    allocated_bytes: int
    alone_reserved_bytes: int


class FailedAt(_Frozen):
    """The request at which a card is full; ``said`` is the error before it happens."""

    position: int
    number: int
    stage: str
    component: str
    site: str
    tried_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    limit_bytes: int
    said: Said


class SequenceCard(_Frozen):
    """One card: whether it lives through the sequence, where it ends, and what would cure it."""

    card: str
    name: str
    usable_bytes: int | None
    verdict: Verdict
    reserved_bytes: int | None
    failed: FailedAt | None
    why: Said
    cure: Said | None


class SequenceAnswer(_Frozen):
    """The whole answer; ``replayed`` of ``count`` positions were looked at, ``replays`` of them differed."""

    schema_: Annotated[Literal["cardfit.sequence/1"], Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    settings: Settings
    keep: bool
    empty_cache: bool
    shuffle: int | None
    count: int
    replayed: int
    replays: int
    requests: tuple[MixedRow, ...]
    worst: Worst
    cards: tuple[SequenceCard, ...]
    notes: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Mix:
    """What is asked: requests with traces and counts, the order (indices of them), the process they share."""

    requests: tuple[ExactRequest, ...]
    counts: tuple[int, ...]
    planned: tuple[Planned, ...]
    order: tuple[int, ...]
    process: Process
    shuffle: int | None = None


def mix_of(file: RequestsFile, traces: Sequence[Trace]) -> Mix:
    """What ``file`` asks, with one trace for each of its requests. A model's requests share its weights."""
    settings = closed(file.settings)
    return Mix(
        requests=tuple(trace.request for trace in traces),
        counts=tuple(each.count for each in file.requests),
        planned=tuple(Planned(trace.request.model, trace) for trace in traces),
        order=tuple(file.order()),
        process=Process(settings, keep=file.keep, empty_cache=file.empty_cache),
        shuffle=file.shuffle,
    )


def make_sequence(
    mix: Mix,
    targets: Sequence[Target],
    *,
    versions: dict[str, str],
    notes: Sequence[Note] = (),
    progress: Progress | None = None,
) -> SequenceAnswer:
    """The answer for ``mix`` on ``targets``."""
    line = Line(mix.process, mix.planned)
    alone = [line.alone(number) for number in range(len(mix.planned))]
    found = line.serve(mix.order, _telling(progress))
    top = worst(found)
    band = bands()
    reserved = found[top].reserved_bytes
    said = list(notes)
    if len(found) < len(mix.order):
        said.append(
            Note(
                "sequence-not-all",
                {"done": len(found), "count": len(mix.order), "most": MAX_REPLAYS},
            )
        )
    return SequenceAnswer(
        versions=versions,
        settings=mix.process.settings,
        keep=mix.process.keep,
        empty_cache=mix.process.empty_cache,
        shuffle=mix.shuffle,
        count=len(mix.order),
        replayed=len(found),
        replays=line.replays,
        requests=tuple(_row(mix, number, alone[number], found) for number in range(len(alone))),
        worst=Worst(
            position=top + 1,
            number=mix.order[top] + 1,
            stage=found[top].stage,
            reserved_bytes=reserved,
            low_bytes=round(reserved * (1 - band["low"])),
            high_bytes=round(reserved * (1 + band["high"])),
            allocated_bytes=max(took.allocated_bytes for took in found),
            alone_reserved_bytes=max(took.reserved_bytes for took in alone),
        ),
        cards=tuple(_card(mix, target, found, progress) for target in targets),
        notes=tuple(Said.of(note.code, **note.args) for note in said),
    )


def _telling(progress: Progress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None

    def tell(done: int, count: int) -> None:
        progress(say("sequence-progress", {"at": done + 1, "count": count}), done / count)

    return tell


def _row(mix: Mix, number: int, alone: Took, found: Sequence[Took]) -> MixedRow:
    turns = [at for at in range(len(found)) if mix.order[at] == number]
    top = max(turns, key=lambda at: (found[at].reserved_bytes, -at)) if turns else None
    return MixedRow(
        number=number + 1,
        request=mix.requests[number],
        count=mix.counts[number],
        alone_reserved_bytes=alone.reserved_bytes,
        alone_stage=alone.stage,
        reserved_bytes=None if top is None else found[top].reserved_bytes,
        stage=None if top is None else found[top].stage,
        position=None if top is None else top + 1,
    )


def _card(
    mix: Mix, target: Target, free: Sequence[Took], progress: Progress | None
) -> SequenceCard:
    """The verdict for one card; ``free`` is what the requests took without a limit."""
    usable = target.usable
    if target.unverified is not None or usable is None:
        unknown = target.unverified or Note("plan-no-facts")
        return _judged(target, "unknown", None, Said.of(unknown.code, **unknown.args))
    reserved = max(took.reserved_bytes for took in free)
    high = round(reserved * (1 + bands()["high"]))
    args: dict[str, object] = {
        "peak": human_bytes(reserved),
        "high": human_bytes(high),
        "usable": human_bytes(usable.likely),
        "usable_low": human_bytes(usable.low),
    }
    if reserved <= usable.likely:
        verdict: Verdict = "fits" if high <= usable.low else "tight"
        return _judged(target, verdict, reserved, Said.of(f"sequence-{verdict}", **args))
    process = replace(mix.process, architecture=target.architecture, limit_bytes=usable.likely)
    found = Line(process, mix.planned).serve(mix.order, _telling(progress))
    failure = found[-1].failure
    most = max(took.reserved_bytes for took in found)
    if failure is None:
        return _judged(target, "tight", most, Said.of("sequence-tight-limit", **args))
    failed = FailedAt(
        position=len(found),
        number=mix.order[len(found) - 1] + 1,
        stage=failure.stage,
        component=failure.component,
        site=failure.site,
        tried_bytes=failure.tried_bytes,
        allocated_bytes=failure.allocated_bytes,
        reserved_bytes=failure.reserved_bytes,
        limit_bytes=failure.limit_bytes,
        said=_said(failure_note(failure)),
    )
    cure = _cure(mix, process, fragmented_note(failure), progress)
    why = Said.of("sequence-fails", position=failed.position, count=len(mix.order), **args)
    return _judged(target, "does_not_fit", most, why, failed, cure)


def _judged(
    target: Target,
    verdict: Verdict,
    reserved_bytes: int | None,
    why: Said,
    failed: FailedAt | None = None,
    cure: Said | None = None,
) -> SequenceCard:
    return SequenceCard(
        card=target.card,
        name=target.name,
        usable_bytes=target.usable.likely if target.usable else None,
        verdict=verdict,
        reserved_bytes=reserved_bytes,
        failed=failed,
        why=why,
        cure=cure,
    )


def _said(note: Note) -> Said:
    return Said.of(note.code, **note.args)


def _cure(mix: Mix, process: Process, note: Note | None, progress: Progress | None) -> Said | None:
    """Expandable segments, where what is unused is in the way and a replay gets through with them."""
    settings = expandable(process.settings)
    if note is None or settings is None:
        return None
    found = Line(replace(process, settings=settings), mix.planned).serve(
        mix.order, _telling(progress)
    )
    if found[-1].failure is not None:
        return None
    most = max(took.reserved_bytes for took in found)
    return Said.of("predict-expandable-helps", reserved=human_bytes(most))
