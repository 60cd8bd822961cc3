"""A sequence of requests: the worst case and when it comes, every request alone and in turn, and the cards.

In: a `SequenceAnswer` and a `Style`. Out: lines. Sizes are GiB.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.plan.sequence import SequenceAnswer, SequenceCard
from cardfit.plan.target import short_name
from cardfit.report import words
from cardfit.report.grid import Column, Row, grid, hanging, wrapped
from cardfit.report.style import Style
from cardfit.units import gib, gib_text


def lines(answer: SequenceAnswer, style: Style) -> list[str]:
    """The whole page."""
    worst = answer.worst
    args = {
        "count": answer.count,
        "peak": gib_text(worst.reserved_bytes),
        "low": gib(worst.low_bytes),
        "high": gib_text(worst.high_bytes),
        "position": worst.position,
        "number": worst.number,
        "stage": worst.stage,
        "alone": gib_text(worst.alone_reserved_bytes),
    }
    page = [
        *wrapped(say("sequence-worst", args), style.width, hyphens=True),
        "",
        *_requests(answer, style),
    ]
    if answer.cards:
        page.append("")
    for card in answer.cards:
        page += _card(card, style)
    return page


def _requests(answer: SequenceAnswer, style: Style) -> list[str]:
    rows: list[Row] = [
        [
            str(row.number),
            style.dot.join([row.request.model, *words.what(row.request)]),
            str(row.count),
            gib(row.alone_reserved_bytes),
            "" if row.reserved_bytes is None else gib(row.reserved_bytes),
            "" if row.position is None else str(row.position),
            say("sequence-before") if row.stage == "before" else row.stage or "",
        ]
        for row in answer.requests
    ]
    columns = [
        Column("", right=True),
        Column(say("sequence-col-request"), least=16),
        Column(say("sequence-col-count"), right=True),
        Column(say("sequence-col-alone"), right=True),
        Column(say("sequence-col-worst"), right=True),
        Column(say("sequence-col-position"), right=True),
        Column(say("col-stage")),
    ]
    return grid(columns, rows, style)


def _card(card: SequenceCard, style: Style) -> list[str]:
    texts = [f"{words.shape(card.verdict, (), style)} {card.why.text}"]
    if card.failed is not None:
        texts.append(card.failed.said.text)
    if card.cure is not None:
        texts.append(card.cure.text)
    return hanging(short_name(card.name), " ".join(texts), style.width, 14)
