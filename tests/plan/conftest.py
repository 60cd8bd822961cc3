"""Numbers on paper: a pipeline of three components whose memory can be added up by hand.

Weights in GiB: text_encoder 10, transformer 26, vae 1. Working memory: encode_prompt 1, denoise 8, decode 17 (4 when
tiled). The band is 2 % to each side. Offload keeps 37 GiB in host RAM, everything resident 2 GiB.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cardfit.plan.answer import ModelRow, Money, OfferRow
from cardfit.plan.knobs import Knobs, knobs_of
from cardfit.plan.make import Facts
from cardfit.plan.search import Estimates
from cardfit.plan.target import Band, Target
from cardfit.predict.estimate import Failure, MemoryEstimate, StageMemory
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Component, Module, Trace
from cardfit.units import GIB

WEIGHTS = {"text_encoder": 10, "transformer": 26, "vae": 1}
STAGES = (
    ("encode_prompt", "text_encoder", 1),
    ("denoise", "transformer", 8),
    ("decode", "vae", 17),
)
TILED_DECODE = 4
# the share of a component's weights that is on the card while it computes
RESIDENT = {"none": 1.0, "model": 1.0, "group-block": 0.1, "group-leaf": 0.05, "sequential": 0.02}
BITS = {"none": 1.0, "fp8-layerwise": 0.5, "bnb-int8": 0.5, "bnb-nf4": 0.25}


def gib(number: float) -> int:
    return round(number * GIB)


def component(name: str, size_gib: float, dtype: str = "bfloat16") -> Component:
    weight = ("weight", gib(size_gib), dtype)
    return Component(name, "Fake", dtype, (Module("", "Linear", (weight,), linear=True),))


def exact(**changes: object) -> ExactRequest:
    fields: dict[str, object] = {
        "model": "fake",
        "task": "text-to-video",
        "width": 1280,
        "height": 720,
        "num_frames": 81,
        "num_inference_steps": 50,
        "guidance_scale": 5.0,
        "prompt_tokens": 512,
    }
    return ExactRequest.model_validate(fields | changes)


def trace(settings: Settings | None = None, *, dtype: str = "bfloat16", **request: object) -> Trace:
    return Trace(
        request=exact(**request),
        settings=settings or Settings(),
        versions={"torch": "2.13.0", "diffusers": "0.42.1"},
        pipeline="FakePipeline",
        offload_sequence=tuple(WEIGHTS),
        components=tuple(component(name, size, dtype) for name, size in WEIGHTS.items()),
        recasts=(),
        stages=tuple((name, owner) for name, owner, _ in STAGES),
        streams=(),
        timeline=(),
        sites=(),
    )


def resident_gib(settings: Settings, owner: str) -> float:
    """Weights on the card while ``owner`` computes."""
    offload = settings.offload or "none"
    shares = {name: BITS[settings.quantization.get(name, "none")] for name in WEIGHTS}
    on_card = WEIGHTS if offload == "none" else {owner: WEIGHTS[owner]}
    return RESIDENT[offload] * sum(WEIGHTS[name] * shares[name] for name in on_card)


def stage(name: str, owner: str, weights_gib: float, working_gib: float) -> StageMemory:
    total = gib(weights_gib) + gib(working_gib)
    return StageMemory(
        name=name,
        component=owner,
        calls=1,
        weights_bytes=gib(weights_gib),
        activation_bytes=gib(working_gib),
        allocated_bytes=total,
        reserved_bytes=total,
        low_bytes=round(total * 0.98),
        high_bytes=round(total * 1.02),
        basis="traced",
        site="block 0",
    )


def estimate(
    stages: tuple[StageMemory, ...],
    *,
    host_gib: float = 2,
    cached_gib: float = 0,
    failure: Failure | None = None,
) -> MemoryEstimate:
    """The estimate over ``stages``; ``cached_gib`` is what the allocator holds beside the tensors."""
    peak = max(stages, key=lambda each: each.reserved_bytes)
    reserved = peak.reserved_bytes + gib(cached_gib)
    return MemoryEstimate(
        stages=stages,
        peak_stage=peak.name,
        allocated_bytes=peak.allocated_bytes,
        reserved_bytes=reserved,
        reserved_low_bytes=round(reserved * 0.98),
        reserved_high_bytes=round(reserved * 1.02),
        host_bytes=gib(host_gib),
        failure=failure,
        left_out=("CUDA graphs",),
    )


def predict(
    traced: Trace, settings: Settings, architecture: str | None, limit_bytes: int | None
) -> MemoryEstimate:
    stages = []
    for name, owner, working in STAGES:
        tiled = name == "decode" and settings.vae_tiling
        needs = TILED_DECODE if tiled else working
        stages.append(stage(name, owner, resident_gib(settings, owner), needs))
    offloads = settings.offload not in (None, "none")
    return estimate(tuple(stages), host_gib=37 if offloads else 2)


def estimates(calls: list[Settings] | None = None) -> Estimates:
    """A memo over the fakes; ``calls`` collects the settings that were traced."""

    def tracer(settings: Settings) -> Trace:
        if calls is not None:
            calls.append(settings)
        return trace(settings)

    return Estimates(tracer, predict)


def target(
    card: str,
    usable_gib: float,
    *,
    price: float | None = None,
    currency: str = "USD",
    period: str = "hour",
    ram_gib: float | None = None,
    capability: float | None = 8.9,
    **changes: object,
) -> Target:
    """A card with exactly ``usable_gib`` usable beside a context of half a GiB."""
    offers = ()
    if price is not None:
        offers = (
            OfferRow(
                provider="somebody",
                price=Money(amount=price, currency=currency),
                period=period,  # type: ignore[arg-type]
                spot=False,
                as_of="2026-08-02",
                age_days=3,
                ram_bytes=None if ram_gib is None else gib(ram_gib),
                source="price page",
            ),
        )
    total, context = gib(usable_gib + 0.5), gib(0.5)
    fields: dict[str, object] = {
        "card": card,
        "name": card.upper(),
        "memory_bytes": gib(usable_gib + 1),
        "architecture": "Ada Lovelace",
        "compute_capability": capability,
        "total": Band(total, total, total),
        "context": Band(context, context, context),
        "offers": offers,
    }
    return Target(**(fields | changes))  # type: ignore[arg-type]


def knobs(**request: object) -> Knobs:
    return knobs_of(trace(**request), tile=256, slicing=True, chunked=False)  # type: ignore[arg-type]


def facts() -> Facts:
    row = ModelRow(id="fake", title="Fake", license="MIT", verified=True, pipeline="FakePipeline")
    return Facts(
        model=row,
        versions={"cardfit": "0"},
        rule_bytes=gib(37 * 1.15),
        denoiser_rule_bytes=gib(26 * 1.15),
        disk_bytes=gib(37),
        context_bytes=gib(0.5),
    )


@pytest.fixture(scope="session")
def fakes() -> SimpleNamespace:
    """The makers of this file, for tests that cannot import a conftest."""
    makers = (gib, exact, trace, stage, estimate, predict, estimates, target, knobs, facts)
    return SimpleNamespace(**{maker.__name__: maker for maker in makers})
