"""HTTP to a ComfyUI server, as narrow as it can be: one host, no redirects, no proxies, limits on size and time.

In: a server's address. Out: JSON values and bytes, or a BadRequest / `ServerFailed` that says what the server did. Only
loopback is spoken to unless others are allowed: an SSH tunnel makes a far server loopback.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from cardfit.comfy.shown import shown
from cardfit.errors import BadRequest, ServerFailed
from cardfit.units import MIB, human_bytes

TIMEOUT_S = 15.0
MAX_JSON_BYTES = 16 * MIB
_PIECE = MIB


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **more: Any) -> NoReturn:
        _, _, code, _, _, target = args
        raise ServerFailed("comfy-server-redirects", status=code, target=shown(target))


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address, checked: ``http`` or ``https``, host and port."""

    scheme: str
    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine, by every address that its name has here."""
        return is_loopback(self.host)

    def url(self, path: str, **query: str) -> str:
        """The address of ``path`` on the server."""
        return self._url(self.scheme, path, query)

    def socket_url(self, path: str, **query: str) -> str:
        """The same for a websocket."""
        return self._url("wss" if self.scheme == "https" else "ws", path, query)

    def _url(self, scheme: str, path: str, query: Mapping[str, str]) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        asked = f"?{urllib.parse.urlencode(query)}" if query else ""
        return f"{scheme}://{host}:{self.port}{path}{asked}"


def address_of(text: str, *, allow_remote: bool = False) -> Address:
    """The address in ``text``. Raises BadRequest for another form, and for a host beyond loopback unless allowed.

    >>> address_of("http://127.0.0.1:8188/")
    Address(scheme='http', host='127.0.0.1', port=8188)
    """
    try:
        parts = urllib.parse.urlsplit(text)
        host, port = parts.hostname, parts.port
        named = parts.username or parts.password
    except ValueError:
        host = port = named = None
    plain = host and parts.scheme in ("http", "https") and named is None
    if not plain or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise BadRequest("comfy-bad-server", asked=shown(text))
    assert host is not None
    found = Address(parts.scheme, host, port or (443 if parts.scheme == "https" else 80))
    if not allow_remote and not found.loopback:
        raise BadRequest("comfy-server-remote", host=shown(host), port=found.port)
    return found


def is_loopback(host: str) -> bool:
    """Whether ``host`` is a loopback address, or a name whose addresses here all are.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(ipaddress.ip_address(each).is_loopback for each in found)


def get_json(address: Address, path: str, *, timeout_s: float = TIMEOUT_S, **query: str) -> Any:
    """The JSON at ``path``. Raises ServerFailed."""
    return _json(read(address, path, MAX_JSON_BYTES, timeout_s=timeout_s, **query), path)


def post_json(address: Address, path: str, body: Any, *, timeout_s: float = TIMEOUT_S) -> Any:
    """What the server answers to ``body`` at ``path``; None where it answers nothing. Raises ServerFailed."""
    request = urllib.request.Request(
        address.url(path),
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    with _opened(request, timeout_s) as response:
        content = _limited(response, path, MAX_JSON_BYTES)
    return _json(content, path) if content.strip() else None


def read(
    address: Address, path: str, limit: int, *, timeout_s: float = TIMEOUT_S, **query: str
) -> bytes:
    """The bytes at ``path``. Raises ServerFailed, also for more than ``limit``."""
    with _opened(urllib.request.Request(address.url(path, **query)), timeout_s) as response:
        return _limited(response, path, limit)


def pieces(address: Address, path: str, limit: int, **query: str) -> Iterator[bytes]:
    """The bytes at ``path``, piece by piece. Raises ServerFailed, also for more than ``limit``."""
    left = limit
    with _opened(urllib.request.Request(address.url(path, **query)), TIMEOUT_S) as response:
        while piece := response.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise ServerFailed("comfy-server-too-much", path=path, limit=human_bytes(limit))
            yield piece


class Refused(ServerFailed):
    """The server answered with an HTTP error; ``status`` and the JSON it sent, if any."""

    def __init__(self, status: int, path: str, body: Any) -> None:
        self.status, self.body = status, body
        super().__init__("comfy-server-refused", status=status, path=path)


@contextmanager
def _opened(request: urllib.request.Request, timeout_s: float) -> Iterator[Any]:
    path = urllib.parse.urlsplit(request.full_url).path
    try:
        with _OPENER.open(request, timeout=timeout_s) as response:
            yield response
    except urllib.error.HTTPError as error:
        with error:
            try:
                body = json.loads(error.read(MAX_JSON_BYTES))
            except (ValueError, RecursionError, OSError):
                body = None
        raise Refused(error.code, path, body) from None
    except urllib.error.URLError as error:
        raise ServerFailed("comfy-server-away", path=path, why=shown(error.reason)) from error
    except (OSError, ValueError) as error:  # a time-out in the middle, or no HTTP at all
        raise ServerFailed("comfy-server-away", path=path, why=shown(error)) from error


def _limited(response: Any, path: str, limit: int) -> bytes:
    content: bytes = response.read(limit + 1)
    if len(content) > limit:
        raise ServerFailed("comfy-server-too-much", path=path, limit=human_bytes(limit))
    return content


def parsed(text: str | bytes) -> Any:
    """The JSON in ``text``. Raises ValueError, also for numbers that JSON does not have, and RecursionError."""
    return json.loads(text, parse_constant=_no_number)


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _json(content: bytes, path: str) -> Any:
    try:
        return parsed(content)
    except (ValueError, RecursionError) as error:
        raise ServerFailed("comfy-server-not-json", path=path) from error
