"""Verdicts against what people ran: the two summaries, the cases that went wrong and the skips.

In: a `FieldAccuracy`. Out: lines. Sizes are GiB; a case that was right is counted and not shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cardfit.accuracy.field import GROUPS, FieldAccuracy, FieldSummary
from cardfit.accuracy.field_why import FieldWhy
from cardfit.messages import say
from cardfit.report.grid import Column, Row, grid
from cardfit.report.style import Style
from cardfit.units import GIB_NAME, gib


def lines(found: FieldAccuracy, style: Style) -> list[str]:
    """The whole page."""
    counts = {"scored": len(found.rows), "skipped": len(found.skipped), "unit": GIB_NAME}
    page = [say("accuracy-field-scored", counts), "", *_summary(found, style)]
    if any(not row.right for row in found.rows):
        page += ["", *_wrong(found, style)]
    if found.skipped:
        page += ["", *_skipped(found, style)]
    return page


def remarks(found: FieldAccuracy) -> Iterable[str]:
    """One line for each cell that could not be read."""
    for row in found.skipped:
        if row.column is not None:
            args = {"row": row.row, "id": row.id, "column": row.column, "found": row.detail}
            yield f"{say('note')}  {say('accuracy-bad-value', args)}"


def _summary(found: FieldAccuracy, style: Style) -> list[str]:
    rows: list[Row] = [
        [say(f"accuracy-field-{group}"), *_counts(found.summary[group])] for group in GROUPS
    ]
    names = ("cases", "right", "false-fits", "false-misses", "tight", "stage-right")
    columns = [
        Column(say("accuracy-field-col-group"), least=10),
        *(Column(say(f"accuracy-field-col-{name}"), right=True) for name in names),
    ]
    return grid(columns, rows, style, indent=0)


def _counts(summary: FieldSummary) -> list[str]:
    plain = (summary.n, summary.right, summary.false_fits, summary.false_misses, summary.tight)
    return [*map(str, plain), f"{summary.stage_right}/{summary.stage_n}"]


def _wrong(found: FieldAccuracy, style: Style) -> list[str]:
    rows: list[Row] = [
        [
            row.id,
            row.model,
            row.card,
            say(f"accuracy-field-{row.outcome}"),
            say(f"verdict-{row.verdict}"),
            gib(row.peak_bytes),
            gib(row.usable_bytes),
            row.stage or row.peak_stage,
        ]
        for row in found.rows
        if not row.right
    ]
    columns = [
        Column(say("col-id")),
        Column(say("col-model"), least=14),
        Column(say("col-card"), least=10),
        Column(say("accuracy-field-col-outcome"), least=8),
        Column(say("accuracy-field-col-verdict"), least=8),
        Column(say("accuracy-field-col-peak"), right=True),
        Column(say("accuracy-field-col-usable"), right=True),
        Column(say("accuracy-field-col-stage")),
    ]
    return grid(columns, rows, style, indent=0)


def _skipped(found: FieldAccuracy, style: Style) -> list[str]:
    counts = Counter(row.why for row in found.skipped)
    rows: list[Row] = [
        [say(f"accuracy-why-{why.value}"), str(counts[why])] for why in FieldWhy if why in counts
    ]
    columns = [
        Column(say("accuracy-col-why"), least=20),
        Column(say("accuracy-field-col-cases"), right=True),
    ]
    return grid(columns, rows, style, indent=0)
