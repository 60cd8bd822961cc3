"""Seconds of one run on one card: per stage and in all, with the ceiling that arithmetic alone sets.

In: a trace or its `Totals`, settings, a card, and perhaps the link and host that were found. Out: a `TimeEstimate`, or
one whose total is None with a reason. Seconds of a stage are the sum over kinds of kernels of max(FLOPs / reachable
rate, bytes / reachable bandwidth), not below what the host needs to launch them, and what offload waits for. Factors
come from published times (`cardfit.predict.efficiency`); `LEFT_OUT` names what is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cardfit.cards import Card
from cardfit.errors import Note
from cardfit.predict.efficiency import (
    UNFITTED_WIDER,
    Factors,
    Scheme,
    Spread,
    factors,
    scheme,
    spread,
)
from cardfit.predict.estimate import Basis
from cardfit.predict.totals import StageWork, Totals, totals
from cardfit.predict.transfers import (
    Host,
    Link,
    Moves,
    export_s,
    listed_link,
    load_s,
    moves,
    post_s,
)
from cardfit.request import Settings
from cardfit.trace.stream import Trace, Work

AttentionKernel = Literal["flash", "flash3"]
LEFT_OUT = (
    "schedulers and other work between the calls of components",
    "the first run: compilation, autotuning, allocator warm-up",
    "clocks below the board's listed boost, heat, other users of the card",
)
SHARP = 4.0  # how sharply a rate bends where two limits meet
OVERLAP = 3.0  # how far the host's launching hides behind the card's work
_REFERENCE_HEAD_DIM = 128
_FLASH_FROM = (8, 0)  # compute capability from which FlashAttention and bf16 tensor cores exist
_EFFICIENT = (
    0.6  # of flash attention's efficiency: the memory-efficient kernel on older cards, a rule
)
_EXPORT_EITHER_WAY = 2.0  # the export rule's band
_DENOISERS = ("transformer", "unet")
_FLAT = frozenset({"AutoencoderKL", "AutoencoderDC", "AutoencoderTiny", "ConsistencyDecoderVAE"})


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds with a band: nine in ten published times lie in it."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage. ``parts`` are seconds by kind of kernel, launches and transfers; hidden ones do not add up.

    ``ceiling_s`` is its arithmetic at the card's dense peak; ``launch_bound`` says that the host is what it waits for.
    """

    name: str
    component: str
    calls: int
    seconds: Seconds
    ceiling_s: float
    launch_bound: bool
    parts: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Seconds of a run: ``stages`` sum to ``total``; ``load`` comes before it, ``export`` after it: the
    host's post-processing and the file.

    ``step`` is one denoising iteration. ``reached`` is ``ceiling_s`` over the likely total. Where a figure is None,
    ``notes`` say why; ``n`` published times of the card's architecture stand behind the factors.
    """

    stages: tuple[StageTime, ...]
    total: Seconds | None
    step: Seconds | None
    load: Seconds | None
    export: Seconds | None
    ceiling_s: float | None
    reached: float | None
    basis: Basis
    n: int
    left_out: tuple[str, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """What measured runs on a card say about others: measured over predicted, with their own narrower band.

    ``kinds`` are factors of single kinds of kernel, where the runs tell them apart; others take ``factor``.
    """

    factor: float
    spread: Spread
    kinds: Mapping[str, float] = field(default_factory=dict)


def seconds(
    trace: Trace | Totals,
    settings: Settings,
    card: Card,
    *,
    link: Link | None = None,
    machine: Host | None = None,
    kernel: AttentionKernel | None = None,
    correction: Correction | None = None,
    using: Factors | None = None,
) -> TimeEstimate:
    """Seconds of ``trace`` on ``card`` with the offload, quantization, attention and compile of ``settings``.

    Sum `totals` once and hand that in to ask about many cards. ``link`` and ``machine`` are what was found; without
    a link the listed one is taken, without a disk's rate ``load`` is None. ``kernel`` "flash3" says that a package
    brings FlashAttention 3. ``using`` replaces the shipped factors.
    """
    work = trace if isinstance(trace, Totals) else totals(trace)
    fitted = using or factors(card)
    why = _unknown(work, settings, card)
    link = link or listed_link(card)
    if why is None and link is None and (settings.offload or "none") != "none":
        why = Note("time-link-unknown", {"card": card.name})
    if why is not None:
        return _nothing(fitted, why, work, machine)
    run = _Run(work, settings, card, fitted, kernel)
    band = correction.spread if correction else spread()
    wider = UNFITTED_WIDER if fitted.n == 0 and correction is None else 1.0
    told = correction or Correction(1.0, band)
    stages = tuple(_stage(run, each, link, band, wider, told) for each in work.stages)
    total = _sum([stage.seconds for stage in stages])
    denoise = [stage.seconds for stage in stages if stage.name == "denoise"]
    ceiling = sum(stage.ceiling_s for stage in stages)
    load = load_s(work, machine, link, resident=(settings.offload or "none") == "none")
    notes = [] if load is not None else [Note("time-load-unknown")]
    if fitted.n == 0 and correction is None:
        notes.append(Note("time-unfitted", {"card": card.name, "architecture": card.architecture}))
    return TimeEstimate(
        stages=stages,
        total=total,
        step=_scaled(_sum(denoise), 1 / work.steps) if denoise else None,
        load=None if load is None else _banded(load, band, wider),
        export=_export(work, machine),
        ceiling_s=ceiling,
        reached=ceiling / total.likely if total.likely else None,
        basis="measured" if correction else "published" if fitted.n else "rule",
        n=fitted.n,
        left_out=LEFT_OUT,
        notes=tuple(notes),
    )


def correct(predicted_s: float, measured_s: float, *, within: Spread) -> Correction:
    """What one run that took ``measured_s`` where ``predicted_s`` was said makes of further predictions on that card.

    ``within`` is the band that remains. Raises ValueError for times that are not above zero.
    """
    if (
        not (math.isfinite(predicted_s) and math.isfinite(measured_s))
        or min(predicted_s, measured_s) <= 0
    ):
        raise ValueError(measured_s)
    return Correction(measured_s / predicted_s, within)


@dataclass(frozen=True, slots=True)
class _Run:
    work: Totals
    settings: Settings
    card: Card
    factors: Factors
    kernel: AttentionKernel | None

    def component_dtype(self, name: str) -> str:
        return self.work.component(name).dtype

    def flash_exists(self) -> bool:
        return _capability(self.card) >= _FLASH_FROM


def _capability(card: Card) -> tuple[int, int]:
    major, _, minor = (card.compute_capability or "0.0").partition(".")
    return int(major), int(minor or 0)


def _unknown(work: Totals, settings: Settings, card: Card) -> Note | None:
    """Why this card's seconds cannot be said; None where they can."""
    if card.vendor != "NVIDIA":
        return Note("time-vendor", {"card": card.name})
    if card.bandwidth_bytes_per_s is None or "fp32" not in card.flop_per_s:
        return Note("time-rate-unknown", {"card": card.name})
    halves = {part.dtype for part in work.components if part.dtype in ("bfloat16", "float16")}
    if halves and _half_rate(card) is None:
        return Note("time-rate-unknown", {"card": card.name})
    if "bfloat16" in halves and _capability(card) < _FLASH_FROM:
        return Note("time-no-bf16", {"card": card.name})
    for name in sorted(set(settings.quantization.values()) - {"none"}):
        rule = scheme(name)
        if rule is None or (rule.compiled if settings.compile else rule.eager) is None:
            how = "torch.compile" if settings.compile else "eager"
            return Note("time-scheme-unknown", {"scheme": name, "how": how})
    return None


