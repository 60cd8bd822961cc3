"""The verdict on a budget: as a page, as JUnit XML and as a Markdown table.

In: a `Check`. Out: lines or text; `cardfit.cli.check` says where a file goes.
"""

from __future__ import annotations

from xml.etree import ElementTree

from cardfit.messages import say
from cardfit.plan.check import Check, CheckRow
from cardfit.report import words
from cardfit.report.grid import Cell, Column, Row, grid, hanging
from cardfit.report.style import Style
from cardfit.units import gib_text, human_seconds

_LABEL = 4
_SUITE = "cardfit"


def lines(found: Check, style: Style) -> list[str]:
    """A table, then every limit that is broken, then the sum."""
    columns = [
        Column(""),
        Column(say("check-col-request"), least=16),
        Column(say("col-card")),
        Column(say("check-col-peak"), right=True),
        Column(say("col-time"), right=True),
        Column(say("check-col-cost"), right=True),
        Column(say("col-settings"), least=20),
    ]
    page = grid(columns, [_row(row) for row in found.rows], style)
    for row in found.rows:
        for each in row.violations:
            page += hanging(f"{row.number}", f"{row.name}: {each.text}", style.width, _LABEL)
    return [*page, "", _sum(found)]


def _sum(found: Check) -> str:
    broken = sum(not row.kept for row in found.rows)
    code = "check-all-kept" if found.kept else "check-some-broken"
    return say(code, {"count": len(found.rows), "broken": broken})


def _mark(row: CheckRow) -> Cell:
    return Cell(say("check-kept"), "green") if row.kept else Cell(say("check-broken"), "red")


def _row(row: CheckRow) -> Row:
    return [_mark(row), row.name, row.card or "", *_figures(row), row.settings_text]


def _figures(row: CheckRow) -> list[str]:
    """Device memory, time and cost, each beside its limit where there is one."""
    peak = None if row.device_bytes is None else gib_text(row.device_bytes)
    most = None if row.max_peak_bytes is None else gib_text(row.max_peak_bytes)
    time = None if row.seconds is None else human_seconds(row.seconds.likely)
    longest = None if row.max_seconds is None else human_seconds(row.max_seconds)
    cost = None if row.cost_per_output is None else words.money(row.cost_per_output)
    dearest = None if row.max_cost is None else words.money(row.max_cost)
    return [_of(peak, most), _of(time, longest), _of(cost, dearest)]


def _of(value: str | None, limit: str | None) -> str:
    shown = value or ("?" if limit else "")
    return shown if limit is None else say("check-of", {"value": shown, "limit": limit})


def markdown(found: Check) -> str:
    """A table for a pull request, and below it every limit that is broken."""
    titles = [
        "",
        say("check-col-request"),
        say("col-card"),
        say("check-col-peak"),
        say("col-time"),
        say("check-col-cost"),
        say("col-settings"),
    ]
    rows = [
        [_mark(row).text, row.name, row.card or "", *_figures(row), row.settings_text]
        for row in found.rows
    ]
    table = markdown_table(titles, rows)
    broken = [
        f"- **{_cell(row.name)}**: {_cell(each.text)}"
        for row in found.rows
        for each in row.violations
    ]
    return "\n".join([*table, "", *broken, *([""] if broken else []), _sum(found)]) + "\n"


def markdown_table(titles: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a Markdown table; what would end a cell is taken out of it."""
    rule = ["---"] * len(titles)
    return ["| " + " | ".join(map(_cell, row)) + " |" for row in [titles, rule, *rows]]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def junit(found: Check) -> str:
    """JUnit XML: a test case for each request, a failure for each limit that is broken."""
    broken = sum(not row.kept for row in found.rows)
    counts = {"tests": str(len(found.rows)), "failures": str(broken), "errors": "0"}
    suite = ElementTree.Element("testsuite", {"name": _SUITE, **counts})
    for row in found.rows:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"{_SUITE}.{row.request.model}", name=_plain(row.name)
        )
        for each in row.violations:
            text = _plain(each.text)
            ElementTree.SubElement(case, "failure", message=text, type=each.code).text = text
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + (
        ElementTree.tostring(suite, encoding="unicode") + "\n"
    )


def _plain(text: str) -> str:
    """``text`` without signs that XML cannot hold."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
