"""One row of the table: a card with its verdict, what makes it true, what stops it and what would cure it.

In: a card, the search's choice and the offers. Out: a `CardRow` whose figures the verdict follows
from: ``headroom_bytes = usable_bytes - peak_reserved_bytes`` and ``device_bytes =
peak_reserved_bytes + CUDA context``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cardfit.messages import say
from cardfit.plan import attention
from cardfit.plan.answer import CardRow, Cost, OfferRow, Price, Said, Seconds, Verdict
from cardfit.plan.bill import Run, Use, bill, cheapest
from cardfit.plan.knobs import Candidate, Knobs, candidates, settings_text
from cardfit.plan.offers import best_offer, with_ram
from cardfit.plan.search import Choice, Estimates, choose
from cardfit.plan.target import Band, Target
from cardfit.plan.verdict import (
    Host,
    Judgement,
    Reason,
    deciding_stage,
    grade,
    judge_limited,
    needs_limit,
    ram_at_most_bytes,
)
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.failure import expandable
from cardfit.predict.timing import Seconds as Span
from cardfit.predict.timing import TimeEstimate
from cardfit.request import Settings
from cardfit.units import gib_text, human_bytes

_WHY: dict[Reason, str] = {
    "surely": "plan-fits",
    "likely": "plan-tight",
    "with_limit": "plan-tight-limit",
    "spill": "plan-spills",
    "device": "plan-over",
    "host": "plan-over-host",
    "host_likely": "plan-tight-host",
    "disk": "plan-over-disk",
}
# the same of a container, whose limit lies below the machine's RAM
_WHY_CONTAINER = {"host": "plan-over-host-limit", "host_likely": "plan-tight-host-limit"}


# (card id, settings) -> the time of one run; None where it cannot be told
Timer = Callable[[str, Settings], TimeEstimate | None]


@dataclass(frozen=True, slots=True)
class Question:
    """What is the same for every card: the knobs, the candidates, the machine, the memo, the disk, the clock."""

    given: Settings
    knobs: Knobs
    candidates: tuple[Candidate, ...]
    host: Host
    estimates: Estimates
    bfloat16: bool
    disk_bytes: int | None
    currency: str | None
    timer: Timer | None = None
    use: Use = field(default_factory=Use)
    # why a card cannot take what comes after the pipeline; None where it can
    after: Callable[[Band], Said | None] = lambda _usable: None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row with the estimates behind it (None where no verdict was reached, or no time can be told)."""

    row: CardRow
    estimate: MemoryEstimate | None
    time: TimeEstimate | None = None


def row_for(target: Target, question: Question) -> Ranked:
    """The row for one card."""
    usable = target.usable
    if target.unverified is not None or usable is None or target.context is None:
        why = Said.of("plan-no-facts")
        if target.unverified is not None:
            why = Said.of(target.unverified.code, **target.unverified.args)
        return Ranked(_bare(target, question, "unknown", why, None), None)
    if question.bfloat16 and not target.has_bfloat16:
        why = Said.of("plan-no-bfloat16", card=target.name)
        return Ranked(
            _bare(target, question, "does_not_fit", why, Said.of("plan-try-float16")), None
        )
    if attention.refuses_flash(question.given, target):
        why = Said.of("plan-no-flash", card=target.name)
        return Ranked(_bare(target, question, "does_not_fit", why, Said.of("plan-try-sdpa")), None)
    if (why_not := question.after(usable)) is not None:
        cure = Said.of("plan-try-post-tile")
        return Ranked(_bare(target, question, "does_not_fit", why_not, cure), None)
    host = host_of(target, question.host)
    options = attention.as_run(question.candidates, target, question.estimates)
    if not options:  # its attention kernel is another one, which only a dry run knows
        return Ranked(_bare(target, question, "unknown", Said.of("atlas-other-kernel"), None), None)
    choice = choose(options, target, usable, host, question.estimates)
    return _judged_row(target, question, choice, host)


