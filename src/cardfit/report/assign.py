"""The page of `cardfit assign`: the sum, every shot with its place, a bar for each card over time, what has no place.

In: an `Assignment` and a `Style`. Out: lines, or the CSV of what each shot needs.
"""

from __future__ import annotations

import csv
import io
from datetime import datetime

from cardfit.fleet.result import Assignment, Requirement, ShotRow
from cardfit.fleet.times import short_text, time_text
from cardfit.messages import say
from cardfit.plan.target import short_name
from cardfit.report import words
from cardfit.report.grid import Cell, Column, Row, grid, hanging, wrapped
from cardfit.report.style import Style, cells
from cardfit.units import human_seconds

_LABEL = 12
_LEAST_BAR = 20


def lines(found: Assignment, style: Style) -> list[str]:
    """The whole page."""
    page = wrapped(_head(found), style.width, hyphens=True)
    for each in found.said:
        page += hanging("", each.text, style.width, 2)
    placed = [row for row in found.shots if row.place is not None]
    if placed:
        page += ["", *_table(found, placed, style)]
        page += ["", *gantt(found, style)]
    if found.costs:
        money = ", ".join(words.money(each) for each in found.costs)
        page += ["", say("assign-cost", {"money": money})]
    nowhere = [row for row in found.shots if row.why_not is not None]
    if nowhere:
        page += ["", style.paint(say("assign-no-place-head"), "red")]
    for row in nowhere:
        text = "" if row.why_not is None else row.why_not.text
        page += hanging(f"  {row.id}", text, style.width, max(_LABEL, len(row.id) + 4))
    return page


def _head(found: Assignment) -> str:
    args = {
        "shots": len(found.shots),
        "cards": len(found.slots),
        "start": time_text(found.start),
        "done": "" if found.done is None else time_text(found.done),
        "worst": "" if found.done_at_worst is None else time_text(found.done_at_worst),
    }
    if found.done is None:
        return say("assign-nothing-placed", args)
    return say("assign-until" if found.done_at_worst is not None else "assign-until-open", args)


def _table(found: Assignment, placed: list[ShotRow], style: Style) -> list[str]:
    columns = [
        Column(say("assign-col-shot"), least=6),
        Column(say("assign-col-where"), least=14),
        Column(say("assign-col-begins")),
        Column(say("assign-col-done")),
        Column(say("assign-col-deadline"), least=11),
        Column(say("col-verdict")),
        Column(say("col-settings"), least=18),
    ]
    order = sorted(placed, key=lambda row: (row.place.begins if row.place else found.start, row.id))
    return grid(columns, [_row(row, found, style) for row in order], style)


def _row(row: ShotRow, found: Assignment, style: Style) -> Row:
    place = row.place
    assert place is not None
    option = found.planned[row.planned].options[place.option]
    sign = words.shape(place.verdict, option.price_of_it, style)
    return [
        row.id,
        f"{place.machine} {short_name(option.name)}",
        short_text(place.begins),
        short_text(place.done),
        _deadline(row),
        f"{sign} {say('verdict-' + place.verdict.replace('_', '-'))}",
        place.settings_text,
    ]


def _deadline(row: ShotRow) -> Cell | str:
    if row.deadline is None or row.place is None:
        return ""
    text = short_text(row.deadline)
    if row.place.late_seconds:
        late = human_seconds(row.place.late_seconds)
        return Cell(say("assign-late-by", {"deadline": text, "late": late}), "red")
    return Cell(text, "amber" if row.place.may_be_late else "")


def gantt(found: Assignment, style: Style) -> list[str]:
    """A bar for each card from the start until everything is done: shots in turn, gaps where it is idle or not free."""
    end = found.done or found.start
    labels = [f"{slot.machine} {short_name(slot.name)}" for slot in found.slots]
    wide = max(cells(label) for label in labels)
    figures = [(human_seconds(s.busy_seconds), human_seconds(s.idle_seconds)) for s in found.slots]
    busy = max(len(say("assign-col-busy")), *(len(a) for a, _ in figures))
    idle = max(len(say("assign-col-idle")), *(len(b) for _, b in figures))
    room = max(_LEAST_BAR, style.width - wide - busy - idle - 8)
    stretches = _stretches(found)
    head = f"  {say('assign-col-machine'):<{wide}}  {'':{room}}"
    page = [f"{head}  {say('assign-col-busy'):>{busy}}  {say('assign-col-idle'):>{idle}}"]
    for at, (slot, label) in enumerate(zip(found.slots, labels, strict=True)):
        bar = _bar(stretches.get((slot.machine, slot.slot), []), found.start, end, room, style)
        pad = " " * (wide - cells(label))
        page.append(f"  {label}{pad}  {bar}  {figures[at][0]:>{busy}}  {figures[at][1]:>{idle}}")
    return page


Bars = list[tuple[datetime, datetime, str]]


def _stretches(found: Assignment) -> dict[tuple[str, int], Bars]:
    by_slot: dict[tuple[str, int], Bars] = {}
    for row in found.shots:
        for each in () if row.place is None else row.place.stretches:
            assert row.place is not None
            own = by_slot.setdefault((row.place.machine, row.place.slot), [])
            own.append((each.begins, each.ends, row.id))
    return {key: sorted(bars) for key, bars in by_slot.items()}


def _bar(bars: Bars, start: datetime, end: datetime, room: int, style: Style) -> str:
    """Shots in two signs by turns, each with its id where it has room."""
    whole = (end - start).total_seconds() or 1.0
    signs, idle = ("█▒", "·") if style.shapes else ("#=", ".")
    line = [idle] * room
    for turn, (begins, ends, name) in enumerate(bars):
        a = min(room - 1, int(room * (begins - start).total_seconds() / whole))
        b = max(a + 1, min(room, round(room * (ends - start).total_seconds() / whole)))
        line[a:b] = signs[turn % 2] * (b - a)
        if b - a >= len(name) + 2:
            line[a + 1 : a + 1 + len(name)] = name
    return "".join(line)


def table(found: Assignment) -> str:
    """CSV of `Requirement` rows: a row for each shot and each kind of card that it may use; unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(Requirement.model_fields), lineterminator="\n")
    writer.writeheader()
    for each in found.requirements:
        writer.writerow(each.model_dump(mode="json"))
    return text.getvalue()
