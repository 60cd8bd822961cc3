"""What the header of a safetensors file says: names, dtypes and shapes of its tensors.

In: a stream or a path; only the header is read, with limits on its size. Out: a `Tensor` for each. A header that cannot
be true raises ValueError, KeyError, TypeError, struct.error or RecursionError, for the caller to word.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import BinaryIO

from cardfit.units import MIB

MAX_HEADER_BYTES = 64 * MIB
MAX_TENSORS = 200_000
MAX_DIMS = 8
WRONG = (ValueError, KeyError, TypeError, struct.error, RecursionError)
"""What a header that is none, or that cannot be true, raises."""
# bytes of an element, safetensors' own names
ITEM_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I64": 8, "I32": 4, "I8": 1, "U8": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a file; ``dtype`` by safetensors' own name (F16, BF16 ...)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def count(self) -> int:
        """Its elements."""
        return math.prod(self.shape)


def safetensors(stream: BinaryIO) -> tuple[Tensor, ...]:
    """The tensors of the safetensors file that ``stream`` is at the beginning of."""
    (length,) = struct.unpack("<Q", stream.read(8))
    if not 2 <= length <= MAX_HEADER_BYTES:
        raise ValueError(length)
    header = json.loads(stream.read(length))
    if not isinstance(header, dict) or len(header) > MAX_TENSORS:
        raise ValueError(length)
    found = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = entry["dtype"], entry["shape"]
        start, end = entry["data_offsets"]
        if len(shape) > MAX_DIMS or not all(isinstance(side, int) and side >= 0 for side in shape):
            raise ValueError(name)
        each = Tensor(name, dtype, tuple(shape), end - start)
        if dtype in ITEM_BYTES and each.size_bytes != each.count * ITEM_BYTES[dtype]:
            raise ValueError(name)
        found.append(each)
    return tuple(found)
