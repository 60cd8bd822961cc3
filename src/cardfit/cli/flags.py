"""Flags built from the fields of `Request` and `Settings`, and the way back.

In: the models. Out: one plain dataclass of flags for each, every flag open (``None``) until it is given, and the
functions that turn given flags into validated values. The names and the help are the models' own.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import Parameter
from pydantic import BaseModel

from cardfit.errors import BadRequest
from cardfit.library.filenames import MODEL_ENDINGS
from cardfit.messages import say
from cardfit.request import (
    DTYPES,
    INTERPOLATORS,
    QUANTIZATIONS,
    UPSCALERS,
    Dtype,
    Quantization,
    Request,
    Settings,
)
from cardfit.request.read import read_plan_file, validate_request, validate_settings
from cardfit.units import parse_bytes

DTYPE_ALIASES: dict[str, Dtype] = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    **{name: name for name in DTYPES},
}
# Other names of a flag; a bare value of --dtype means every component.
ALIASES = {"num_inference_steps": ("--steps",)}
PAIRED = frozenset({"dtype", "quantization"})
# Flags that are given once for every item of a field.
REPEATED = {
    "loras": "--lora",
    "controlnets": "--controlnet",
    "ip_adapters": "--ip-adapter",
    "components": "--component",
    "post": "--post",
}
EVERY = "*"
_LORA_ENDING = ".safetensors"
_MOST_CONTROLNETS = 8


def flag(field: str) -> str:
    """The flag of a field.

    >>> flag("num_frames")
    '--num-frames'
    >>> flag("loras")
    '--lora'
    """
    return REPEATED.get(field) or "--" + field.replace("_", "-")


def _value_type(annotation: Any) -> Any:
    """The type of a field without its limits: they are checked by the model, which words the error."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        return _value_type(parts[0])
    if get_origin(annotation) is Annotated:
        return _value_type(get_args(annotation)[0])
    return annotation


def _help(model: type[BaseModel], name: str) -> str:
    if name == "dtype":
        return say("help-dtype")
    if name == "quantization":
        return say("help-quantization", {"allowed": ", ".join(QUANTIZATIONS)})
    if name in ("loras", "controlnets"):
        return say({"loras": "help-lora", "controlnets": "help-controlnet"}[name])
    if name == "post":
        return say("help-post", {"allowed": ", ".join(UPSCALERS + INTERPOLATORS)})
    field = model.model_fields[name]
    words = field.description or name.replace("_", " ")
    default = field.default
    shown = default is not None and not field.is_required()
    return f"{words} [default: {default}]" if shown else words


def _flags_of(name: str, model: type[BaseModel], without: Iterable[str] = ()) -> type:
    """A dataclass with one open, keyword-only field for every field of ``model``."""
    fields: list[tuple[str, Any, Any]] = []
    for field_name, field in model.model_fields.items():
        if field_name in without:
            continue
        inner = (
            list[str]
            if field_name in PAIRED or field_name in REPEATED
            else _value_type(field.annotation)
        )
        names = [flag(field_name), *ALIASES.get(field_name, ())]
        extra: dict[str, Any] = {} if inner is bool else {"negative": ()}
        parameter = Parameter(
            name=names, help=_help(model, field_name), show_default=False, **extra
        )
        annotation = Annotated[inner | None, parameter]  # type: ignore[valid-type]
        fields.append((field_name, annotation, dataclasses.field(default=None)))
    own = {"__module__": __name__}  # else cyclopts takes the class for one of Python's own
    return dataclasses.make_dataclass(name, fields, frozen=True, kw_only=True, namespace=own)


if TYPE_CHECKING:

    class RequestFlags:
        """Flags of the request, the model left out."""

    class SettingsFlags:
        """Flags of the settings."""

else:
    RequestFlags = _flags_of("RequestFlags", Request, without=("model",))
    SettingsFlags = _flags_of("SettingsFlags", Settings)