def _half_rate(card: Card) -> float | None:
    """Dense FLOP/s of half-precision matrix products with FP32 accumulation, which is how torch multiplies."""
    return card.flop_per_s.get("fp16_fp32acc") or card.flop_per_s.get("bf16")


def _peak(card: Card, kind: str, dtype: str, native: str | None) -> float:
    """Dense FLOP/s of one kind. torch lets convolutions in fp32 use TF32, matrix products not."""
    rates = card.flop_per_s
    if dtype == "half":
        fast = rates.get(native) if native and kind == "matmul" else None
        return fast or _half_rate(card) or rates["fp32"]
    if kind == "convolution" and _capability(card) >= _FLASH_FROM:
        return rates.get("tf32", rates["fp32"])
    return rates["fp32"]


def _limits(*rates: float | None) -> float:
    """The rate below several limits, bending where they meet."""
    return float(sum(rate**-SHARP for rate in rates if rate is not None) ** (-1 / SHARP))


def _rate(run: _Run, stage: StageWork, kind: str, dtype: str, native: str | None) -> float:
    """FLOP/s that kernels of one kind reach."""
    card, fitted = run.card, run.factors
    peak = _peak(card, kind, dtype, native)
    power = None
    if fitted.flop_per_joule is not None and card.tdp_w is not None and dtype == "half":
        # power limits operand traffic: narrower operands go as much further as their peak is higher
        gain = peak / (_half_rate(card) or peak)
        power = fitted.flop_per_joule * card.tdp_w * gain
    if kind == "matmul":
        return _limits(fitted.matmul * peak, power)
    if kind == "convolution":
        flat = run.work.frames == 1 or run.work.component(stage.component).kind in _FLAT
        share = fitted.convolution if flat or not _decoder(run, stage) else fitted.convolution_3d
        return _limits(share * peak, power)
    return _attention(run, stage, peak, power, dtype)


def _decoder(run: _Run, stage: StageWork) -> bool:
    return run.work.component(stage.component).kind.startswith("Autoencoder")


