"""The chart of `cardfit front`: price against seconds, the shape of a point says what the picture gives up.

In: a `Front` and the name of a file. Out: a PNG, an SVG, or an HTML page that opens without a network.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from cardfit.messages import say
from cardfit.plan.front import Front
from cardfit.plan.target import short_name
from cardfit.report.drawn import draw
from cardfit.report.front import quality_text


def write(found: Front, file: Path) -> None:
    """Draw ``found`` into ``file``, by its ending. Raises MissingExtra where the extra is not installed."""
    draw(lambda: chart(found), file, "front-chart-extra")


def chart(found: Front) -> Any:
    """Points with the card's name beside them; a card without a price stands at its memory instead."""
    altair: Any = import_module("altair")
    priced = any(row.cost_per_output is not None for row in found.rows)
    across = say("front-axis-cost", {"currency": found.currency}) if priced else say("col-memory")
    base = altair.Chart(altair.Data(values=points(found))).encode(
        x=altair.X("across:Q", title=across, scale=altair.Scale(zero=False)),
        y=altair.Y("seconds:Q", title=say("front-axis-seconds"), scale=altair.Scale(type="log")),
    )
    quality = say("front-col-quality")
    marks = base.mark_point(filled=True, size=90).encode(
        shape=altair.Shape("quality:N", title=quality),
        color=altair.Color("quality:N", title=quality),
        tooltip=["card:N", "settings:N", "seconds:Q", "across:Q"],
    )
    names = base.mark_text(align="left", dx=8).encode(text="card:N")
    return altair.layer(marks, names).properties(width=640, height=400, title=found.model.title)


def points(found: Front) -> list[dict[str, object]]:
    """One a row: cost of an output (memory in bytes where there is no price) and seconds."""
    return [
        {
            "card": short_name(row.name),
            "settings": row.settings_text,
            "quality": quality_text(row),
            "seconds": row.seconds.likely,
            "across": row.memory_bytes
            if row.cost_per_output is None
            else row.cost_per_output.amount,
        }
        for row in found.rows
    ]
