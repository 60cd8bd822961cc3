"""Low-rank adapters on a denoiser without weights: peft's own layers, so that their extra activations are its own.

In: a module on meta and the adapters that are kept apart. Out: the module with both factors beside every linear layer
that diffusers' scripts train by default: the projections of attention. Fused adapters change no weight's size and no
activation. Left out: adapters that also train feed-forward or other layers, and other kinds (LoHa, LoKr, DoRA).
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Sequence

import torch

from cardfit.errors import BadRequest
from cardfit.request import Lora

# the projections that diffusers' LoRA scripts train by default, and their names in Kandinsky 5 and in FLUX.2's single
# blocks, which hold them in one layer
TARGETS = (
    "to_q",
    "to_k",
    "to_v",
    "to_out.0",
    "to_query",
    "to_key",
    "to_value",
    "attention.out_layer",
    "to_qkv_mlp_proj",
)
FACTORS = ("lora_A", "lora_B")


def kept_apart(loras: Sequence[Lora]) -> tuple[Lora, ...]:
    """The adapters that stay beside the weights they change."""
    return tuple(lora for lora in loras if not lora.fused)


def is_factor(path: str) -> bool:
    """Whether the module at ``path`` is one of an adapter's factors.

    >>> is_factor("blocks.0.to_q.lora_A.lora_0"), is_factor("blocks.0.to_q.base_layer")
    (True, False)
    """
    return any(part in FACTORS for part in path.split("."))


def add(name: str, module: torch.nn.Module, loras: Sequence[Lora], dtype: str) -> None:
    """Lay those of ``loras`` that are kept apart over ``module``, the component ``name`` loaded in ``dtype``.

    Raises BadRequest where diffusers loads no adapter into the module's class or no layer has a name that adapters are
    trained for, ModuleNotFoundError without peft.
    """
    if not loras:
        return
    if not hasattr(module, "load_lora_adapter"):
        raise BadRequest("lora-not-loaded", component=name, kind=type(module).__name__)
    apart = kept_apart(loras)
    if not apart:
        return
    peft = importlib.import_module("peft")
    layers = importlib.import_module("peft.tuners.tuners_utils")
    if not targeted(module):
        names = ", ".join(TARGETS[:4])
        raise BadRequest(
            "lora-no-layers", component=name, kind=type(module).__name__, targets=names
        )
    pattern = rf"(.*\.)?({'|'.join(map(re.escape, TARGETS))})"
    adapters = [f"lora_{number}" for number in range(len(apart))]
    for adapter, lora in zip(adapters, apart, strict=True):
        config = peft.LoraConfig(r=lora.rank, lora_alpha=lora.rank, target_modules=pattern)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a second adapter on the same layers is meant
            peft.inject_adapter_in_model(config, module, adapter, low_cpu_mem_usage=True)
        _cast(module, adapter, getattr(torch, lora.dtype or dtype))
    for part in module.modules():
        if isinstance(part, layers.BaseTunerLayer):
            part.set_adapter(adapters)
    module.eval().requires_grad_(False)


def targeted(module: torch.nn.Module) -> tuple[str, ...]:
    """The linear layers of ``module`` that adapters are laid over."""
    return tuple(
        path
        for path, part in module.named_modules()
        if isinstance(part, torch.nn.Linear)
        and any(f".{path}".endswith(f".{target}") for target in TARGETS)
    )


def layers(module: torch.nn.Module) -> tuple[str, ...]:
    """The layers of ``module`` that adapters lie over."""
    return tuple(
        path.removesuffix(".base_layer")
        for path, _ in module.named_modules()
        if path.endswith(".base_layer")
    )


def names(paths: Sequence[str]) -> tuple[str, ...]:
    """What the layers at ``paths`` are called, each name once.

    >>> names(["blocks.0.attn.to_q", "blocks.1.attn.to_q", "blocks.0.attn.to_out.0"])
    ('to_q', 'to_out.0')
    """
    return tuple(each for each in TARGETS if any(f".{p}".endswith(f".{each}") for p in paths))


def _cast(module: torch.nn.Module, adapter: str, dtype: torch.dtype) -> None:
    for path, part in module.named_modules():
        if is_factor(path) and path.endswith(f".{adapter}"):
            part.to(dtype)
