"""What an address of a page says: the question, what of the table is shown, and what could not be read.

In: the query of an address or a form. Out: a `State`, whatever was given: what is wrong is kept as an error beside its
field and the rest of the page stands. The way back gives the shortest query that reproduces the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from cardfit import api
from cardfit.errors import BadRequest, CardfitError, UnknownModel
from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.report.plan_view import ENCODES, SORTS, Filter
from cardfit.request import Request
from cardfit.web.questions import PLACE_FIELDS, PlanQuestion, from_query

DEFAULT_MODEL = "flux.1-dev"
VIEW_FIELDS = ("price", "vendor", "encodes", "every", "sort")
_KEPT = ("runtime", *PLACE_FIELDS, *VIEW_FIELDS)  # what another model leaves as it is
# Where the message of an error belongs: by its code's first word.
_FIELD_OF = {
    "size": "width",
    "side": "width",
    "larger": "width",
    "frames": "num_frames",
    "longer": "num_frames",
    "plays": "num_frames",
    "fps": "fps",
    "task": "task",
    "vae": "vae_tiling",
    "tile": "vae_tiling",
    "tiling": "vae_tiling",
    "overlap": "vae_tiling",
    "unknown-card": "card",
    "unknown-model": "model",
    "prompt": "prompt_tokens",
}


@dataclass(frozen=True, slots=True)
class State:
    """A page's question; ``given`` are the values as they were written, ``error`` what could not be read.

    ``asks`` is False where the question itself could not be read; a wrong filter leaves it standing.
    """

    question: PlanQuestion
    only: Filter
    given: Mapping[str, str]
    lang: str | None = None
    error: CardfitError | None = None
    asks: bool = True
    model_changed: bool = False

    @property
    def query(self) -> str:
        """The shortest query of this page."""
        return urlencode(self.pairs())

    def pairs(self, **more: str) -> list[tuple[str, str]]:
        """The fields that are not left open, with ``more`` in place of what they name; an empty one drops it."""
        found = {name: [value] for name, value in self.given.items() if name not in _LISTED}
        for name in _LISTED:
            if name in self.given:
                found[name] = self.given[name].split("\n")
        found |= {name: [value] if value else [] for name, value in more.items()}
        order = ("model", *sorted(name for name in found if name != "model"))
        return [(name, value) for name in order for value in found.get(name, [])]

    def link(self, **more: str) -> str:
        """The query with ``more`` in place of what they name."""
        return urlencode(self.pairs(**more))


_LISTED = (
    "card",
    "dtype",
    "quantization",
    "loras",
    "controlnets",
    "ip_adapters",
    "components",
    "post",
)


def state_of(pairs: Iterable[tuple[str, str]]) -> State:
    """The state that ``pairs`` say; never raises."""
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if value.strip() and len(given) < 80:
            given.setdefault(name[:60], []).append(value.strip()[:200])
    was = given.pop("was", [None])[-1]
    lang = given.pop("lang", [None])[-1]
    model = given.setdefault("model", [DEFAULT_MODEL])[-1]
    changed = was is not None and was != model
    if changed:  # sizes and knobs were those of the other model
        given = {name: given[name] for name in ("model", *_KEPT) if name in given}
    try:
        only = _filter(given)
        error: CardfitError | None = None
    except BadRequest as wrong:
        only, error = Filter(), wrong
    asks = True
    try:
        question = _question(given)
        _drop_defaults(given, api.model(question.request.model), question)
        question = _question(given)  # what is left open is said to be
    except CardfitError as wrong:
        question, error, asks = _safe(model), wrong, False
    short = {name: "\n".join(values) for name, values in given.items()}
    return State(question, only, short, lang, error, asks, changed)


def _question(given: Mapping[str, list[str]]) -> PlanQuestion:
    asked = ((n, value) for n, values in given.items() for value in values if n not in VIEW_FIELDS)
    return from_query(asked)


def _safe(model: str) -> PlanQuestion:
    """A question that can be asked, for a page whose own cannot."""
    try:
        found = api.model(model).id
    except UnknownModel:
        found = DEFAULT_MODEL
    return PlanQuestion(request=Request(model=found))


def _drop_defaults(given: dict[str, list[str]], entry: Model, question: PlanQuestion) -> None:
    """Leave out what the model takes by itself, so that addresses are short."""
    task = question.request.task
    usual, _ = resolve(entry, Request(model=entry.id, task=task))
    fields = usual.model_dump(exclude={"model", "task"})
    if task == entry.tasks[0]:
        given.pop("task", None)
    for name, value in fields.items():
        if name in given and getattr(question.request, name) == value:
            del given[name]
    if given.get("os") == ["linux"]:
        del given["os"]
    if given.get("sort") == [SORTS[0]]:
        del given["sort"]


def _filter(given: Mapping[str, list[str]]) -> Filter:
    """What of the table is shown. Raises BadRequest naming the field."""
    last: dict[str, Any] = {name: given[name][-1] for name in VIEW_FIELDS if name in given}
    price = last.get("price")
    try:
        per_hour = None if price is None else float(price)
    except ValueError:
        per_hour = -1.0
    if per_hour is not None and not 0 < per_hour < 1e6:
        raise BadRequest("field-number", where="", field="price", found=repr(price))
    for name, allowed in (("sort", SORTS), ("encodes", ENCODES)):
        if name in last and last[name] not in allowed:
            raise BadRequest(
                "field-one-of", where="", field=name, found=last[name], allowed=", ".join(allowed)
            )
    return Filter(
        per_hour=per_hour,
        vendor=last.get("vendor"),
        encodes=last.get("encodes"),
        every="every" in last,
        sort=last.get("sort", SORTS[0]),
    )


def field_of(code: str, args: Mapping[str, object]) -> str | None:
    """The field beside which a message belongs; None for one of the whole page."""
    named = args.get("field")
    if named == "size":
        return "width"
    if isinstance(named, str) and named:
        return named.partition(".")[0]
    if "knob" in args:
        return str(args["knob"])
    for start, field in _FIELD_OF.items():
        if code.startswith(start):
            return field
    if code.startswith("bad-"):
        return code.removeprefix("bad-")
    return None
