"""What may be asked, as typed values: the bodies of the REST API and the query of a page.

In: JSON, or the query of an address with the names of the command's flags. Out: frozen questions. A field of `Request`
or `Settings` has one name everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.cli import flags
from cardfit.errors import BadRequest
from cardfit.plan.vary import Vary
from cardfit.plan.verdict import Os
from cardfit.request import Request, Settings
from cardfit.request.read import validate, validate_request, validate_settings

MAX_CARDS = 100
MAX_TEXT = 400_000
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


class _OnHost(TraceQuestion):
    ram_bytes: Annotated[int | None, Field(description="host RAM")] = None
    disk_bytes: Annotated[int | None, Field(description="free disk")] = None
    os: Os = "linux"


class PlanQuestion(_OnHost):
    """One request over the cards; ``cards`` left out means all."""

    cards: Annotated[tuple[_Card, ...] | None, Field(min_length=1, max_length=MAX_CARDS)] = None
    target_bytes: Annotated[int | None, Field(description="device memory to stay within")] = None
    outputs_per_month: _Finite | None = None
    hours_per_week: _Finite | None = None


class LargestQuestion(_OnHost):
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
    given = _gathered(pairs)
    request = _of(given, REQUEST_FIELDS)
    settings = _of(given, SETTINGS_FIELDS)
    outputs, hours = given.get("outputs"), given.get("hours_per_week")
    os = given.get("os", "linux")
    cards = tuple(dict.fromkeys(given.get("card", ())))
    fields = {
        "request": validate_request(request),
        "settings": validate_settings(settings),
        "cards": cards or None,
        "ram_bytes": flags.ram_bytes(given.get("ram")),
        "disk_bytes": flags.disk_bytes(given.get("disk")),
        "os": os,
        "target_bytes": flags.target_bytes(given.get("target")),
        "outputs_per_month": flags.outputs_per_month(outputs),
        "hours_per_week": _number("hours_per_week", hours),
    }
    return validate(PlanQuestion, fields)


def _gathered(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    known = {*REQUEST_FIELDS, *SETTINGS_FIELDS, *PLACE_FIELDS}
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in known:
            allowed = ", ".join(sorted(known))
            raise BadRequest("unknown-field", where="", field=name, suggestion="", allowed=allowed)
        if not value.strip():
            continue
        if name in REPEATED or name == "card":
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
