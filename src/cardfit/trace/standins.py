"""Stand-ins for tensors of any size: zeros that cost no memory until they are read or written.

The pipeline's own code between the heavy calls runs on CPU tensors. Small ones are real; large ones live on pages
that the operating system has promised but not given, with exactly the sizes, strides and storage of the real thing.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any

import torch

# elements; above it the pipeline's own arithmetic is done on shapes only
LARGE = 1 << 20
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


def zeros(nbytes: int) -> torch.UntypedStorage:
    """A CPU storage of ``nbytes`` zero bytes that takes memory only where it is touched."""
    if nbytes == 0:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    if sys.platform == "win32":
        pages = mmap.mmap(-1, nbytes)
    else:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        pages = mmap.mmap(-1, nbytes, flags=flags)
    return torch.frombuffer(pages, dtype=torch.uint8).untyped_storage()


def stand_in(meta: torch.Tensor, storage: torch.UntypedStorage) -> torch.Tensor:
    """A tensor with the size, strides, offset and dtype of ``meta`` over ``storage``, on the storage's device."""
    out = torch.empty(0, dtype=meta.dtype, device=storage.device)
    out.set_(storage, meta.storage_offset(), meta.shape, meta.stride())
    if meta.is_conj():
        out = out.conj()
    return out


def meta_storage(nbytes: int) -> torch.UntypedStorage:
    """A storage of ``nbytes`` on the meta device."""
    return torch.empty(nbytes, dtype=torch.uint8, device="meta").untyped_storage()


def on_meta(tensor: torch.Tensor, *, with_offset: bool = False) -> torch.Tensor:
    """A meta tensor with the shape, strides and dtype of ``tensor``; its data are gone.

    ``with_offset`` keeps the place in the storage too, for a description of a view.
    """
    if with_offset and tensor.storage_offset():
        end = (
            tensor.storage_offset()
            + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
            + 1
        )
        base = torch.empty(end, dtype=tensor.dtype, device="meta")
        return base.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
    ).requires_grad_(False)


def elements_asked(args: tuple[Any, ...]) -> int:
    """Elements that a factory call such as ``zeros([2, 3])`` is about to make, from its size argument."""
    for arg in args:
        if isinstance(arg, (list, tuple, torch.Size)) and all(isinstance(n, int) for n in arg):
            count = 1
            for n in arg:
                count *= n
            return count
    return 0
