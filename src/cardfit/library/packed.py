"""Weights that a file packs: several to an element, with scales beside them.

In: the tensors of a header. Out: for each packed weight how many weights it holds and in which precision, and the names
of what only helps to read them (scales, tables, low-rank branches): bytes, but no weights of the model. A weight is
taken as packed only where what its format needs stands beside it under its own name; another one is counted as it is.

    format            the weight, and what shows it                                             source
    nvfp4 (ComfyUI)   X.weight U8 [out, in / 2], X.weight_scale F8_E4M3, a scale for 16          ComfyUI's quant ops
    bitsandbytes      X.weight U8 [n / 2, 1], X.weight.absmax, X.weight.quant_state.*__nf4/fp4   bitsandbytes 0.4x
    nunchaku          X.qweight I8 [out, in / 2] or I32 [out / 4, in / 2], X.wscales; fp8 scales  nunchaku's linears
                      where the 4 bits are a float

In all of them a byte holds two weights of 4 bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cardfit.library.tensors import Tensor

_WEIGHTS_A_BYTE = 2
_FP8 = "F8_E4M3"
_STATE = ".quant_state.bitsandbytes__"  # the rest of the name is nf4 or fp4
_SCALES = (
    "scale_weight",
    "weight_scale",
    "weight_scale_2",
    "scale_input",
    "input_scale",
    "scaled_fp8",
    "comfy_quant",
)
_BITSANDBYTES = ("absmax", "quant_map", "nested_absmax", "nested_quant_map")
_NUNCHAKU = (
    "wscales", "wzeros", "wcscales", "wtscale", "smooth", "smooth_orig", "smooth_factor", "smooth_factor_orig",
    "lora_down", "lora_up", "proj_down", "proj_up",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Packed:
    """What one packed tensor holds: its weights, and their precision by `filenames.BYTES_A_WEIGHT`'s names."""

    weights: int
    precision: str


def packed(tensors: Iterable[Tensor]) -> tuple[dict[str, Packed], set[str]]:
    """The packed weights by name, and the names of the tensors beside weights that are none themselves."""
    by_name = {each.name: each for each in tensors}
    states = {
        name.partition(_STATE)[0]: name.partition(_STATE)[2] for name in by_name if _STATE in name
    }
    found: dict[str, Packed] = {}
    beside: set[str] = set()
    for name, each in by_name.items():
        module, _, leaf = name.rpartition(".")
        if (
            _STATE in name
            or leaf in _SCALES
            or (leaf in _BITSANDBYTES and module in by_name)
            or (leaf in _NUNCHAKU and f"{module}.qweight" in by_name)
        ):
            beside.add(name)
        elif precision := _precision(each, by_name, states):
            found[name] = Packed(each.size_bytes * _WEIGHTS_A_BYTE, precision)
    return found, beside


def _precision(each: Tensor, by_name: dict[str, Tensor], states: dict[str, str]) -> str | None:
    """What a weight's bytes are, by the tensors beside it; None for one that is not packed."""
    module, _, leaf = each.name.rpartition(".")
    if leaf == "qweight" and each.dtype in ("I8", "U8", "I32"):
        scales = by_name.get(f"{module}.wscales")
        if scales is None:
            return None
        return "svdq-nvfp4" if scales.dtype == _FP8 else "svdq-int4"
    if each.dtype != "U8" or leaf != "weight":
        return None
    if f"{each.name}.absmax" in by_name:
        return {"nf4": "nf4", "fp4": "fp4"}.get(states.get(each.name, ""))
    scales = by_name.get(f"{module}.weight_scale")
    return "fp4" if scales is not None and scales.dtype == _FP8 else None
