"""The rules that turn a published time into a request, settings and a card, or say why it cannot be rebuilt.

In: a `PublishedTime`. Out: a `TimedRun` or a `NotTimed` with a reason of a closed list. Every rule speaks of a column
or of what sources say in general; none of them names a row. Scored are diffusers and the makers' own scripts, which
run the same networks; compilers, servers and quantized kernels of their own are other programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Literal

from cardfit.accuracy.rebuild import NotRebuilt, model_of
from cardfit.accuracy.times_rows import PublishedTime
from cardfit.cards import Card, find
from cardfit.cards import load as load_cards
from cardfit.errors import CardfitError, UnknownCard
from cardfit.library import load
from cardfit.library.models import Model
from cardfit.library.rules import resolve, settings_allowed
from cardfit.predict.timing import AttentionKernel
from cardfit.request import ExactRequest, Request, Settings
from cardfit.request.models import Dtype, Quantization

Part = Literal["run", "step", "decode", "encode"]


class WhyNotTimed(StrEnum):
    """Why a time is not scored."""

    MULTI_GPU = "multi_gpu"
    OTHER_RUNTIME = "other_runtime"
    NO_SIZE = "no_size"
    NO_STEPS = "no_steps"
    NO_CARD = "no_card"
    CARD_UNKNOWN = "card_unknown"
    RATE_UNKNOWN = "rate_unknown"
    MODEL_UNKNOWN = "model_unknown"
    SCHEME_UNKNOWN = "scheme_unknown"
    ATTENTION_UNKNOWN = "attention_unknown"
    OFFLOAD_UNKNOWN = "offload_unknown"
    SUSPECT = "suspect"
    BAD_VALUE = "bad_value"
    DRY_RUN_FAILED = "dry_run_failed"


class NotTimed(Exception):
    """The row cannot be rebuilt; ``detail`` is what stood in the way, as written."""

    def __init__(self, why: WhyNotTimed, detail: str = "") -> None:
        self.why, self.detail = why, detail
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class TimedRun:
    """What the row ran and on what. ``part`` is what the seconds are of; ``kernel`` the attention kernel it named."""

    model: Model
    request: ExactRequest
    settings: Settings
    card: Card
    kernel: AttentionKernel | None
    part: Part


# frameworks that run the published networks through torch: diffusers and the makers' own scripts
_TORCH = re.compile(r"\bdiffusers\b|\bofficial\b|^pytorch\b|baseline \(cache off\)|^xdit$", re.I)
_NOT_TORCH = re.compile(r"cache-dit|unknown", re.I)
# what a distributed framework does on one card is the published network; its compilers are torch's
_OTHER_KERNELS = re.compile(r"sage|teacache|tensorrt|xformers|stable-fast|tp\d|sparse", re.I)
_COMPILED = re.compile(r"\bcompile[d]?\b|max-autotune", re.I)
_FLASH_3 = re.compile(r"\bFA3\b|flash-?attention ?3", re.I)
_FLASH_2 = re.compile(r"\bflash-attn 2|\bFA2\b|flash-?attention ?2", re.I)
_HOPPER_ONLY = re.compile(r"3 on hopper", re.I)
_OFFLOADED = re.compile(r"offload_model(?: True)?(?: on 1 gpu)?", re.I)
_CPU_OFFLOAD = re.compile(r"\bcpu offload\b|sequential", re.I)
_SUSPECT = re.compile(r"low confidence|upper bound|offload/paging effects|do not use", re.I)
_PART = re.compile(r"\bvae (decode|encode)$", re.I)
_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")
_DTYPES: Mapping[str, Dtype] = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_SCHEMES: Mapping[str, Quantization] = {
    "fp8 dynamic": "torchao-fp8dq",
    "fp8 dynamic row": "torchao-fp8dq",
    "fp8 weight-only": "torchao-fp8",
    "int8 dynamic": "torchao-int8dq",
    "int8 weight-only": "torchao-int8",
}
# a publisher that gives no form factor: the one most boxes of that name hold
_ANY: Mapping[str, str] = {
    "a100-80gb-any": "a100-sxm-80gb",
    "a100-40gb-any": "a100-sxm-40gb",
    "h100-any": "h100-sxm",
    "v100-16gb-any": "v100-sxm2-16gb",
    "rtx-pro-6000-blackwell-any": "rtx-pro-6000-blackwell-workstation",
    "a800-sxm-80gb": "a100-sxm-80gb",  # the same chip; NVLink is what differs
    "h800": "h100-sxm",
    "h800-nvl": "h100-nvl",
}
# H20 as commonly listed, not traced to a sheet: 148 TFLOP/s bf16 dense, 296 fp8, 74 tf32, 44 fp32, 4.0 TB/s, 400 W
_H20_FLOP_PER_S = {
    "fp32": 44e12, "fp16_fp32acc": 148e12, "bf16": 148e12, "tf32": 74e12, "int8": 296e12, "fp8": 296e12,
}  # fmt: skip
_H20_BANDWIDTH_BYTES_PER_S = 4.0e12


def rebuild(row: PublishedTime) -> TimedRun:
    """The configuration that ``row`` ran. Raises NotTimed with a reason of the closed list."""
    part = _refuse(row)
    model = _model(_PART.sub("", row.model))
    if row.width is None or row.height is None or (model.is_video and row.num_frames is None):
        raise NotTimed(WhyNotTimed.NO_SIZE)
    if part == "run" and row.steps is None:
        raise NotTimed(WhyNotTimed.NO_STEPS)
    card = card_of(row.card)
    settings = _settings(row, model, part)
    try:
        asked = Request(
            model=model.id,
            width=row.width,
            height=row.height,
            num_frames=row.num_frames if model.is_video else None,
            batch=row.batch or 1,
            num_inference_steps=row.steps,
        )
        request, _ = resolve(model, asked)
        settings_allowed(model, settings)
    except (CardfitError, ValueError) as error:
        raise NotTimed(WhyNotTimed.DRY_RUN_FAILED, str(error)) from error
    return TimedRun(model, request, settings, card, _kernel(row, card), part)


def _refuse(row: PublishedTime) -> Part:
    """What the seconds are of; raises for what makes a row unfit whatever its configuration."""
    if row.gpus is not None and row.gpus > 1:
        raise NotTimed(WhyNotTimed.MULTI_GPU, str(row.gpus))
    if not _TORCH.search(row.framework) or _NOT_TORCH.search(row.framework):
        raise NotTimed(WhyNotTimed.OTHER_RUNTIME, row.framework)
    if _SUSPECT.search(row.notes):
        raise NotTimed(WhyNotTimed.SUSPECT)
    if _OTHER_KERNELS.search(row.how):
        raise NotTimed(WhyNotTimed.ATTENTION_UNKNOWN, row.how)
    named = _PART.search(row.model)
    if named:
        return "decode" if named[1].lower() == "decode" else "encode"
    return "run" if row.of == "run" else "step"


def _model(name: str) -> Model:
    """The entry of a name as written, with hyphens for spaces, or without the task in brackets behind it."""
    for spelled in (name, name.replace(" ", "-"), _BRACKETS.sub("", name)):
        try:
            return load(model_of(spelled))
        except NotRebuilt:
            continue
    raise NotTimed(WhyNotTimed.MODEL_UNKNOWN, name)


@cache
def card_of(name: str) -> Card:
    """The catalog's card, an export variant of one, or the usual form factor of a name without one.

    Raises NotTimed where the row names no card or one that the catalog does not hold.
    """
    if not name:
        raise NotTimed(WhyNotTimed.NO_CARD)
    catalog = load_cards(None)
    if name == "h20":
        return replace(
            catalog["h100-sxm"],
            id="h20",
            name="NVIDIA H20",
            flop_per_s=_H20_FLOP_PER_S,
            bandwidth_bytes_per_s=_H20_BANDWIDTH_BYTES_PER_S,
            tdp_w=400,
            sm_count=78,
        )
    try:
        return find(catalog, _ANY.get(name, name))
    except UnknownCard as unknown:
        raise NotTimed(WhyNotTimed.CARD_UNKNOWN, name) from unknown


def _kernel(row: PublishedTime, card: Card) -> AttentionKernel | None:
    """The attention kernel that the row or its notes name; FlashAttention 3 exists on Hopper alone."""
    said = f"{row.how} {row.notes}"
    if _FLASH_3.search(said) and card.architecture == "Hopper":
        return "flash3"
    # a note about one card of a table says nothing of the others
    return "flash" if _FLASH_2.search(row.how) else None


def upcasts(model: Model) -> bool:
    """Whether the pipeline casts its autoencoder to fp32 whatever it was loaded in, as SDXL's does."""
    config = model.components[model.vae.component].config
    return "StableDiffusionXL" in model.pipeline and bool(config.get("force_upcast"))