def _judged_row(target: Target, question: Question, choice: Choice, host: Host) -> Ranked:
    judgement = choice.judgement
    settings = attention.as_given(choice.candidate.settings, question.given)
    estimate = judgement.estimate
    assert target.context is not None
    holds = judgement.verdict != "does_not_fit"
    timed = question.timer(target.card, settings) if holds and question.timer else None
    seconds = None if timed is None else seconds_of(timed)
    disk = _disk_bytes(question, estimate)
    offer, costs = offered(target, timed, disk, estimate, question)
    prices = choice.candidate.price if holds else ()
    if holds and _short_of_ram(target, offer, settings, host):
        prices = (*prices, "more_ram")
    row = CardRow(
        card=target.card,
        name=target.name,
        memory_bytes=target.memory_bytes,
        verdict=judgement.verdict,
        grade=grade(judgement.verdict, prices),
        price_of_it=prices,
        settings=settings,
        settings_text=settings_text(settings, question.knobs),
        limiting_stage=deciding_stage(estimate),
        peak_reserved_bytes=estimate.reserved_bytes,
        device_bytes=estimate.reserved_bytes + target.context.likely,
        usable_bytes=judgement.usable.likely,
        headroom_bytes=judgement.headroom_bytes,
        host_bytes=estimate.host_bytes,
        disk_bytes=disk,
        seconds=seconds,
        cost_per_output=None if costs is None else costs.per_output,
        offer=offer,
        why=_why(judgement, host),
        near_miss=_near_miss(target, question, choice, host),
        offer_note=_ram_unknown(offer, estimate, host),
        load_seconds=None if timed is None else _span(timed.load),
        export_seconds=None if seconds is None or timed is None else _span(timed.export),
        cost=costs,
    )
    return Ranked(row, estimate, timed)


def seconds_of(timed: TimeEstimate) -> Seconds | None:
    """Seconds of one run without loading; None where the card's rates or the settings tell none."""
    return _span(timed.total)


def _span(found: Span | None) -> Seconds | None:
    return None if found is None else Seconds(low=found.low, likely=found.likely, high=found.high)


def offered(
    target: Target,
    timed: TimeEstimate | None,
    disk_bytes: int | None,
    estimate: MemoryEstimate,
    question: Question,
) -> tuple[OfferRow | None, Cost | None]:
    """The offer for this card and the bill of the outputs: the least bill where a use was stated, else the least price.

    No bill without an offer or a time, nor where a month is paid and no use was stated.
    """
    offer = best_offer(target.offers, question.currency, estimate.host_bytes)
    if offer is None or timed is None or timed.total is None:
        return offer, None
    batch = question.knobs.batch
    run = Run(
        seconds=timed.total.likely / batch,
        export_s=None if timed.export is None else timed.export.likely / batch,
        load_s=None if timed.load is None else timed.load.likely,
        power_w=target.tdp_w,
        disk_bytes=disk_bytes,
    )
    if question.use.stated:
        enough = with_ram(target.offers, estimate.host_bytes)
        if (found := cheapest(enough, run, question.use, question.currency)) is not None:
            return found
    return offer, bill(offer, run, question.use)


def _disk_bytes(question: Question, estimate: MemoryEstimate) -> int | None:
    """The model's files and the outputs, and what offloading writes."""
    if question.disk_bytes is None:
        return None
    return question.disk_bytes + estimate.offload_disk_bytes


def _ram_unknown(offer: OfferRow | None, estimate: MemoryEstimate, host: Host) -> Said | None:
    """The mark of an offer that does not say how much host RAM comes with the card."""
    if offer is None or offer.ram_bytes is not None or host.ram_bytes is not None:
        return None
    return Said.of("plan-offer-ram-unknown", need=gib_text(estimate.host_bytes))


def _bare(
    target: Target, question: Question, verdict: Verdict, why: Said, near_miss: Said | None
) -> CardRow:
    """A row without settings: nothing was replayed for this card."""
    return CardRow(
        card=target.card,
        name=target.name,
        memory_bytes=target.memory_bytes,
        verdict=verdict,
        grade=grade(verdict, ()),
        price_of_it=(),
        settings=None,
        settings_text="",
        limiting_stage=None,
        peak_reserved_bytes=None,
        device_bytes=None,
        usable_bytes=target.usable.likely if target.usable else None,
        headroom_bytes=None,
        host_bytes=None,
        disk_bytes=question.disk_bytes,
        seconds=None,
        cost_per_output=None,
        offer=best_offer(target.offers, question.currency, 0),
        why=why,
        near_miss=near_miss,
    )


def host_of(target: Target, host: Host) -> Host:
    """The RAM that was given, else that of the machine the card stands in."""
    if host.ram_bytes is not None:
        return host
    return replace(host, ram_bytes=target.machine_ram_bytes, ram_of=target.ram_of)


