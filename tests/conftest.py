"""Tests keep their cache to themselves: one folder a run, shared by its workers. Very small real pipelines for all."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
os.environ["CARDFIT_CACHE"] = str(Path(tempfile.gettempdir()) / f"cardfit-tests-{_run}")


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="session")
def tiny() -> Any:
    """The module that makes small pipelines."""
    return _module(Path(__file__).parent / "measure" / "tiny.py")


@pytest.fixture(scope="session")
def fake_hub() -> Any:
    """The module of a hub on this machine."""
    return _module(Path(__file__).parent / "fake_hub.py")


@pytest.fixture(scope="session")
def folder(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stable Diffusion with few and narrow layers, as a local diffusers folder."""
    made: Path = tiny.save("stable-diffusion-1.5", tmp_path_factory.mktemp("weights") / "sd")
    return made
