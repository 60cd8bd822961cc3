"""A record and an autopsy as a page shows them: texts and tables, nothing left to work out.

In: a `Record` or an `Autopsy`. Out: frozen texts that a template lays out.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardfit.autopsy.result import Autopsy, Cure
from cardfit.messages import say
from cardfit.records.models import Record
from cardfit.report import autopsy as autopsy_page
from cardfit.report import run as page
from cardfit.report.grid import Table
from cardfit.report.style import Style

_STYLE = Style()


@dataclass(frozen=True, slots=True)
class RecordView:
    """One measured run."""

    id: str
    head: tuple[str, ...]
    outcome: str
    why: str
    stages: Table
    times: tuple[str, ...]
    figures: tuple[str, ...]
    versions: tuple[str, ...]
    notes: tuple[str, ...]


def record_view(record: Record) -> RecordView:
    """The page of ``record``."""
    why = record.outcome.why
    return RecordView(
        id=record.id,
        head=tuple(page.head(record)),
        outcome=page.outcome_word(record, _STYLE).text,
        why="" if why is None or record.outcome.kind == "ok" else why.text,
        stages=page.stage_table(record),
        times=tuple(page.times(record)),
        figures=tuple(page.figures(record)),
        versions=tuple(f"{name} {number}" for name, number in sorted(record.versions.items())),
        notes=tuple(note.text for note in record.notes),
    )


@dataclass(frozen=True, slots=True)
class AutopsyView:
    """One autopsy: cures with the lines to write, evidence with the lines it stands in."""

    headline: str
    why: str
    numbers: str
    planned: str
    cures: tuple[tuple[str, tuple[str, ...]], ...]
    evidence: tuple[tuple[str, str], ...]
    next_step: str
    notes: tuple[str, ...]


def autopsy_view(found: Autopsy) -> AutopsyView:
    """The page of ``found``."""
    cures = autopsy_page.best_first(found.cures)[: autopsy_page.SHOWN]
    comfy = autopsy_page.for_comfyui(found)
    return AutopsyView(
        headline=autopsy_page.headline(found),
        why=found.why.text,
        numbers=autopsy_page.numbers(found.numbers, _STYLE),
        planned="" if found.planned is None else autopsy_page.planned_text(found.planned),
        cures=tuple((autopsy_page.cure_text(found, cure), _lines(cure, comfy)) for cure in cures),
        evidence=tuple(
            (
                each.tells.text,
                ""
                if each.line is None
                else say("autopsy-line", {"line": each.line, "text": each.text}),
            )
            for each in found.evidence
        ),
        next_step=found.next_step.text,
        notes=tuple(note.text for note in found.notes),
    )


def _lines(cure: Cure, comfy: bool) -> tuple[str, ...]:
    """ComfyUI's words or diffusers' lines, whichever the reader uses."""
    if comfy:
        return () if cure.comfyui is None else (cure.comfyui,)
    return cure.lines
