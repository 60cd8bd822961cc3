"""A server's application over the shipped traces, asked without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from cardfit.web.app import application
from cardfit.web.options import Options

BASE = "http://localhost"


class Client:
    """Asks an application as a browser on this machine would, one request after another in one event loop."""

    def __init__(self, options: Options) -> None:
        self.app = application(options)
        self.loop = asyncio.new_event_loop()
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url=BASE)

    def ask(self, method: str, path: str, **more) -> httpx.Response:
        return self.loop.run_until_complete(self.http.request(method, path, **more))

    def get(self, path: str, **more) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, **more) -> httpx.Response:
        return self.ask("POST", path, **more)

    def close(self) -> None:
        self.loop.run_until_complete(self.http.aclose())
        self.loop.close()


@pytest.fixture
def serve() -> Iterator:
    """Makes clients with other options; all are closed at the end."""
    made: list[Client] = []

    def make(**options) -> Client:
        made.append(Client(Options(**{"per_second": 0, "within_s": 300, **options})))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="package")
def client() -> Iterator[Client]:
    """One server for the tests that only read."""
    made = Client(Options(per_second=0, within_s=300))
    yield made
    made.close()
