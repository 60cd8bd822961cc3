"""A sweep as a table, and its chart of peak against seconds.

In: a `Sweep` and a `Style`, or a file. Out: lines, or a drawing.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from cardfit.measure.choose import ANY, Limits
from cardfit.measure.sweep import Sweep, SweepRow
from cardfit.messages import number, say
from cardfit.report.drawn import draw
from cardfit.report.grid import Cell, Column, Table, grid, hanging
from cardfit.report.run import OUTCOMES
from cardfit.report.style import Style
from cardfit.units import GIB, GIB_NAME, human_bytes, human_seconds


def lines(found: Sweep, style: Style, limits: Limits = ANY) -> list[str]:
    """The whole page; a cell whose output breaks ``limits`` says so."""
    args = {"id": found.id, "model": found.model, "ran": found.ran, "kept": found.kept}
    shown = table(found, style)
    listed = grid(shown.columns, shown.rows, style)
    page = [style.paint(say("sweep-head", args), "bold"), "", *listed, ""]
    for cell, why in whys(found, limits):
        page += hanging(cell, why, style.width, 26)
    page += hanging("", say("sweep-next", {"id": found.id}), style.width, 0)
    return page


def whys(found: Sweep, limits: Limits = ANY) -> list[tuple[str, str]]:
    """The cells that were left out, or whose output breaks ``limits``, each with why."""
    said = []
    for row in found.rows:
        if row.skipped is not None:
            said.append((values(row), row.skipped.text))
        elif row.outcome == "ok" and (why := limits.broken_by(row.quality)) is not None:
            said.append((values(row), why.text))
    return said


def values(row: SweepRow) -> str:
    """What makes a cell: ``vae_tiling true, offload model``."""
    return ", ".join(f"{name} {_word(value)}" for name, value in row.values.items())


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


def table(found: Sweep, style: Style) -> Table:
    """Every cell: predicted, peak, host, seconds, quality, how it ended."""
    columns = [
        Column(say("sweep-col-values"), least=16),
        Column(say("sweep-col-predicted"), right=True),
        Column(say("sweep-col-peak"), right=True),
        Column(say("sweep-col-host"), right=True),
        Column(say("sweep-col-seconds"), right=True),
        Column(say("decode-col-ssim"), right=True),
        Column(say("sweep-col-outcome")),
    ]
    return Table(columns, [_row(row, style) for row in found.rows])


def _row(row: SweepRow, style: Style) -> list[Cell | str]:
    return [
        values(row),
        _size(row.predicted_bytes),
        _size(row.peak_bytes),
        _size(row.host_bytes),
        "" if row.seconds is None else human_seconds(row.seconds),
        "" if row.quality is None else number(f"{row.quality.ssim:.4f}"),
        _outcome(row, style),
    ]


def _size(value: float | None) -> str:
    return "" if value is None else human_bytes(value)


def _outcome(row: SweepRow, style: Style) -> Cell:
    if row.outcome is None:
        return Cell(f"{style.shape('unknown')} {say('sweep-skipped')}", "amber")
    shape, code = OUTCOMES[row.outcome]
    return Cell(f"{style.shape(shape)} {say(code)}", "green" if row.outcome == "ok" else "red")


def write(found: Sweep, file: Path) -> None:
    """Draw peak against seconds of every cell that ran well. Raises MissingExtra without the extra."""
    draw(lambda: chart(found), file, "sweep-chart-extra")


def chart(found: Sweep) -> Any:
    """A point a cell, with its values beside it."""
    altair: Any = import_module("altair")
    base = altair.Chart(altair.Data(values=points(found))).encode(
        x=altair.X("seconds:Q", title=say("sweep-axis-seconds")),
        y=altair.Y("peak:Q", title=say("sweep-axis-peak", {"unit": GIB_NAME})),
    )
    named = base.mark_text(align="left", dx=8).encode(text="values:N")
    return altair.layer(base.mark_point(filled=True, size=60), named).properties(
        width=640, height=360, title=found.id
    )


def points(found: Sweep) -> list[dict[str, object]]:
    """Peak in GiB and seconds of the cells that ran well."""
    return [
        {"values": values(row), "seconds": row.seconds, "peak": row.peak_bytes / GIB}
        for row in found.rows
        if row.outcome == "ok" and row.seconds is not None and row.peak_bytes is not None
    ]
