"""Tables of plain text that never grow wider than the screen.

In: columns, rows of cells and a `Style`. Out: lines. A wide column is wrapped down to its least width first; when that
is not enough, columns are left out from the right.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from cardfit.report.style import Style, cells

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, whether it is set right, and the least width it may be wrapped to (0: never).

    With ``cut`` a text that is too wide loses its middle instead of taking a second line.
    """

    title: str
    right: bool = False
    least: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with a colour."""

    text: str
    colour: str = ""


Row = Sequence[Cell | str]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows, for `grid` to print or for a page to lay out."""

    columns: Sequence[Column]
    rows: Sequence[Row]


def grid(
    columns: Sequence[Column], rows: Sequence[Row], style: Style, indent: int = 2
) -> list[str]:
    """The lines of a table, its titles first, none wider than ``style.width``."""
    table = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    head = [Cell(column.title, "dim") for column in columns]
    widths = _widths(columns, [head, *table], style.width - indent)
    lines: list[str] = []
    for row in [head, *table]:
        lines += _row(row[: len(widths)], columns, widths, style, indent)
    return lines


def _widths(columns: Sequence[Column], table: Sequence[Sequence[Cell]], room: int) -> list[int]:
    natural = [max(cells(row[at].text) for row in table) for at in range(len(columns))]
    for count in range(len(columns), 0, -1):
        widths = natural[:count]
        over = sum(widths) + GAP * (count - 1) - room
        while over > 0:
            at = max(range(count), key=lambda at: _slack(columns[at], widths[at]))
            slack = _slack(columns[at], widths[at])
            if slack <= 0:
                break
            cut = min(over, slack)
            widths[at] -= cut
            over -= cut
        if over <= 0:
            return widths
    return [room]


def _slack(column: Column, width: int) -> int:
    return (
        width - max(column.least, cells(column.title) if column.right else 0) if column.least else 0
    )


def _parts(text: str, width: int, cut: bool) -> list[str]:
    if not cut or cells(text) <= width:
        return wrapped(text, width, hyphens=True) or [""]
    tail = (width - 2) // 2
    return [f"{text[: width - 2 - tail]}..{text[-tail:]}"]


def _row(
    row: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int], style: Style, indent: int
) -> list[str]:
    parts = [
        _parts(cell.text, width, column.cut)
        for cell, width, column in zip(row, widths, columns, strict=False)
    ]
    lines = []
    for at in range(max(len(part) for part in parts)):
        line = " " * indent
        for cell, column, width, part in zip(row, columns, widths, parts, strict=False):
            text = part[at] if at < len(part) else ""
            pad = " " * max(0, width - cells(text))
            painted = style.paint(text, cell.colour)
            line += (pad + painted if column.right else painted + pad) + " " * GAP
        lines.append(line.rstrip())
    return lines


def hanging(label: str, text: str, width: int, label_width: int = 10) -> list[str]:
    """``label`` and then ``text`` wrapped beside it.

    >>> hanging("Safest", "one two three", 20)
    ['Safest    one two', '          three']
    """
    head = label + " " * max(1, label_width - cells(label))
    return wrapped(text, width, head, " " * label_width) or [head.rstrip()]


# Japanese has no spaces: a line may end after any of these signs, but no line begins with one that closes
_BROKEN = "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef"
_CLOSING = "、。，．・：；？！）」』】〉》％ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.)"
_PIECE = re.compile(rf"[（「『【]*[{_BROKEN}][{_CLOSING}]*|\s+|[^\s{_BROKEN}]+")


def wrapped(
    text: str, width: int, first: str = "", rest: str = "", *, hyphens: bool = False
) -> list[str]:
    """``text`` in lines of at most ``width`` columns, the first after ``first`` and the others after ``rest``.

    >>> wrapped("借りる前に確認。RTX 4090", 12, "", "  ")
    ['借りる前に確', '  認。RTX', '  4090']
    """
    if cells(text) == len(text):
        return textwrap.wrap(
            text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=hyphens
        )
    lines, line = list[str](), first
    empty = True
    for piece in _PIECE.findall(text):
        if not empty and cells(line + piece.rstrip()) > width:
            lines.append(line.rstrip())
            line, empty = rest, True
        if empty and lines and piece.isspace():
            continue
        line, empty = line + piece, False
    return [*lines, line.rstrip()] if not empty else lines
