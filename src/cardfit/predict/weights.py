"""How many bytes a component's weights take, tensor by tensor, under a quantization scheme.

In: a component and the name of a scheme. Out: for every module its resident tensors, the scratch bytes its forward
needs (the weight in compute precision) and what its activation takes per token. What a scheme stores is in
`cardfit.predict.schemes`; here is which layers it takes: biases, norms, embeddings and whatever the class keeps in
fp32 or out of quantization stay as they are. Left out: layers that the maker of a GGUF or SVDQuant file kept in half
precision, which differ from file to file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from cardfit.predict.schemes import SCHEMES, Parts, Scheme, awq_parts
from cardfit.trace.stream import Component, Module

_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "int64": 8, "int32": 4}
# diffusers 0.42.1: layerwise casting takes layers of these kinds, unless a pattern is found in the path of the layer or
# of a module that holds it; some classes add patterns (tests compare with diffusers and transformers themselves)
_CASTABLE = frozenset(
    {
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "ConvTranspose3d",
        "Embedding",
    }
)
LAYERWISE_SKIPPED = ("pos_embed", "patch_embed", "norm", "^proj_in$", "^proj_out$")
LAYERWISE_SKIPPED_BY_CLASS: dict[str, tuple[str, ...]] = {
    "AllegroTransformer3DModel": ("adaln_single",),
    "CosmosTransformer3DModel": ("final_layer", "learnable_pos_embed"),
    "HunyuanDiT2DModel": ("pooler",),
    "HunyuanVideo15Transformer3DModel": ("x_embedder", "context_embedder"),
    "HunyuanVideoTransformer3DModel": ("x_embedder", "context_embedder"),
    "Kandinsky5Transformer3DModel": ("time_embeddings", "modulation"),
    "Lumina2Transformer2DModel": ("x_embedder",),
    "PixArtTransformer2DModel": ("adaln_single",),
    "SkyReelsV2Transformer3DModel": ("patch_embedding", "condition_embedder", "rope"),
    "UNet3DConditionModel": ("time_embedding",),
    "WanTransformer3DModel": ("patch_embedding", "condition_embedder", "rope"),
    "WanVACETransformer3DModel": ("patch_embedding", "condition_embedder", "rope"),
    "ZImageTransformer2DModel": ("t_embedder", "cap_embedder"),
}
# transformers 5.24 quantizes neither a class's _keep_in_fp32_modules (T5's wo), whatever the dtype, nor output layers
NOT_CONVERTED_BY_CLASS: dict[str, tuple[str, ...]] = {
    "T5EncoderModel": ("wo",),
    "UMT5EncoderModel": ("wo",),
}
_OUTPUT_LAYERS = frozenset({"lm_head", "text_projection", "visual_projection"})
# layers that make modulations, which SVDQuant checkpoints hold in another 4-bit form (names in diffusers' classes)
_MODULATIONS = re.compile(r"(^|\.)(norm\w*|img_mod|txt_mod)(\.|$)")


@dataclass(frozen=True, slots=True)
class InPlace(Component):
    """A component that lay on the card as a whole when its quantizer was called on it (torchao's ``quantize_``).

    That takes every linear layer, whatever its class keeps from a quantizer that loads it.
    """


@dataclass(frozen=True, slots=True)
class PerToken:
    """A layer that quantizes its activation, in bytes a token: its ``output``, what is there ``before`` that is born,
    and what is there ``beside`` it.
    """

    output: int
    before: float
    beside: float


@dataclass(frozen=True, slots=True)
class ModuleWeights:
    """One module: resident bytes per tensor, and scratch bytes while its forward runs.

    ``burst_bytes`` are there beside the scratch only until that is made. ``half_bytes`` is the weight before it was
    quantized (0 for a module that stays as it is), ``quantizing_bytes`` and ``arriving_bytes`` what quantizing it and
    its first move to the card take beside it.
    """

    tensors: tuple[int, ...]
    scratch_bytes: int = 0
    burst_bytes: int = 0
    tokens: PerToken | None = None
    half_bytes: int = 0
    quantizing_bytes: int = 0
    arriving_bytes: int = 0


def elements(size_bytes: int, dtype: str) -> int:
    """Elements of a tensor of ``size_bytes`` in ``dtype``."""
    return size_bytes // _ITEM_BYTES.get(dtype, 1)


def _rows(module: Module, count: int) -> int:
    """Outputs of a linear layer: as noted, else by its bias, else as if it were square."""
    if module.rows:
        return module.rows
    bias = next((elements(s, d) for name, s, d in module.tensors if name == "bias"), None)
    return bias or max(1, round(count**0.5))


def _quantized(
    module: Module, scheme: Scheme, half: str, parts: Parts | None = None
) -> ModuleWeights:
    """A linear layer under ``scheme``; ``parts`` stores it otherwise, without copies."""
    sizes: list[int] = []
    found = ModuleWeights(tuple(size for _, size, _ in module.tensors))
    item = _ITEM_BYTES[half]
    for name, size, dtype in module.tensors:
        if name != "weight" or dtype != half:
            sizes.append(size)
            continue
        count = elements(size, dtype)
        rows = _rows(module, count)
        stored = (parts or scheme.parts)(count, rows, item)
        sizes += stored
        if sum(stored) >= size:  # too small or odd for the scheme: as it was
            continue
        making = scheme.making if half == "float16" else scheme.cast_making or scheme.making
        found = ModuleWeights(
            (),
            scratch_bytes=size if scheme.copies else 0,
            burst_bytes=max(0, round(making * count) - size) if scheme.copies else 0,
            tokens=None if parts else _per_token(scheme, count, rows, half),
            half_bytes=size,
            quantizing_bytes=round(scheme.quantizing * count),
            arriving_bytes=round(scheme.arriving * count),
        )
    return replace(found, tensors=tuple(sizes))


def _per_token(scheme: Scheme, count: int, rows: int, half: str) -> PerToken | None:
    if not (scheme.taking or scheme.beside_in or scheme.beside_out):
        return None
    columns = count // rows
    wider = scheme.widening if half != "float16" else 0
    before = columns * (scheme.taking + (wider if scheme.taking else 0))
    beside = columns * scheme.beside_in + rows * (scheme.beside_out + wider) + scheme.beside
    return PerToken(_ITEM_BYTES[half] * rows, before, beside)


def _converted(component: Component, module: Module) -> bool:
    """Whether a weight quantizer replaces this module of ``component``."""
    if isinstance(component, InPlace):
        return module.linear
    kept = NOT_CONVERTED_BY_CLASS.get(component.kind, ())
    names = module.path.split(".")
    return module.linear and module.path not in _OUTPUT_LAYERS and not set(kept) & set(names)


def _casts(component: Component, module: Module) -> bool:
    """Whether layerwise casting hooks this module of ``component``."""
    if not (module.linear or module.kind in _CASTABLE):
        return False
    patterns = (
        *LAYERWISE_SKIPPED,
        *LAYERWISE_SKIPPED_BY_CLASS.get(component.kind, ()),
        *NOT_CONVERTED_BY_CLASS.get(component.kind, ()),  # T5 reads the dtype of its `wo`
    )
    names = module.path.split(".")
    holders = [".".join(names[: end + 1]) for end in range(len(names))]
    return not any(re.search(pattern, holder) for pattern in patterns for holder in holders)


def _layerwise(module: Module, half: str) -> ModuleWeights:
    cast = [size for _, size, dtype in module.tensors if dtype == half]
    sizes = tuple(size // 2 if dtype == half else size for _, size, dtype in module.tensors)
    return ModuleWeights(sizes, sum(cast))


def _in_blocks(component: Component) -> tuple[str, ...]:
    return tuple(f"{module.path}." for module in component.modules if module.block)


def module_weights(component: Component, scheme: str = "none") -> tuple[ModuleWeights, ...]:
    """Resident and scratch bytes of every module of ``component`` under ``scheme``.

    A component in fp32 stays as it is: `cardfit.library.rules` refuses a scheme for it.
    """
    half = component.dtype
    plain = tuple(ModuleWeights(tuple(s for _, s, _ in m.tensors)) for m in component.modules)
    if scheme == "none" or half not in ("float16", "bfloat16"):
        return plain
    stored = SCHEMES.get(scheme)
    svdq = scheme.startswith("svdq")
    blocks = _in_blocks(component) if svdq else ()
    changed = []
    for module, same in zip(component.modules, plain, strict=True):
        if scheme == "fp8-layerwise" and module.tensors and _casts(component, module):
            changed.append(_layerwise(module, half))
        elif (
            stored is None
            or not _converted(component, module)
            or (svdq and not module.path.startswith(blocks))
        ):
            changed.append(same)
        elif svdq and _MODULATIONS.search(module.path):
            changed.append(_quantized(module, stored, half, awq_parts))
        else:
            changed.append(_quantized(module, stored, half))
    return tuple(changed)
