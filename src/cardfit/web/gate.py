"""Who gets in and how much of the server they may take: host names, a token, limits, and the headers of every answer.

In: an ASGI request. Out: the application's answer with the headers that keep a page to itself, or a problem document.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import Iterable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cardfit.library.sources import indoors
from cardfit.messages import LANGUAGES, speaking
from cardfit.web.options import Options
from cardfit.web.problems import RETRY_S, Refused, problem

COOKIE = "cardfit_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_CLIENTS = 10_000  # whose rate is remembered
_FREE = ("/static/",)  # no rate, no token
UPLOADS = frozenset({"/open", "/api/v1/comfy/file"})  # where a body may be a file


class Gate:
    """The outermost layer of the server."""

    def __init__(self, app: ASGIApp, options: Options) -> None:
        self._app, self._options = app, options
        self._rates = _Rates(options.per_second, options.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        send = _with_headers(send, _headers_of(scope["path"], self._options))
        with speaking(language_of(scope, headers)), indoors():
            try:
                self._check(scope, headers)
                if (answer := self._let_in(scope, headers)) is not None:
                    await _redirect(send, *answer)
                    return
                body = _Body(receive, self._options, headers, upload=scope["path"] in UPLOADS)
                await self._app(scope, body.receive, send)
            except Refused as refused:
                await problem(refused)(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Raise for a name this server does not have, for too long an address and for too many requests."""
        host = headers.get("host", "").rsplit(":", 1)
        name = headers.get("host", "") if len(host) < 2 or not host[1].isdigit() else host[0]
        names = self._options.names
        if names and name.strip("[]").lower() not in names:
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "web-other-host", name=name[:80])
        if len(scope.get("query_string", b"")) > self._options.query_bytes:
            most = self._options.query_bytes
            raise Refused(HTTPStatus.REQUEST_URI_TOO_LONG, "web-long-query", most=most)
        if not scope["path"].startswith(_FREE):
            self._rates.take((scope.get("client") or ("?",))[0])

    def _let_in(self, scope: Scope, headers: Headers) -> tuple[str, str] | None:
        """None for who may come in; a target and a cookie for who shows the token in the address. Raises Refused."""
        token = self._options.token
        if (
            token is None
            or scope["path"].startswith(_FREE)
            or _framed(scope["path"], self._options)
        ):
            return None
        kind, _, shown = headers.get("authorization", "").partition(" ")
        cookie = _cookie(headers, COOKIE)
        if (kind.lower() == "bearer" and _same(shown, token)) or _same(cookie, token):
            return None
        pairs = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        if any(name == "token" and _same(value, token) for name, value in pairs):
            rest = urlencode([pair for pair in pairs if pair[0] != "token"])
            path = quote("/" + scope["path"].lstrip("/\\"))  # never another host
            return f"{path}?{rest}" if rest else path, token
        raise Refused(HTTPStatus.UNAUTHORIZED, "web-token")


class _Rates:
    """A bucket of requests for each client, refilled with time."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second, self._burst = per_second, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> None:
        if not self._per_second:
            return
        now = time.monotonic()
        left, since = self._left.pop(client, (float(self._burst), now))
        left = min(self._burst, left + (now - since) * self._per_second)
        self._left[client] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > _CLIENTS:
            self._left.popitem(last=False)
        if left < 1:
            args = {"most": f"{self._per_second:g}", "again": RETRY_S}
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "web-too-often", **args)


class _Body:
    """The body as it comes in, within a size and a time."""

    def __init__(
        self, receive: Receive, options: Options, headers: Headers, *, upload: bool
    ) -> None:
        self._receive, self._options = receive, options
        self._most = options.upload_bytes if upload else options.body_bytes
        stated = headers.get("content-length", "0")
        self._stated = int(stated) if stated.isdigit() else 0
        self._bytes, self._ended = 0, False
        if not upload:  # a page says it itself, beside its field
            self._count(0)

    def _count(self, more: int) -> None:
        self._bytes += more
        if max(self._bytes, self._stated) > self._most:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "web-too-large", most=self._most)

    async def receive(self) -> Message:
        """The next part. Raises Refused for a body that is too large or too slow."""
        if self._ended:  # what follows is the end of the connection
            return await self._receive()
        self._count(0)
        try:
            message = await asyncio.wait_for(self._receive(), self._options.body_s)
        except TimeoutError:
            seconds = f"{self._options.body_s:g}"
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, "web-too-slow", seconds=seconds) from None
        if message["type"] == "http.request":
            self._count(len(message.get("body", b"")))
            self._ended = not message.get("more_body", False)
        return message


def language_of(scope: Scope, headers: Headers) -> str:
    """The language of one request: ``lang`` in the address, else the first of Accept-Language that is spoken."""
    pairs = parse_qsl(scope.get("query_string", b"")[:8000].decode("latin-1"))
    asked = [value for name, value in pairs if name == "lang"]
    found = [*asked, *_accepted(headers.get("accept-language", ""))]
    return next((name for name in found if name in LANGUAGES), LANGUAGES[0])


def _accepted(text: str) -> Iterable[str]:
    """The languages of an Accept-Language header, the most wanted first.

    >>> list(_accepted("ko-KR;q=0.5, ja, en;q=0"))
    ['ja', 'ko']
    """
    found = []
    for at, part in enumerate(text[:500].split(",")):
        name, _, weight = part.strip().partition(";q=")
        try:
            much = float(weight or 1)
        except ValueError:
            much = 0.0
        if much > 0:
            found.append((-much, at, name.partition("-")[0].lower()))
    return [name for _, _, name in sorted(found)]


def _framed(path: str, options: Options) -> bool:
    """Whether ``path`` belongs to the frame on a host's page, which asks for no token."""
    return options.embed is not None and (path == "/embed" or path.startswith("/embed/"))


def _headers_of(path: str, options: Options) -> dict[str, str]:
    """The headers of a path: a host's pages may frame the one that is made for it, and take its script."""
    found = dict(_HEADERS)
    if options.embed is not None and path == "/embed":
        ancestors = f"frame-ancestors {' '.join(options.embed.origins)}"
        found["content-security-policy"] = POLICY.replace("frame-ancestors 'none'", ancestors)
        del found["x-frame-options"]  # it knows no list
    if options.embed is not None and path in ("/embed", "/static/embed-host.js"):
        found["cross-origin-resource-policy"] = "cross-origin"
    return found


def _with_headers(send: Send, given: dict[str, str]) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in given.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-cache")
        await send(message)

    return sent


async def _redirect(send: Send, target: str, token: str) -> None:
    cookie = SimpleCookie({COOKIE: token})
    cookie[COOKIE].update({"httponly": "yes", "samesite": "Strict", "path": "/"})
    found = [
        (b"location", target.encode("latin-1")),
        (b"set-cookie", cookie[COOKIE].OutputString().encode("latin-1")),
    ]
    status = int(HTTPStatus.SEE_OTHER)
    await send({"type": "http.response.start", "status": status, "headers": found})
    await send({"type": "http.response.body", "body": b""})


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")[:4000])
    except CookieError:
        return ""
    return found[name].value if name in found else ""


def _same(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode(), token.encode())
