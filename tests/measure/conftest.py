"""Real pipelines, very small: a local diffusers folder made once, and a data folder of the test's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location("tiny", Path(__file__).with_name("tiny.py"))
assert _spec is not None and _spec.loader is not None
_tiny = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tiny)


@pytest.fixture(scope="session")
def tiny() -> Any:
    """The module that makes small pipelines."""
    return _tiny


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stable Diffusion with few and narrow layers."""
    made: Path = _tiny.save("stable-diffusion-1.5", tmp_path_factory.mktemp("weights") / "sd")
    return made


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of this test."""
    found = tmp_path / "data"
    monkeypatch.setenv("CARDFIT_DATA", str(found))
    monkeypatch.setenv(
        "OMP_NUM_THREADS", "1"
    )  # small work is slower on many threads, and slowest on a busy machine
    return found


@pytest.fixture
def small() -> dict[str, Any]:
    """The fields of a small request."""
    return {"model": "stable-diffusion-1.5", "width": 64, "height": 64, "num_inference_steps": 3}
