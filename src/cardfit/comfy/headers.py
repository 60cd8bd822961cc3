"""What a model file's header says: weights by dtype, bytes, and which library entry has as many.

In: a safetensors or GGUF file; only its header is read. Out: `Header`, and the library entries whose denoiser has the
same number of weights. Raises BadFile for a file that is neither, or whose header cannot be true.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cardfit.errors import BadFile
from cardfit.library import all_models
from cardfit.library.tensors import (
    MAX_DIMS,
    MAX_HEADER_BYTES,
    MAX_TENSORS,
    WRONG,
    safetensors,
)

_MAX_TEXT = 65_536
_DEPTH = 4  # arrays of arrays in GGUF's key-value part
_TOLERANCE = (
    0.002  # share by which the weights of a file and of an entry may differ: buffers, fused biases
)
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
_GGUF_TEXT, _GGUF_ARRAY = 8, 9
_DENOISER_PREFIXES = ("model.diffusion_model.", "diffusion_model.")
_OTHER_PREFIXES = (
    *("cond_stage_model.", "conditioner.", "first_stage_model.", "text_encoders.", "vae."),
    *("audio_vae.", "vocoder.", "text_embedding_projection.", "model_ema."),
)
_SCALES = ("scale_weight", "weight_scale", "scaled_fp8")


@dataclass(frozen=True, slots=True)
class Header:
    """What stands in a file: bytes of all tensors, elements by dtype, and the denoiser's own elements."""

    size_bytes: int
    elements: dict[str, int]
    denoiser_elements: int
    precision: str | None
    tensors: int


def read_header(path: Path) -> Header:
    """The header of the model file at ``path``. Raises BadFile."""
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
            stream.seek(0)
            shapes = _gguf(stream) if magic == b"GGUF" else _safetensors(stream)
    except OSError as error:
        raise BadFile("comfy-not-read", path=path, why=error.strerror or str(error)) from error
    except WRONG as error:
        raise BadFile("comfy-bad-header", path=path) from error
    return _summed(shapes)


Shapes = list[tuple[str, str, int, int]]  # name, precision, elements, bytes


def _safetensors(stream: BinaryIO) -> Shapes:
    return [
        (each.name, _PLAIN.get(each.dtype, each.dtype.lower()), each.count, each.size_bytes)
        for each in safetensors(stream)
    ]


def _gguf(stream: BinaryIO) -> Shapes:
    stream.read(4)
    version, tensors, pairs = struct.unpack("<IQQ", stream.read(20))
    if version not in (2, 3) or tensors > MAX_TENSORS or pairs > MAX_TENSORS:
        raise ValueError(version)
    for _ in range(pairs):
        _gguf_text(stream)
        (kind,) = struct.unpack("<I", stream.read(4))
        _gguf_skip(stream, kind, 0)
    shapes: Shapes = []
    for _ in range(tensors):
        name = _gguf_text(stream)
        (dims,) = struct.unpack("<I", stream.read(4))
        if dims > MAX_DIMS:
            raise ValueError(name)
        shape = struct.unpack(f"<{dims}Q", stream.read(8 * dims))
        kind, _ = struct.unpack("<IQ", stream.read(12))
        precision, block, size = _GGML.get(kind, (f"ggml-{kind}", 1, 0))
        count = math.prod(shape)
        shapes.append((name, precision, count, count // block * size))
    return shapes


def _gguf_text(stream: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", stream.read(8))
    if length > _MAX_TEXT:
        raise ValueError(length)
    return stream.read(length).decode("utf-8", "replace")


def _gguf_skip(stream: BinaryIO, kind: int, depth: int) -> None:
    """Read over one value of the key-value part."""
    if depth > _DEPTH:
        raise ValueError(depth)
    if kind == _GGUF_TEXT:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > MAX_HEADER_BYTES:
            raise ValueError(length)
        stream.seek(length, 1)
    elif kind == _GGUF_ARRAY:
        inner, count = struct.unpack("<IQ", stream.read(12))
        if count > MAX_HEADER_BYTES:
            raise ValueError(count)
        if inner in _GGUF_FIXED:
            stream.seek(count * _GGUF_FIXED[inner], 1)
        else:
            for _ in range(count):
                _gguf_skip(stream, inner, depth + 1)
    else:
        stream.seek(_GGUF_FIXED[kind], 1)


def _summed(shapes: Shapes) -> Header:
    elements: dict[str, int] = {}
    for name, precision, count, _ in shapes:
        if not name.endswith(_SCALES):
            elements[precision] = elements.get(precision, 0) + count
    prefixed = any(name.startswith(_DENOISER_PREFIXES) for name, *_ in shapes)
    own = [
        (name, count)
        for name, _, count, _ in shapes
        if not name.endswith(_SCALES)
        and (
            name.startswith(_DENOISER_PREFIXES)
            if prefixed
            else not name.startswith(_OTHER_PREFIXES)
        )
    ]
    most = max(elements, key=lambda each: elements[each], default=None)
    if most == "fp8" and any(name.endswith(_SCALES) for name, *_ in shapes):
        most = "fp8-scaled"
    return Header(
        size_bytes=sum(size for *_, size in shapes),
        elements=elements,
        denoiser_elements=sum(count for _, count in own),
        precision=most,
        tensors=len(shapes),
    )


def shaped_like(header: Header) -> str | None:
    """The library entry whose denoiser has as many weights as the file, the nearest first by count, then by id.

    Several may be alike, since weights trained further keep their shape; of those any one says memory and time. None
    where no entry has as many, or where entries of different architectures do.
    """
    found: list[tuple[int, str, str]] = []
    for entry in all_models():
        for name, part in entry.components.items():
            if not name.startswith(("transformer", "unet", "prior")):
                continue
            differs = min(
                abs(count - header.denoiser_elements)
                for count in (part.params, part.params + part.persistent_buffers)
            )
            if differs <= _TOLERANCE * part.params:
                found.append((differs, entry.id, part.class_path))
    if len({kind for *_, kind in found}) != 1:
        return None
    return min(found)[1]
