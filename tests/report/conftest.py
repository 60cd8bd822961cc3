"""Hand-made answers for the views; `make_answer` holds the numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location(
    "make_answer", Path(__file__).with_name("make_answer.py")
)
make_answer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_answer)


@pytest.fixture(scope="session")
def made():
    """The module that makes answers, rows and stages."""
    return make_answer


@pytest.fixture
def answer():
    """An answer with a card of every verdict and eight small ones."""
    return make_answer.answer()
