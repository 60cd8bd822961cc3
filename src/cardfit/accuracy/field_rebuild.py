"""The rules that turn a field case into a request, settings and a card, or say why it cannot be scored.

In: a `FieldCase`. Out: a `FieldRun` or a `NotScored` of a closed list. Every rule speaks of a column; none names a
case. A size that nobody stated is the model's own default, a precision that nobody stated is fp32 in diffusers
(`from_pretrained` without a dtype) and what the script does elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from cardfit.accuracy.field_cards import FieldCard, card_of
from cardfit.accuracy.field_rows import FieldCase
from cardfit.accuracy.field_scripts import Habit, script_of
from cardfit.accuracy.field_why import FieldWhy, NotScored
from cardfit.accuracy.rebuild import NotRebuilt, model_of
from cardfit.errors import CardfitError
from cardfit.library import load
from cardfit.library.models import Model
from cardfit.library.rules import resolve, settings_allowed
from cardfit.plan.verdict import Host, Os
from cardfit.request import Dtype, ExactRequest, Offload, Quantization, Request, Settings

# Names that people use beside those of the library and of publications.
FIELD_NAMES: dict[str, str] = {
    "ltx-video-0.9": "ltx-video-2b-0.9.0",
    "ltx-video-0.9.6": "ltx-video-2b",
    "ltx-video-0.9.6-distilled": "ltx-video-2b",
    "ltx-video-0.9.7-13b": "ltx-video-13b",
    "svd-(25-frames)": "svd-xt",
}
_DIFFUSERS = re.compile(r"^diffusers\b")
_OFFICIAL = re.compile(r"\bofficial\b")
_BRACKETS = re.compile(r"\s*\([^)]*\)")
_PART = re.compile(r"\b(vae|transformer|unet|text encoder)( only)?\)?$", re.I)
# the weights that were loaded, said behind the name: the columns precision and quantization hold it
_FORMAT = re.compile(
    r"[\s_-]+(bf16|fp16|fp8|int[48]|gguf|q\d\w*|svdquant|quantized|nf4|[48]-bit)\b.*$", re.I
)
_DTYPES: tuple[tuple[str, Dtype], ...] = (
    ("bf16", "bfloat16"),
    ("bfloat16", "bfloat16"),
    ("fp16", "float16"),
    ("float16", "float16"),
    ("half", "float16"),
    ("fp32", "float32"),
    ("float32", "float32"),
)
_SCHEMES: dict[str, Quantization] = {
    r"(bnb|bitsandbytes).*(nf4|4[- ]bit|int4)": "bnb-nf4",
    r"(bnb|bitsandbytes).*(8[- ]bit|int8)": "bnb-int8",
    r"^nf4": "bnb-nf4",
    r"torchao (float8|fp8)": "torchao-fp8",
    r"torchao int8": "torchao-int8",
    r"torchao int4": "torchao-int4",
    r"quanto int8": "quanto-int8",
    r"quanto (fp8|float8)": "quanto-fp8",
    r"quanto int4": "quanto-int4",
    r"(gguf )?q8_0": "gguf-q8_0",
    r"(gguf )?q6_k": "gguf-q6_k",
    r"(gguf )?q5_k": "gguf-q5_k",
    r"(gguf )?q5_1": "gguf-q5_1",
    r"(gguf )?q5_0": "gguf-q5_0",
    r"(gguf )?q4_k": "gguf-q4_k",
    r"(gguf )?q4_1": "gguf-q4_1",
    r"(gguf )?q4_0": "gguf-q4_0",
    r"(gguf )?q3_k": "gguf-q3_k",
    r"(gguf )?q2_k": "gguf-q2_k",
    r"svdquant int4|svdq int4": "svdq-int4",
    # diffusers stores weights as fp8 and computes in the pipeline's dtype by layerwise casting only
    r"layerwise.*fp8|fp8.*layerwise|^fp8( e4m3\w*)?$": "fp8-layerwise",
}
_OFFLOADS: dict[str, Offload] = {
    r"^(none|no|off)?$": "none",
    r"sequential": "sequential",
    r"group.*leaf": "group-leaf",
    r"group": "group-block",
    r"\bcpu[ _-]?offload|model[ _-]?(cpu[ _-])?offload": "model",
}
# Wording of a text encoder that is not on the card while the rest runs.
_ENCODER_AWAY = re.compile(
    r"(text encoder|t5).*(\bcpu\b|moved|released|elsewhere|separate)|\bt5_cpu\b"
)
_SEVERAL = re.compile(r"\b(fsdp|ulysses|ring|tensor parallel|multi[- ]gpu)\b")
_MOVES = re.compile(r"\boffload(_model)?\b(?!.*(false|off))|\bcpu[ _-]?offload")
_STAYS = re.compile(r"offload_model\s*=?\s*(false|off)|^(none|no|off)$")
_WINDOWS = re.compile(r"\bwindows\b|\bshared\b", re.I)
_UNTILED = re.compile(r"^(off|no|none|false)?$|^(off|no|none|false)\b|^slicing$")
_TILED = re.compile(
    r"^tile (?P<tile>\d+)(, overlap (?P<overlap>\d+))?|^(on|yes|true|enabled)\b|\btil(ing|ed)\b"
)
_CONVERTED = re.compile(r"convert_model_dtype", re.I)


@dataclass(frozen=True, slots=True)
class FieldRun:
    """What was run, on what: enough for a dry run, a replay and a verdict. ``habit`` is set for makers' scripts."""

    model: Model
    request: ExactRequest
    settings: Settings
    card: FieldCard
    host: Host
    habit: Habit | None = None


