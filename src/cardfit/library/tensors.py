"""The tensors that the header of a safetensors or GGUF file names: dtypes, shapes and bytes.

In: a stream at the beginning of a file, and how large the file is. Out: a `Tensor` for each, and the file's own word
for its architecture. Only the header is read, with limits on its size. A header that cannot be true (tensors that
overlap or lie beyond the file, absurd counts) raises one of `WRONG`, for the caller to word.
"""

from __future__ import annotations

import json
import math
import struct
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from cardfit.units import MIB

MAX_HEADER_BYTES = 32 * MIB  # some 200 000 tensors
MAX_TENSORS = 200_000
_MAX_DIMS = 8
_MOST_BYTES = 1 << 60  # of a file
_MAX_TEXT = 65_536
_DEPTH = 4  # arrays of arrays in GGUF's key-value part
# bytes of an element, safetensors' own names
_ITEM = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I64": 8, "I32": 4, "I16": 2,
    "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
_PLAIN = {
    "F32": "fp32",
    "F16": "fp16",
    "BF16": "bf16",
    "F8_E4M3": "fp8",
    "F8_E5M2": "fp8",
    "I8": "int8",
}
# GGUF's tensor types that occur in image and video models: name, weights and bytes of a block (gguf 0.19.0)
_GGML = {
    0: ("fp32", 1, 4),
    1: ("fp16", 1, 2),
    2: ("gguf-q4_0", 32, 18),
    3: ("gguf-q4_1", 32, 20),
    6: ("gguf-q5_0", 32, 22),
    7: ("gguf-q5_1", 32, 24),
    8: ("gguf-q8_0", 32, 34),
    10: ("gguf-q2_k", 256, 84),
    11: ("gguf-q3_k", 256, 110),
    12: ("gguf-q4_k", 256, 144),
    13: ("gguf-q5_k", 256, 176),
    14: ("gguf-q6_k", 256, 210),
    30: ("bf16", 1, 2),
}
# bytes of GGUF's fixed-size key-value types
_GGUF_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_GGUF_UINT32, _GGUF_TEXT, _GGUF_ARRAY = 4, 8, 9
_GGUF_ALIGNED = 32  # where `general.alignment` says nothing
# where a file names the model that it was made for
_ARCHITECTURE = ("modelspec.architecture", "general.architecture")
WRONG = (ValueError, KeyError, TypeError, struct.error, RecursionError)
"""What a header that is none, or that cannot be true, raises; `CutOff` is one of them."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a file; ``dtype`` by safetensors' own name (F16, BF16 ...), of GGUF by ours (gguf-q4_k ...)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def count(self) -> int:
        """Its elements."""
        return math.prod(self.shape)

    @property
    def precision(self) -> str:
        """What its weights are stored as, by our own names."""
        return _PLAIN.get(self.dtype, self.dtype.lower())


class CutOff(ValueError):
    """A file shorter than its header promises."""

    def __init__(self, promised: int, found: int) -> None:
        super().__init__(promised)
        self.promised, self.found = promised, found


def read(stream: BinaryIO, size_bytes: int) -> tuple[list[Tensor], str | None]:
    """The tensors of the file of ``size_bytes`` that begins here, and its architecture where it names one."""
    magic = stream.read(4)
    stream.seek(0)
    inner = _gguf if magic == b"GGUF" else _safetensors
    return inner(_Begin(stream), size_bytes)


class _Begin:
    """The beginning of a stream: no more of it is read than a header may take, and never less than was asked."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.at = stream, 0

    def read(self, count: int) -> bytes:
        self._take(count)
        found = self._stream.read(count)
        if len(found) != count:
            raise ValueError(count)
        return found

    def skip(self, count: int) -> None:
        self._take(count)
        self._stream.seek(self.at)

    def numbers(self, shape: str) -> tuple[Any, ...]:
        return struct.unpack(shape, self.read(struct.calcsize(shape)))

    def _take(self, count: int) -> None:
        if not 0 <= count <= MAX_HEADER_BYTES + 8 - self.at:
            raise ValueError(count)
        self.at += count


def _safetensors(stream: _Begin, size_bytes: int) -> tuple[list[Tensor], str | None]:
    (length,) = stream.numbers("<Q")
    if not 2 <= length <= MAX_HEADER_BYTES:
        raise ValueError(length)
    found = json.loads(stream.read(length))
    if not isinstance(found, dict) or len(found) > MAX_TENSORS:
        raise ValueError
    about = found.pop("__metadata__", None) or {}
    tensors, spans = [], []
    for name, entry in found.items():
        dtype, shape = entry["dtype"], _shape(entry["shape"])
        count = math.prod(shape)
        start, end = entry["data_offsets"]
        if type(start) is not int or type(end) is not int:
            raise ValueError(name)
        if dtype in _ITEM and end - start != count * _ITEM[dtype]:
            raise ValueError(name)
        spans.append((start, end))
        tensors.append(Tensor(name, str(dtype), shape, end - start))
    room = size_bytes - stream.at
    if _end_of(spans, 1, room) < room:
        raise ValueError(room)
    return tensors, _text(about.get(_ARCHITECTURE[0]))


