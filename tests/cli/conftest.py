"""A command line with the verbs of `cardfit.api` replaced where a test says so."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location(
    "make_answer", Path(__file__).parents[1] / "report" / "make_answer.py"
)
make_answer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_answer)


@pytest.fixture
def planned(monkeypatch):
    """`api.plan` answers at once; the fixture is the list of what it was asked."""
    asked = []

    def plan(request, settings, **more):
        asked.append((request, settings, more))
        return make_answer.answer()

    monkeypatch.setattr("cardfit.api.plan", plan)
    return asked


@pytest.fixture
def nothing_fits(monkeypatch):
    """`api.plan` answers with cards that are all too small."""
    rows = tuple(row for row in make_answer.cards() if row.verdict == "does_not_fit")
    answer = make_answer.answer(rows)
    monkeypatch.setattr("cardfit.api.plan", lambda *args, **more: answer)
    return answer
