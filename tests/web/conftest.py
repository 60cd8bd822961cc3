"""A server's application over the shipped traces, asked without a network."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from cardfit.web.app import application
from cardfit.web.options import Options

BASE = "http://localhost"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


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


# --- a real browser, and a real server for it


def _chromium() -> str:
    script = Path(__file__).parents[2] / "scripts" / "find_chromium.py"
    spec = importlib.util.spec_from_file_location("find_chromium", script)
    finder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(finder)
    path = finder.find()
    if path is None:
        if os.environ.get("CI") or os.environ.get("CARDFIT_CI"):
            pytest.fail("no chromium, and in CI the browser tests must run")
        pytest.skip("no chromium found, and none could be installed")
    return path


@pytest.fixture
def browser() -> Iterator:
    """Chromium, for one test: playwright's loop runs as long as it does, and other tests have loops of their own."""
    from playwright.sync_api import sync_playwright

    path = _chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def listening() -> Iterator:
    """Starts servers of options at free ports; returns their address. All are stopped at the end."""
    running = []

    def start(**options) -> str:
        port = options.pop("port", None) or free_port()
        config = uvicorn.Config(
            application(Options(**{"per_second": 0, "within_s": 120, **options})),
            port=port,
            log_level="error",
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        running.append((server, thread))
        return f"http://127.0.0.1:{port}"

    start.free_port = free_port
    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(10)
