"""A choice as a page: what to run on, what else passed, why the others did not, how many cards a demand takes.

In: a `Choice` and a `Style`. Out: lines.
"""

from __future__ import annotations

from cardfit.measure.choose import Candidate, Choice
from cardfit.messages import number, say
from cardfit.plan.answer import Money
from cardfit.report import words
from cardfit.report.grid import Cell, Column, grid, hanging
from cardfit.report.style import Style
from cardfit.units import human_bytes, human_seconds

_INDENT = 11


def lines(found: Choice, style: Style) -> list[str]:
    """The whole page."""
    page = hanging(say("choose-label"), _headline(found), style.width, _INDENT)
    page += hanging(say("run-label-why"), found.why.text, style.width, _INDENT)
    if found.demand is not None:
        page += hanging(say("choose-label-demand"), found.demand.why.text, style.width, _INDENT)
    columns = [
        Column(say("sweep-col-values"), least=14),
        Column(say("records-card"), least=8, cut=True),
        Column(say("sweep-col-peak"), right=True),
        Column(say("choose-col-free"), right=True),
        Column(say("sweep-col-seconds"), right=True),
        Column(say("choose-col-interval"), right=True),
        Column(say("choose-col-cost"), right=True),
        Column(say("decode-col-ssim"), right=True),
        Column("", least=12),
    ]
    return [*page, "", *grid(columns, [_row(each, style) for each in found.candidates], style)]


def _headline(found: Choice) -> str:
    if found.chosen is None:
        return say("choose-none")
    best = found.candidates[found.chosen]
    return say("choose-this", {"settings": words.settings_words(best.settings), "on": best.on})


def _row(each: Candidate, style: Style) -> list[Cell | str]:
    free = each.headroom_share
    return [
        words.settings_words(each.settings),
        each.on,
        "" if each.peak_bytes is None else human_bytes(each.peak_bytes),
        "" if free is None else f"{100 * free:.0f} %",
        "" if each.seconds is None else human_seconds(each.seconds),
        _interval(each),
        ""
        if each.cost_per_output is None
        else words.money(Money(amount=each.cost_per_output, currency="USD")),
        "" if each.quality is None else number(f"{each.quality.ssim:.4f}"),
        Cell(
            f"{style.shape('fits' if each.passed else 'no')} {each.why.text}",
            "green" if each.passed else "red",
        ),
    ]


def _interval(each: Candidate) -> str:
    """Outputs an hour as the repetitions allow to say it."""
    found = each.throughput
    if found is None:
        return ""
    if found.low_per_hour is None:
        return say("choose-rate", {"rate": found.per_hour})
    if found.high_per_hour is None:
        return say("choose-rate-from", {"low": found.low_per_hour})
    return say("choose-rate-range", {"low": found.low_per_hour, "high": found.high_per_hour})
