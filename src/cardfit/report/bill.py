"""The bill of the outputs on one card, line by line, for a plan with a stated use.

In: an `Answer` and a `Style`. Out: lines; nothing where no use was stated.
"""

from __future__ import annotations

from cardfit.messages import number, say
from cardfit.plan.answer import Answer, CardRow, Cost, LineName
from cardfit.plan.bill import FLAGS
from cardfit.plan.cost import daily
from cardfit.report import words
from cardfit.report.grid import Cell, Column, Row, grid, hanging
from cardfit.report.style import Style
from cardfit.units import human_seconds

_HOUR_S = 3600
# what would make a line known, where a flag of `plan` does
_GIVES: dict[LineName, str] = {
    "boot": FLAGS["boot_s"],
    "load": "--machine",
    "idle": FLAGS["idle_hours"],
    "disk_running": FLAGS["disk_per_gb_month"],
    "disk_stopped": FLAGS["stopped_hours"],
    "egress": FLAGS["output_bytes"],
    "energy": FLAGS["power_w"],
}


def lines(answer: Answer, style: Style) -> list[str]:
    """The bill of the card to go on with; of a machine that runs already nothing is shown, its cost is in the table."""
    row = _chosen(answer)
    if row is None or row.cost is None or row.offer is None:
        return []
    found = row.cost
    args = {
        "count": f"{found.accepted_outputs:,.0f}",
        "card": words.card_name(row.name),
        "total": words.money(found.total),
        "each": words.money(found.per_output),
        "provider": row.offer.provider,
    }
    columns = [
        Column(say("bill-col-line")),
        Column(say("bill-col-time"), right=True),
        Column(say("bill-col-money"), right=True),
    ]
    page = [say("bill-head", args), *grid(columns, _rows(found), style)]
    if found.not_counted:
        page += hanging("", say("bill-not-counted", {"names": _names(found)}), style.width, 2)
    if found.energy_kwh is not None:
        page.append("  " + say("bill-kwh", {"kwh": number(f"{found.energy_kwh:.1f}")}))
    return [*page, "  " + daily(row.offer).text, ""]


def _chosen(answer: Answer) -> CardRow | None:
    """The cheapest pick's row where a use was stated: a bill with more than the seconds of one output."""
    pick = words.best(answer)
    for row in answer.cards:
        if row.cost is None or (pick is not None and row.card != pick.card):
            continue
        return row if stated(row) else None
    return None


def stated(row: CardRow) -> bool:
    """Whether a use stands behind the row's cost: more than the seconds of one output is known."""
    lines = () if row.cost is None else row.cost.lines
    return any(line.name in ("download", "export", "machine") and line.amount for line in lines)


def _rows(found: Cost) -> list[Row]:
    rows: list[Row] = []
    for line in found.lines:
        if line.amount is None:
            continue
        timed = line.hours is not None and line.name != "machine"
        hours = "" if not timed else human_seconds((line.hours or 0.0) * _HOUR_S)
        rows.append([say(f"bill-{line.name}"), hours, Cell(words.money(line.amount))])
    return rows


def _names(found: Cost) -> str:
    """The lines without an amount, each with the flag that gives what is missing."""
    named = []
    for name in found.not_counted:
        flag = _GIVES.get(name)
        text = say(f"bill-{name}")
        named.append(text if flag is None else say("bill-flag", {"line": text, "flag": flag}))
    return ", ".join(named)
