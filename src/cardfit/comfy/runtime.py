"""The plan for ComfyUI: a row per card by ComfyUI's own placement, with cures in ComfyUI's words.

In: what `cardfit.plan.make` takes, the library entry and how the workflow decodes. Out: an `Answer` whose verdicts are
fits, pages or does_not_fit. Stages and peak are for one component on the card at a time, which is how ComfyUI runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cardfit.cards.card import Card
from cardfit.comfy.placement import Placed, WorkflowFacts, place, rules
from cardfit.errors import Note
from cardfit.library.filenames import BYTES_A_WEIGHT
from cardfit.library.models import Model
from cardfit.plan.advice import recommend, sort_key
from cardfit.plan.answer import (
    Answer,
    CardRow,
    Cost,
    OfferRow,
    Peak,
    Price,
    Said,
    Seconds,
    StageRow,
)
from cardfit.plan.bill import Run, Use, bill, cheapest
from cardfit.plan.knobs import Knobs, closed, settings_text
from cardfit.plan.make import NO_CARDS, NOTHING_AFTER, Facts, Progress, uses_bfloat16
from cardfit.plan.offers import best_offer, main_currency, with_ram
from cardfit.plan.post import After
from cardfit.plan.rows import Timer, host_of
from cardfit.plan.search import Estimates
from cardfit.plan.target import Target
from cardfit.plan.verdict import ORDER, Host, deciding_stage, grade
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.timing import TimeEstimate
from cardfit.predict.transfers import Link
from cardfit.request import ExactRequest, Settings
from cardfit.units import human_bytes

Links = Callable[[str], Link | None]
_DENOISERS = ("transformer", "unet", "prior")
# file variants to try, in the order of what they cost; words of a download page
_VARIANTS = (("fp8", "fp8"), ("gguf-q5_k", "GGUF Q5_K_M"), ("gguf-q4_k", "GGUF Q4_K_M"))
_TILE, _OVERLAP, _TEMPORAL, _TEMPORAL_OVERLAP = 512, 64, 64, 8
_SMALL_TILE = 256


@dataclass(frozen=True, slots=True)
class Way:
    """The model, how the workflow decodes it (None: whole, or as the settings say), and what links carry."""

    model: Model
    decoder: WorkflowFacts | None = None
    links: Links = lambda card: None


@dataclass(frozen=True, slots=True)
class Case:
    """What is the same for every card."""

    model: Model
    request: ExactRequest
    settings: Settings
    knobs: Knobs
    estimate: MemoryEstimate
    host: Host
    decoder: WorkflowFacts
    facts: Facts
    currency: str | None
    bfloat16: bool
    timer: Timer | None
    links: Links
    use: Use


def make_comfy(
    way: Way,
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
    """The answer for ``targets`` under ComfyUI."""
    settings = closed(given).model_copy(update={"offload": "model"})
    estimate = estimates.of(settings)
    money = currency or main_currency(targets)
    tiled = WorkflowFacts(tiled=True, tile=given.vae_tile, overlap=given.vae_overlap)
    case = Case(
        model=way.model,
        request=request,
        settings=given,
        knobs=knobs,
        estimate=estimate,
        host=host,
        decoder=way.decoder or (tiled if given.vae_tiling else WorkflowFacts()),
        facts=facts,
        currency=money,
        bfloat16=uses_bfloat16(estimates.trace(closed(given))),
        timer=timer,
        links=way.links,
        use=use or Use(),
    )
    rows = sorted(
        (_row(target, case) for target in targets), key=lambda r: sort_key(r, ORDER, money)
    )
    recommended, notes = recommend(rows, money, case.use)
    return Answer(
        versions=facts.versions,
        model=facts.model,
        request=request,
        settings=given,
        stages=tuple(StageRow.of(stage) for stage in estimate.stages),
        peak=Peak(
            allocated_bytes=estimate.allocated_bytes,
            reserved_bytes=estimate.reserved_bytes,
            device_bytes=estimate.reserved_bytes + facts.context_bytes,
            stage=deciding_stage(estimate),
        ),
        one_at_a_time=None,
        one_at_a_time_host_bytes=estimate.host_bytes,
        rule_bytes=facts.rule_bytes,
        denoiser_rule_bytes=facts.denoiser_rule_bytes,
        cards=tuple(rows),
        recommended=recommended,
        notes=tuple(
            Said.of(note.code, **note.args) for note in (*facts.notes, Note("comfy-rules"), *notes)
        ),
    )


def placed_on(target: Target, case: Case) -> Placed | None:
    """ComfyUI's placement on one card; None where facts are missing."""
    if target.usable is None:
        return None
    share = rules().bf16_decode_share if _decodes_smaller(target, case) else 1.0
    return place(
        case.model,
        case.request,
        case.estimate,
        target.usable.likely,
        os=case.host.os,
        memory_bytes=target.memory_bytes,
        ram_bytes=host_of(target, case.host).ram_bytes,
        decoder=case.decoder,
        vae_share=share,
    )


