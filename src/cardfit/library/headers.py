"""What a model file's header says: weights by dtype, bytes by part, and which library entry has as many.

In: a safetensors or GGUF file, on disk or behind a stream; only its header is read. Out: `Header`, and the library
entries whose denoiser has the same number of weights. Raises BadFile for a file that is neither, for a pickle, and for
a header that cannot be true: nothing of a file is ever run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cardfit.errors import BadFile
from cardfit.library.load import all_models
from cardfit.library.models import Model
from cardfit.library.packed import Packed, packed
from cardfit.library.tensors import WRONG, CutOff, Tensor, read
from cardfit.units import human_bytes

PICKLES = (".bin", ".ckpt", ".pt", ".pth", ".pkl")
_TOLERANCE = (
    0.002  # share by which the weights of a file and of an entry may differ: buffers, fused biases
)
_DENOISER_PREFIXES = ("model.diffusion_model.", "diffusion_model.")
# what stands beside a denoiser in one file, and how many parts of a name tell one module from the next
_OTHERS = {
    "cond_stage_model.": 1, "conditioner.": 3, "first_stage_model.": 1, "text_encoders.": 2, "vae.": 1,
    "audio_vae.": 1, "vocoder.": 1, "text_embedding_projection.": 1, "model_ema.": 1,
}  # fmt: skip
_ADAPTER = (".lora_A.", ".lora_B.", ".lora_down.", ".lora_up.", ".hada_w1_a", ".lokr_w1")
DENOISER = "denoiser"
_DENOISERS = ("transformer", "unet", "prior")


@dataclass(slots=True)
class Group:
    """The tensors of one module in a file."""

    elements: int = 0
    size_bytes: int = 0
    by_precision: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def precision(self) -> str | None:
        """What most of its weights are stored as."""
        return max(self.by_precision, key=lambda each: self.by_precision[each], default=None)


@dataclass(frozen=True, slots=True)
class Header:
    """What stands in a file: bytes of all tensors, weights by precision, and the denoiser's own weights, unpacked.

    ``groups`` tells apart what one file holds of several modules; ``architecture`` is the file's own word for it.
    """

    size_bytes: int
    elements: dict[str, int]
    denoiser_elements: int
    precision: str | None
    tensors: int
    groups: dict[str, Group] = field(default_factory=dict)
    architecture: str | None = None
    adapter: bool = False


def read_header(path: Path) -> Header:
    """The header of the model file at ``path``. Raises BadFile."""
    try:
        with path.open("rb") as stream:
            return header_of(stream, path.stat().st_size, path)
    except OSError as error:
        raise BadFile("header-not-read", path=path, why=error.strerror or str(error)) from error


def header_of(stream: BinaryIO, size_bytes: int, path: Path | str) -> Header:
    """The header at the start of ``stream``, which holds ``size_bytes`` in all. Raises BadFile naming ``path``."""
    try:
        magic = stream.read(4)
        if magic.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):
            raise BadFile("header-pickle", path=path)
        stream.seek(0)
        return _summed(*read(stream, size_bytes))
    except CutOff as cut:
        args = {"promised": human_bytes(cut.promised), "found": human_bytes(cut.found)}
        raise BadFile("header-cut-off", path=path, **args) from cut
    except WRONG as error:
        raise BadFile("header-bad", path=path) from error


def refuse_pickle(path: Path) -> None:
    """Raise BadFile for a file that its name says is a pickle, before it is opened."""
    if path.name.lower().endswith(PICKLES):
        raise BadFile("header-pickle", path=path)


def _summed(tensors: list[Tensor], architecture: str | None) -> Header:
    elements: dict[str, int] = defaultdict(int)
    groups: dict[str, Group] = defaultdict(Group)
    prefixed = any(each.name.startswith(_DENOISER_PREFIXES) for each in tensors)
    unpacked, beside = packed(tensors)
    for each in tensors:
        group = groups[_group(each.name, prefixed)]
        group.size_bytes += each.size_bytes
        if each.name in beside:
            continue
        held = unpacked.get(each.name) or Packed(each.count, each.precision)
        elements[held.precision] += held.weights
        group.elements += held.weights
        group.by_precision[held.precision] += held.weights
    most = max(elements, key=lambda each: elements[each], default=None)
    return Header(
        size_bytes=sum(each.size_bytes for each in tensors),
        elements=dict(elements),
        denoiser_elements=groups[DENOISER].elements if DENOISER in groups else 0,
        precision="fp8-scaled" if most == "fp8" and beside else most,
        tensors=len(tensors),
        groups=dict(groups),
        architecture=architecture,
        adapter=any(mark in each.name for each in tensors for mark in _ADAPTER),
    )


def _group(name: str, prefixed: bool) -> str:
    """Which module a tensor belongs to: a file of nothing but a denoiser needs no prefix."""
    for prefix, parts in _OTHERS.items():
        if name.startswith(prefix):
            return ".".join(name.split(".")[:parts])
    return "" if prefixed and not name.startswith(_DENOISER_PREFIXES) else DENOISER


def denoisers_like(header: Header) -> list[tuple[Model, str]]:
    """The entries and components with as many weights as the file's denoiser, the nearest and oldest first."""
    found: list[tuple[int, str, str, Model, str]] = []
    for entry in all_models():
        for name, part in entry.components.items():
            if not name.startswith(_DENOISERS):
                continue
            differs = min(
                abs(count - header.denoiser_elements)
                for count in (part.params, part.params + part.persistent_buffers)
            )
            if differs <= _TOLERANCE * part.params:
                found.append((differs, entry.released, entry.id, entry, name))
    return [(entry, name) for *_, entry, name in sorted(found, key=lambda each: each[:3])]


def shaped_like(header: Header) -> str | None:
    """The library entry whose denoiser has as many weights as the file, the nearest first by count, then the oldest.

    Several may be alike, since weights trained further keep their shape; of those any one says memory and time. None
    where no entry has as many, or where entries of different architectures do.
    """
    found = denoisers_like(header)
    kinds = {entry.components[name].class_path for entry, name in found}
    return found[0][0].id if len(kinds) == 1 else None
