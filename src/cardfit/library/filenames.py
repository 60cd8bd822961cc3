"""Which library entry a model file of ComfyUI is, and in which precision it is stored.

In: the file's name, and its header where the file is at hand. Out: `Seen`: the entry's id or None, the precision, and
bytes a weight. A name must match a pattern of `data/filenames.yaml` whole; a header must have the entry's number of
weights. What neither knows stays unknown and is reported as it was seen.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.library import model_ids
from cardfit.request import Quantization

Precision = str
BYTES_A_WEIGHT: dict[str, float] = {
    "fp32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "fp8-scaled": 1,
    "int8": 1,
    "fp4": 0.5625,  # 4 bits and an fp8 scale for every 16
    "int4": 0.53125,  # 4 bits and an fp16 scale for every 64
    "nf4": 0.5625,
    "svdq-int4": 0.5625,
    "svdq-nvfp4": 0.5625,
    # bytes of a block over its weights, gguf 0.19.0
    "gguf-q8_0": 34 / 32,
    "gguf-q6_k": 210 / 256,
    "gguf-q5_k": 176 / 256,
    "gguf-q5_1": 24 / 32,
    "gguf-q5_0": 22 / 32,
    "gguf-q4_k": 144 / 256,
    "gguf-q4_1": 20 / 32,
    "gguf-q4_0": 18 / 32,
    "gguf-q3_k": 110 / 256,
    "gguf-q2_k": 84 / 256,
}
"""Bytes a weight takes on disk and on the card, by precision; layers left in half precision not counted."""

# the nearest scheme of `Settings` for what a file stores: the same bytes, made by another program
SCHEMES: dict[str, Quantization] = {
    "fp8": "fp8-layerwise",
    "fp8-scaled": "fp8-layerwise",
    "int8": "torchao-int8",
    "nf4": "bnb-nf4",
    "svdq-int4": "svdq-int4",
    "svdq-nvfp4": "svdq-nvfp4",
    "gguf-q8_0": "gguf-q8_0",
    "gguf-q6_k": "gguf-q6_k",
    "gguf-q5_k": "gguf-q5_k",
    "gguf-q5_1": "gguf-q5_1",
    "gguf-q5_0": "gguf-q5_0",
    "gguf-q4_k": "gguf-q4_k",
    "gguf-q4_1": "gguf-q4_1",
    "gguf-q4_0": "gguf-q4_0",
    "gguf-q3_k": "gguf-q3_k",
    "gguf-q2_k": "gguf-q2_k",
}
MODEL_ENDINGS = (".safetensors", ".sft", ".gguf", ".ckpt", ".pt", ".pth", ".bin")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Pattern(_Frozen):
    """A plain file name and the library entry whose weights it holds."""

    match: str
    model: str
    kin: Annotated[bool, Field(description="same shape, trained further")] = False


class Encoder(_Frozen):
    """A plain file name and the class of text encoder whose weights it holds."""

    match: str
    class_: Annotated[str, Field(alias="class")]


class Names(_Frozen):
    """The data file."""

    sources: tuple[str, ...]
    precision: tuple[tuple[str, str], ...]
    packers: tuple[str, ...]
    denoiser: tuple[Pattern, ...]
    checkpoint: tuple[Pattern, ...]
    text_encoder: tuple[Encoder, ...]


class Seen(_Frozen):
    """What a file's name says: the library entry (None: not known), and the precision (None: not in the name)."""

    model: str | None
    kin: bool = False
    precision: str | None = None

    @property
    def bytes_a_weight(self) -> float | None:
        """Bytes of a weight in the file; None where its name does not say."""
        return None if self.precision is None else BYTES_A_WEIGHT[self.precision]


@cache
def names() -> Names:
    """The shipped patterns."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (files("cardfit.library") / "data" / "filenames.yaml").read_text(encoding="utf-8")
    return Names.model_validate(yaml.load(text, Loader=loader))


def plain_name(file: str) -> tuple[str, str | None]:
    """The plain name of a model file and its precision.

    >>> plain_name("Wan2.2-T2V-A14B-HighNoise-Q5_K_M.gguf")
    ('wan2-2-t2v-a14b-highnoise', 'gguf-q5_k')
    >>> plain_name("split/wan2.1_i2v_480p_14B_fp8_scaled.safetensors")
    ('wan2-1-i2v-480p-14b', 'fp8-scaled')
    """
    stem = PurePosixPath(file.replace("\\", "/")).name.lower()
    for ending in MODEL_ENDINGS:
        stem = stem.removesuffix(ending)
    plain = "-" + re.sub(r"[^a-z0-9]+", "-", stem).strip("-") + "-"
    precision = None
    for word, means in names().precision:
        if f"-{word}-" in plain:
            plain = plain.replace(f"-{word}-", "-", 1)
            precision = precision or means
    for word in names().packers:
        plain = plain.replace(f"-{word}-", "-", 1)
    return plain.strip("-"), precision


@cache
def seen(file: str, use: Literal["denoiser", "checkpoint"] = "denoiser") -> Seen:
    """What the name of a model file says.

    >>> seen("flux1-krea-dev_fp8_scaled.safetensors")
    Seen(model='flux.1-dev', kin=True, precision='fp8-scaled')
    >>> seen("someMerge_v3.safetensors", "checkpoint").model is None
    True
    """
    plain, precision = plain_name(file)
    first = names().denoiser if use == "denoiser" else names().checkpoint
    other = names().checkpoint if use == "denoiser" else names().denoiser
    for pattern in (*first, *other):
        if re.fullmatch(pattern.match, plain):
            return Seen(model=pattern.model, kin=pattern.kin, precision=precision)
    return Seen(model=None, precision=precision)


def encoder_class(file: str) -> str | None:
    """How the class of the text encoder in ``file`` begins; None for one that is not known.

    >>> encoder_class("t5xxl_fp8_e4m3fn_scaled.safetensors")
    'T5EncoderModel'
    """
    plain, _ = plain_name(file)
    found = (each.class_ for each in names().text_encoder if re.fullmatch(each.match, plain))
    return next(found, None)


def check() -> None:
    """Raise ValueError where the data names an entry that the library lacks, or a precision without a size."""
    known = set(model_ids())
    data = names()
    for pattern in (*data.denoiser, *data.checkpoint):
        re.compile(pattern.match)
        if pattern.model not in known:
            raise ValueError(pattern.model)
    for _, means in data.precision:
        if means not in BYTES_A_WEIGHT:
            raise ValueError(means)
