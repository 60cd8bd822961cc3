"""The chart of `cardfit rent`: what a month costs by the hours that the machine is used in it.

In: a `Rent` and the name of a file. Out: a PNG, an SVG, or an HTML page that holds everything it needs and opens
without a network. altair and vl-convert draw it; they come with the extra `web` and are imported here only.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from cardfit.messages import say
from cardfit.plan.rent_answer import Rent, way_words
from cardfit.report.drawn import draw


def write(found: Rent, file: Path) -> None:
    """Draw ``found`` into ``file``, by its ending. Raises MissingExtra where the extra is not installed."""
    draw(lambda: chart(found), file, "rent-chart-extra")


def chart(found: Rent) -> Any:
    """The lines of the ways, and a rule at the use where one is stated: a layered altair chart."""
    altair: Any = import_module("altair")
    hours, cost, way = say("rent-axis-hours"), "cost", "way"
    data = altair.Data(values=points(found))
    title = say("rent-axis-cost", {"currency": found.question.currency})
    base = altair.Chart(data).encode(
        x=altair.X("hours:Q", title=hours),
        y=altair.Y(f"{cost}:Q", title=title),
        color=altair.Color(f"{way}:N", title=say("rent-axis-way"), sort=None),
        strokeDash=altair.StrokeDash(f"{way}:N", sort=None),  # told apart without colour
    )
    layers: list[Any] = [base.mark_line()]
    if found.use.hours_per_month is not None:
        used = altair.Data(values=[{"hours": found.use.hours_per_month}])
        rule = altair.Chart(used).mark_rule(strokeDash=[4, 4]).encode(x="hours:Q")
        layers.append(rule)
    return altair.layer(*layers).properties(width=640, height=360, title=found.verdict.text.text)


def points(found: Rent) -> list[dict[str, object]]:
    """The two ends of every line: hours of use and cost of a month."""
    return [
        {"way": way_words(curve.way), "hours": hours, "cost": cost}
        for curve in found.curves
        for hours, cost in ((0.0, curve.at_zero), (found.full_hours, curve.at_full))
    ]
