"""Walk the values that pipelines hand around: tensors inside lists, dicts, model outputs and small objects.

`map_tensors` rebuilds a value with every tensor replaced; `signature` names a call by everything that can change what
it does: shapes, strides, dtypes, scalars and the contents of masks, but not the contents of pictures or embeddings.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from typing import Any

import torch

_OURS = ("diffusers.", "transformers.")
_DEPTH = 6
_SMALL = 1000  # elements; floats of up to two dimensions below it (time steps, sigmas) stay real


def map_tensors(
    value: Any, change: Callable[[Any], Any], depth: int = _DEPTH, kind: type = torch.Tensor
) -> Any:
    """``value`` with each tensor (or ``kind``) replaced by ``change(it)``; containers are rebuilt, never changed."""
    if isinstance(value, kind):
        return change(value)
    if (
        depth == 0
        or value is None
        or isinstance(value, (str, bytes, int, float, bool, torch.Tensor))
    ):
        return value

    def inner(item: Any) -> Any:
        return map_tensors(item, change, depth - 1, kind)

    if isinstance(value, tuple):
        items = [inner(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [inner(item) for item in value]
    if isinstance(value, dict):
        changed = {key: inner(item) for key, item in value.items()}
        return changed if type(value) is dict else type(value)(**changed)
    if type(value).__module__.startswith(_OURS) and hasattr(value, "__dict__"):
        if isinstance(value, (torch.nn.Module, type)):
            return value
        twin = copy.copy(value)
        for key, item in vars(value).items():
            twin.__dict__[key] = inner(item)
        return twin
    return value


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in ``value``, in walking order."""
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    map_tensors(value, note)
    return found


def is_real(tensor: torch.Tensor, large: int) -> bool:
    """Whether a tensor handed to a component keeps its data: small indices, masks, scalars and time steps."""
    if tensor.device.type == "meta" or tensor.numel() > large:
        return False
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor.dim() < 3 and tensor.numel() <= _SMALL
    return True


def signature(value: Any, large: int, depth: int = _DEPTH) -> Any:
    """A hashable name for ``value``: equal names mean the same work."""
    if isinstance(value, torch.Tensor):
        name: tuple[Any, ...] = (str(value.dtype), tuple(value.shape), value.stride())
        if not value.is_floating_point() and value.dim() >= 2 and is_real(value, large):
            raw = value.contiguous().view(torch.uint8).numpy().tobytes()
            name += (hashlib.sha256(raw).hexdigest()[:16],)
        return name
    if value is None or isinstance(value, (str, bytes, int, float, bool, torch.dtype)):
        return value
    if depth == 0:
        return type(value).__name__
    if isinstance(value, (list, tuple)):
        return tuple(signature(item, large, depth - 1) for item in value)
    if isinstance(value, dict):
        # time steps change at every step and never the work
        return tuple(
            (str(k), signature(v, 0 if "timestep" in str(k) else large, depth - 1))
            for k, v in value.items()
        )
    if type(value).__module__.startswith(_OURS) and hasattr(value, "__dict__"):
        return (type(value).__name__, signature(vars(value), large, depth - 1))
    return type(value).__name__
