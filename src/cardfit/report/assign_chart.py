"""The chart of `cardfit assign`: a bar for each stretch of work, cards down, time across, deadlines as ticks.

In: an `Assignment` and the name of a file. Out: a PNG, an SVG, or an HTML page that opens without a network.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from cardfit.fleet.result import Assignment
from cardfit.messages import say
from cardfit.plan.target import short_name
from cardfit.report.drawn import draw


def write(found: Assignment, file: Path) -> None:
    """Draw ``found`` into ``file``, by its ending. Raises MissingExtra where the extra is not installed."""
    draw(lambda: chart(found), file, "assign-chart-extra")


def chart(found: Assignment) -> Any:
    """Bars with the shots' ids, coloured by sequence; a red tick where a late shot was due."""
    altair: Any = import_module("altair")
    rows = [f"{slot.machine} {slot.slot} {short_name(slot.name)}" for slot in found.slots]
    where = altair.Y("where:N", title=None, scale=altair.Scale(domain=rows))
    across = altair.X("begins:T", title=say("assign-axis-time"))
    bars = altair.Chart(altair.Data(values=stretches(found)))
    marks = bars.mark_bar(stroke="white").encode(
        x=across,
        x2="ends:T",
        y=where,
        color=altair.Color("sequence:N", title=None),
        tooltip=["shot:N", "settings:N", "begins:T", "ends:T", "deadline:N"],
    )
    names = bars.mark_text(align="left", dx=3, fontSize=9).encode(x=across, y=where, text="shot:N")
    late = [each for each in stretches(found) if each["late"]]
    due = altair.Chart(altair.Data(values=late)).mark_tick(color="red", thickness=3)
    ticks = due.encode(x=altair.X("deadline:T"), y=where)
    height = max(120, 26 * len(rows))
    return altair.layer(marks, names, ticks).properties(width=760, height=height)


def stretches(found: Assignment) -> list[dict[str, object]]:
    """One a stretch of work: where, from, until, the shot and its sequence."""
    slots = {(slot.machine, slot.slot): short_name(slot.name) for slot in found.slots}
    values: list[dict[str, object]] = []
    for row in found.shots:
        place = row.place
        if place is None:
            continue
        name = slots[place.machine, place.slot]
        for each in place.stretches:
            values.append(
                {
                    "where": f"{place.machine} {place.slot} {name}",
                    "shot": row.id,
                    "sequence": row.sequence or row.id,
                    "settings": place.settings_text,
                    "begins": each.begins.isoformat(),
                    "ends": each.ends.isoformat(),
                    "deadline": None if row.deadline is None else row.deadline.isoformat(),
                    "late": bool(place.late_seconds),
                }
            )
    return values
