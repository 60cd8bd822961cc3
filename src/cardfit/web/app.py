"""The application: the REST API, the pages and their files behind one gate.

In: `Options`. Out: an ASGI application. It makes no request to anybody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from cardfit import __version__
from cardfit.errors import BadRequest, CardfitError
from cardfit.messages import say
from cardfit.request.read import validate
from cardfit.web import pages, rest
from cardfit.web.answers import Answers
from cardfit.web.gate import Gate
from cardfit.web.options import Options
from cardfit.web.problems import Refused, problem

STATIC = Path(__file__).with_name("static")
_LEAST_ZIPPED = 1000  # bytes


def application(options: Options | None = None) -> Gate:
    """The whole server with ``options``."""
    settings = options or Options()
    answers = Answers(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if settings.warm:
            pages.warm(answers)
        yield
        answers.work.close()

    app = FastAPI(
        title="cardfit",
        version=__version__,
        description=say("help-cardfit"),
        lifespan=lifespan,
        openapi_url=f"{rest.PREFIX}/openapi.json",
        docs_url=None,  # its page loads scripts of others
        redoc_url=None,
    )
    app.add_middleware(GZipMiddleware, minimum_size=_LEAST_ZIPPED, compresslevel=5)
    app.include_router(rest.routes(answers))
    app.include_router(pages.routes(answers), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_exception_handler(CardfitError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _broken)
    return Gate(app, settings)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, CardfitError)
    return _answer(request, error)


async def _http(request: Request, error: Exception) -> Response:
    """What Starlette turns away: no such page, no such method, a body that is no JSON."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, CardfitError):  # raised while the body was read
        return _answer(request, error.__cause__)
    status = HTTPStatus(error.status_code)
    codes = {HTTPStatus.NOT_FOUND: "web-no-page", HTTPStatus.METHOD_NOT_ALLOWED: "web-no-method"}
    args = {"path": request.url.path[:200], "method": request.method}
    found = _answer(request, Refused(status, codes.get(status, "web-not-read"), **args))
    found.headers.update(error.headers or {})
    return found


async def _invalid(request: Request, error: Exception) -> Response:
    """A body or a parameter of the wrong form, in the words of the command line."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem(Refused(HTTPStatus.BAD_REQUEST, "web-not-read"))
    kind = _kind_of(request)
    if first["loc"][0] == "body" and kind is not None and isinstance(error.body, Mapping):
        try:
            validate(kind, error.body)
        except BadRequest as worded:
            return problem(worded)
    field = ".".join(str(part) for part in first["loc"][1:])
    shown = str(first.get("input"))[:60]
    args: dict[str, Any] = {"where": "", "field": field, "found": shown, "why": first["msg"]}
    return problem(BadRequest("field-wrong", **args))


async def _broken(request: Request, error: Exception) -> Response:
    """An error of cardfit's own; what it was stands in the server's log."""
    return _answer(request, Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "web-broken"))


def _kind_of(request: Request) -> type[BaseModel] | None:
    """The model of the body that the path takes."""
    body = getattr(request.scope.get("route"), "body_field", None)
    kind = getattr(getattr(body, "field_info", None), "annotation", None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _answer(request: Request, error: CardfitError) -> Response:
    """A problem document for a program, a page for a person."""
    if request.url.path.startswith((rest.PREFIX, "/static/")):
        return problem(error)
    return pages.error_page(request, error)
