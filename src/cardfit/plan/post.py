"""Steps after the pipeline: what they take of a card, and how long.

In: the traces of `trace.post`. Out: `After`: rows beside the pipeline's stages, the bytes that every card must have
whatever the pipeline's settings, and a `Timer` that adds the steps to the pipeline's seconds. The rule of residence: a
step runs when the pipeline has left the card (``del pipe``, then ``empty_cache``); a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cardfit.cards.card import Card
from cardfit.errors import Note
from cardfit.plan.answer import Said, StageRow
from cardfit.plan.rows import Timer
from cardfit.plan.search import LIMIT_STEP_BYTES
from cardfit.plan.target import Band
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.memory import estimate
from cardfit.predict.timing import Seconds, TimeEstimate, seconds
from cardfit.predict.totals import Totals, totals
from cardfit.request import ExactRequest, Settings
from cardfit.trace.post import post_traces
from cardfit.trace.stream import Trace
from cardfit.units import human_bytes

_ALONE = Settings(offload="none")
STAGE = "post"


@dataclass(frozen=True, slots=True)
class After:
    """The steps after a pipeline with what each takes; empty where there are none."""

    traces: tuple[Trace, ...] = ()
    estimates: tuple[MemoryEstimate, ...] = ()
    work: tuple[Totals, ...] = ()
    _ends: dict[int, bool] = field(
        default_factory=dict
    )  # limit in bytes -> whether a step ends there

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> After:
        """What the steps of ``traces`` take."""
        found = tuple(estimate(each, _ALONE) for each in traces)
        return cls(tuple(traces), found, tuple(totals(each) for each in traces))

    @property
    def rows(self) -> tuple[StageRow, ...]:
        """A row for each step."""
        return tuple(
            StageRow.of(stage)
            for each in self.estimates
            for stage in each.stages
            if stage.name == STAGE
        )

    def over(self, usable: Band) -> Said | None:
        """Why a card of ``usable`` bytes cannot take a step, by the largest; None where it can."""
        most = max(self.estimates, key=lambda each: each.reserved_bytes, default=None)
        if most is None or most.reserved_bytes <= usable.likely or self._runs(usable.likely):
            return None
        return Said.of(
            "plan-over-post",
            peak=human_bytes(most.reserved_bytes),
            usable=human_bytes(usable.likely),
        )

    def _runs(self, usable_bytes: int) -> bool:
        """Whether every step comes through with so little, its cache freed where the card is full."""
        limit = usable_bytes // LIMIT_STEP_BYTES * LIMIT_STEP_BYTES
        if limit not in self._ends:
            limited = (estimate(each, _ALONE, limit_bytes=limit) for each in self.traces)
            self._ends[limit] = all(each.failure is None for each in limited)
        return self._ends[limit]

    def timer(self, before: Timer, catalog: Mapping[str, Card]) -> Timer:
        """``before`` with the steps' seconds added."""
        if not self.work:
            return before

        def timed(card: str, settings: Settings) -> TimeEstimate | None:
            found = before(card, settings)
            known = catalog.get(card)
            if found is None or found.total is None or known is None:
                return found
            steps = [seconds(each, _ALONE, known) for each in self.work]
            totals_ = [each.total for each in steps]
            if None in totals_:
                return replace(found, total=None)
            return replace(
                found,
                stages=(*found.stages, *(stage for each in steps for stage in each.stages)),
                total=_sum([found.total, *(each for each in totals_ if each is not None)]),
                ceiling_s=(found.ceiling_s or 0.0) + sum(each.ceiling_s or 0.0 for each in steps),
            )

        return timed


def after_of(request: ExactRequest, said: list[Note]) -> After:
    """What comes after the pipeline; where a dry run cannot be had nothing is known of it, and ``said`` says so."""
    try:
        return After.of(post_traces(request))
    except ModuleNotFoundError as missing:
        said.append(Note("plan-post-unknown", {"package": missing.name or "torch"}))
        return After()


def post_notes(request: ExactRequest, found: After) -> tuple[Note, ...]:
    """What should be said of the steps: when they run, what a smaller tile would do, what a resize is."""
    notes = [Note("plan-post-after")] if found.rows else []
    upscales = [step.upscale for step in request.post if step.upscale is not None]
    untiled = [each for each in upscales if each.tile is None]
    if found.rows and untiled:
        notes.append(Note("plan-post-untiled", {"model": untiled[0].model}))
    if any(each.factor_made != each.own_factor for each in upscales):
        notes.append(Note("plan-post-resize"))
    frames = request.frames_after_post
    if found.rows and frames != request.num_frames:
        args: dict[str, object] = {"frames": frames, "made": request.num_frames}
        if request.fps:
            args |= {"fps": f"{request.fps:g}", "seconds": f"{frames / request.fps:.2f}"}
        notes.append(Note("plan-post-frames-fps" if request.fps else "plan-post-frames", args))
    return tuple(notes)


def _sum(parts: Sequence[Seconds]) -> Seconds:
    return Seconds(
        sum(each.low for each in parts),
        sum(each.likely for each in parts),
        sum(each.high for each in parts),
    )
