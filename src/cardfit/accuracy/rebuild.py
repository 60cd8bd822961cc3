"""The rules that turn a published row into a request and settings, or say why it cannot be rebuilt.

In: a `Published` row. Out: a `Rebuilt` configuration or a `Why` of a closed list. Every rule speaks of a column or of
what the notes say in general; none of them names a row. What a source leaves open takes the pipeline's default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Literal

from cardfit.accuracy.rows import Published
from cardfit.cards import find
from cardfit.cards import load as load_cards
from cardfit.errors import CardfitError, UnknownCard
from cardfit.library import load
from cardfit.library.load import aliases, model_ids
from cardfit.library.models import Model
from cardfit.library.rules import resolve, settings_allowed
from cardfit.request import QUANTIZATIONS, ExactRequest, Request, Settings

Scope = Literal["full", "denoise", "decode"]


class Why(StrEnum):
    """Why a row is not scored."""

    OUT_OF_MEMORY_ROW = "out_of_memory_row"
    MULTI_GPU = "multi_gpu"
    OTHER_RUNTIME = "other_runtime"
    NO_PEAK = "no_peak"
    NO_SIZE = "no_size"
    MODEL_UNKNOWN = "model_unknown"
    SCHEME_UNKNOWN = "scheme_unknown"
    OFFLOAD_UNKNOWN = "offload_unknown"
    LOAD_PEAK = "load_peak"
    SUSPECT = "suspect"
    TILE_UNKNOWN = "tile_unknown"
    SETTING_UNKNOWN = "setting_unknown"
    BAD_VALUE = "bad_value"
    SCOPE_UNKNOWN = "scope_unknown"
    DRY_RUN_FAILED = "dry_run_failed"


class NotRebuilt(Exception):
    """The row cannot be rebuilt; ``detail`` is what stood in the way, as written."""

    def __init__(self, why: Why, detail: str = "") -> None:
        self.why, self.detail = why, detail
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the row ran: enough for a dry run and a replay.

    ``scope`` is the part of the run that was measured, ``working`` whether what the card held before was taken off,
    ``in_place`` whether the quantizer was called on parts that were loaded, which takes every linear layer of them,
    ``loading`` whether the figure is the peak of loading.
    """

    model: Model
    request: ExactRequest
    settings: Settings
    scope: Scope
    architecture: str | None
    working: bool = False
    in_place: bool = False
    loading: bool = False


# Names that publications use and the library does not know. A bare "LTX-Video" is the first repository, 0.9.0.
PUBLISHED_NAMES: dict[str, str] = {
    "ltx-video": "ltx-video-2b-0.9.0",
    "hunyuanvideo-1.5 480p_t2v": "hunyuanvideo-1.5-480p-t2v",
    "sd1.x": "stable-diffusion-1.5",
    "sdxl-base-1.0": "sdxl-base",
    "mochi-1-preview": "mochi-1",
}
# Makers of a framework that run the diffusers modules themselves; OneDiff's nexfort backend compiles them in place.
_DIFFUSERS = re.compile(r"^diffusers\b|^onediff nexfort$|\(diffusers vae\)$", re.I)
_FUSED = re.compile(r"\bfused qkv\b", re.I)
# The torchao study calls torchao's quantize_ on the parts of a pipeline that is loaded; loading is a stage of ours.
_IN_PLACE = re.compile(r"^diffusers\+torchao\b", re.I)
# InvokeAI decodes FLUX with an autoencoder of its own.
_OWN_MODULES = (("invokeai", "flux vae"),)
# The figure of a decode is its working set, unless the source says that the weights are in it.
_LOADED = re.compile(r"\bweights (are )?(loaded|included)\b", re.I)
_PART = re.compile(r"\s+(vae|transformer|unet)$", re.I)
_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")
_LOAD_PEAK = re.compile(r"peak is the load|peak includes the \w+ load|set by the load", re.I)
_SAYS: tuple[tuple[Why, re.Pattern[str]], ...] = (
    (Why.OUT_OF_MEMORY_ROW, re.compile(r"outcome: oom", re.I)),
    (Why.MULTI_GPU, re.compile(r"\bmulti-gpu\b", re.I)),
    (Why.MODEL_UNKNOWN, re.compile(r"\breplaces (the )?(vae|text encoder|transformer|unet)", re.I)),
    (Why.LOAD_PEAK, _LOAD_PEAK),
    (Why.TILE_UNKNOWN, re.compile(r"tile size not (recorded|stated|known)", re.I)),
    (Why.SETTING_UNKNOWN, re.compile(r"\bvae decoder compiled\b", re.I)),
    (
        Why.SUSPECT,
        re.compile(
            r"\boutlier\b|\bexclude\b|not comparable|do not use|inconsist|shared memory|never score",
            re.I,
        ),
    ),
)
_DTYPES: Mapping[str, Literal["float32", "float16", "bfloat16"]] = {
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "fp16": "float16",
    "float16": "float16",
    "fp32": "float32",
    "float32": "float32",
}
_OFFLOADS: Mapping[str, Literal["none", "model", "sequential", "group-leaf", "group-block"]] = {
    "none": "none",
    "model": "model",
    "sequential": "sequential",
    "group_leaf": "group-leaf",
    "group_block": "group-block",
}
_SCOPES: Mapping[str, Scope] = {
    "full_pipeline": "full",
    "denoise_only": "denoise",
    "decode_only": "decode",
}
# what a publication writes -> the name of the scheme; one that predictions do not know yet is skipped as such
_SCHEMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), name)
    for pattern, name in (
        (r"^torchao int8dq\b", "torchao-int8dq"),
        (r"^torchao (int8wo|int8)\b", "torchao-int8"),
        (r"^torchao (fp8|float8)(dq|dqrow)\b", "torchao-fp8dq"),
        (r"^torchao (fp8|float8)(wo)?\b", "torchao-fp8"),
        (r"^torchao int4wo\b", "torchao-int4"),
        (r"^bnb int8\b", "bnb-int8"),
        (r"^bnb nf4\b", "bnb-nf4"),
        (r"^layerwise fp8", "fp8-layerwise"),
        (r"^quanto int8\b", "quanto-int8"),
        (r"^quanto fp8\b", "quanto-fp8"),
        (r"^quanto int4\b", "quanto-int4"),
        (r"^gguf q8_0\b", "gguf-q8_0"),
        (r"^gguf q4_1\b", "gguf-q4_1"),
        (r"^svdq int4\b", "svdq-int4"),
        (r"^svdq nvfp4\b", "svdq-nvfp4"),
    )
)
# export variants of a card, by the card whose generation they share
_VARIANTS = {"a800": "a100", "h800": "h100", "h20": "h100"}


