"""What may be asked, as typed values: the bodies of the REST API and the query of a page.

In: JSON, or the query of an address with the names of the command's flags. Out: frozen questions. A field of `Request`
or `Settings` has one name everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.cli import flags
from cardfit.cli.comfy_plan import answers_from
from cardfit.errors import BadRequest
from cardfit.plan.vary import Vary
from cardfit.plan.verdict import Os
from cardfit.report.words import DTYPE_WORDS
from cardfit.request import ControlNet, Lora, Post, Request, Settings
from cardfit.request.read import validate, validate_request, validate_settings

MAX_CARDS = 100
MAX_TEXT = 400_000
MAX_NAME = 80
MAX_ANSWERS = 200
_Finite = Annotated[float, Field(allow_inf_nan=False)]  # JSON, and so a key, has no other
_Card = Annotated[str, Field(min_length=1, max_length=100)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def key(self) -> str:
        """The same text for the same question."""
        return type(self).__name__ + self.model_dump_json()


class TraceQuestion(_Frozen):
    """What one request does, in these settings."""

    request: Request
    settings: Settings = Settings()


class _OnHost(_Frozen):
    ram_bytes: Annotated[int | None, Field(description="host RAM")] = None
    disk_bytes: Annotated[int | None, Field(description="free disk")] = None
    os: Os = "linux"


class _OverCards(_OnHost):
    cards: Annotated[tuple[_Card, ...] | None, Field(min_length=1, max_length=MAX_CARDS)] = None
    target_bytes: Annotated[int | None, Field(description="device memory to stay within")] = None
    outputs_per_month: _Finite | None = None
    hours_per_week: _Finite | None = None


class PlanQuestion(_OverCards, TraceQuestion):
    """One request over the cards; ``cards`` left out means all."""


class ComfyQuestion(_OverCards):
    """Every request of a ComfyUI workflow over the cards, or with ``requests_only`` what the workflow says."""

    workflow: Annotated[dict[str, Any], Field(description="what the editor saves, or Export (API)")]
    name: Annotated[str, Field(max_length=MAX_NAME, description="what it is called")] = "workflow"
    answers: Annotated[
        dict[str, bool | int | float | str],
        Field(max_length=MAX_ANSWERS, description="what the file does not say, by node.input"),
    ] = {}
    requests_only: bool = False


class LargestQuestion(_OnHost, TraceQuestion):
    """The largest value of ``vary`` that the card holds."""

    vary: Vary
    card: _Card | None = None
    target_bytes: int | None = None
    most: int | None = None


class AutopsyQuestion(_Frozen):
    """Why a run ended: its text, and what ran where that is known."""

    text: Annotated[str, Field(max_length=MAX_TEXT, description="error message, log or traceback")]
    request: Annotated[
        dict[str, Any] | None, Field(description="fields of the request that the text lacks")
    ] = None
    settings: Settings | None = None
    card: _Card | None = None
    ram_bytes: int | None = None
    os: Os = "linux"


REQUEST_FIELDS = tuple(Request.model_fields)
SETTINGS_FIELDS = tuple(Settings.model_fields)
PLACE_FIELDS = ("card", "ram", "disk", "os", "target", "outputs", "hours_per_week")
FILE_FIELDS = (*PLACE_FIELDS, "set", "name", "requests_only")
# The fields that may be given more than once, and how a list of them is read.
REPEATED: dict[str, Callable[[list[str]], Any]] = {
    "dtype": flags.dtypes,
    "quantization": flags.quantizations,
    "loras": flags.loras,
    "controlnets": flags.controlnets,
    "ip_adapters": tuple,
    "components": tuple,
    "post": flags.posts,
}


def from_query(pairs: Iterable[tuple[str, str]]) -> PlanQuestion:
    """The question that the query of an address asks; empty values are left open.

    Raises BadRequest for a field that nobody knows, that is given twice or whose value cannot be read.
    """
    given = _gathered(pairs, {*REQUEST_FIELDS, *SETTINGS_FIELDS, *PLACE_FIELDS})
    fields = {
        "request": validate_request(_of(given, REQUEST_FIELDS)),
        "settings": validate_settings(_of(given, SETTINGS_FIELDS)),
        **_place_of(given),
    }
    return validate(PlanQuestion, fields)


def to_query(request: Request, settings: Settings) -> list[tuple[str, str]]:
    """The query that asks for ``request`` in ``settings``: what `from_query` reads back.

    >>> to_query(Request(model="svd", fps=7), Settings(dtype={"vae": "float32"}, vae_slicing=True))
    [('model', 'svd'), ('fps', '7'), ('dtype', 'vae=fp32'), ('vae_slicing', 'true')]
    """
    fields = request.model_dump(mode="json", exclude_unset=True)
    fields |= settings.model_dump(mode="json", exclude_unset=True)
    fields |= {"loras": [*map(_lora, request.loras)], "post": [*map(_post, request.post)]}
    fields["controlnets"] = [*map(_controlnet, request.controlnets)]
    fields["dtype"] = {name: DTYPE_WORDS[each] for name, each in settings.dtype.items()}
    return [
        (name, text)
        for name, value in fields.items()
        if value is not None
        for text in _written(value)
    ]


def _written(value: Any) -> list[str]:
    """The texts that `from_query` reads as ``value``."""
    if isinstance(value, dict):
        return [each if key == flags.EVERY else f"{key}={each}" for key, each in value.items()]
    if isinstance(value, list):
        return value
    if isinstance(value, bool):
        return [str(value).lower()]
    return [str(value).removesuffix(".0")]


def _lora(lora: Lora) -> str:
    words = [lora.file or f"rank={lora.rank}", *["fused"] * lora.fused]
    words += [f"targets={'+'.join(lora.targets)}"] if lora.targets else []
    return ":".join([*words, *([lora.dtype] if lora.dtype else ())])


def _controlnet(net: ControlNet) -> str:
    fields = net.model_dump(exclude_none=True)
    named = [fields.pop("model")] if net.model else []
    return ":".join([*named, *(f"{name}={each}" for name, each in fields.items())]) or "1"


def _post(step: Post) -> str:
    kind = "upscale" if step.upscale else "interpolate"
    fields = step.model_dump(exclude_none=True)[kind]
    model = fields.pop("model")
    return ",".join([f"{kind}={model}", *(f"{name}={each}" for name, each in fields.items())])


def _place_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a question that say where it runs, from those of a query. Raises BadRequest."""
    outputs, hours = given.get("outputs"), given.get("hours_per_week")
    return {
        "cards": tuple(dict.fromkeys(given.get("card", ()))) or None,
        "ram_bytes": flags.ram_bytes(given.get("ram")),
        "disk_bytes": flags.disk_bytes(given.get("disk")),
        "os": given.get("os", "linux"),
        "target_bytes": flags.target_bytes(given.get("target")),
        "outputs_per_month": flags.outputs_per_month(outputs),
        "hours_per_week": _number("hours_per_week", hours),
    }


def of_file(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The fields of a `ComfyQuestion` beside its workflow, from the query that a file was sent with.

    ``set`` is an answer as the command line takes it, and may be repeated. Raises BadRequest.
    """
    given = _gathered(pairs, FILE_FIELDS)
    answers = {"answers": answers_from(given.get("set", ()))}
    return {**_place_of(given), **answers, **_of(given, ("name", "requests_only"))}


def _gathered(pairs: Iterable[tuple[str, str]], known: Collection[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in known:
            allowed = ", ".join(sorted(known))
            raise BadRequest("unknown-field", where="", field=name, suggestion="", allowed=allowed)
        if not value.strip():
            continue
        if name in REPEATED or name in ("card", "set"):
            found.setdefault(name, []).append(value.strip())
        elif name in found:
            raise BadRequest("web-given-twice", field=name)
        else:
            found[name] = value.strip()
    return found


def _of(given: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    found = {name: given[name] for name in fields if name in given}
    return {
        name: REPEATED[name](value) if name in REPEATED else value for name, value in found.items()
    }


def _number(field: str, text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise BadRequest("field-number", where="", field=field, found=repr(text)) from None
