"""Records keep to a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of this test."""
    folder = tmp_path / "data"
    monkeypatch.setenv("CARDFIT_DATA", str(folder))
    return folder
