"""Build a component without weights: parameters on the meta device, buffers real on CPU, dtypes as loaded.

In: a component's class and config. Out: the real diffusers or transformers module, cast as
``from_pretrained(torch_dtype=...)`` would cast it. Nothing is downloaded and no weight is ever filled in.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from cardfit.library.add_ons import NETS

if TYPE_CHECKING:
    from cardfit.library.models import ComponentSpec

_META = torch.device("meta")
# nn layers make their parameters with these; everything else (arange, tensor, linspace ...) makes buffers
_PARAMETER_FACTORIES = {torch.empty, torch.randn, torch.rand, torch.empty_strided}


class _ParametersOnMeta(TorchFunctionMode):
    """Send parameter-making factories to meta and leave the rest on CPU."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _PARAMETER_FACTORIES and kwargs.get("device") is None:
            kwargs["device"] = _META
        return func(*args, **kwargs)


def _class(path: str) -> Any:
    library, _, name = path.rpartition(".")
    return getattr(importlib.import_module(library), name)


def _construct(kind: Any, config: dict[str, Any], config_kind: Any = None) -> torch.nn.Module:
    if NETS in config:  # several networks side by side
        nets = [_construct(_class(each["class_path"]), each["config"]) for each in config[NETS]]
        with torch.no_grad():
            return kind(nets)  # type: ignore[no-any-return]
    # a copy: transformers writes defaults into the tables it is given
    config = copy.deepcopy({k: v for k, v in config.items() if k != "model_type"})
    with _ParametersOnMeta(), torch.no_grad():
        if not hasattr(kind, "from_config"):  # a transformers model
            module = kind((config_kind or kind.config_class)(**config))
        else:
            module = kind.from_config(config)
    return module  # type: ignore[no-any-return]


def _kept_in_fp32(module: torch.nn.Module, dtype: torch.dtype) -> Callable[[str], bool]:
    """Which parameter names stay in fp32 when the module is loaded in ``dtype``.

    diffusers keeps ``_keep_in_fp32_modules`` for every dtype; transformers for fp16 only, and its ``_strict`` list for
    bf16 too. Both match whole dotted segments.
    """
    soft = set(getattr(module, "_keep_in_fp32_modules", None) or ())
    strict = set(getattr(module, "_keep_in_fp32_modules_strict", None) or ())
    if type(module).__module__.startswith("transformers."):
        kept = (soft if dtype == torch.float16 else set()) | strict
        for child in module.modules():  # a wrapped text model brings its own list
            if dtype == torch.float16:
                kept |= set(getattr(child, "_keep_in_fp32_modules", None) or ())
            kept |= set(getattr(child, "_keep_in_fp32_modules_strict", None) or ())
    else:
        kept = soft | strict

    def keeps(name: str) -> bool:
        return any(f".{part}." in f".{name}." for part in kept)

    return keeps


def _slots(
    module: torch.nn.Module,
) -> Iterator[tuple[torch.nn.Module, str, str, torch.nn.Parameter]]:
    for path, owner in module.named_modules():
        for name, parameter in owner.named_parameters(recurse=False):
            yield owner, name, f"{path}.{name}" if path else name, parameter


def build(spec: ComponentSpec, dtype: str) -> torch.nn.Module:
    """The module that ``spec`` describes, without weights, as loaded in ``dtype`` ("bfloat16", ...)."""
    config_kind = _class(spec.config_class) if spec.config_class else None
    return build_from(_class(spec.class_path), spec.config, dtype, config_kind)


def build_from(
    kind: Any, config: dict[str, Any], dtype: str, config_kind: Any = None
) -> torch.nn.Module:
    """The module of class ``kind`` with ``config``, without weights, as loaded in ``dtype``.

    ``config_kind`` is the config class of a transformers model where it is not the class's own. What ``config`` leaves
    out is the class's default. Parameters are on the meta device in the dtype they have after loading; buffers hold
    their real values on CPU. Tied parameters stay tied.
    """
    module = _construct(kind, config, config_kind).eval().requires_grad_(False)
    target = getattr(torch, dtype)
    keeps = _kept_in_fp32(module, target)
    done: dict[int, torch.nn.Parameter] = {}
    for owner, name, path, parameter in list(_slots(module)):
        if id(parameter) not in done:
            kind = parameter.dtype
            if parameter.is_floating_point():
                kind = torch.float32 if keeps(path) else target
            empty = torch.empty(parameter.shape, dtype=kind, device=_META)
            done[id(parameter)] = torch.nn.Parameter(empty, requires_grad=False)
        setattr(owner, name, done[id(parameter)])
    _cast_persistent_buffers(module, target)
    return module


def _cast_persistent_buffers(module: torch.nn.Module, dtype: torch.dtype) -> None:
    """Buffers that come from the weight file take the loaded dtype; the others stay as constructed."""
    for owner in module.modules():
        for name, buffer in owner.named_buffers(recurse=False):
            if name not in owner._non_persistent_buffers_set and buffer.is_floating_point():
                setattr(owner, name, buffer.to(dtype))
