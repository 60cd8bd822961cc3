"""Add-ons in a dry run: the layers that adapters lay into a denoiser, and the pictures that a call is handed for them.

In: a denoiser on meta, the model and the request; the pipeline's argument names. Out: the denoiser with peft's and
diffusers' own layers in it, and call arguments. IP-Adapters go through diffusers' own loader, with tensors that have a
shape and no data. ControlNets and T2I-Adapters are components like any other (`cardfit.library.add_ons`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import torch

from cardfit.errors import BadRequest
from cardfit.library.add_ons import (
    ADAPTER,
    CONTROLNET,
    IMAGE_ENCODER,
    IpAdapter,
    ip_adapters_of,
    shown_of,
)
from cardfit.library.models import Model
from cardfit.request import ExactRequest, Lora
from cardfit.trace import lora
from cardfit.trace.stream import Component
from cardfit.units import human_bytes

_PROJECTION, _IP = "encoder_hid_proj", "_ip."  # where IP-Adapters lie in a denoiser
Said = tuple[str, dict[str, object]]
_RESAMPLER_LAYERS, _FF, _HEAD = 4, 4, 64  # of IP-Adapter Plus, as diffusers reads its file
Tensors = dict[str, torch.Tensor]


def fit(
    name: str, module: torch.nn.Module, model: Model, request: ExactRequest, dtype: str
) -> None:
    """Lay what ``request`` asks for into ``module``, the denoiser ``name`` in ``dtype``; raises as `lora.add`."""
    lora.add(name, module, request.loras, dtype)
    adapters = ip_adapters_of(model, request)
    if adapters:
        _add_ip_adapters(module, adapters, model.components[IMAGE_ENCODER].config, dtype)


def _add_ip_adapters(
    module: Any, adapters: Iterable[IpAdapter], encoder: Mapping[str, Any], dtype: str
) -> None:
    """diffusers' own ``_load_ip_adapter_weights`` on tensors of the right shapes."""
    kind = getattr(torch, dtype)
    with torch.device("meta"), torch.no_grad():
        states = [_ip_adapter_weights(module, each, encoder, kind) for each in adapters]
        module._load_ip_adapter_weights(states)
    module.eval().requires_grad_(False)


def _ip_adapter_weights(
    module: Any, adapter: IpAdapter, encoder: Mapping[str, Any], dtype: torch.dtype
) -> dict[str, Tensors]:
    """What the file of ``adapter`` holds for ``module``: the projection of a picture, and two layers per attention.

    ``encoder`` is the config of what reads the picture.
    """
    if hasattr(module, "inner_dim"):  # a transformer: its double blocks
        tokens_dim = module.config.joint_attention_dim
        inner = module.inner_dim
        widths = [inner for n in module.attn_processors if n.startswith("transformer_blocks")]
        keys, bias = range(len(widths)), True
    else:
        tokens_dim = module.config.cross_attention_dim
        widths = [_width(module, n) for n in module.attn_processors if "attn2" in n]
        keys, bias = range(1, 2 * len(widths), 2), False
    attention: Tensors = {}
    for key, width in zip(keys, widths, strict=True):
        for layer in ("to_k_ip", "to_v_ip"):
            attention[f"{key}.{layer}.weight"] = torch.empty(width, tokens_dim, dtype=dtype)
            if bias:
                attention[f"{key}.{layer}.bias"] = torch.empty(width, dtype=dtype)
    if adapter.projection == "linear":
        into, wide = encoder["projection_dim"], adapter.num_tokens * tokens_dim
        shapes = {
            "proj.weight": (wide, into),
            "proj.bias": (wide,),
            "norm.weight": (tokens_dim,),
            "norm.bias": (tokens_dim,),
        }
    else:
        shapes = _resampler(adapter, encoder["hidden_size"], tokens_dim)
    picture = {name: torch.empty(shape, dtype=dtype) for name, shape in shapes.items()}
    return {"image_proj": picture, "ip_adapter": attention}


def _width(module: Any, name: str) -> int:
    """The width of the attention layer whose processor is called ``name``."""
    return int(module.get_submodule(name.removesuffix(".processor")).to_q.out_features)


