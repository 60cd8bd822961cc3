"""The package gpuhunt itself (extra prices) against a recorded catalog on a local server: its query, our rows."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cardfit import cards
from cardfit.offers import gpuhunt as ours

gpuhunt = pytest.importorskip("gpuhunt")
TODAY = date(2026, 12, 1)
RECORDED = Path(__file__).with_name("data") / "runpod.csv"


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server with one provider's catalog as gpuhunt publishes it; no provider is asked online."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(RECORDED, "runpod.csv")
    files = {"/runpod/version": b"20261201", "/runpod/20261201/catalog.zip": packed.getvalue()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = files.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("GPUHUNT_CATALOG_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr("gpuhunt._internal.default.ONLINE_PROVIDER_MODULES", [])
    gpuhunt.default_catalog.cache_clear()
    yield
    gpuhunt.default_catalog.cache_clear()
    server.shutdown()
    server.server_close()


def test_what_the_package_finds_becomes_the_rows_of_its_file(catalog: None) -> None:
    assert ours.query(cards.load(), TODAY) == ours.read(RECORDED, cards.load(), TODAY)


def test_the_fields_of_its_items_are_those_that_are_read() -> None:
    from dataclasses import fields

    assert {field.name for field in fields(gpuhunt.CatalogItem)} == set(ours.COLUMNS)
