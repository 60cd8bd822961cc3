"""Every library model dry-runs in each of its tasks at its default size, as docs/models.md says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cardfit.library.load import all_models
from cardfit.library.models import Model
from cardfit.request import Task

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8").splitlines()
# minutes of small scheduler steps, one per latent frame; its figures stand in the page
SLOW = {"skyreels-v2-df-1.3b-540p"}


def _row(model: Model, task: Task) -> str:
    spec = importlib.util.spec_from_file_location("table", ROOT / "scripts" / "dry_run_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.row(model, task))


JOBS = [(model, task) for model in all_models() for task in model.tasks]


@pytest.mark.parametrize(("model", "task"), JOBS, ids=lambda x: getattr(x, "id", x))
def test_the_page_says_what_runs_now(model: Model, task: Task) -> None:
    listed = [line for line in PAGE if line.startswith(f"| {model.id} | {task} |")]
    assert len(listed) == 1
    if model.verified:
        assert "does not run" not in listed[0]
    if model.id not in SLOW:
        assert _row(model, task) == listed[0]
