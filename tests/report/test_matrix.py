"""The matrix in its three forms."""

from __future__ import annotations

import pytest

from cardfit.plan.answer import Said
from cardfit.plan.matrix import Matrix, MatrixCard, MatrixCell, MatrixRow
from cardfit.report import matrix as page
from cardfit.report.style import Style


def cell(card: str, at: int) -> MatrixCell:
    precision = ("full", "8-bit", None)[at % 3]
    verdict = "fits" if precision else "does_not_fit"
    return MatrixCell(
        card=card,
        verdict=verdict,
        grade={"full": "green", "8-bit": "amber", None: "red"}[precision],
        price_of_it=("slower",) if precision == "8-bit" else (),
        precision=precision,
        offload="model" if precision == "8-bit" else "none",
        peak_reserved_bytes=10**10,
        usable_bytes=2 * 10**10,
        headroom_bytes=10**10,
        rule_precision="8-bit",
        why=Said.of("plan-no-facts"),
    )


def make(made, models: int, cards: int) -> Matrix:
    answer = made.answer()
    columns = tuple(
        MatrixCard(
            card=f"c{at}",
            name=f"NVIDIA Card {at}",
            memory_bytes=made.size(24),
            offer=made.offer(0.4 + at),
        )
        for at in range(cards)
    )
    rows = tuple(
        MatrixRow(
            model=answer.model.model_copy(update={"id": f"model-{at}"}),
            request=answer.request,
            rule_bytes=made.size(40),
            cells=tuple(cell(column.card, number) for number, column in enumerate(columns)),
        )
        for at in range(models)
    )
    return Matrix(versions={"cardfit": "0.1.0"}, cards=columns, rows=rows, notes=())


@pytest.mark.parametrize(("models", "cards"), [(3, 3), (20, 6), (2, 40), (59, 62)])
@pytest.mark.parametrize("width", [60, 100])
def test_every_form_keeps_to_the_width_and_names_every_model(made, models, cards, width):
    lines = page.lines(make(made, models, cards), Style(width=width))
    text = "\n".join(lines)
    assert max(map(len, lines[:-1])) <= width
    assert all(f"model-{at}" in text for at in range(models))


def test_a_cell_is_a_shape_a_precision_and_the_rule(made):
    text = "\n".join(page.lines(make(made, 1, 3), Style()))
    for part in ("● full (rule 8-bit)", "◐ 8-bit, offload (rule", "○ no (rule 8-bit)"):
        assert part in text


def test_where_both_are_many_the_cheapest_card_is_named(made):
    text = "\n".join(page.lines(make(made, 9, 12), Style()))
    assert "Card 0 $0.40/h  6 d" in text
    assert "12 cards; name some to see each: --card ID" in text


def test_an_empty_matrix_says_so(made):
    assert page.lines(make(made, 0, 0), Style()) == ["nothing to list"]
