"""Build the `Answer`: the stages with everything resident, a row per card, the picks and the notes.

In: the request after the model's rules, the settings as given, the cards and the memo of
estimates. Out: the Answer. Nothing is loaded here. ``stages`` and ``peak`` are for nothing
offloaded, no tiling and the recommended dtypes, unless the settings say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cardfit.cards.card import Card
from cardfit.errors import Note
from cardfit.messages import say
from cardfit.plan.advice import cautions, recommend, sort_key
from cardfit.plan.answer import Answer, ModelRow, Peak, Said, StageRow
from cardfit.plan.bill import Use, fetched_note
from cardfit.plan.exporting import export_notes
from cardfit.plan.knobs import Knobs, candidates, closed, settings_text
from cardfit.plan.offers import main_currency
from cardfit.plan.post import After, post_notes
from cardfit.plan.rows import Question, Ranked, Timer, host_of, row_for
from cardfit.plan.search import Estimates
from cardfit.plan.target import Band, Target
from cardfit.plan.verdict import ORDER, Host, deciding_stage
from cardfit.predict.estimate import MemoryEstimate
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Trace

Progress = Callable[[str, float | None], None]
NOTHING_AFTER = After()
NO_CARDS: Mapping[str, Card] = {}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the model and its trace beside the memory: the header's figures, in bytes."""

    model: ModelRow
    versions: dict[str, str]
    rule_bytes: int
    denoiser_rule_bytes: int
    disk_bytes: int | None
    context_bytes: int
    notes: tuple[Note, ...] = ()


def make(
    request: ExactRequest,
    given: Settings,
    targets: Sequence[Target],
    host: Host,
    knobs: Knobs,
    estimates: Estimates,
    facts: Facts,
    *,
    currency: str | None = None,
    use: Use | None = None,
    timer: Timer | None = None,
    after: After = NOTHING_AFTER,
    catalog: Mapping[str, Card] = NO_CARDS,
    progress: Progress | None = None,
) -> Answer:
    """The answer for ``targets``; ``currency`` is the one prices are compared in (the most common by default)."""
    use = use or Use()
    fetched = use.download()
    base = closed(given)
    resident = estimates.of(base)
    question, untraced = question_of(
        given,
        targets,
        host,
        knobs,
        estimates,
        facts,
        currency=currency,
        use=use,
        timer=timer,
        after=after.over,
    )
    money = question.currency
    ranked = _ranked(targets, question, progress)
    recommended, picks_notes = recommend([each.row for each in ranked], money, use)
    notes = cautions(
        ranked,
        recommended,
        targets,
        request,
        currency=money,
        ram_known=all(host_of(each, host).ram_bytes is not None for each in targets),
        use=use,
        tiles=knobs.tile is not None,
    )
    single = estimates.of(base.model_copy(update={"offload": "model"}))
    return Answer(
        versions=facts.versions,
        model=facts.model,
        request=request,
        settings=given,
        stages=(*(StageRow.of(stage) for stage in resident.stages), *after.rows),
        peak=_peak(resident, facts.context_bytes),
        one_at_a_time=_peak(single, facts.context_bytes) if given.offload is None else None,
        one_at_a_time_host_bytes=single.host_bytes if given.offload is None else None,
        rule_bytes=facts.rule_bytes,
        denoiser_rule_bytes=facts.denoiser_rule_bytes,
        cards=tuple(each.row for each in ranked),
        recommended=recommended,
        notes=tuple(
            Said.of(note.code, **note.args)
            for note in (
                *facts.notes,
                *untraced,
                *_measured(knobs),
                *post_notes(request, after),
                *export_notes(request, ranked, recommended, catalog),
                *notes,
                *_bnb_version(ranked),
                *picks_notes,
            )
        )
        + (() if fetched is None else (fetched_note(fetched),)),
        download=fetched,
    )


def question_of(
    given: Settings,
    targets: Sequence[Target],
    host: Host,
    knobs: Knobs,
    estimates: Estimates,
    facts: Facts,
    *,
    currency: str | None,
    use: Use,
    timer: Timer | None,
    after: Callable[[Band], Said | None] = lambda _usable: None,
) -> tuple[Question, tuple[Note, ...]]:
    """What is the same for every card, and a note where settings could not be traced."""
    every = candidates(given, knobs)
    options = estimates.traceable(every)
    question = Question(
        given=given,
        knobs=knobs,
        candidates=options,
        host=host,
        estimates=estimates,
        bfloat16=uses_bfloat16(estimates.trace(closed(given))),
        disk_bytes=facts.disk_bytes,
        currency=currency or main_currency(targets),
        timer=timer,
        use=use,
        after=after,
    )
    return question, (Note("atlas-fewer-settings"),) if len(options) < len(every) else ()


def _measured(knobs: Knobs) -> tuple[Note, ...]:
    """That the order of lossy settings is the reader's own, where records were compared."""
    if not knobs.measured:
        return ()
    said = [f"{name} {cost:.3f}" for name, cost in sorted(knobs.measured, key=lambda each: each[1])]
    return (Note("plan-quality-measured", {"knobs": ", ".join(said)}),)


def _bnb_version(ranked: Sequence[Ranked]) -> tuple[Note, ...]:
    """Which bitsandbytes it takes to move 8-bit weights, where a row does (diffusers 0.42.1, pipeline_utils)."""
    chosen = [each.row.settings for each in ranked if each.row.settings is not None]
    moved = any(
        each.offload == "model" and "bnb-int8" in each.quantization.values() for each in chosen
    )
    return (Note("plan-bnb-version"),) if moved else ()


def uses_bfloat16(trace: Trace) -> bool:
    """Whether any component of ``trace`` computes in bfloat16."""
    return any(component.dtype.endswith("bfloat16") for component in trace.components)


def _ranked(
    targets: Sequence[Target], question: Question, progress: Progress | None
) -> tuple[Ranked, ...]:
    found = []
    # the largest first: what it needs is traced before the reader waits for tilings
    order = sorted(targets, key=lambda each: (-(each.memory_bytes or 0), each.card))
    for done, target in enumerate(order):
        if progress is not None:
            progress(target.name, done / len(order))
            question.estimates.replayed = _telling(progress, done, len(order), question.knobs)
        found.append(row_for(target, question))
    return tuple(sorted(found, key=lambda each: sort_key(each.row, ORDER, question.currency)))


def _telling(
    progress: Progress, done: int, cards: int, knobs: Knobs
) -> Callable[[int, Settings], None]:
    """What says, before a memory replay, which one it is and how far the cards are."""

    def tell(count: int, settings: Settings) -> None:
        args = {"count": count + 1, "settings": settings_text(settings, knobs)}
        text = say("plan-progress-replay", args | {"at": done + 1, "cards": cards})
        progress(text, done / cards)

    return tell


def _peak(estimate: MemoryEstimate, context_bytes: int) -> Peak:
    return Peak(
        allocated_bytes=estimate.allocated_bytes,
        reserved_bytes=estimate.reserved_bytes,
        device_bytes=estimate.reserved_bytes + context_bytes,
        stage=deciding_stage(estimate),
    )