def _attention(run: _Run, stage: StageWork, peak: float, power: float | None, dtype: str) -> float:
    fitted, card = run.factors, run.card
    narrow = 1.0
    if stage.stage == "denoise" and run.work.head_dim is not None:
        shorter = math.log2(min(run.work.head_dim, _REFERENCE_HEAD_DIM) / _REFERENCE_HEAD_DIM)
        narrow = fitted.head_dim_doubling**shorter
    if run.settings.attention == "math":
        return _limits(fitted.matmul * peak, power)
    if run.kernel == "flash3" and dtype == "half" and _capability(card)[0] == 9:
        return _limits(fitted.attention_flash3 * narrow * peak, power)
    share = fitted.attention * narrow
    if dtype != "half" or not run.flash_exists() or run.settings.attention == "efficient":
        share *= _EFFICIENT
    old = None
    per_cycle = fitted.flash_flop_per_sm_cycle
    if per_cycle is not None and card.sm_count and card.boost_hz and dtype == "half":
        old = per_cycle * narrow * card.sm_count * card.boost_hz
    return _limits(share * peak, power, old)


def _kernels(run: _Run, stage: StageWork) -> tuple[dict[str, float], float, float]:
    """Seconds by kind, the host's seconds for all launches, and seconds at the dense peak."""
    fitted, card = run.factors, run.card
    compiled = bool(run.settings.compile) and stage.component.startswith(_DENOISERS)
    rule = _scheme_of(run, stage)
    native = rule.native if rule and rule.native in card.flop_per_s else None
    reach = fitted.bytes * (card.bandwidth_bytes_per_s or 1.0)
    parts: dict[str, float] = {}
    launches = ceiling = 0.0
    for each in stage.work:
        moved, count = _moved(each, fitted, compiled)
        on_card = moved / reach
        if each.flop:
            on_card = max(on_card, each.flop / _rate(run, stage, each.kind, each.dtype, native))
            ceiling += each.flop / _peak(card, each.kind, each.dtype, native)
        parts[each.kind] = parts.get(each.kind, 0.0) + on_card + count * fitted.kernel_s
        launches += count
    if rule is not None:
        part = run.work.component(stage.component)
        per_weight = (rule.compiled if compiled else rule.eager) or 0.0
        parts["quantization"] = stage.calls * part.linear_elements * per_weight / reach
    return parts, launches * fitted.launch_s, ceiling


def _moved(work: Work, fitted: Factors, compiled: bool) -> tuple[float, float]:
    """Bytes and launches of one kind; a compiler fuses what is elementwise."""
    if compiled and work.kind == "elementwise":
        return work.bytes * fitted.compiled_bytes, work.launches * fitted.compiled_launches
    return work.bytes, float(work.launches)


def _scheme_of(run: _Run, stage: StageWork) -> Scheme | None:
    name = run.settings.quantization.get(stage.component, "none")
    return None if name == "none" else scheme(name)


def _stage(
    run: _Run, stage: StageWork, link: Link | None, band: Spread, wider: float, told: Correction
) -> StageTime:
    parts, launching, ceiling = _kernels(run, stage)
    parts = {kind: told.kinds.get(kind, told.factor) * part for kind, part in parts.items()}
    on_card, launching = sum(parts.values()), told.factor * launching
    compute = (on_card**OVERLAP + launching**OVERLAP) ** (1 / OVERLAP)
    moved = Moves(0.0, 0.0, hidden=False)
    if link is not None:
        moved = moves(run.work, run.settings, stage, link)
    took = max(compute, moved.seconds) if moved.hidden else compute + moved.seconds
    shown = [*parts.items(), ("launch", launching)]
    if moved.seconds:
        shown.append(("transfer", moved.seconds))
    return StageTime(
        name=stage.stage,
        component=stage.component,
        calls=stage.calls,
        seconds=_banded(took, band, wider),
        ceiling_s=ceiling,
        launch_bound=launching > on_card,
        parts=tuple(shown),
    )


def _banded(likely: float, band: Spread, wider: float = 1.0) -> Seconds:
    return Seconds(likely * band.low**wider, likely, likely * band.high**wider)


def _scaled(value: Seconds, factor: float) -> Seconds:
    return Seconds(value.low * factor, value.likely * factor, value.high * factor)


def _sum(values: list[Seconds]) -> Seconds:
    """Stages err together: the same factors are behind them."""
    return Seconds(
        sum(each.low for each in values),
        sum(each.likely for each in values),
        sum(each.high for each in values),
    )


def _export(work: Totals, machine: Host | None) -> Seconds:
    """The host's post-processing and the file; a rate that was found is taken as it is."""
    post, file = post_s(work), export_s(work, machine)
    found = machine is not None and machine.export_pixels_per_s is not None
    wider = 1.0 if found else _EXPORT_EITHER_WAY
    return Seconds(
        post / _EXPORT_EITHER_WAY + file / wider,
        post + file,
        post * _EXPORT_EITHER_WAY + file * wider,
    )


def _nothing(fitted: Factors, why: Note, work: Totals, machine: Host | None) -> TimeEstimate:
    return TimeEstimate(
        stages=(),
        total=None,
        step=None,
        load=None,
        export=_export(work, machine),
        ceiling_s=None,
        reached=None,
        basis="rule",
        n=fitted.n,
        left_out=LEFT_OUT,
        notes=(why,),
    )