def _settings(row: PublishedTime, model: Model, part: Part) -> Settings:
    """The knobs of the row. A part that the model's own documentation loads in fp32 keeps it in a whole run."""
    precision = row.precision.lower()
    scheme = _SCHEMES.get(precision)
    dtype = _DTYPES.get(precision.partition("/")[0])
    if precision and scheme is None and dtype is None:
        raise NotTimed(WhyNotTimed.SCHEME_UNKNOWN, row.precision)
    if _CPU_OFFLOAD.search(row.how):
        raise NotTimed(WhyNotTimed.OFFLOAD_UNKNOWN, row.how)
    parts = {name: each for name, each in model.components.items() if each.counted}
    dtypes: dict[str, Dtype] = {} if dtype is None else {"*": dtype}
    if dtype is not None and part != "decode" and part != "encode":
        dtypes |= {
            name: "float32" for name, each in parts.items() if each.recommended_dtype == "float32"
        }
    elif upcasts(model):
        dtypes[model.vae.component] = "float32"
    denoisers = [name for name in parts if name.startswith(("transformer", "unet"))]
    return Settings(
        dtype=dtypes,
        quantization={} if scheme is None else dict.fromkeys(denoisers, scheme),
        offload="model" if _OFFLOADED.search(f"{row.how} {row.notes}") else "none",
        compile=bool(_COMPILED.search(row.how)),
    )