def asked(
    model: str, request_flags: RequestFlags, settings_flags: SettingsFlags
) -> tuple[Request, Settings]:
    """The request and the settings: those of a plan file when ``model`` is one, with the given flags on top."""
    request: dict[str, Any] = {"model": model}
    settings: dict[str, Any] = {}
    if _is_plan_file(model):
        plan = read_plan_file(model)
        request = plan.request.model_dump(exclude_unset=True)
        settings = plan.settings.model_dump(exclude_unset=True)
    request |= _given(request_flags)
    settings |= _given(settings_flags)
    for name, parse in (("dtype", dtypes), ("quantization", quantizations)):
        if isinstance(settings.get(name), (list, tuple)):
            settings[name] = parse(settings[name])
    for name, read in (("loras", loras), ("controlnets", controlnets), ("post", posts)):
        if given := vars(request_flags).get(name):
            request[name] = read(given)
    return validate_request(request), validate_settings(settings)


def _is_plan_file(model: str) -> bool:
    """Whether MODEL names a file: by its ending, or by a path to something that is there."""
    if model.endswith((".yaml", ".yml")):
        return True
    if model.lower().endswith(MODEL_ENDINGS):
        return False
    try:
        return os.sep in model and Path(model).is_file()
    except (OSError, ValueError):  # too long for a path, or a sign that none may have
        return False


def _given(flags: object) -> dict[str, Any]:
    values = vars(flags)
    return {name: value for name, value in values.items() if value is not None}


def dtypes(tokens: Sequence[str]) -> dict[str, Dtype]:
    """Component to dtype, ``*`` for a bare value. Raises BadRequest.

    >>> dtypes(["bf16", "vae=fp32"])
    {'*': 'bfloat16', 'vae': 'float32'}
    """
    found: dict[str, Dtype] = {}
    for token in tokens:
        component, equals, word = token.rpartition("=")
        dtype = DTYPE_ALIASES.get(word)
        if dtype is None or (equals and not component):
            allowed = ", ".join(name for name in DTYPE_ALIASES if name not in DTYPES)
            raise BadRequest("bad-dtype", asked=token, allowed=allowed)
        found[component or EVERY] = dtype
    return found


def quantizations(tokens: Sequence[str]) -> dict[str, Quantization]:
    """Component to weight scheme. Raises BadRequest.

    >>> quantizations(["transformer=bnb-int8"])
    {'transformer': 'bnb-int8'}
    """
    found: dict[str, Quantization] = {}
    for token in tokens:
        component, _, word = token.partition("=")
        scheme = next((name for name in QUANTIZATIONS if name == word), None)
        if scheme is None or not component:
            raise BadRequest("bad-quantization", asked=token, allowed=", ".join(QUANTIZATIONS))
        found[component] = scheme
    return found


def loras(tokens: Sequence[str]) -> list[dict[str, Any]]:
    """The fields of an adapter from each file or rank, with ``:fused``, a dtype, ``:targets=a+b``. Raises BadRequest.

    >>> loras(["32", "16:fused", "8:fp32"])
    [{'rank': 32}, {'rank': 16, 'fused': True}, {'rank': 8, 'dtype': 'float32'}]
    >>> loras(["C:/loras/a.safetensors:fused", "rank=4:targets=to_q+to_v"])
    [{'file': 'C:/loras/a.safetensors', 'fused': True}, {'rank': 4, 'targets': ['to_q', 'to_v']}]
    """
    found = []
    for token in tokens:
        file, ending, rest = token.partition(_LORA_ENDING)
        fields: dict[str, Any] = {"file": file + ending} if ending else {}
        rank, *words = rest.split(":") if ending else token.removeprefix("rank=").split(":")
        if not ending and rank.isascii() and rank.isdigit() and len(rank) <= 6:
            fields["rank"] = int(rank)
        elif not ending or rank:
            raise BadRequest("bad-lora", asked=token)
        for word in words:
            if word == "fused":
                fields["fused"] = True
            elif word.startswith("targets=") and "targets" not in fields:
                fields["targets"] = word.removeprefix("targets=").split("+")
            elif word in DTYPE_ALIASES and "dtype" not in fields:
                fields["dtype"] = DTYPE_ALIASES[word]
            else:
                raise BadRequest("bad-lora", asked=token)
        found.append(fields)
    return found


