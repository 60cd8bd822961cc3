"""What people ran against verdicts: per case the verdict that it would have got, and how often that was right.

In: a file with the header of `benchmarks/data/field_oom.csv`. Out: a `FieldAccuracy`. Settings are fixed as they were
run, nothing is searched. `ok` and `slow` ran; `oom` did not; `host_oom` is right only where the host's RAM is what
falls short. `tight` is never a false fit and right only if the case ran. Cases whose configuration is complete are
summed up apart from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.accuracy import field_rows
from cardfit.accuracy.field_rebuild import FieldRun, rebuild
from cardfit.accuracy.field_rows import Completeness, FieldCase, Outcome
from cardfit.accuracy.field_scripts import LOAD, laid
from cardfit.accuracy.field_why import FieldWhy, NotScored
from cardfit.errors import CardfitError
from cardfit.plan.answer import Verdict
from cardfit.plan.verdict import Judgement, Reason, judge, judge_limited, needs_limit
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.memory import estimate
from cardfit.predict.store import kept
from cardfit.trace import cache
from cardfit.trace.stream import Trace

SCHEMA = "cardfit.field/1"
GROUPS: tuple[Completeness, ...] = ("full", "partial")
HOLDS: tuple[Verdict, ...] = ("fits", "tight", "spills", "pages")
Progress = Callable[[str, float | None], None]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FieldScore(_Frozen):
    """One case: what happened, what was predicted, and whether that was right.

    ``stage`` is where the prediction ends the run, None where it does not; ``said_stage`` what the person named.
    ``peak_bytes`` is the reserved peak without a limit. ``runtime`` tells a diffusers pipeline from a maker's script.
    """

    id: str
    completeness: Completeness
    model: str
    card: str
    runtime: Literal["diffusers", "official"]
    outcome: Outcome
    verdict: Verdict
    reason: Reason
    right: bool
    stage: str | None
    said_stage: str | None
    stage_right: bool | None
    peak_bytes: int
    peak_stage: str
    usable_bytes: int
    host_bytes: int
    ram_bytes: int | None


class FieldSkip(_Frozen):
    """A case that is not scored: a reason of the closed list, and what stood in the way."""

    id: str
    why: FieldWhy
    detail: str = ""
    row: int | None = None
    column: str | None = None


class FieldSummary(_Frozen):
    """Counts over ``n`` cases. ``stage_right`` of ``stage_n`` cases that ended on the card and say where."""

    n: int
    right: int
    false_fits: int
    false_misses: int
    tight: int
    stage_right: int
    stage_n: int

    @classmethod
    def of(cls, rows: Sequence[FieldScore]) -> FieldSummary:
        """The counts of ``rows``."""
        staged = [row.stage_right for row in rows if row.stage_right is not None]
        return cls(
            n=len(rows),
            right=sum(row.right for row in rows),
            false_fits=sum(row.verdict == "fits" and not _ran(row.outcome) for row in rows),
            false_misses=sum(row.verdict == "does_not_fit" and _ran(row.outcome) for row in rows),
            tight=sum(row.verdict == "tight" for row in rows),
            stage_right=sum(staged),
            stage_n=len(staged),
        )


class FieldAccuracy(_Frozen):
    """Scores, skips and one summary for complete and for partial cases."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    rows: tuple[FieldScore, ...]
    skipped: tuple[FieldSkip, ...]
    summary: dict[Completeness, FieldSummary]


def score(path: Path, *, progress: Progress | None = None) -> FieldAccuracy:
    """Rebuild and judge every case of ``path``.

    Raises BadFile for a file with another header; ModuleNotFoundError when a package that a dry run needs is missing.
    """
    good, bad = field_rows.read(path)
    skipped = [
        FieldSkip(id=b.id, why=FieldWhy.BAD_VALUE, detail=b.found, row=b.row, column=b.column)
        for b in bad
    ]
    found: list[FieldScore] = []
    for done, case in enumerate(good):
        try:
            run = rebuild(case)
            if progress is not None:
                progress(f"{case.id} {run.model.id}", done / len(good))
            found.append(_scored(case, run))
        except NotScored as reason:
            skipped.append(FieldSkip(id=case.id, why=reason.why, detail=reason.detail))
        except CardfitError as failed:
            why = FieldWhy.DRY_RUN_FAILED
            skipped.append(FieldSkip(id=case.id, why=why, detail=str(failed)))
    rows = tuple(found)
    return FieldAccuracy(
        versions=cache.versions() if rows else {},
        rows=rows,
        skipped=tuple(skipped),
        summary=summary(rows),
    )


