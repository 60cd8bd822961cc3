"""A request that stands in the text: a call of a diffusers pipeline, or the command line of an official script.

In: a `Reading`'s lines. Out: the fields of a Request and of Settings that the text states as plain values. Code is
searched, never run; a value that is an expression is not known. Names of models are those of the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cardfit.errors import BadRequest, Note
from cardfit.library.load import aliases, model_ids
from cardfit.request import Request, Settings

_NUMBER = r"(\d{1,5}(?:\.\d{1,4})?)\b(?!\s*[*/+\-(]\s*\w)"
# field -> the names that pipelines and scripts give it
_NAMES: dict[str, tuple[str, ...]] = {
    "width": ("width",),
    "height": ("height",),
    "num_frames": ("num_frames", "frame_num", "video-length", "video_length", "num-frames"),
    "num_inference_steps": ("num_inference_steps", "sample_steps", "infer-steps", "steps"),
    "guidance_scale": ("guidance_scale", "sample_guide_scale"),
    "batch": ("num_images_per_prompt", "num_videos_per_prompt"),
}
_WHOLE = frozenset(_NAMES) - {"guidance_scale"}
_LIMITS = {
    "width": (16, 16384),
    "height": (16, 16384),
    "num_frames": (1, 4096),
    "num_inference_steps": (1, 1000),
    "guidance_scale": (0, 100),
    "batch": (1, 256),
}
_VALUES = {
    field: re.compile(rf"(?<!\w)(?:{'|'.join(names)})(?:\s{{0,9}}=\s{{0,9}}|\s{{1,9}}){_NUMBER}")
    for field, names in _NAMES.items()
}
_SIZE = re.compile(r"--size[= ](\d{2,5})[*x](\d{2,5})\b")
_VIDEO_SIZE = re.compile(r"--video-size[= ](\d{2,5}) (\d{2,5})\b")  # height, width
_LOADED = re.compile(r"from_pretrained\(\s*[\"']([\w./\-]{2,120})[\"']")
_MODEL_ID = re.compile(
    r"\bmodel_?(?:id|name|path)?\s*=\s*[\"']([\w./\-]{2,120})[\"']", re.IGNORECASE
)
_SETTINGS: tuple[tuple[str, Any, re.Pattern[str]], ...] = (
    ("offload", "model", re.compile(r"enable_model_cpu_offload\(")),
    ("offload", "sequential", re.compile(r"enable_sequential_cpu_offload\(")),
    ("offload", "group-leaf", re.compile(r"offload_type\s*=\s*[\"']leaf_level")),
    ("offload", "group-block", re.compile(r"offload_type\s*=\s*[\"']block_level")),
    ("vae_tiling", True, re.compile(r"enable_vae_tiling\(|vae\.enable_tiling\(|--vae-tiling\b")),
    ("vae_slicing", True, re.compile(r"enable_vae_slicing\(|vae\.enable_slicing\(")),
)
_WHOLE_CARD = re.compile(r"\bpipe(?:line)?\w*\.(?:to\(\s*[\"']cuda|cuda\(\))|\)\.to\(\s*[\"']cuda")
_DTYPE = re.compile(r"(?:torch_)?dtype\s*=\s*torch\.(float16|bfloat16|float32|half)\b")
_PLAIN_LOAD = re.compile(r"from_pretrained\([^()]{0,300}\)")
_CHUNK = re.compile(r"decode_chunk_size\s*=\s*(\d{1,4})\b")
_WORDS = (
    "width", "height", "frame", "steps", "scale", "_per_prompt", "size", "length", "pretrained", "model", "enable_",
    "offload", "dtype", "chunk", ".to(", ".cuda(", "tiling",
)  # fmt: skip
_LEAST_NAME = 8  # signs; a shorter alias ("svd", "flux") stands in many a text


@dataclass(frozen=True, slots=True)
class Pasted:
    """What the text states; ``model`` is a library id, ``unknown_model`` a repository that the library lacks."""

    model: str | None
    unknown_model: str | None
    request: dict[str, Any]
    settings: dict[str, Any]


def pasted(lines: Iterable[str]) -> Pasted:
    """The request and the settings that stand in ``lines``; empty where none do. The last value of a field counts."""
    every = [line for line in lines if not line.lstrip().startswith("#")]
    text = "\n".join(line for line in every if any(word in line for word in _WORDS))
    request: dict[str, Any] = {}
    for field, pattern in _VALUES.items():
        for match in pattern.finditer(text):
            _keep(request, field, float(match[1]))
    for pattern, order in ((_SIZE, ("width", "height")), (_VIDEO_SIZE, ("height", "width"))):
        for match in pattern.finditer(text):
            for field, number in zip(order, match.groups(), strict=True):
                _keep(request, field, float(number))
    model, unknown = _model(text, "\n".join(every).lower())
    return Pasted(model, unknown, request, _settings(text))


@dataclass(frozen=True, slots=True)
class Asked:
    """Fields of the request and the settings that ran; ``given`` says that some were given beside the text."""

    request: dict[str, Any]
    settings: dict[str, Any]
    given: bool
    notes: tuple[Note, ...]


def asked(
    lines: Iterable[str],
    request: Request | Mapping[str, object] | str | None,
    settings: Settings | None,
) -> Asked:
    """What stands in ``lines`` with what was given on top of it.

    Raises BadRequest where something was given and neither it nor the text names a model.
    """
    found = pasted(lines)
    given = _fields(request)
    stated = {} if settings is None else settings.model_dump(exclude_unset=True)
    fields, knobs = {**found.request, **given}, {**found.settings, **stated}
    model = given.get("model", found.model)
    if model is None:
        if given or stated:
            raise BadRequest("autopsy-flags-without-model", flags=", ".join({**given, **stated}))
        name = found.unknown_model
        unknown = (Note("autopsy-model-unknown", {"name": name}),) if name else ()
        return Asked(fields, knobs, False, unknown)
    fields["model"] = model
    known = {**fields, **knobs}
    read = sorted({*found.request, *found.settings, "model"} - {*given, *stated})
    text = ", ".join(f"{name} {_said(known[name])}" for name in read)
    notes = (Note("autopsy-request-read", {"fields": text}),) if read else ()
    return Asked(fields, knobs, bool(given or stated), notes)


def _said(value: object) -> object:
    """A field's value as a person says it; what holds for every component without its star."""
    return ", ".join(map(str, value.values())) if isinstance(value, Mapping) else value