def _resampler(adapter: IpAdapter, into: int, out: int) -> dict[str, tuple[int, ...]]:
    """Shapes in the file of an IP-Adapter Plus."""
    wide = adapter.hidden_size or out
    heads = wide // _HEAD * _HEAD
    shapes: dict[str, tuple[int, ...]] = {
        "latents": (1, adapter.num_tokens, wide),
        "proj_in.weight": (wide, into),
        "proj_in.bias": (wide,),
        "proj_out.weight": (out, wide),
        "proj_out.bias": (out,),
        "norm_out.weight": (out,),
        "norm_out.bias": (out,),
    }
    for layer in range(_RESAMPLER_LAYERS):
        attention, ahead = f"layers.{layer}.0", f"layers.{layer}.1"
        for norm in (f"{attention}.norm1", f"{attention}.norm2", f"{ahead}.0"):
            shapes |= {f"{norm}.weight": (wide,), f"{norm}.bias": (wide,)}
        shapes |= {
            f"{attention}.to_q.weight": (heads, wide),
            f"{attention}.to_kv.weight": (2 * heads, wide),
            f"{attention}.to_out.weight": (wide, heads),
            f"{ahead}.1.weight": (_FF * wide, wide),
            f"{ahead}.3.weight": (wide, _FF * wide),
        }
    return shapes


def notes(
    request: ExactRequest,
    modules: Mapping[str, torch.nn.Module],
    components: Sequence[Component],
    dtypes: Mapping[str, str],
) -> tuple[Said, ...]:
    """What add-ons weigh and lie over; ``dtypes`` are those that the denoisers are loaded in."""
    found: list[Said] = []
    for name, dtype in dtypes.items():
        found += _lora_notes(name, modules[name], request.loras, dtype)
        if request.ip_adapters:
            size = _bytes(modules[name], lambda path: path.startswith(_PROJECTION) or _IP in path)
            found.append(("ip-adapter-weights", {"component": name, "size": human_bytes(size)}))
    for number, each in enumerate(request.loras):
        if each.file is not None and not each.fused:
            ending = f".{lora.adapter_name(number)}"
            size = sum(_bytes(part, partial(_ends, ending)) for part in modules.values())
            args: dict[str, object] = {
                "file": PurePath(each.file).name,
                "rank": each.rank,
                "size": human_bytes(size),
            }
            found.append(("lora-from-file", args))
    beside = {CONTROLNET: bool(request.controlnets), ADAPTER: bool(request.t2i_adapters)}
    beside |= {IMAGE_ENCODER: bool(request.ip_adapters), **dict.fromkeys(request.components, True)}
    for part in components:
        if beside.get(part.name):
            said: dict[str, object] = {"component": part.name, "kind": part.kind}
            found.append(("add-on-weights", said | {"size": human_bytes(part.weights_bytes)}))
    return tuple(found)


def _lora_notes(
    name: str, module: torch.nn.Module, loras: Sequence[Lora], dtype: str
) -> Iterator[Said]:
    """What was laid over which layers by rank, and what fusing takes."""
    for number, each in enumerate(loras):
        if each.fused:
            factors, change = lora.fusing_bytes(module, each, dtype)
            args: dict[str, object] = {"component": name, "size": human_bytes(factors)}
            yield "lora-fused", args | {"change": human_bytes(change)}
        elif each.file is None:
            adapter = f".{lora.adapter_name(number)}"
            paths = lora.layers(module, adapter)
            size = _bytes(module, partial(_ends, adapter))
            yield (
                "lora-named" if each.targets else "lora-kept",
                {
                    "component": name,
                    "layers": len(paths),
                    "targets": ", ".join(lora.names(paths, each.targets or lora.TARGETS)),
                    "size": human_bytes(size),
                },
            )


def _ends(ending: str, path: str) -> bool:
    return path.endswith(ending)


def _bytes(module: torch.nn.Module, chosen: Callable[[str], bool]) -> int:
    """Bytes of the parameters of the modules at ``chosen`` paths."""
    return sum(
        each.numel() * each.element_size()
        for path, part in module.named_modules()
        if chosen(path)
        for each in part.parameters(recurse=False)
    )


def pictures(
    model: Model, request: ExactRequest, names: Iterable[str], picture: Any
) -> dict[str, Any]:
    """Call arguments for the add-ons of ``request``, each with ``picture``; ``names`` are what the pipeline takes."""
    found: dict[str, Any] = {}
    control = len(request.controlnets) or request.t2i_adapters
    if control:
        frames = [picture] * request.num_frames if request.num_frames > 1 else picture
        taken = next(n for n in ("conditioning_frames", "control_image", "image") if n in names)
        listed = control > 1 or isinstance(model.call.get("control_mode"), list)
        found[taken] = [frames] * control if listed else frames
    if control > 1:  # SD3's and MultiAdapter take no single scale for several
        kind = "controlnet" if request.controlnets else "adapter"
        found[f"{kind}_conditioning_scale"] = [1.0] * control
    if request.ip_adapters:
        found["ip_adapter_image"] = [picture] * len(request.ip_adapters)
    shown = shown_of(model)
    if shown is not None and request.reference_images is not None:
        found[shown.argument] = [picture] * request.reference_images
    for name in found:
        if name not in names:
            raise BadRequest("add-ons-apart", model=model.id, argument=name, task=request.task)
    return found