def summary(rows: Sequence[FieldScore]) -> dict[Completeness, FieldSummary]:
    """One summary a group of cases."""
    return {
        group: FieldSummary.of([row for row in rows if row.completeness == group])
        for group in GROUPS
    }


def _ran(outcome: Outcome) -> bool:
    return outcome in field_rows.RAN


def right(outcome: Outcome, verdict: Verdict, reason: Reason) -> bool:
    """Whether a verdict was right about what happened.

    >>> right("slow", "spills", "spill"), right("oom", "tight", "likely")
    (True, False)
    >>> right("host_oom", "does_not_fit", "device"), right("host_oom", "does_not_fit", "host")
    (False, True)
    """
    if _ran(outcome):
        return verdict in HOLDS
    if outcome == "host_oom":
        return verdict == "does_not_fit" and reason == "host"
    return verdict == "does_not_fit"


@dataclass(frozen=True, slots=True)
class _Replays:
    """The replays of one run: without a limit, and with one where the card's size is between."""

    run: FieldRun
    trace: Trace

    def free(self) -> MemoryEstimate:
        """Without a limit."""
        return self._laid(self._kept(None))

    def limited(self, limit_bytes: int) -> MemoryEstimate:
        """With ``limit_bytes`` for the allocator; weights that a script keeps besides are taken off it."""
        base = self._kept(None)
        more = self._laid(base).reserved_bytes - base.reserved_bytes
        return self._laid(self._kept(max(1, limit_bytes - more)))

    def _kept(self, limit_bytes: int | None) -> MemoryEstimate:
        run = self.run
        return kept(
            estimate,
            run.model,
            self.trace,
            run.settings,
            architecture=run.card.architecture,
            limit_bytes=limit_bytes,
        )

    def _laid(self, base: MemoryEstimate) -> MemoryEstimate:
        habit = self.run.habit
        return base if habit is None else laid(self.trace, base, self.run.settings, habit)


def _scored(case: FieldCase, run: FieldRun) -> FieldScore:
    trace = cache.cached(run.model, run.request, run.settings)[0]
    replays = _Replays(run, trace)
    usable = run.card.usable
    memory = replays.free()
    found = judge(memory, usable, run.host)
    limited: MemoryEstimate | None = None
    if needs_limit(found):
        limited = replays.limited(usable.likely)
        found = judge_limited(limited, usable, run.host) or found
    stage = ends_in(found, limited)
    staged = case.outcome == "oom" and case.stage is not None
    return FieldScore(
        id=case.id,
        completeness=case.completeness,
        model=run.model.id,
        card=run.card.name,
        runtime="official" if run.habit else "diffusers",
        outcome=case.outcome,
        verdict=found.verdict,
        reason=found.reason,
        right=right(case.outcome, found.verdict, found.reason),
        stage=stage,
        said_stage=case.stage,
        stage_right=stage == case.stage if staged else None,
        peak_bytes=memory.reserved_bytes,
        peak_stage=memory.peak_stage,
        usable_bytes=usable.likely,
        host_bytes=memory.host_bytes,
        ram_bytes=run.host.ram_bytes,
    )


def ends_in(found: Judgement, limited: MemoryEstimate | None) -> str | None:
    """The stage in which a run that does not fit ends; None for one that runs.

    The first whose tensors are more than the card has. Where the weights alone are, the run ends while they are
    loaded, before the stage begins. ``limited`` is the replay under the card's limit, where there was one.
    """
    if found.verdict != "does_not_fit":
        return None
    if found.reason == "host":
        return LOAD
    room = found.usable.likely
    for stage in found.estimate.stages:
        if stage.weights_bytes > room:
            return LOAD
        if stage.allocated_bytes > room:
            return stage.name
    if limited is not None and limited.failure is not None:
        return limited.failure.stage
    return found.estimate.peak_stage
