"""Low-rank adapters on a denoiser without weights: peft's own layers, so that their extra activations are its own.

In: a module or a pipeline on meta and the adapters that are kept apart. Out: both factors beside linear layers: those
that a file has, through the pipeline's own loader and converters; else those that were named, else those that
diffusers' scripts train by default, the projections of attention. Fused adapters change no weight's size and no
activation. Left out: other kinds (LoHa, LoKr, DoRA).
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from cardfit.errors import BadFile, BadRequest
from cardfit.library.lora_file import tensors_of
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
_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}  # of a file
_FP32_BYTES = 4
_WRAPPED = ".base_layer"  # a layer that carries an adapter


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
    apart = {
        adapter_name(number): lora
        for number, lora in enumerate(loras)
        if not lora.fused and lora.file is None
    }
    if not apart:
        return
    peft = importlib.import_module("peft")
    for adapter, lora in apart.items():
        names = lora.targets or TARGETS
        if not targeted(module, names):
            kind, listed = type(module).__name__, ", ".join(lora.targets or TARGETS[:4])
            raise BadRequest("lora-no-layers", component=name, kind=kind, targets=listed)
        pattern = rf"(.*\.)?({'|'.join(map(re.escape, names))})"
        config = peft.LoraConfig(r=lora.rank, lora_alpha=lora.rank, target_modules=pattern)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a second adapter on the same layers is meant
            peft.inject_adapter_in_model(config, module, adapter, low_cpu_mem_usage=True)
        _cast(module, adapter, getattr(torch, lora.dtype or dtype))
    _set(module, tuple(apart))


def adapter_name(number: int) -> str:
    """What the adapter at place ``number`` of a request is called.

    >>> adapter_name(0)
    'lora_0'
    """
    return f"lora_{number}"


def _set(module: torch.nn.Module, adapters: Sequence[str]) -> None:
    """Let all ``adapters`` work at once."""
    layers = importlib.import_module("peft.tuners.tuners_utils")
    for part in module.modules():
        if isinstance(part, layers.BaseTunerLayer):
            part.set_adapter(
                [name for name in adapters if name in part._all_available_adapter_names()]
            )
    module.eval().requires_grad_(False)


def load_files(pipeline: Any, loras: Sequence[Lora]) -> bool:
    """Lay the adapters of files over the components of ``pipeline`` by its own loader; whether there was any.

    Raises BadFile where diffusers finds no layer for what a file holds, BadRequest where the pipeline loads none.
    """
    found = False
    for number, lora in enumerate(loras):
        if lora.file is None or lora.fused:
            continue
        found = True
        if not hasattr(pipeline, "load_lora_weights"):
            kind = type(pipeline).__name__
            raise BadRequest("lora-not-loaded", component="pipeline", kind=kind)
        twins = (False, True) if getattr(pipeline, "transformer_2", None) is not None else (False,)
        for second in twins:
            more = {"load_into_transformer_2": True} if second else {}
            _load(pipeline, lora, adapter_name(number), more)
    if found:
        names = [adapter_name(n) for n, lora in enumerate(loras) if not lora.fused]
        for part in pipeline.components.values():
            if isinstance(part, torch.nn.Module):
                _to_meta(part)
                _set(part, names)
    return found


def _load(pipeline: Any, lora: Lora, adapter: str, more: dict[str, Any]) -> None:
    state = weights_of(lora)
    before = _factors(pipeline)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline.load_lora_weights(state, adapter_name=adapter, **more)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise BadFile(
            "lora-file-refused", path=lora.file, kind=type(pipeline).__name__, why=why[:300]
        ) from error
    if _factors(pipeline) == before:
        raise BadFile("lora-file-other-model", path=lora.file, kind=type(pipeline).__name__)


def _factors(pipeline: Any) -> int:
    return sum(
        is_factor(path)
        for part in pipeline.components.values()
        if isinstance(part, torch.nn.Module)
        for path, _ in part.named_modules()
    )


def weights_of(lora: Lora) -> dict[str, torch.Tensor]:
    """The file's tensors by name: ones that take no memory, since converters look at values and multiply them."""
    return {
        each.name: torch.ones((), dtype=getattr(torch, _DTYPES.get(each.dtype, "float32"))).expand(
            each.shape
        )
        for each in tensors_of(lora)
    }


def _to_meta(module: torch.nn.Module) -> None:
    """Factors as they were laid, without data."""
    for path, part in module.named_modules():
        if is_factor(path):
            for name, each in list(part.named_parameters(recurse=False)):
                empty = torch.empty(each.shape, dtype=each.dtype, device="meta")
                setattr(part, name, torch.nn.Parameter(empty, requires_grad=False))


def fusing_bytes(module: torch.nn.Module, lora: Lora, dtype: str) -> tuple[int, int]:
    """Bytes of the factors over ``module``, and of the largest change of a layer, as peft adds them in on the host.

    peft multiplies halves in fp32 there and casts the product (0.21.2, ``get_delta_weight``).
    """
    item = getattr(torch, lora.dtype or dtype).itemsize
    parts: list[Any] = [module.get_submodule(p) for p in targeted(module, lora.targets or TARGETS)]
    sides = [(part.in_features, part.out_features) for part in parts]
    factors = lora.size_bytes or (lora.rank or 0) * item * sum(a + b for a, b in sides)
    return factors, max((a * b for a, b in sides), default=0) * _FP32_BYTES


def targeted(module: torch.nn.Module, names: Sequence[str] = TARGETS) -> tuple[str, ...]:
    """The linear layers of ``module`` with one of ``names``, which adapters are laid over."""
    linear = (
        path.removesuffix(_WRAPPED)
        for path, part in module.named_modules()
        if isinstance(part, torch.nn.Linear) and not is_factor(path)
    )
    return tuple(
        path for path in linear if any(f".{path}".endswith(f".{target}") for target in names)
    )


def layers(module: torch.nn.Module, adapter: str) -> tuple[str, ...]:
    """The layers of ``module`` that the adapter with this ending lies over."""
    ending = f".{FACTORS[0]}{adapter}"
    return tuple(
        path.removesuffix(ending) for path, _ in module.named_modules() if path.endswith(ending)
    )


def names(paths: Sequence[str], targets: Sequence[str] = TARGETS) -> tuple[str, ...]:
    """What of ``targets`` the layers at ``paths`` are called, each name once.

    >>> names(["blocks.0.attn.to_q", "blocks.1.attn.to_q", "blocks.0.attn.to_out.0"])
    ('to_q', 'to_out.0')
    """
    return tuple(each for each in targets if any(f".{p}".endswith(f".{each}") for p in paths))


def _cast(module: torch.nn.Module, adapter: str, dtype: torch.dtype) -> None:
    for path, part in module.named_modules():
        if is_factor(path) and path.endswith(f".{adapter}"):
            part.to(dtype)