def _decodes_smaller(target: Target, case: Case) -> bool:
    """Whether the decoder is counted in fp32 and ComfyUI takes bf16 for it, which it does where the card has it."""
    vae = case.model.vae.component
    kept = case.model.components[vae].recommended_dtype
    asked = case.settings.dtype.get(vae, case.settings.dtype.get("*", kept))
    return asked == "float32" and target.has_bfloat16


def _row(target: Target, case: Case) -> CardRow:
    placed = placed_on(target, case)
    if target.unverified is not None or placed is None or target.context is None:
        why = Said.of("plan-no-facts")
        if target.unverified is not None:
            why = Said.of(target.unverified.code, **target.unverified.args)
        return _bare(target, case, why)
    assert target.usable is not None
    prices: tuple[Price, ...] = ()
    if placed.verdict == "pages" or placed.falls_back:
        prices = ("slower",)
    if placed.falls_back:
        prices = (*prices, "lossy")
    holds = placed.verdict != "does_not_fit"
    timed = case.timer(target.card, _as_computed(case)) if holds and case.timer else None
    seconds = _seconds(timed, placed, case, target)
    offer, costs = _offered(target, timed, seconds, case)
    return CardRow(
        card=target.card,
        name=target.name,
        memory_bytes=target.memory_bytes,
        verdict=placed.verdict,
        grade=grade(placed.verdict, prices if holds else ()),
        price_of_it=prices if holds else (),
        settings=case.settings,
        settings_text=settings_text(case.settings, case.knobs),
        limiting_stage=placed.peak_stage,
        peak_reserved_bytes=placed.peak_bytes,
        device_bytes=placed.peak_bytes + target.context.likely,
        usable_bytes=target.usable.likely,
        headroom_bytes=target.usable.likely - placed.peak_bytes,
        host_bytes=case.estimate.host_bytes,
        disk_bytes=case.facts.disk_bytes,
        seconds=seconds,
        cost_per_output=None if costs is None else costs.per_output,
        cost=costs,
        offer=offer,
        why=_why(placed, case),
        near_miss=_cure(placed, target, case),
    )


def _bare(target: Target, case: Case, why: Said) -> CardRow:
    return CardRow(
        card=target.card,
        name=target.name,
        memory_bytes=target.memory_bytes,
        verdict="unknown",
        grade=None,
        price_of_it=(),
        settings=None,
        settings_text="",
        limiting_stage=None,
        peak_reserved_bytes=None,
        device_bytes=None,
        usable_bytes=target.usable.likely if target.usable else None,
        headroom_bytes=None,
        host_bytes=None,
        disk_bytes=case.facts.disk_bytes,
        seconds=None,
        cost_per_output=None,
        offer=best_offer(target.offers, case.currency, 0),
        why=why,
        near_miss=None,
    )


def _seconds(
    timed: TimeEstimate | None, placed: Placed, case: Case, target: Target
) -> Seconds | None:
    """Seconds of one run: paged weights come over the link behind the arithmetic, at worst after it."""
    if timed is None or timed.total is None:
        return None
    total = timed.total
    low, likely, high = total.low, total.likely, total.high
    if _decodes_smaller(target, case):
        for each in timed.stages:
            if each.component == case.model.vae.component:
                less = 1 - rules().bf16_decode_time_share
                low -= less * each.seconds.low
                likely -= less * each.seconds.likely
                high -= less * each.seconds.high
    link = case.links(target.card)
    calls = sum(each.calls for each in timed.stages if each.name == "denoise")
    denoise = sum(each.seconds.likely for each in timed.stages if each.name == "denoise")
    if placed.paged_bytes:
        if link is None:
            return None
        over = placed.paged_bytes * calls / link.pinned_bytes_per_s
        wait = max(0.0, over - denoise)
        low, likely, high = low + wait, likely + wait, high + over
    if (moved := _moved_bytes(case, target)) > 0:
        likely += moved / rules().move_bytes_per_s
        high += moved / rules().move_bytes_per_s
    return Seconds(low=low, likely=likely, high=high)


