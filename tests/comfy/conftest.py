"""The small workflows of `make.py`, by fixture: test files are imported on their own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("make", Path(__file__).parent / "make.py")
_make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_make)


@pytest.fixture(scope="session")
def make():
    """The module that writes small workflows."""
    return _make