def rebuild(row: Published) -> Rebuilt:
    """The configuration that ``row`` ran. Raises NotRebuilt with a reason of the closed list."""
    _refuse(row)
    scope = _SCOPES.get(row.scope)
    if scope is None:
        raise NotRebuilt(Why.SCOPE_UNKNOWN, row.scope)
    model = load(model_of(row.model))
    if (
        row.width is None
        or row.height is None
        or (scope != "decode" and _frames_missing(row, model))
    ):
        raise NotRebuilt(Why.NO_SIZE)
    settings = settings_of(row, model, scope)
    try:
        asked = Request(
            model=model.id,
            width=row.width,
            height=row.height,
            num_frames=row.num_frames,
            batch=row.batch or 1,
            num_inference_steps=_steps(row, scope),
            guidance_scale=_guidance(row, model),
        )
        request, _ = resolve(model, asked)
        settings_allowed(model, settings)
    except (CardfitError, ValueError) as error:
        raise NotRebuilt(Why.DRY_RUN_FAILED, str(error)) from error
    working = scope == "decode" and not _LOADED.search(row.notes)
    return Rebuilt(
        model,
        request,
        settings,
        scope,
        architecture_of(row.gpu),
        working,
        in_place=bool(settings.quantization and _IN_PLACE.search(row.framework)),
        loading=bool(_LOAD_PEAK.search(row.notes)),
    )


def _refuse(row: Published) -> None:
    """Raise for what makes a row unfit whatever its configuration."""
    for why, pattern in _SAYS[:2]:
        if pattern.search(row.notes):
            raise NotRebuilt(why)
    if row.peak_bytes is None:
        raise NotRebuilt(Why.NO_PEAK)
    own = any(
        row.framework.lower().startswith(maker) and row.model.lower() == name
        for maker, name in _OWN_MODULES
    )
    if own or not _DIFFUSERS.search(row.framework):
        raise NotRebuilt(Why.OTHER_RUNTIME, row.framework)
    for why, pattern in _SAYS[2:]:
        if why is Why.LOAD_PEAK and _IN_PLACE.search(row.framework):
            continue  # loading is a stage of the prediction
        if pattern.search(row.notes):
            raise NotRebuilt(why)


def _frames_missing(row: Published, model: Model) -> bool:
    return model.is_video and row.num_frames is None


@cache
def _names() -> dict[str, str]:
    """Every name of every entry, with and without its owner, in lower case."""
    names: dict[str, str] = {}
    for model_id in model_ids():
        for name in (model_id, *aliases(model_id)):
            names.setdefault(name.lower().rpartition("/")[2], model_id)
            names.setdefault(name.lower(), model_id)
    return {**names, **PUBLISHED_NAMES}


