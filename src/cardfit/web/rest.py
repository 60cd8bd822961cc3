"""The REST API under /api/v1: the verbs under their own names, with the values of `--json`.

In: a question as JSON, or as the query of a page for `plan`. Out: the JSON that the command prints, byte for byte.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from cardfit.autopsy.result import Autopsy
from cardfit.comfy.planning import WorkflowPlan
from cardfit.comfy.result import Reading
from cardfit.plan.answer import Answer
from cardfit.plan.largest import Largest
from cardfit.plan.rent_answer import Rent
from cardfit.plan.rent_question import RentQuestion, check
from cardfit.records.models import OutcomeKind, Record
from cardfit.request import Task
from cardfit.request.read import validate
from cardfit.web.answers import Answers, Made
from cardfit.web.problems import MEDIA_TYPE
from cardfit.web.questions import (
    FILE_FIELDS,
    AutopsyQuestion,
    ComfyQuestion,
    LargestQuestion,
    PlanQuestion,
    TraceQuestion,
    from_query,
    of_file,
)

PREFIX = "/api/v1"
_Name = Annotated[str, Path(max_length=200)]
_Word = Annotated[str | None, Query(max_length=200)]
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "code")},
        "status": {"type": "integer"},
        "args": {"type": "object"},
    },
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "Problem", "content": {MEDIA_TYPE: {"schema": _PROBLEM}}},
    "5XX": {"description": "Problem", "content": {MEDIA_TYPE: {"schema": _PROBLEM}}},
}
_LIST: dict[str, Any] = {"type": "object", "required": ["schema"]}


def routes(answers: Answers) -> APIRouter:
    """The paths of the API over ``answers``."""
    api = APIRouter(prefix=PREFIX, responses=_PROBLEMS)
    _asked(api, answers)
    _listed(api, answers)
    _stored(api, answers)
    return api


def _asked(api: APIRouter, answers: Answers) -> None:
    """What is worked out for a question."""

    @api.get("/plan", responses=_of(Answer), openapi_extra=_plan_query())
    async def plan_of_query(request: Request) -> Response:
        """One request over every card; the query is that of a page, with the names of the command's flags."""
        pairs = [pair for pair in request.query_params.multi_items() if pair[0] != "lang"]
        return _sent(request, await answers.plan(from_query(pairs)))

    @api.post("/plan", responses=_of(Answer))
    async def plan(request: Request, question: PlanQuestion) -> Response:
        """One request over every card: verdict, settings, seconds, cost."""
        return _sent(request, await answers.plan(question))

    @api.post("/comfy", responses=_of(WorkflowPlan | Reading))
    async def comfy(request: Request, question: ComfyQuestion) -> Response:
        """Every request of a ComfyUI workflow over every card, as ComfyUI places it."""
        return _sent(request, await answers.comfy(question))

    @api.post("/comfy/file", responses=_of(WorkflowPlan | Reading), openapi_extra=_file())
    async def comfy_file(request: Request) -> Response:
        """The same for the file itself: JSON, or a PNG or WEBP that ComfyUI wrote; the query has the flags."""
        pairs = [pair for pair in request.query_params.multi_items() if pair[0] != "lang"]
        question = validate(ComfyQuestion, {**of_file(pairs), "workflow": {}})
        return _sent(request, await answers.comfy(question, await request.body()))

    @api.post("/trace", responses=_of(_LIST))
    async def trace(request: Request, question: TraceQuestion) -> Response:
        """What one request does, independent of any card."""
        return _sent(request, await answers.trace(question))

    @api.post("/largest", responses=_of(Largest))
    async def largest(request: Request, question: LargestQuestion) -> Response:
        """The most frames, the largest size or batch that one card holds."""
        return _sent(request, await answers.largest(question))

    @api.post("/rent", responses=_of(Rent))
    async def rent(request: Request, question: RentQuestion) -> Response:
        """By the month, by the hour, from an API, or not at all."""
        check(question)
        return _sent(request, await answers.rent(question))

    @api.post("/autopsy", responses=_of(Autopsy))
    async def autopsy(request: Request, question: AutopsyQuestion) -> Response:
        """Why a run ended: stage, cause and cures from an error text."""
        return _sent(request, await answers.autopsy(question))


