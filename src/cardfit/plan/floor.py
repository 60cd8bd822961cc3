"""The least that settings can take, from a replay that was made already: what the search need not replay.

In: the replay of one setting without quantization (the reference) and other settings of the same
pipeline. Out: bytes that they allocate at least. Offload and quantization move weights and change
no activation, so the activations of the reference are alive under every placement; tiles change
the VAE's stages only. With nothing offloaded the weights lie beside them; with model offload each
component is on the card as a whole once. A floor is never above the true peak.
"""

from __future__ import annotations

from collections.abc import Mapping

from cardfit.plan.knobs import Candidate, trace_key
from cardfit.predict.estimate import MemoryEstimate, StageMemory
from cardfit.request import Quantization, Settings
from cardfit.trace.stream import Component, Trace

# Bytes per element that a scheme stores at least; scales and layers left out come on top.
_LEAST_ITEM_BYTES: dict[Quantization, float] = {
    "fp8-layerwise": 1,
    "bnb-int8": 1,
    "torchao-int8": 1,
    "torchao-int8dq": 1,
    "torchao-fp8": 1,
    "torchao-fp8dq": 1,
    "bnb-nf4": 0.5,
    "torchao-int4": 0.5,
    "quanto-int8": 1,
    "quanto-fp8": 1,
    "quanto-int4": 0.5,
    "quanto-int2": 0.25,
    "gguf-q8_0": 1,
    "gguf-q6_k": 0.75,
    "gguf-q5_k": 0.625,
    "gguf-q5_1": 0.625,
    "gguf-q5_0": 0.625,
    "gguf-q4_k": 0.5,
    "gguf-q4_1": 0.5,
    "gguf-q4_0": 0.5,
    "gguf-q3_k": 0.375,
    "gguf-q2_k": 0.25,
    "svdq-int4": 0.5,
    "svdq-nvfp4": 0.5,
}
_ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
# Every tensor is rounded up to this, and what weights are rounded by counts among the activations.
BLOCK_BYTES = 512
INSIDE = " in "  # a site reads "op in module.path", or "op" between the calls
# The stages that no tile, slice or chunk of the VAE changes.
ANY_TILING = frozenset({"encode_prompt", "denoise"})


def reference(candidates: tuple[Candidate, ...]) -> Settings | None:
    """The settings to know first: the first candidate whose weights are as they are; None without one."""
    return next((each.settings for each in candidates if not _schemes(each.settings)), None)


def floor_bytes(settings: Settings, known: Settings, trace: Trace, estimate: MemoryEstimate) -> int:
    """Bytes that ``settings`` allocate at least; ``estimate`` and ``trace`` are those of ``known``."""
    same = trace_key(settings) == trace_key(known)
    if settings == known:
        return estimate.allocated_bytes
    stages = [each for each in estimate.stages if same or each.name in ANY_TILING]
    tensors = _tensors(trace)
    active = max((each.activation_bytes for each in stages), default=0)
    active = max(0, active - tensors * BLOCK_BYTES)
    if settings.blocks_to_swap is not None:
        return active  # how much waits on the host depends on the blocks
    sizes = {each.name: _weights(trace, each, settings) for each in trace.components}
    if settings.offload in (None, "none"):
        return active + sum(sizes.values())
    if settings.offload == "model":
        rounding = tensors * BLOCK_BYTES
        return max([active, *(_whole(each, sizes, rounding) for each in stages)])
    return active


def _whole(stage: StageMemory, sizes: Mapping[str, int], rounding: int) -> int:
    """The component of a stage as a whole, and what it works on where the peak is inside one of its modules."""
    weights = sizes.get(stage.component, 0)
    inside = INSIDE in stage.site
    return weights + max(0, stage.activation_bytes - rounding) if inside else weights


def _tensors(trace: Trace) -> int:
    """How many tensors of weights there are."""
    key = ("floor", "tensors")
    if key not in trace.memo:
        trace.memo[key] = sum(len(m.tensors) for each in trace.components for m in each.modules)
    found: int = trace.memo[key]
    return found


def _weights(trace: Trace, component: Component, settings: Settings) -> int:
    """The bytes of a component's weights at least, after quantization."""
    scheme = settings.quantization.get(component.name, "none")
    key = ("floor", component.name, scheme)
    if key not in trace.memo:
        trace.memo[key] = _stored(component, scheme)
    found: int = trace.memo[key]
    return found


def _stored(component: Component, scheme: Quantization) -> int:
    if scheme == "none":
        return component.weights_bytes
    least = _LEAST_ITEM_BYTES[scheme]
    total = 0.0
    for module in component.modules:
        for _, size, dtype in module.tensors:
            item = _ITEM_BYTES.get(dtype.rpartition(".")[2], 0)
            total += size * min(1.0, least / item) if item else 0
    return int(total)


def _schemes(settings: Settings) -> bool:
    return any(scheme != "none" for scheme in settings.quantization.values())
