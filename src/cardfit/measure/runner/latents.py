"""Latents kept before they are decoded, and decoded again later.

In: the arguments of a VAE's decode. Out: one safetensors file a call, tensors by the parameter's name and the rest as
JSON in its metadata, so that hours of denoising survive a decode that fails. No pickle.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from cardfit.errors import BadFile

_SELF_MADE = "cardfit.latents/1"


def save(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], path: Path) -> None:
    """Keep the arguments of ``module.decode`` in ``path``. Raises OSError when they cannot be written."""
    tensors: dict[str, torch.Tensor] = {}
    plain: dict[str, Any] = {}
    for name, value in _named(module, args, kwargs).items():
        if isinstance(value, torch.Tensor):
            tensors[name] = value.detach().to("cpu").contiguous()
        elif isinstance(value, (bool, int, float, str)) or value is None:
            plain[name] = value
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        save_file(tensors, part, metadata={"schema": _SELF_MADE, "plain": json.dumps(plain)})
        part.replace(path)
    except Exception as error:  # safetensors raises its own kind for a full disk
        raise OSError(str(error)) from error
    finally:
        part.unlink(missing_ok=True)


def load(path: Path, device: torch.device) -> dict[str, Any]:
    """The keyword arguments that `save` kept. Raises BadFile."""
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            metadata = file.metadata() or {}
            if metadata.get("schema") != _SELF_MADE:
                raise BadFile("latents-not-ours", path=str(path))
            found: dict[str, Any] = json.loads(metadata.get("plain", "{}"))
            found.update({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except BadFile:
        raise
    except Exception as error:
        raise BadFile("latents-not-read", path=str(path), why=str(error)) from error
    return found


def matched(module: Any, given: list[dict[str, Any]], dtype: str | None) -> Any:
    """``module`` and the tensors of ``given`` in one dtype: the one asked for, else what the latents were decoded in.

    A pipeline may have cast its VAE for the decode, as SDXL's does; then the latents say so.
    """
    floats = [
        value
        for each in given
        for value in each.values()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    ]
    wanted = getattr(torch, dtype) if dtype else floats[0].dtype if floats else module.dtype
    for each in given:
        for name, value in each.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                each[name] = value.to(wanted)
    return module.to(wanted)


def in_chunks(module: Any, given: list[dict[str, Any]], size: int | None) -> list[dict[str, Any]]:
    """``given`` in calls of ``size`` frames where the pipeline decodes frames as a batch; as it is without ``size``."""
    first = next(iter(_named(module, (None,), {})))
    whole = [each[first] for each in given if isinstance(each.get(first), torch.Tensor)]
    if size is None or len(whole) != len(given) or any(part.ndim != 4 for part in whole):
        return given
    found = []
    for part in torch.split(torch.cat(whole), size):
        count = {"num_frames": len(part)} if "num_frames" in given[0] else {}
        found.append({**given[0], first: part, **count})
    return found


def _named(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [
        name
        for name, each in inspect.signature(type(module).decode).parameters.items()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ][1:]
    return {**dict(zip(names, args, strict=False)), **kwargs}
