"""Dry-run every pipeline class of the installed diffusers and write docs/pipelines.md.

    python scripts/classes.py [CLASS ...]

Each class is built by `trace.anyclass` from the library's configs or from its parts' own defaults, with two layers in
every stack, and called at two sizes. It runs if each of its parts is called by the class's own code, and if the
denoiser and the decoder take more memory for the larger job. `tests/trace/test_every_class.py` holds the page to what
runs now.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from rich.progress import track

from cardfit.errors import CardfitError
from cardfit.library.load import all_models
from cardfit.report.trace import CallRow, rows
from cardfit.trace.anyclass import assemble, nearest
from cardfit.trace.arguments import Size, call_of
from cardfit.trace.declared import parts_of
from cardfit.trace.facts import facts, of_pipeline
from cardfit.trace.own import trace_pipeline

PAGE = Path(__file__).parents[1] / "docs" / "pipelines.md"
_SAID = 160  # characters of an error that the page shows
DEPTH = 2  # layers of every stack
SKIPS = {
    "audio": "makes sound",
    "3d": "makes shapes in space",
    "protein": "makes molecules",
    "text-out": "makes text",
    "embedding": "makes an embedding for another pipeline, which has it as a part or an argument",
    "base": "cannot be called",
    "modular": "is assembled from blocks and called in another way",
    "package": "needs a package that is not installed",
}
HEAD = """# Every pipeline class of diffusers {version}

Written by `python scripts/classes.py`; a test holds it to what runs now. Each class that takes text, a picture or a
video and makes a picture or a video is built without weights and run by its own code: from the configs of the library's
nearest entry where one has its denoiser, else from its parts' own defaults and `trace/data/classes.yaml`, with two
layers in every stack. It *runs* if every part is called and nothing of it replaced, and if the denoiser and the decoder
take more memory for a larger picture with more frames, or for more pictures.

{summary}

| class | runs | encodes | denoises | decodes | configs |
|---|---|---|---|---|---|
"""


class Walked(NamedTuple):
    """What came of one class."""

    name: str
    reason: str  # "": it runs
    calls: dict[str, tuple[str, ...]]  # encode, denoise, decode -> parts
    configs: str

    @property
    def row(self) -> str:
        """The line of the table."""
        verdict = f"no: {self.reason}" if self.reason else "yes"
        cells = [", ".join(self.calls.get(each, ())) for each in ("encode", "denoise", "decode")]
        return f"| {self.name} | {verdict} | {' | '.join(cells)} | {self.configs} |"


def pipelines() -> tuple[list[str], dict[str, str]]:
    """The names of the classes to walk, and those that are skipped with their reasons."""
    diffusers = importlib.import_module("diffusers")
    base = diffusers.DiffusionPipeline
    skipped: dict[str, str] = dict(facts().skipped)
    names = []
    for name in sorted(set(dir(diffusers))):
        if not name.endswith("Pipeline") or name in skipped:
            continue
        kind = getattr(diffusers, name)
        if hasattr(kind, "_backends"):  # diffusers puts an empty class where a package is missing
            skipped[name] = "package"
        elif issubclass(kind, diffusers.ModularPipeline):
            skipped[name] = "modular"
        elif issubclass(kind, base) and kind is not base:
            names.append(name)
    return names, skipped


def walk(name: str) -> Walked:
    """Build class ``name``, call it at two sizes, and say whether it runs. Nothing is fetched meanwhile."""
    constants = importlib.import_module("huggingface_hub.constants")
    with patch.object(constants, "HF_HUB_OFFLINE", True), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # what a library says of its own future is not the class's end
        return _walk(name)


def _walk(name: str) -> Walked:
    kind = getattr(importlib.import_module("diffusers"), name)
    entry = nearest(name, parts_of(kind), of_pipeline(name).entry)
    configs = entry.id if entry is not None else "defaults"
    try:
        video = "num_frames" in inspect.signature(kind.__call__).parameters
        small = _rows(assemble(kind, depth=DEPTH), Size(256, 256, 9, 1))
        pipeline = assemble(kind, depth=DEPTH)  # anew: a few classes change their parts
        large = _rows(pipeline, Size(512, 512, 17, 1 if video else 2))
    except CardfitError as error:
        return Walked(name, _short(error), {}, configs)
    return Walked(name, _missing(pipeline, small, large), _calls(large), configs)


def _rows(pipeline: Any, size: Size) -> list[CallRow]:
    return rows(trace_pipeline(pipeline, call_of(pipeline, size)))


def _short(error: CardfitError) -> str:
    """What the class or its library said, in one cell of a table."""
    said = str(error.args_.get("reason", error))
    return re.sub(r"[\s|]+", " ", said).strip()[:_SAID]


def _missing(pipeline: Any, small: list[CallRow], large: list[CallRow]) -> str:
    """Why the run does not count; empty where it does."""
    torch = importlib.import_module("torch")
    called = {row.component for row in large}
    spared = {*facts().uncalled, *of_pipeline(type(pipeline).__name__).uncalled}
    idle = [
        name
        for name, part in pipeline.components.items()
        if isinstance(part, torch.nn.Module) and name not in called | spared
    ]
    if idle:
        return f"{', '.join(idle)} not called"
    before = {(row.stage, row.component): row.activation_bytes for row in small}
    for row in large:
        key = (row.stage, row.component)
        grows = row.stage in ("denoise", "decode") and row.component not in spared
        if grows and row.activation_bytes <= before.get(key, 0):
            return f"{row.component} takes no more memory for the larger job"
    return ""


def _calls(found: list[CallRow]) -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for row in found:
        stage = row.stage.partition("_")[0]
        if row.component not in out.get(stage, ()):
            out[stage] = (*out.get(stage, ()), row.component)
    return out


def page(found: list[Walked], skipped: dict[str, str]) -> str:
    """The whole page."""
    version = importlib.import_module("diffusers").__version__
    runs = sum(not each.reason for each in found)
    listed = {x for m in all_models() for x in (m.pipeline, *m.task_pipelines.values())}
    mine = [each for each in found if each.name in listed]
    good = sum(not each.reason for each in mine)
    counts = Counter(skipped.values())
    summary = (
        f"**{runs} of {len(found)} classes run ({100 * runs / len(found):.0f} %)**, {good} of the {len(mine)} that "
        f"the library has models of. {len(skipped)} are left out:\n\n"
    )
    summary += "\n".join(
        f"- {SKIPS[reason]} ({counts[reason]}): {', '.join(n for n in sorted(skipped) if skipped[n] == reason)}"
        for reason in SKIPS
        if counts[reason]
    )
    body = "\n".join(each.row for each in found)
    return HEAD.format(version=version, summary=summary) + body + "\n"


def main(names: list[str]) -> None:
    """Write the page (all classes), or print the rows of the classes named."""
    known, skipped = pipelines()
    gc.collect()
    gc.freeze()  # a dry run collects at its end; the libraries need not be looked at each time
    found = [walk(name) for name in track(names or known, description="classes")]
    if names:
        print("\n".join(each.row for each in found))
    else:
        PAGE.write_text(page(found, skipped), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
