"""Models against cards: the best precision each card holds, exact and by the rule of thumb.

In: a `Matrix`. Out: lines. Few cards stand as columns, few models likewise; where both are many, each model names the
cheapest card for every precision. A cell is a shape and words, never colour alone.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.plan.matrix import Matrix, MatrixCard, MatrixCell, Precision
from cardfit.report import words
from cardfit.report.grid import Cell, Column, Row, grid, wrapped
from cardfit.report.style import Style
from cardfit.units import gib_text

ACROSS = 4  # columns of cells in one table
FEW_CARDS, FEW_MODELS = 8, 4
_PRECISIONS: dict[Precision, str] = {
    "full": "matrix-full",
    "8-bit": "matrix-8-bit",
    "4-bit": "matrix-4-bit",
}


def lines(matrix: Matrix, style: Style) -> list[str]:
    """The table in the form that fits its size, and what the shapes mean."""
    if not matrix.rows or not matrix.cards:
        return [say("nothing-listed")]
    if len(matrix.cards) <= FEW_CARDS:
        found = _cards_across(matrix, style)
    elif len(matrix.rows) <= FEW_MODELS:
        found = _models_across(matrix, style)
    else:
        found = _cheapest(matrix, style)
    shapes = {name: style.shape(name) for name in ("fits", "price", "tight", "no", "unknown")}
    return [*found, "", *wrapped(say("matrix-legend", shapes), style.width, hyphens=True)]


def _cards_across(matrix: Matrix, style: Style) -> list[str]:
    found: list[str] = []
    for start in range(0, len(matrix.cards), ACROSS):
        block = slice(start, start + ACROSS)
        columns = [
            Column(say("col-model"), least=14),
            *(Column(_title(card), least=11) for card in matrix.cards[block]),
        ]
        rows: list[Row] = [
            [row.model.id, *(_cell(cell, style) for cell in row.cells[block])]
            for row in matrix.rows
        ]
        found += [*([""] if found else []), *grid(columns, rows, style, indent=0)]
    return found


def _models_across(matrix: Matrix, style: Style) -> list[str]:
    columns = [
        Column(say("col-card"), least=14),
        *(Column(row.model.id, least=11) for row in matrix.rows),
        Column(say("col-price")),
    ]
    rows: list[Row] = [
        [
            _title(card),
            *(_cell(row.cells[at], style) for row in matrix.rows),
            words.price(card.offer),
        ]
        for at, card in enumerate(matrix.cards)
    ]
    return grid(columns, rows, style, indent=0)


def _cheapest(matrix: Matrix, style: Style) -> list[str]:
    """A line a model: the first card, cheapest first, that holds it in each precision or a better one."""
    columns = [
        Column(say("col-model"), least=14),
        Column(say("matrix-cheapest", {"precision": say("matrix-full")}), least=16),
        Column(say("matrix-8-bit"), least=16),
        Column(say("matrix-4-bit"), least=16),
    ]
    order = list(_PRECISIONS)
    rows: list[Row] = []
    for row in matrix.rows:
        line: list[Cell | str] = [row.model.id]
        for precision in order:
            good = order[: order.index(precision) + 1]
            line.append(_first(matrix, list(row.cells), good))
        rows.append(line)
    more = say("matrix-more", {"cards": len(matrix.cards)})
    return [*grid(columns, rows, style, indent=0), more]


def _first(matrix: Matrix, cells: list[MatrixCell], good: list[Precision]) -> str:
    for card, cell in zip(matrix.cards, cells, strict=True):
        if cell.precision in good and cell.verdict == "fits":
            price = "" if card.offer is None else f" {words.price(card.offer)}"
            return f"{words.card_name(card.name)}{price}"
    return say("matrix-none")


def _title(card: MatrixCard) -> str:
    name = words.card_name(card.name)
    return name if card.memory_bytes is None else f"{name} {gib_text(card.memory_bytes, 0)}"


def _cell(cell: MatrixCell, style: Style) -> Cell:
    rule = _precision(cell.rule_precision)
    precision = _precision(cell.precision)
    if cell.verdict == "unknown":
        precision = say("verdict-unknown")
    elif cell.offload not in (None, "none"):
        precision = say("matrix-offload", {"precision": precision})
    shape = words.shape(cell.verdict, cell.price_of_it, style)
    text = say("matrix-cell", {"shape": shape, "precision": precision, "rule": rule})
    return Cell(text, cell.grade or "")


def _precision(precision: Precision | None) -> str:
    return say("matrix-none") if precision is None else say(_PRECISIONS[precision])
