"""Records keep to a folder of the test's own, and a team's store to a server of the tests' own."""

from __future__ import annotations

import importlib.util
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location("postgres", Path(__file__).with_name("postgres.py"))
assert _spec is not None and _spec.loader is not None
postgres: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(postgres)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of this test."""
    folder = tmp_path / "data"
    monkeypatch.setenv("CARDFIT_DATA", str(folder))
    monkeypatch.delenv("CARDFIT_STORE", raising=False)
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A PostgreSQL server, started when a test first asks for it."""
    if (programs := postgres.programs()) is None:
        pytest.skip("no PostgreSQL server is installed here")
    with postgres.serving(programs) as running:
        yield running


@pytest.fixture
def database(server: Any) -> str:
    """The name of an empty database of this test."""
    name = f"t{secrets.token_hex(4)}"
    server.run(f"CREATE DATABASE {name}")
    return name
