"""Predicted seconds against published ones: the summary, the rows by card, family and program, the skips, the worst.

In: a `TimesAccuracy`. Out: lines. Errors are percent of what was measured; the share is of the ceiling that arithmetic
alone sets at the card's dense peak.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from cardfit.accuracy.score import Errors
from cardfit.accuracy.times import ScoredTime, TimesAccuracy
from cardfit.accuracy.times_rebuild import WhyNotTimed
from cardfit.messages import number, say
from cardfit.report.grid import Column, Row, grid
from cardfit.report.style import Style
from cardfit.units import human_seconds

WORST = 15  # rows that are shown
_SHORT_S = 1.0  # below it seconds are shown in full


def lines(found: TimesAccuracy, style: Style) -> list[str]:
    """The whole page."""
    counts = {"scored": len(found.rows), "skipped": len(found.skipped)}
    page = [say("accuracy-times-scored", counts), "", *_summary(found, style)]
    if found.order.share is not None and found.inside is not None:
        args = {
            "right": found.order.right,
            "pairs": found.order.pairs,
            "inside": f"{100 * found.inside:.0f} %",
        }
        page += ["", say("accuracy-times-order", args)]
    for title, groups in (
        ("accuracy-times-col-card", found.by_card),
        ("accuracy-col-family", found.by_family),
        ("accuracy-times-col-framework", found.by_framework),
    ):
        if groups:
            page += ["", *_groups(say(title), groups, style)]
    if found.skipped:
        page += ["", *_skipped(found, style)]
    if found.rows:
        page += ["", *_worst(found.rows, style)]
    return page


def remarks(found: TimesAccuracy) -> Iterable[str]:
    """One line for each cell that could not be read."""
    for row in found.skipped:
        if row.column is not None:
            args = {"row": row.row, "id": row.id, "column": row.column, "found": row.detail}
            yield f"{say('note')}  {say('accuracy-bad-value', args)}"


def seconds_text(value: float) -> str:
    """Seconds as a person reads them, milliseconds kept.

    >>> seconds_text(0.0253), seconds_text(75)
    ('0.025 s', '1 min 15')
    """
    return f"{value:.3f} s" if value < _SHORT_S else human_seconds(value)


def _figures(errors: Errors) -> list[str]:
    return [
        str(errors.n),
        _pct(errors.median_abs_pct),
        _pct(errors.p90_abs_pct),
        _pct(errors.worst_pct, sign=True),
    ]


def _pct(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return ""
    return number(f"{value:+.1f}" if sign else f"{value:.1f}") + " %"


def _columns() -> list[Column]:
    names = ("rows", "median", "p90", "worst")
    return [Column(say(f"accuracy-col-{name}"), right=True) for name in names]


def _summary(found: TimesAccuracy, style: Style) -> list[str]:
    kinds = {**found.summary, "held_out": found.held_out}
    rows: list[Row] = [
        [say(f"accuracy-times-{kind}"), *_figures(errors)] for kind, errors in kinds.items()
    ]
    columns = [Column(say("accuracy-col-kind"), least=12), *_columns()]
    return grid(columns, rows, style, indent=0)


def _groups(title: str, groups: Mapping[str, Errors], style: Style) -> list[str]:
    rows: list[Row] = [[name, *_figures(errors)] for name, errors in groups.items()]
    return grid([Column(title, least=12), *_columns()], rows, style, indent=0)


def _skipped(found: TimesAccuracy, style: Style) -> list[str]:
    counts = Counter(row.why for row in found.skipped)
    rows: list[Row] = [
        [say(f"accuracy-why-{why.value}"), str(counts[why])] for why in WhyNotTimed if why in counts
    ]
    columns = [
        Column(say("accuracy-col-why"), least=20),
        Column(say("accuracy-col-rows"), right=True),
    ]
    return grid(columns, rows, style, indent=0)


def _worst(scored: tuple[ScoredTime, ...], style: Style) -> list[str]:
    worst = sorted(scored, key=lambda row: -abs(row.error_pct))[:WORST]
    rows: list[Row] = [
        [
            row.id,
            row.model,
            row.card,
            seconds_text(row.measured_s),
            seconds_text(row.predicted_s),
            _pct(row.error_pct, sign=True),
        ]
        for row in worst
    ]
    columns = [
        Column(say("col-id")),
        Column(say("col-model"), least=14),
        Column(say("accuracy-times-col-card"), least=9),
        *(
            Column(say(f"accuracy-col-{name}"), right=True)
            for name in ("measured", "predicted", "error")
        ),
    ]
    return grid(columns, rows, style, indent=0)