def _listed(api: APIRouter, answers: Answers) -> None:
    """The facts behind an answer."""

    @api.get("/models", responses=_of(_LIST))
    async def models(request: Request, task: Task | None = None) -> Response:
        """The models of the library."""
        return _sent(request, await answers.models(task))

    @api.get("/models/{name:path}", responses=_of(_LIST))
    async def model(request: Request, name: _Name) -> Response:
        """Every fact of one model with its sources; by id, alias or repo id."""
        return _sent(request, await answers.model(name))

    @api.get("/cards", responses=_of(_LIST))
    async def cards(request: Request) -> Response:
        """The catalog of cards with what a price buys of each."""
        return _sent(request, await answers.cards())

    @api.get("/cards/{name}", responses=_of({"type": "object"}))
    async def card(request: Request, name: _Name) -> Response:
        """Every figure of one card with its source."""
        return _sent(request, await answers.card(name))

    @api.get("/offers", responses=_of(_LIST))
    async def offers(request: Request, card: _Word = None) -> Response:
        """Rental prices with their dates."""
        return _sent(request, await answers.offers(card))

    @api.get("/accuracy", responses=_of(_LIST))
    async def accuracy(request: Request) -> Response:
        """Predictions against published measurements, as they were scored for this release."""
        return _sent(request, await answers.accuracy())


def _stored(api: APIRouter, answers: Answers) -> None:
    """What was measured; records are written by the command line."""

    @api.get("/records", responses=_of(_LIST))
    async def records(
        request: Request,
        model: _Word = None,
        card: _Word = None,
        outcome: OutcomeKind | None = None,
        sweep: _Word = None,
        last: Annotated[int, Query(ge=1, le=1000)] = 1000,
    ) -> Response:
        """Records of the store, without prompts, latents and logs."""
        found = {"model": model, "card": card, "outcome": outcome, "sweep": sweep, "last": last}
        return _sent(request, await answers.records(**found))

    @api.get("/records/{name}", responses=_of(Record))
    async def record(request: Request, name: _Name) -> Response:
        """One record, by the beginning of its id."""
        return _sent(request, await answers.record(name))


def _of(kind: Any) -> dict[int | str, dict[str, Any]]:
    """What a good answer looks like, for the description of the API."""
    if isinstance(kind, dict):
        return {200: {"content": {"application/json": {"schema": kind}}}}
    return {200: {"model": kind}}


def _plan_query() -> dict[str, Any]:
    """The parameters of a page's query: one for every field, with the names of the flags."""
    from cardfit.web.questions import PLACE_FIELDS, REPEATED, REQUEST_FIELDS, SETTINGS_FIELDS

    found = []
    for name in (*REQUEST_FIELDS, *SETTINGS_FIELDS, *PLACE_FIELDS):
        text: dict[str, Any] = {"type": "string", "maxLength": 200}
        several = name in REPEATED or name == "card"
        schema = {"type": "array", "items": text} if several else text
        required = name == "model"
        found.append({"name": name, "in": "query", "required": required, "schema": schema})
    return {"parameters": found}


def _file() -> dict[str, Any]:
    """The parameters and the body of a workflow that is sent as a file."""
    text: dict[str, Any] = {"type": "string", "maxLength": 200}
    several = {"type": "array", "items": text}
    schemas = {name: several if name in ("card", "set") else text for name in FILE_FIELDS}
    parameters = [{"name": name, "in": "query", "schema": schemas[name]} for name in FILE_FIELDS]
    binary = {"schema": {"type": "string", "format": "binary"}}
    body = {"required": True, "content": {"application/octet-stream": binary}}
    return {"parameters": parameters, "requestBody": body}


def _sent(request: Request, made: Made[Any]) -> Response:
    """The JSON, packed already for who takes it so."""
    headers = {"vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(made.json, media_type="application/json", headers=headers)
    headers["content-encoding"] = "gzip"
    return Response(made.zipped, media_type="application/json", headers=headers)
