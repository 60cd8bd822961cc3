"""How many bytes a component's weights take, tensor by tensor, under a quantization scheme.

In: a component and the name of a scheme. Out: for every module its resident sizes and the scratch bytes its forward
needs (the weight in compute precision). Sizes follow each library's storage format; biases, norms, embeddings and
whatever the class keeps in fp32 stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cardfit.trace.stream import Component, Module

_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "int64": 8, "int32": 4}
# diffusers' layerwise casting leaves modules with these words in their path alone
_LAYERWISE_SKIPPED = ("pos_embed", "patch_embed", "norm", "proj_in", "proj_out", "embedding")
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


def _eight_bits(count: int, rows: int) -> int:
    return count + 2 * rows


# scheme -> (bytes of a quantized weight from elements and rows, needs the weight back in compute precision)
_SCHEMES: dict[str, tuple[Callable[[int, int], int], bool]] = {
    "bnb-int8": (_int8, False),
    "bnb-nf4": (_nf4, True),
    "torchao-int8": (_eight_bits, True),
    "torchao-fp8": (_eight_bits, True),
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


def _layerwise(module: Module, half: str) -> ModuleWeights:
    if any(word in module.path for word in _LAYERWISE_SKIPPED):
        return ModuleWeights(tuple(size for _, size, _ in module.tensors))
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
        if scheme == "fp8-layerwise" and module.tensors:
            changed.append(_layerwise(module, half))
        elif scheme in _SCHEMES and module.linear:
            changed.append(_quantized(module, scheme, half))
        else:
            changed.append(same)
    return tuple(changed)
