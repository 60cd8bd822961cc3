"""Every pipeline class of the installed diffusers runs, or does not, as docs/pipelines.md says."""

from __future__ import annotations

import gc
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8").splitlines()
LISTED = {line.split(" | ")[0].removeprefix("| "): line for line in PAGE if line.startswith("| ")}


@cache
def script() -> Any:
    spec = importlib.util.spec_from_file_location("classes", ROOT / "scripts" / "classes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = [name for name in LISTED if name.endswith("Pipeline")]


@pytest.fixture(scope="module", autouse=True)
def frozen() -> Any:
    """A dry run collects garbage at its end; what the libraries hold need not be looked at each time."""
    script().pipelines()
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def test_the_page_knows_every_class_that_is_there() -> None:
    walked, skipped = script().pipelines()
    assert sorted(NAMES) == walked
    listed = "\n".join(PAGE)
    for name, reason in skipped.items():
        assert name in listed and reason in script().SKIPS


def test_nine_of_ten_run_and_all_that_the_library_has_models_of() -> None:
    from cardfit.library.load import all_models

    runs = {name for name in NAMES if LISTED[name].split(" | ")[1] == "yes"}
    assert len(runs) >= 0.9 * len(NAMES)
    listed = {x for m in all_models() for x in (m.pipeline, *m.task_pipelines.values())}
    assert listed & set(NAMES) <= runs


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_what_the_class_does_now(name: str) -> None:
    assert script().walk(name).row == LISTED[name]