def _short_of_ram(target: Target, offer: OfferRow | None, settings: Settings, host: Host) -> bool:
    """Weights wait in host RAM and every machine on offer is known to have too little of it."""
    offloads = settings.offload not in (None, "none") or settings.blocks_to_swap is not None
    return offloads and host.ram_bytes is None and offer is None and bool(target.offers)


def _why(judgement: Judgement, host: Host) -> Said:
    estimate = judgement.estimate
    contained = _WHY_CONTAINER if host.ram_of == "container" else {}
    return Said.of(
        contained.get(judgement.reason, _WHY[judgement.reason]),
        stage=deciding_stage(estimate),
        peak=human_bytes(estimate.reserved_bytes),
        high=human_bytes(estimate.reserved_high_bytes),
        usable=human_bytes(judgement.usable.likely),
        usable_low=human_bytes(judgement.usable.low),
        over=human_bytes(judgement.over_bytes),
        host=human_bytes(estimate.host_bytes),
        host_high=human_bytes(ram_at_most_bytes(estimate, host)),
        moment=estimate.host_moment,
        ram=human_bytes(host.ram_bytes) if host.ram_bytes is not None else "",
        disk=human_bytes(host.files_bytes + estimate.offload_disk_bytes),
        room=human_bytes(host.disk_bytes) if host.disk_bytes is not None else "",
    )


def _near_miss(target: Target, question: Question, choice: Choice, host: Host) -> Said | None:
    """What would cure a red row: a knob that was held fast, more host RAM, or else how much is missing."""
    verdict = choice.judgement.verdict
    if verdict not in ("does_not_fit", "spills"):
        return None
    if choice.judgement.reason == "disk":
        need = host.files_bytes + choice.judgement.estimate.offload_disk_bytes
        return Said.of("plan-more-disk", disk=human_bytes(need))
    helped = _unfragmented(target, question, choice, host)
    if helped is not None:
        return helped
    freed = question.estimates.traceable(_freed(question.given, question.knobs))
    tries = [(freed, host.ram_bytes)] if freed != question.candidates else []
    if host.ram_bytes is not None:
        tries += [(question.candidates, None), (freed, None)]
    for options, ram_bytes in tries:
        cure = _cure(target, question, options, replace(host, ram_bytes=ram_bytes, os="linux"))
        if cure is not None:
            return cure
    estimate = choice.judgement.estimate
    code = "plan-short-video" if question.knobs.num_frames > 1 else "plan-short-image"
    return Said.of(
        code,
        settings=settings_text(choice.candidate.settings, question.knobs),
        over=human_bytes(max(0, -choice.judgement.headroom_bytes)),
        stage=deciding_stage(estimate),
    )


def _unfragmented(target: Target, question: Question, choice: Choice, host: Host) -> Said | None:
    """Expandable segments, where what lives fits and what is reserved does not: a knob at no cost."""
    usable, settings = target.usable, expandable(choice.candidate.settings)
    if usable is None or settings is None or not needs_limit(choice.judgement):
        return None
    limited = question.estimates.limited(settings, target.architecture, usable.likely)
    if limited is None or judge_limited(limited, usable, host) is None:
        return None
    return Said.of("predict-expandable-helps", reserved=human_bytes(limited.reserved_bytes))


def _cure(
    target: Target, question: Question, options: tuple[Candidate, ...], host: Host
) -> Said | None:
    assert target.usable is not None
    choice = choose(options, target, target.usable, host, question.estimates)
    if choice.judgement.verdict not in ("fits", "tight"):
        return None
    prices: tuple[Price, ...] = choice.candidate.price
    more = host.ram_bytes is None and host_of(target, question.host).ram_bytes is not None
    return Said.of(
        "plan-cure-ram" if more else "plan-cure",
        settings=settings_text(choice.candidate.settings, question.knobs),
        verdict=say(f"plan-{choice.judgement.verdict}-would"),
        prices=", ".join(say(f"plan-price-{price}") for price in prices) or say("plan-price-none"),
        host=human_bytes(choice.judgement.estimate.host_bytes),
    )


def _freed(given: Settings, knobs: Knobs) -> tuple[Candidate, ...]:
    """The candidates when only what describes the numbers (dtype, attention) stays as given."""
    return candidates(Settings(dtype=given.dtype, attention=given.attention), knobs)
