"""A plan as the frame on a host's page shows it: a line a card, memory as a band, the host's own price.

In: an `Answer` over the host's cards. Out: lines of text, the cheapest that holds it first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cardfit.messages import say
from cardfit.plan.answer import Answer, CardRow
from cardfit.report.plan_view import card_line
from cardfit.units import gib, gib_text


@dataclass(frozen=True, slots=True)
class Line:
    """One card; ``word`` and ``given`` are the verdict and the settings as the JSON has them."""

    id: str
    name: str
    shape: str
    grade: str
    verdict: str
    holds: bool
    predicted: str
    usable: str
    settings: str
    time: str
    price: str
    link: str
    word: str
    given: dict[str, Any] | None


def lines(answer: Answer, target: Callable[[str], str]) -> list[Line]:
    """A line for each card of ``answer``; ``target`` says where the choice of one leads."""
    return [_line(answer, row, target) for row in answer.cards]


def _line(answer: Answer, row: CardRow, target: Callable[[str], str]) -> Line:
    shown = card_line(row)
    given = (
        None
        if row.settings is None
        else row.settings.model_dump(mode="json", exclude_defaults=True)
    )
    return Line(
        id=row.card,
        name=shown.name,
        shape=shown.shape,
        grade=shown.grade,
        verdict=shown.verdict,
        holds=shown.holds,
        predicted=_predicted(answer, row),
        usable=shown.usable,
        settings=shown.settings,
        time=shown.time,
        price=shown.price,
        link=target(row.card) if shown.holds else "",
        word=row.verdict,
        given=given,
    )


def _predicted(answer: Answer, row: CardRow) -> str:
    """The band of a row's peak. It is relative, so that of the stage that decides holds in other settings too."""
    if row.peak_reserved_bytes is None or not answer.stages:
        return ""
    named = [each for each in answer.stages if each.name == row.limiting_stage]
    stage = max(named or answer.stages, key=lambda each: each.reserved_bytes)
    low, high = (
        row.peak_reserved_bytes * size / stage.reserved_bytes
        for size in (stage.low_bytes, stage.high_bytes)
    )
    return say("embed-predicted", {"low": gib(low), "high": gib_text(high)})