def _fields(request: Request | Mapping[str, object] | str | None) -> dict[str, Any]:
    """The fields of a request that were given."""
    if isinstance(request, str):
        return {"model": request}
    if isinstance(request, Request):
        return request.model_dump(exclude_unset=True)
    return dict(request or {})


def _keep(request: dict[str, Any], field: str, number: float) -> None:
    low, high = _LIMITS[field]
    whole = field in _WHOLE
    if low <= number <= high and (not whole or number == int(number)):
        request[field] = int(number) if whole else number


def _model(text: str, lower: str) -> tuple[str | None, str | None]:
    """The model that is loaded, else one whose repository or long name stands in the text."""
    known = _names()
    unknown = None
    for pattern in (_LOADED, _MODEL_ID):
        for match in pattern.finditer(text):
            if (found := known.get(match[1].lower())) is not None:
                return found, None
            if "/" in match[1] and not match[1].startswith((".", "/")):
                unknown = match[1]
    if unknown is not None:
        return None, unknown
    named = [name for name in known if len(name) >= _LEAST_NAME and _stands(name, lower)]
    ids = {known[max(named, key=len)]} if named else set()
    return (ids.pop() if ids else None), None


def _stands(name: str, text: str) -> bool:
    if name not in text:
        return False
    return re.search(rf"(?<![\w.\-]){re.escape(name)}(?![\w\-])(?!\.\d)", text) is not None


@cache
def _names() -> dict[str, str]:
    return {
        name.lower(): model_id
        for model_id in model_ids()
        for name in (model_id, *aliases(model_id))
    }


def _settings(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value, pattern in _SETTINGS:
        if pattern.search(text):
            found[name] = value
    if "offload" not in found and _WHOLE_CARD.search(text):
        found["offload"] = "none"
    dtypes = _DTYPE.findall(text)
    if len(set(dtypes)) == 1:
        found["dtype"] = {"*": "float16" if dtypes[0] == "half" else dtypes[0]}
    elif not dtypes and "dtype" not in text and _PLAIN_LOAD.search(text):
        found["dtype"] = {"*": "float32"}  # what from_pretrained does when nothing is said
    if (chunk := _CHUNK.search(text)) is not None and int(chunk[1]) > 0:
        found["decode_chunk_size"] = int(chunk[1])
    return found
