"""How many bytes a component's weights take, tensor by tensor, under a quantization scheme.

In: a component and the name of a scheme. Out: for every module its resident sizes and the scratch bytes its forward
needs (the weight in compute precision). Sizes follow each library's storage format; biases, norms, embeddings and
whatever the class keeps in fp32 or out of quantization stay as they are. Left out: a Linear without bias tells its
elements but not its rows, so its scales are counted as if it were square.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

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
    "HunyuanVideo15Transformer3DModel": ("x_embedder", "context_embedder"),
    "HunyuanVideoTransformer3DModel": ("x_embedder", "context_embedder"),
    "Kandinsky5Transformer3DModel": ("time_embeddings", "modulation"),
    "Lumina2Transformer2DModel": ("x_embedder",),
    "PixArtTransformer2DModel": ("adaln_single",),
    "SkyReelsV2Transformer3DModel": ("patch_embedding", "condition_embedder", "rope"),
    "WanTransformer3DModel": ("patch_embedding", "condition_embedder", "rope"),
    "ZImageTransformer2DModel": ("t_embedder", "cap_embedder"),
}
# transformers 5.24 quantizes neither a class's _keep_in_fp32_modules (T5's wo), whatever the dtype, nor output layers
NOT_CONVERTED_BY_CLASS: dict[str, tuple[str, ...]] = {
    "T5EncoderModel": ("wo",),
    "UMT5EncoderModel": ("wo",),
}
_OUTPUT_LAYERS = frozenset({"lm_head", "text_projection", "visual_projection"})
NF4_BLOCK = 64  # weights per fp32 absmax, bitsandbytes' default without double quantization
INT4_GROUP = 128  # weights per bf16 scale and zero point, torchao's default


@dataclass(frozen=True, slots=True)
class ModuleWeights:
    """One module: resident bytes per tensor and scratch bytes while its forward runs."""

    tensors: tuple[int, ...]
    scratch_bytes: int = 0


def elements(size_bytes: int, dtype: str) -> int:
    """Elements of a tensor of ``size_bytes`` in ``dtype``."""
    return size_bytes // _ITEM_BYTES.get(dtype, 1)


def _int8(count: int, rows: int) -> int:
    return count + 4 * rows


def _nf4(count: int, rows: int) -> int:
    return -(-count // 2) + 4 * -(-count // NF4_BLOCK)


def _int4(count: int, rows: int) -> int:
    return -(-count // 2) + 4 * -(-count // INT4_GROUP)


def _ao_int8(count: int, rows: int) -> int:
    return count + 5 * rows  # torchao 0.18 Int8Tensor: fp32 scale and int8 zero point per row


def _ao_fp8(count: int, rows: int) -> int:
    return count + 4 * rows  # torchao 0.18 Float8Tensor: fp32 scale per row


# scheme -> (bytes of a quantized weight from elements and rows, needs the weight back in compute precision)
_SCHEMES: dict[str, tuple[Callable[[int, int], int], bool]] = {
    "bnb-int8": (_int8, False),
    "bnb-nf4": (_nf4, True),
    "torchao-int8": (_ao_int8, True),
    "torchao-fp8": (_ao_fp8, True),
    "torchao-int4": (_int4, False),
}


def _quantized(module: Module, scheme: str, half: str) -> ModuleWeights:
    size_of, needs_copy = _SCHEMES[scheme]
    sizes, scratch = [], 0
    bias = next((elements(s, d) for name, s, d in module.tensors if name == "bias"), None)
    for name, size, dtype in module.tensors:
        if name == "weight" and dtype == half:
            count = elements(size, dtype)
            rows = bias if bias is not None else round(count**0.5)
            sizes.append(size_of(count, rows))
            scratch += size if needs_copy else 0
        else:
            sizes.append(size)
    return ModuleWeights(tuple(sizes), scratch)


def _converted(component: Component, module: Module) -> bool:
    """Whether a weight quantizer replaces this module of ``component``."""
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


def module_weights(component: Component, scheme: str = "none") -> tuple[ModuleWeights, ...]:
    """Resident and scratch bytes of every module of ``component`` under ``scheme``."""
    half = component.dtype
    plain = tuple(ModuleWeights(tuple(s for _, s, _ in m.tensors)) for m in component.modules)
    if scheme == "none" or half not in ("float16", "bfloat16"):
        return plain
    changed = []
    for module, same in zip(component.modules, plain, strict=True):
        if scheme == "fp8-layerwise" and module.tensors and _casts(component, module):
            changed.append(_layerwise(module, half))
        elif scheme in _SCHEMES and _converted(component, module):
            changed.append(_quantized(module, scheme, half))
        else:
            changed.append(same)
    return tuple(changed)