def rebuild(case: FieldCase) -> FieldRun:
    """The configuration that ``case`` ran. Raises NotScored with a reason of the closed list."""
    if case.outcome == "wrong_output":
        raise NotScored(FieldWhy.OTHER_OUTCOME, case.outcome)
    if _SEVERAL.search(case.offload) or _SEVERAL.search(case.vae_tiling):
        raise NotScored(FieldWhy.MULTI_GPU, case.offload)
    official = bool(_OFFICIAL.search(case.framework))
    if not official and not _DIFFUSERS.search(case.framework):
        raise NotScored(FieldWhy.OTHER_RUNTIME, case.framework)
    card = card_of(case.gpu, case.vram_bytes)
    if case.outcome == "host_oom" and case.ram_bytes is None:
        raise NotScored(FieldWhy.NO_HOST_RAM)
    model = load(entry_of(case.model))
    habit = _habit(case, model) if official else None
    settings = settings_of(case, model, habit)
    try:
        request, _ = resolve(model, _asked(case, model, habit))
        settings_allowed(model, settings)
    except (CardfitError, ValueError) as error:
        raise NotScored(FieldWhy.DRY_RUN_FAILED, str(error)) from error
    os: Os = "windows" if _WINDOWS.search(case.remarks) else "linux"
    return FieldRun(model, request, settings, card, Host(case.ram_bytes, os), habit)


def entry_of(name: str) -> str:
    """The library id of a model as people write it, without remarks in brackets and the format of its weights.

    Raises NotScored for a part of a pipeline and for a model that the library does not hold.

    >>> entry_of("LTX-Video 0.9 (2B)"), entry_of("SDXL base 1.0"), entry_of("HunyuanVideo Q3_K_S")
    ('ltx-video-2b-0.9.0', 'sdxl-base', 'hunyuanvideo')
    """
    bare = _BRACKETS.sub("", name).strip()
    if _PART.search(bare) or _PART.search(name):
        raise NotScored(FieldWhy.PART_ONLY, name)
    for text in (name, bare, _FORMAT.sub("", bare)):
        slug = re.sub(r"\s+", "-", text.strip().lower())
        if slug in FIELD_NAMES:
            return FIELD_NAMES[slug]
        try:
            return model_of(slug)
        except NotRebuilt:
            continue
    raise NotScored(FieldWhy.MODEL_UNKNOWN, name)


