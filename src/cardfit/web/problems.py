"""Errors as answers: a status and a problem document (RFC 9457) for each, in words.

In: an error of cardfit, or one of the server's own. Out: a response whose detail is the sentence that the command line
would print. Nothing of the inside of the server is told.
"""

from __future__ import annotations

import json
from http import HTTPStatus

from starlette.responses import Response

from cardfit.errors import (
    BadFile,
    CardfitError,
    DryRunFailed,
    MissingExtra,
    UnknownCard,
    UnknownModel,
)

MEDIA_TYPE = "application/problem+json"
RETRY_S = 2
_STATUS: tuple[tuple[type[CardfitError], int], ...] = (
    (UnknownModel, HTTPStatus.NOT_FOUND),
    (UnknownCard, HTTPStatus.NOT_FOUND),
    (DryRunFailed, HTTPStatus.BAD_GATEWAY),
    (MissingExtra, HTTPStatus.UNPROCESSABLE_ENTITY),
    (BadFile, HTTPStatus.UNPROCESSABLE_ENTITY),
)


class Refused(CardfitError):
    """What the server itself turns away, with the status it does so with; ``members`` go into the document."""

    def __init__(self, status: HTTPStatus, code: str, **args: object) -> None:
        super().__init__(code, **args)
        self.status = status
        self.members: dict[str, object] = {}


def status_of(error: CardfitError) -> int:
    """The HTTP status of an error.

    >>> status_of(UnknownCard("unknown-card", asked="x", suggestion="", command="cardfit cards"))
    404
    """
    if isinstance(error, Refused):
        return int(error.status)
    found = [status for kind, status in _STATUS if isinstance(error, kind)]
    return int(found[0]) if found else int(HTTPStatus.UNPROCESSABLE_ENTITY)


def problem(error: CardfitError) -> Response:
    """The problem document of an error."""
    status = status_of(error)
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": str(error),
        "code": error.code,
        "args": {name: _plain(value) for name, value in error.args_.items()},
        **(error.members if isinstance(error, Refused) else {}),
    }
    return Response(
        json.dumps(body, indent=2, ensure_ascii=False),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=headers_of(error),
    )


def headers_of(error: CardfitError) -> dict[str, str]:
    """When to come again, for what may go better then."""
    again = status_of(error) in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
    return {"retry-after": str(RETRY_S)} if again else {}


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