def _shape(sides: Any) -> tuple[int, ...]:
    """A shape that can be."""
    if len(sides) > _MAX_DIMS or not all(type(side) is int and side >= 0 for side in sides):
        raise ValueError(sides)
    return tuple(sides)


def _end_of(spans: Iterable[tuple[int, int]], aligned: int, room_bytes: int) -> int:
    """Where the last tensor ends. Raises for tensors that overlap, leave holes, or lie beyond the file."""
    at = 0
    for start, end in sorted(spans):
        if not at <= start < at + aligned or not start <= end <= _MOST_BYTES:
            raise ValueError(start)
        at = end
    if at > max(0, room_bytes):
        raise CutOff(at, max(0, room_bytes))
    return at


def _text(value: object) -> str | None:
    """A word of the file that can be shown."""
    return value[:80] if isinstance(value, str) and value[:80].isprintable() else None


def _gguf(stream: _Begin, size_bytes: int) -> tuple[list[Tensor], str | None]:
    stream.read(4)
    version, many, pairs = stream.numbers("<IQQ")
    if version not in (2, 3) or many > MAX_TENSORS or pairs > MAX_TENSORS:
        raise ValueError(version)
    about = dict(_gguf_pair(stream) for _ in range(pairs))
    aligned = about.get("general.alignment") or _GGUF_ALIGNED
    if type(aligned) is not int or not 1 <= aligned <= _MAX_TEXT:
        raise ValueError(aligned)
    found = [_gguf_tensor(stream) for _ in range(many)]
    room = size_bytes - -(-stream.at // aligned) * aligned
    starts, tensors, spans = sorted(start for start, _ in found), [], []
    for start, each in found:
        if each.dtype.startswith("ggml-"):  # of no known size: it reaches to the next
            after = bisect_right(starts, start)
            end = starts[after] if after < len(starts) else max(start, room)
            each = replace(each, size_bytes=end - start)
        tensors.append(each)
        spans.append((start, start + each.size_bytes))
    _end_of(spans, aligned, room)
    return tensors, _text(about.get(_ARCHITECTURE[1]))


def _gguf_tensor(stream: _Begin) -> tuple[int, Tensor]:
    """Where a tensor begins, and what it is; of a type that is not known without its size."""
    name = _gguf_text(stream, _MAX_TEXT)
    (dims,) = stream.numbers("<I")
    if dims > _MAX_DIMS:
        raise ValueError(name)
    shape = _shape(stream.numbers(f"<{dims}Q"))
    count = math.prod(shape)
    kind, start = stream.numbers("<IQ")
    precision, block, size = _GGML.get(kind, (f"ggml-{kind}", 1, 0))
    if count % block:
        raise ValueError(name)
    return start, Tensor(name, precision, shape, count // block * size)


def _gguf_text(stream: _Begin, most: int) -> str:
    (length,) = stream.numbers("<Q")
    if length > most:
        raise ValueError(length)
    return stream.read(length).decode("utf-8", "replace")


def _gguf_pair(stream: _Begin) -> tuple[str, object]:
    """One pair of the key-value part; the value only where it is a text or a number that says something here."""
    name = _gguf_text(stream, _MAX_TEXT)
    (kind,) = stream.numbers("<I")
    if name in _ARCHITECTURE and kind == _GGUF_TEXT:
        return name, _gguf_text(stream, MAX_HEADER_BYTES)
    if name == "general.alignment" and kind == _GGUF_UINT32:
        return name, stream.numbers("<I")[0]
    _gguf_skip(stream, kind, 0)
    return name, None


def _gguf_skip(stream: _Begin, kind: int, depth: int) -> None:
    """Read over one value of the key-value part."""
    if depth > _DEPTH:
        raise ValueError(depth)
    if kind == _GGUF_TEXT:
        stream.skip(stream.numbers("<Q")[0])
    elif kind == _GGUF_ARRAY:
        inner, count = stream.numbers("<IQ")
        if inner in _GGUF_FIXED:
            stream.skip(count * _GGUF_FIXED[inner])
        else:
            for _ in range(min(count, MAX_HEADER_BYTES)):
                _gguf_skip(stream, inner, depth + 1)
    else:
        stream.skip(_GGUF_FIXED[kind])
