"""Dry-run every library model in each of its tasks at its default size and write docs/models.md.

    python scripts/dry_run_table.py [MODEL ...]

A row holds the pipeline, the request, the peaks with nothing offloaded and with model offload, and for a model that
does not run the reason. `tests/trace/test_every_model.py` holds the page to what runs now.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.progress import track

from cardfit.errors import CardfitError
from cardfit.library.load import all_models
from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.plan.prompts import prompt_matters
from cardfit.predict.memory import estimate
from cardfit.request import Request, Settings, Task
from cardfit.trace.cache import cached
from cardfit.units import gib

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
HEAD = """# Every model in every task, dry-run at its default size

Written by `python scripts/dry_run_table.py`; a test holds it to what runs now. GiB allocated at the peak, batch 1,
recommended dtypes, nothing tiled: with everything on the card, and with model offload. The stage that decides stands
behind the figure.

| model | task | pipeline | request | verified | all on the card | model offload |
|---|---|---|---|---|---|
"""


def row(model: Model, task: Task) -> str:
    """The line of the table for what ``model`` does in ``task``."""
    request, _ = resolve(model, Request(model=model.id, task=task))
    frames = f" x {request.num_frames}" if model.is_video else ""
    asked = f"{request.width} x {request.height}{frames}, {request.num_inference_steps} steps"
    head = f"| {model.id} | {task} | {model.pipeline_for(task)} | {asked} | {'yes' if model.verified else 'no'} |"
    try:
        trace, _ = cached(model, request, Settings(vae_tiling=model.vae.tiling_required))
    except CardfitError as error:
        return f"{head} does not run: {error} | | |"
    cells = []
    for offload in ("none", "model"):
        found = estimate(trace, Settings(offload=offload))
        cells.append(f"{gib(found.allocated_bytes, 2)} {found.peak_stage}")
    cells.append("grows" if prompt_matters(trace) else "padded")
    return f"{head} {' | '.join(cells)} |"


def main(names: list[str]) -> None:
    """Write the page (all models), or print the rows of the models named."""
    models = [m for m in all_models() if not names or m.id in names]
    jobs = [(model, task) for model in models for task in model.tasks]
    rows = [row(*job) for job in track(jobs, description="dry runs")]
    if names:
        print("\n".join(rows))
    else:
        PAGE.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
