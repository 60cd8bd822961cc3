"""Every example in a docstring is run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import cardfit

SRC = Path(cardfit.__file__).parent
FILES = [path for path in sorted(SRC.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SRC).as_posix())
def test_examples_hold(path):
    parts = ("cardfit", *path.relative_to(SRC).with_suffix("").parts)
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