def model_of(name: str) -> str:
    """The library id of a published model name, with or without the name of a part or a remark in brackets.

    Raises NotRebuilt for a model that the library does not hold.

    >>> model_of("FLUX.1-dev transformer"), model_of("SDXL VAE"), model_of("LTX-Video (2B)")
    ('flux.1-dev', 'sdxl-base', 'ltx-video-2b-0.9.0')
    """
    whole = name.strip().lower()
    for candidate in (whole, _PART.sub("", whole), _PART.sub("", _BRACKETS.sub("", whole))):
        found = _names().get(candidate)
        if found is not None and "based)" not in whole and "not stated" not in whole:
            return found
    raise NotRebuilt(Why.MODEL_UNKNOWN, name)


def _steps(row: Published, scope: Scope) -> int | None:
    """Steps of the row. A denoiser measured alone was warmed up: what streams ahead does so from the second call on."""
    if scope == "denoise" and row.steps is not None:
        return max(2, row.steps)
    return row.steps


def _guidance(row: Published, model: Model) -> float | None:
    """The scale that makes classifier-free guidance run as the row says; None is the pipeline's default."""
    embedded = "embed" in model.cfg.how.lower()
    return 1.0 if row.guidance is False and not embedded else None


def settings_of(row: Published, model: Model, scope: Scope) -> Settings:
    """The knobs of the row. Raises NotRebuilt for a precision, scheme or offload that has no rule."""
    offload = _OFFLOADS.get(row.offload)
    if scope == "decode":
        offload = "none"
    if offload is None:
        raise NotRebuilt(Why.OFFLOAD_UNKNOWN, row.offload)
    tiling = bool(row.vae_tiling) or model.vae.tiling_required
    return Settings(
        dtype=_dtypes(row.precision, model, scope),
        quantization=_schemes(row.quantization, model),
        offload=offload,
        vae_tiling=tiling,
        vae_slicing=bool(row.vae_slicing),
        decode_chunk_size=row.decode_chunk_size if model.vae.decode_chunk_size else None,
        fuse_qkv=True if _FUSED.search(row.notes) else None,
        attention="math" if "unfused" in row.attention else "sdpa",
    )


def _dtypes(
    precision: str, model: Model, scope: Scope
) -> dict[str, Literal["float32", "float16", "bfloat16"]]:
    """One precision for all parts; a part that the model's own documentation loads in fp32 keeps it in a whole run."""
    if not precision:
        return {}
    dtype = _DTYPES.get(precision.lower())
    if dtype is None:
        raise NotRebuilt(Why.SCHEME_UNKNOWN, precision)
    kept = {
        name: part.recommended_dtype
        for name, part in model.components.items()
        if part.counted and part.recommended_dtype == "float32" and scope == "full"
    }
    return {"*": dtype, **kept}


def _schemes(text: str, model: Model) -> dict[str, str]:
    """Component -> scheme. Raises NotRebuilt for a scheme that predictions do not know."""
    if text.lower() in ("", "none"):
        return {}
    scheme = next((name for pattern, name in _SCHEMES if pattern.search(text)), None)
    if scheme not in QUANTIZATIONS or "," in text.partition("(")[0]:
        raise NotRebuilt(Why.SCHEME_UNKNOWN, text)
    inside = text.partition("(")[2].rstrip(")") or "transformer"
    if any(each in inside for each in ("fp8", "nf4")):
        raise NotRebuilt(Why.SCHEME_UNKNOWN, text)
    return {
        name: scheme for part in re.split(r"[+,]", inside) for name in _parts(part.strip(), model)
    }


def _parts(word: str, model: Model) -> tuple[str, ...]:
    """The components that a publication means by ``word``."""
    counted = {name: part for name, part in model.components.items() if part.counted}
    low = word.lower()
    encoders = tuple(name for name in counted if name.startswith("text_encoder"))
    if low in ("transformer", "unet"):
        return tuple(name for name in counted if name.startswith(("transformer", "unet")))
    if low == "t5":
        return tuple(name for name in encoders if "T5" in counted[name].class_path)
    if low in ("te", "text encoder"):
        return encoders
    if low == "vae":
        return (model.vae.component,)
    if re.fullmatch(r"te[123]", low):
        at = int(low[2]) - 1
        return encoders[at : at + 1]
    raise NotRebuilt(Why.SCHEME_UNKNOWN, word)


@cache
def architecture_of(gpu: str) -> str | None:
    """The generation of the card that a publication names; None where it names none that is known.

    >>> architecture_of("H100/H800"), architecture_of("A800-SXM4-80GB"), architecture_of("")
    ('Hopper', 'Ampere', None)
    """
    name = gpu.partition("/")[0].strip()
    if not name:
        return None
    catalog = load_cards(None)
    word = re.split(r"[\s-]", name.lower())[0]
    word = _VARIANTS.get(word, word)
    try:
        return find(catalog, name).architecture
    except UnknownCard:
        known = {c.architecture for c in catalog.values() if word in re.split(r"[\s-]", c.id)}
    return known.pop() if len(known) == 1 else None
