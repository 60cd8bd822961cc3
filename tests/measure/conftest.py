"""A data folder of the test's own, and a small request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


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