def _as_computed(case: Case) -> Settings:
    """The settings by which the arithmetic is timed: scaled fp8 files are multiplied in fp8 where the card can."""
    schemes = dict(case.settings.quantization)
    schemes |= dict.fromkeys(case.decoder.fp8_components, "torchao-fp8dq")
    return closed(case.settings).model_copy(update={"quantization": schemes})


def _moved_bytes(case: Case, target: Target) -> int:
    """Weights that a run brings to the card again, because not all of them can stay: denoisers and decoder.

    The text encoder is left out: a prompt that was encoded before is not encoded again.
    """
    assert target.usable is not None
    stages = {each.name: each for each in case.estimate.stages}
    denoise, decode = stages.get("denoise"), stages.get("decode")
    experts = sum(name.startswith(_DENOISERS) for name in case.model.components)
    weights = experts * (denoise.weights_bytes if denoise else 0)
    weights += decode.weights_bytes if decode else 0
    working = max((each.activation_bytes for each in case.estimate.stages), default=0)
    return weights if weights + working > target.usable.likely else 0


def _offered(
    target: Target, timed: TimeEstimate | None, seconds: Seconds | None, case: Case
) -> tuple[OfferRow | None, Cost | None]:
    """The offer and its bill: the least bill where a use was stated, else that of the least price."""
    offer = best_offer(target.offers, case.currency, case.estimate.host_bytes)
    if offer is None or seconds is None or timed is None:
        return offer, None
    run = Run(
        seconds=seconds.likely / case.knobs.batch,
        export_s=None if timed.export is None else timed.export.likely / case.knobs.batch,
        load_s=None if timed.load is None else timed.load.likely,
        power_w=target.tdp_w,
        disk_bytes=case.facts.disk_bytes,
    )
    if case.use.stated:
        enough = with_ram(target.offers, case.estimate.host_bytes)
        if (found := cheapest(enough, run, case.use, case.currency)) is not None:
            return found
    return offer, bill(offer, run, case.use)


def _why(placed: Placed, case: Case) -> Said:
    code = {"denoise": "comfy-over", "decode": "comfy-over-decode", "host": "comfy-over-host"}.get(
        placed.limit, f"comfy-{placed.verdict}"
    )
    if placed.verdict == "pages" and placed.from_disk and not placed.paged_bytes:
        code = "comfy-pages-disk"
    elif placed.verdict == "fits" and placed.falls_back:
        code = "comfy-fits-tiles"
    return Said.of(
        code,
        weights=human_bytes(placed.weights_bytes),
        paged=human_bytes(placed.paged_bytes),
        working=human_bytes(placed.working_bytes),
        decode=human_bytes(placed.decode_bytes),
        over=human_bytes(placed.over_bytes),
        host=human_bytes(case.estimate.host_bytes),
    )


def _cure(placed: Placed, target: Target, case: Case) -> Said | None:
    """What would make it fit, in the words of ComfyUI's own screens."""
    if placed.limit == "decode" or placed.falls_back:
        smaller = case.decoder.tiled and (case.decoder.tile or _TILE) <= _TILE
        return Said.of(
            "comfy-cure-tiles" if case.model.is_video else "comfy-cure-tiles-image",
            tile=_SMALL_TILE if smaller else _TILE,
            overlap=_OVERLAP,
            temporal=_TEMPORAL,
            temporal_overlap=_TEMPORAL_OVERLAP,
        )
    if placed.limit == "host" or placed.from_disk:
        return Said.of("comfy-cure-ram", host=human_bytes(case.estimate.host_bytes))
    if placed.limit == "denoise":
        code = "comfy-cure-shorter" if case.model.is_video else "comfy-cure-smaller"
        return Said.of(code, over=human_bytes(placed.over_bytes))
    if placed.paged_bytes:
        return _variant(placed, case)
    return None


def _variant(placed: Placed, case: Case) -> Said | None:
    """The file to download so that nothing is paged."""
    names = [name for name in case.model.components if name.startswith(_DENOISERS)]
    params = max((case.model.components[name].params for name in names), default=0)
    room = placed.weights_bytes - placed.paged_bytes
    for precision, words in _VARIANTS:
        size = round(params * BYTES_A_WEIGHT[precision])
        if size <= room:
            return Said.of("comfy-cure-file", variant=words, size=human_bytes(size))
    return Said.of("comfy-cure-none", room=human_bytes(room))