def _asked(case: FieldCase, model: Model, habit: Habit | None) -> Request:
    frames = case.num_frames
    step = model.rules.frames.step
    if habit is not None and habit.script.whole_blocks_up and frames is not None and step > 1:
        frames = -(-(frames - 1) // step) * step + 1
    return Request(
        model=model.id,
        width=case.width,
        height=case.height,
        num_frames=frames if model.is_video else None,
        batch=case.batch or 1,
        num_inference_steps=case.steps,
    )


def _habit(case: FieldCase, model: Model) -> Habit:
    """The makers' script as it was run. Raises NotScored where nothing is known of it."""
    script = script_of(model.id)
    if script is None:
        raise NotScored(FieldWhy.SCRIPT_UNKNOWN, f"{case.framework}: {model.family}")
    moves = bool(_MOVES.search(case.offload)) or (
        script.moves_by_default and not _STAYS.search(case.offload)
    )
    if _CONVERTED.search(f"{case.offload} {case.remarks}"):
        script = replace(script, weights={})
    away = ("text_encoder",) if _ENCODER_AWAY.search(case.offload) else ()
    return Habit(script, moves and bool(script.stays), away, _dtype(case.precision))


def settings_of(case: FieldCase, model: Model, habit: Habit | None) -> Settings:
    """The knobs of the case, none open. Raises NotScored for words that have no rule."""
    tiling = _tiling(case.vae_tiling)
    away = habit is None and bool(_ENCODER_AWAY.search(case.offload))
    return Settings(
        dtype=_dtypes(case, model, habit),
        quantization=_schemes(case.quantization, model),
        offload=_offload(case, habit, away),
        vae_tiling=tiling is not None or model.vae.tiling_required,
        vae_tile=int(tiling["tile"]) if tiling is not None and tiling["tile"] else None,
        vae_overlap=int(tiling["overlap"]) if tiling is not None and tiling["overlap"] else None,
        vae_slicing="slicing" in case.vae_tiling,
        offload_to_disk=True if re.search(r"group.*disk", case.offload) else None,
        attention="math" if re.search(r"math|naive|eager|unfused", case.attention) else "sdpa",
        prompt_embeds=True if away else None,
    )


def _tiling(text: str) -> re.Match[str] | None:
    """The words that switch tiling on, None where they switch it off. Raises NotScored for others."""
    if _UNTILED.search(text):
        return None
    found = _TILED.search(text)
    if found is None:
        raise NotScored(FieldWhy.TILE_UNKNOWN, text)
    return found


def _offload(case: FieldCase, habit: Habit | None, away: bool) -> Offload:
    """Where a diffusers pipeline keeps its weights. A script's replay empties the cache where the script does."""
    if habit is not None:
        return "model" if habit.moves else "none"
    found = next(
        (name for words, name in _OFFLOADS.items() if re.search(words, case.offload)), None
    )
    if found is None and not away:
        raise NotScored(FieldWhy.OFFLOAD_UNKNOWN, case.offload)
    return found or "none"


def _dtype(precision: str) -> Dtype | None:
    """The first precision that the text names."""
    return next((dtype for word, dtype in _DTYPES if precision.startswith(word)), None)


def _dtypes(case: FieldCase, model: Model, habit: Habit | None) -> dict[str, Dtype]:
    """One precision for all parts; one that is said of the decode is the VAE's alone."""
    asked = _dtype(case.precision)
    if habit is not None:
        return dict(_compute(habit, model))
    if asked is None and case.precision and "stated" not in case.precision:
        raise NotScored(FieldWhy.SCHEME_UNKNOWN, case.precision)
    if "decode" in case.precision and asked is not None:
        return {model.vae.component: asked}
    if asked is None:
        return {"*": "float32"}
    kept = {
        name: part.recommended_dtype
        for name, part in model.components.items()
        if part.counted and part.recommended_dtype == "float32"
    }
    return {"*": asked, **kept}


def _compute(habit: Habit, model: Model) -> dict[str, Dtype]:
    """The script's compute precision by component."""
    words = habit.script.compute
    return {
        name: next(
            (dtype for start, dtype in words.items() if start == "*" or name.startswith(start)),
            part.recommended_dtype,
        )
        for name, part in model.components.items()
        if part.counted
    }


def _schemes(text: str, model: Model) -> dict[str, Quantization]:
    """Component -> scheme: the denoisers, unless the text says that it speaks of the text encoder."""
    if text in ("", "none", "no"):
        return {}
    scheme = next((name for words, name in _SCHEMES.items() if re.search(words, text)), None)
    if scheme is None:
        raise NotScored(FieldWhy.SCHEME_UNKNOWN, text)
    starts = (
        ("text_encoder",) if re.match(r"(t5|text encoder)\b", text) else ("transformer", "unet")
    )
    parts = {name: part for name, part in model.components.items() if part.counted}
    if text.startswith("t5"):
        parts = {name: part for name, part in parts.items() if "T5" in part.class_path}
    return {name: scheme for name in parts if name.startswith(starts)}
