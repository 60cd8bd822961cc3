"""What was learnt from records, as a page.

In: a `Calibration` and a `Style`. Out: lines.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.predict.calibration import Calibration, CardFactors, Factor
from cardfit.report.grid import Column, grid, hanging
from cardfit.report.style import Style
from cardfit.units import human_bytes


def lines(found: Calibration, style: Style) -> list[str]:
    """The whole page."""
    columns = [
        Column(say("calibrate-col-card")),
        Column(say("calibrate-col-what")),
        Column(say("calibrate-col-factor"), right=True),
        Column(say("calibrate-col-left"), right=True),
        Column(say("calibrate-col-runs"), right=True),
    ]
    table = [row for card, each in found.cards.items() for row in _rows(card, each)]
    page = grid(columns, table, style)
    page += ["", *hanging("", say("calibrate-used"), style.width, 0)]
    for why, count in sorted(found.left_out.items()):
        page += hanging("", say(f"calibrate-left-{why}", {"count": count}), style.width, 0)
    return page


def _rows(card: str, each: CardFactors) -> list[list[str]]:
    named: list[tuple[str, Factor | None]] = [
        (say("calibrate-time"), each.time),
        *(
            (say("calibrate-stage", {"stage": name}), factor)
            for name, factor in each.stages.items()
        ),
        *((say("calibrate-kind", {"kind": name}), factor) for name, factor in each.kinds.items()),
        (say("calibrate-allocated"), each.allocated),
        (say("calibrate-reserved"), each.reserved),
    ]
    table = [[card, what, *_figures(factor)] for what, factor in named if factor is not None]
    if each.context_likely_bytes is not None:
        band = ""
        if each.context_low_bytes is not None and each.context_high_bytes is not None:
            sizes = (human_bytes(each.context_low_bytes), human_bytes(each.context_high_bytes))
            band = f"{sizes[0]} .. {sizes[1]}"
        table.append(
            [card, say("calibrate-context"), human_bytes(each.context_likely_bytes), band, ""]
        )
    return table


def _figures(factor: Factor) -> list[str]:
    left = f"{100 * (factor.low - 1):+.1f} .. {100 * (factor.high - 1):+.1f} %"
    return [f"x {factor.factor:.3f}", left, str(factor.n)]
