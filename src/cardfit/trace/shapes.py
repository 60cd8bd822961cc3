"""Remember what an operation on meta returns: the same operation on the same shapes makes the same shapes.

Meta kernels are Python and slow; a model repeats its block dozens of times. Only operations that neither write to nor
alias an argument are remembered, so that a remembered result is a fresh tensor, as the real one is.
"""

from __future__ import annotations

from typing import Any

import torch

_Made = tuple[tuple[torch.Size, tuple[int, ...], torch.dtype], ...]


class _Unknown(Exception):
    """An argument that has no cheap name."""


def _name(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.device.type != "meta":
            raise _Unknown
        return (value.shape, value.stride(), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(_name(item) for item in value)
    if value is None or isinstance(
        value, (int, float, bool, str, torch.dtype, torch.device, torch.layout)
    ):
        return (type(value), value)
    if isinstance(value, torch.memory_format):
        return str(value)
    raise _Unknown


def _aliases(out: Any, args: tuple[Any, ...]) -> bool:
    theirs = {t.untyped_storage()._cdata for t in args if isinstance(t, torch.Tensor)}
    mine = out if isinstance(out, (list, tuple)) else [out]
    return any(isinstance(t, torch.Tensor) and t.untyped_storage()._cdata in theirs for t in mine)


class ShapeMemo:
    """Runs operations on meta, from memory where it can."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[_Made, type | None] | None] = {}
        self._pure: dict[Any, bool] = {}

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``func(*args, **kwargs)``, all tensors on meta."""
        pure = self._pure.get(func)
        if pure is None:
            pure = self._pure[func] = not func.is_view and not func._schema.is_mutable
        if not pure:
            return func(*args, **kwargs)
        try:
            key = (func, _name(args), tuple((k, _name(v)) for k, v in kwargs.items()))
            known = self._known.get(key)
        except (_Unknown, TypeError):
            return func(*args, **kwargs)
        if known is not None:
            made, kind = known
            fresh = [torch.empty_strided(s, t, dtype=d, device="meta") for s, t, d in made]
            return fresh[0] if kind is None else kind(fresh)
        out = func(*args, **kwargs)
        if not _aliases(out, args):  # `_unsafe_view` says it makes a new tensor, and does not
            self._remember(key, out)
        return out

    def _remember(self, key: Any, out: Any) -> None:
        found = [out] if isinstance(out, torch.Tensor) else out
        if not isinstance(found, (list, tuple)):
            return
        made = []
        for tensor in found:
            if not isinstance(tensor, torch.Tensor) or tensor.device.type != "meta":
                return
            plain = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
            )
            same_size = plain.untyped_storage().nbytes() == tensor.untyped_storage().nbytes()
            if not same_size or tensor.storage_offset() or tensor.is_conj():
                return
            made.append((tensor.shape, tensor.stride(), tensor.dtype))
        self._known[key] = (tuple(made), None if isinstance(out, torch.Tensor) else type(out))
