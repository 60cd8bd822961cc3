"""The answer to `largest` as a page: what fits, what is tight, what stops the next, and every value that was tried.

In: a `Largest` and a `Style`. Out: lines.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.plan.largest import Largest, Tried
from cardfit.plan.target import short_name
from cardfit.plan.vary import value_text
from cardfit.report import words
from cardfit.report.grid import Column, Row, grid, hanging
from cardfit.report.style import Style
from cardfit.units import gib_text, human_seconds

_LABEL = 24


def lines(found: Largest, style: Style) -> list[str]:
    """The page."""
    head = {
        "title": found.model.title,
        "card": short_name(found.card_name),
        "vary": say(f"largest-vary-{found.vary}"),
        "asked": value_text(found.request, found.vary),
    }
    none = say("largest-none", {"least": found.tried[0].value})
    fits = none if found.fits is None else _line(found.fits)
    over = say("largest-same") if found.fits is not None else none
    tight = over if found.tight is None else _line(found.tight)
    page = [
        say("largest-head", head),
        "",
        *hanging(say("largest-fits"), fits, style.width, _LABEL),
        *hanging(say("largest-tight"), tight, style.width, _LABEL),
    ]
    if found.next is not None:
        label = say("largest-next", {"value": found.next.value})
        page += hanging(label, _why(found.next), style.width, _LABEL)
    return [*page, "", *_table(found, style)]


def _line(tried: Tried) -> str:
    args = {"value": tried.value, "settings": tried.settings_text, "why": tried.why.text}
    return say("largest-line", args)


def _why(tried: Tried) -> str:
    if tried.verdict is None:
        return say("largest-failed", {"why": tried.why.text})
    return tried.why.text


def _table(found: Largest, style: Style) -> list[str]:
    columns = [
        Column(say("largest-col-value"), right=True),
        Column(say("col-verdict")),
        Column(say("col-settings"), least=29),
        Column(say("largest-col-peak"), right=True),
        Column(say("largest-col-stage")),
        Column(say("col-time"), right=True),
    ]
    return grid(columns, [_row(each, style) for each in found.tried], style)


def _row(each: Tried, style: Style) -> Row:
    if each.verdict is None:
        return [each.value, say("verdict-unknown"), each.why.text, "", "", ""]
    sign = words.shape(each.verdict, each.price_of_it, style)
    said = say("verdict-" + each.verdict.replace("_", "-"))
    return [
        each.value,
        f"{sign} {said}",
        each.settings_text,
        "" if each.peak_reserved_bytes is None else gib_text(each.peak_reserved_bytes),
        each.limiting_stage or "",
        "" if each.seconds is None else human_seconds(each.seconds.likely),
    ]
