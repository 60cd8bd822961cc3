"""The front as a page: what nothing beats, fastest first, and what each gives up.

In: a `Front` and a `Style`. Out: lines.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.plan.front import Front, FrontRow
from cardfit.plan.offers import money_text
from cardfit.plan.target import short_name
from cardfit.report import words
from cardfit.report.grid import Column, Row, grid
from cardfit.report.style import Style
from cardfit.units import gib_text, human_seconds


def lines(found: Front, style: Style) -> list[str]:
    """The page."""
    head = {
        "title": found.model.title,
        "cards": found.cards,
        "candidates": found.candidates,
        "holding": found.holding,
        "kept": len(found.rows),
    }
    if not found.rows:
        return [say("front-none", head)]
    columns = [
        Column(say("col-card")),
        Column(say("col-verdict")),
        Column(say("col-settings"), least=29),
        Column(say("front-col-quality")),
        Column(say("col-peak"), right=True),
        Column(say("col-time"), right=True),
        Column(say("col-cost"), right=True),
    ]
    return [
        say("front-head", head),
        "",
        *grid(columns, [_row(r, style) for r in found.rows], style),
    ]


def _row(row: FrontRow, style: Style) -> Row:
    sign = words.shape(row.verdict, row.price_of_it, style)
    cost = row.cost_per_output
    return [
        short_name(row.name),
        f"{sign} {say('verdict-' + row.verdict.replace('_', '-'))}",
        row.settings_text,
        quality_text(row),
        gib_text(row.peak_reserved_bytes),
        human_seconds(row.seconds.likely),
        "" if cost is None else money_text(cost.amount, cost.currency),
    ]


def quality_text(row: FrontRow) -> str:
    """What is given up of the picture, in words."""
    return say(f"front-quality-{row.quality.replace('_', '-')}")
