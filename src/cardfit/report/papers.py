"""What a command printed as JSON, as a file to pass on: a page, Markdown, or its charts as pictures.

In: an `Answer`, a `Sweep` or a `Comparison`. Out: text by the file's ending, and drawings by name. A page holds its
style and its charts, runs no script and loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cardfit import __version__
from cardfit.measure.sweep import Sweep
from cardfit.messages import say
from cardfit.plan.answer import Answer
from cardfit.quality.result import Comparison
from cardfit.report import compare, drawings, html, shared, sweep
from cardfit.report.drawings import Drawing
from cardfit.report.grid import Cell, Column, Table
from cardfit.report.style import Style
from cardfit.request import Dtype

KINDS = (Answer, Sweep, Comparison)
TEXTS = (".html", ".md")
PICTURES = (".png", ".svg")
Dtypes = Callable[[Answer], Mapping[str, Dtype]]


@dataclass(frozen=True, slots=True)
class Paper:
    """A sweep or a comparison in words, with its drawings."""

    title: str
    about: str
    table: Table
    notes: tuple[str, ...]
    drawings: tuple[Drawing, ...]


def text(found: Any, ending: str, dtypes: Dtypes) -> str:
    """``found`` as a file that ends in one of `TEXTS`. Raises MissingExtra without the extra `web`."""
    if isinstance(found, Answer):
        return shared.MAKERS[ending](found, dtypes(found))
    paper = _sweep(found) if isinstance(found, Sweep) else _comparison(found)
    if ending == ".md":
        return _markdown(paper)
    template = html.environment().get_template("paper.html")
    return template.render(paper=paper, style=html.style(), version=__version__) + "\n"


def charts(found: Any) -> tuple[Drawing, ...]:
    """The drawings of ``found``. Raises MissingExtra without the extra `web`."""
    if isinstance(found, Answer):
        return drawings.of_plan(found)
    return drawings.of_sweep(found) if isinstance(found, Sweep) else drawings.of_comparison(found)


def _sweep(found: Sweep) -> Paper:
    args = {"id": found.id, "model": found.model, "ran": found.ran, "kept": found.kept}
    return Paper(
        title=found.model,
        about=say("sweep-head", args),
        table=sweep.table(found, Style()),
        notes=tuple(f"{cell}: {why}" for cell, why in sweep.whys(found)),
        drawings=drawings.of_sweep(found),
    )


def _comparison(found: Comparison) -> Paper:
    one, other = found.reference, found.candidate
    size = {"size": f"{one.width}x{one.height}", "frames": found.frames}
    columns = (Column(say("col-fact")), Column(say("col-value")))
    return Paper(
        title=say("quality-head", {"candidate": other.path, "reference": one.path}),
        about=say("quality-what", size),
        table=Table(columns, [(label, told) for label, told, _ in compare.rows(found)]),
        notes=tuple(note.text for note in found.notes),
        drawings=drawings.of_comparison(found),
    )


def _markdown(paper: Paper) -> str:
    rows = [
        [each.text if isinstance(each, Cell) else each for each in row] for row in paper.table.rows
    ]
    parts = [
        f"## {shared.plain(paper.title)}",
        shared.plain(paper.about),
        shared.table([column.title for column in paper.table.columns], rows),
        "\n".join(f"- {shared.plain(note)}" for note in paper.notes),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