def controlnets(tokens: Sequence[str]) -> list[dict[str, Any]]:
    """The fields of ControlNets from each of ``N`` (so many of the usual shape), a name, ``num_layers=N``.

    >>> controlnets(["2", "union-pro-2.0", "num_layers=6:num_single_layers=0"])
    [{}, {}, {'model': 'union-pro-2.0'}, {'num_layers': 6, 'num_single_layers': 0}]
    """
    found: list[dict[str, Any]] = []
    for token in tokens:
        if token.isascii() and token.isdigit() and 0 < int(token[:9]) <= _MOST_CONTROLNETS:
            found += [{} for _ in range(int(token))]
            continue
        fields: dict[str, Any] = {}
        for word in token.split(":"):
            name, equals, value = word.partition("=")
            number = value.isascii() and value.isdigit()
            if not equals and name and not name.isdigit() and not fields:
                fields["model"] = name
            elif name in ("num_layers", "num_single_layers") and name not in fields and number:
                fields[name] = int(value[:9])
            else:
                raise BadRequest("bad-controlnet", asked=token)
        found.append(fields)
    return found


def posts(tokens: Sequence[str]) -> list[dict[str, Any]]:
    """The fields of a step after the pipeline from each of ``KIND=MODEL,NAME=N``. Raises BadRequest.

    >>> posts(["upscale=realesrgan-x4plus,tile=512", "interpolate=rife-4.6,times=2"])
    [{'upscale': {'model': 'realesrgan-x4plus', 'tile': 512}}, {'interpolate': {'model': 'rife-4.6', 'times': 2}}]
    """
    return [_post(token) for token in tokens]


_POSTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "upscale": (UPSCALERS, ("tile", "factor")),
    "interpolate": (INTERPOLATORS, ("times",)),
}


def _post(token: str) -> dict[str, Any]:
    first, *words = (word.strip() for word in token.split(","))
    kind, _, model = first.partition("=")
    models, numbers = _POSTS.get(kind, ((), ()))
    refused = BadRequest("bad-post", asked=token, allowed=", ".join(UPSCALERS + INTERPOLATORS))
    if model not in models:
        raise refused
    fields: dict[str, Any] = {"model": model}
    for word in words:
        name, _, value = word.partition("=")
        if name not in numbers or not (value.isascii() and value.isdigit()):
            raise refused
        fields[name] = int(value[:9])
    return {kind: fields}


def ram_bytes(text: str | None) -> int | None:
    """Bytes of host RAM; memory is sold in powers of two. Raises BadRequest."""
    return _size(text, "bad-ram", memory=True)


def disk_bytes(text: str | None) -> int | None:
    """Bytes of disk; disks are sold in powers of ten. Raises BadRequest.

    >>> disk_bytes("200GB"), disk_bytes(None)
    (200000000000, None)
    """
    return _size(text, "bad-disk", memory=False)


def target_bytes(text: str | None) -> int | None:
    """Bytes of device memory to stay within. Raises BadRequest.

    >>> target_bytes("24 GiB") == target_bytes("24GB")
    True
    """
    return _size(text, "bad-target", memory=True)


def _size(text: str | None, code: str, *, memory: bool) -> int | None:
    if text is None:
        return None
    try:
        size = parse_bytes(text, memory=memory)
    except ValueError:
        size = 0
    if size <= 0:
        raise BadRequest(code, asked=text)
    return size


def outputs_per_month(text: str | None) -> float | None:
    """Outputs a month from ``40`` or ``40/month``. Raises BadRequest.

    >>> outputs_per_month("40/month"), outputs_per_month(None)
    (40.0, None)
    """
    if text is None:
        return None
    try:
        number = float(text.removesuffix("/month"))
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise BadRequest("bad-outputs", asked=text)
    return number


Os = Literal["linux", "windows"]
As = Literal["code", "line", "skypilot", "ssh"]
