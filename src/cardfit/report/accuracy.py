"""Predicted against published: the summary, the rows by source and family, the skips and the worst rows.

In: an `Accuracy`. Out: lines. Sizes are GiB, errors percent of what was measured; rivals stand under the predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from cardfit.accuracy.bands import Band
from cardfit.accuracy.rebuild import Why
from cardfit.accuracy.rivals import RIVALS
from cardfit.accuracy.rows import Kind
from cardfit.accuracy.score import KINDS, Accuracy, Errors, Summary
from cardfit.messages import number, say
from cardfit.report.grid import Column, Row, Table, grid
from cardfit.report.style import Style
from cardfit.units import GIB_NAME, gib

WORST = 15  # rows that are shown
_SIZE_DIGITS = 3


def lines(found: Accuracy, style: Style) -> list[str]:
    """The whole page."""
    page = [scored(found)]
    for table in tables(found):
        page += ["", *grid(table.columns, table.rows, style, indent=0)]
    return page


def scored(found: Accuracy) -> str:
    """How many rows were scored and how many were not."""
    counts = {"scored": len(found.rows), "skipped": len(found.skipped), "unit": GIB_NAME}
    return say("accuracy-scored", counts)


def tables(found: Accuracy) -> list[Table]:
    """The summary, the rows by source and family, the bands, the skips and the worst rows; no empty one."""
    matching = {kind: errors for kind, errors in found.summary.matching.items() if errors.n}
    page = [_summary(found.summary)]
    if matching:
        page.append(_matching(matching))
    for title, groups in (
        ("col-source", found.by_source),
        ("accuracy-col-family", found.by_family),
    ):
        if groups:
            page.append(_groups(say(title), groups))
    if found.bands:
        page.append(_bands(found.bands))
    if found.skipped:
        page.append(_skipped(found))
    if found.rows:
        page.append(_worst(found))
    return page


def remarks(found: Accuracy) -> Iterable[str]:
    """One line for each cell that could not be read, and for rows that were made with other versions."""
    yield from (f"{say('note')}  {note.text}" for note in found.notes)
    for row in found.skipped:
        if row.column is not None:
            args = {"row": row.row, "id": row.id, "column": row.column, "found": row.detail}
            yield f"{say('note')}  {say('accuracy-bad-value', args)}"


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
    return number(f"{value:+.2f}" if sign else f"{value:.2f}") + " %"


def _columns() -> list[Column]:
    names = ("rows", "median", "p90", "worst")
    return [Column(say(f"accuracy-col-{name}"), right=True) for name in names]


def _summary(summary: Summary) -> Table:
    rows: list[Row] = [
        [say(f"accuracy-kind-{kind}"), *_figures(summary[kind])] for kind in (*KINDS, *RIVALS)
    ]
    return Table([Column(say("accuracy-col-kind"), least=12), *_columns()], rows)


def _matching(matching: Mapping[Kind, Errors]) -> Table:
    rows: list[Row] = [
        [say(f"accuracy-kind-{kind}"), *_figures(errors)] for kind, errors in matching.items()
    ]
    return Table([Column(say("accuracy-matching"), least=12), *_columns()], rows)


def _groups(title: str, groups: Mapping[str, Mapping[str, Errors]]) -> Table:
    rows: list[Row] = [
        [name, say(f"accuracy-kind-{kind}"), *_figures(errors)]
        for name, kinds in groups.items()
        for kind, errors in kinds.items()
    ]
    columns = [Column(title, least=12), Column(say("accuracy-col-kind"), least=9), *_columns()]
    return Table(columns, rows)


def _bands(bands: Mapping[str, Band]) -> Table:
    rows: list[Row] = [
        [
            say(f"accuracy-kind-{kind}"),
            band.group,
            str(band.n),
            str(len(band.sources)),
            _pct(-100 * band.low, sign=True),
            _pct(100 * band.high, sign=True),
            _pct(None if band.held_out is None else 100 * band.held_out),
        ]
        for kind, band in bands.items()
    ]
    names = ("rows", "sources", "low", "high", "held")
    columns = [
        Column(say("accuracy-col-band"), least=9),
        Column(say("accuracy-col-group"), least=10),
        *(Column(say(f"accuracy-col-{name}"), right=True) for name in names),
    ]
    return Table(columns, rows)


def _skipped(found: Accuracy) -> Table:
    counts = Counter(row.why for row in found.skipped)
    rows: list[Row] = [
        [say(f"accuracy-why-{why.value}"), str(counts[why])] for why in Why if why in counts
    ]
    columns = [
        Column(say("accuracy-col-why"), least=20),
        Column(say("accuracy-col-rows"), right=True),
    ]
    return Table(columns, rows)


def _worst(found: Accuracy) -> Table:
    worst = sorted(found.rows, key=lambda row: -abs(row.error_pct))[:WORST]
    rows: list[Row] = [
        [
            row.id,
            row.model,
            say(f"accuracy-kind-{row.kind}"),
            gib(row.measured_bytes, _SIZE_DIGITS),
            gib(row.predicted_bytes, _SIZE_DIGITS),
            _pct(row.error_pct, sign=True),
        ]
        for row in worst
    ]
    columns = [
        Column(say("col-id")),
        Column(say("col-model"), least=14),
        Column(say("accuracy-col-kind"), least=9),
        *(
            Column(say(f"accuracy-col-{name}"), right=True)
            for name in ("measured", "predicted", "error")
        ),
    ]
    return Table(columns, rows)
