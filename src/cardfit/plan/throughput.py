"""How much a card makes in an hour, how many cards a demand takes, and whether a larger batch would help.

In: timed rows. Out: notes. An hour's outputs follow from the likely seconds of a run and of its export on the host's
threads, one after the other or side by side; loading once is not in it. A month is 730 hours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cardfit.errors import Note
from cardfit.messages import number
from cardfit.plan.answer import Recommended
from cardfit.plan.rows import Ranked
from cardfit.plan.target import short_name
from cardfit.predict.timing import TimeEstimate
from cardfit.units import gib_text

HOUR_S = 3600.0
HOURS_PER_MONTH = 730.0
SPARE_SHARE = 0.2  # of the usable bytes: with less to spare no larger batch would fit
_SAME_FOR_ANY_BATCH = (
    "quantization",
    "transfer",
)  # kinds that handle weights, however many outputs they serve


def outputs_per_hour(seconds: float, batch: int) -> float:
    """Outputs of an hour of runs in a row, ``batch`` outputs a run.

    >>> outputs_per_hour(90, 1)
    40.0
    """
    return HOUR_S / seconds * batch


def cards_for(outputs_per_month: float, seconds: float, batch: int) -> int:
    """Cards that a demand takes when they run day and night.

    >>> cards_for(29_200, 90, 1), cards_for(29_201, 90, 1)
    (1, 2)
    """
    each = outputs_per_hour(seconds, batch) * HOURS_PER_MONTH
    return max(1, math.ceil(outputs_per_month / each - 1e-9))


def rates(ranked: Sequence[Ranked], recommended: Recommended, batch: int) -> list[Note]:
    """What the cheapest card that fits makes in an hour and a day, and what a batch would change."""
    row = chosen(ranked, recommended)
    if row is None or row.row.seconds is None:
        return []
    seconds = row.row.seconds.likely
    export = row.time.export.likely if row.time is not None and row.time.export else 0.0
    hour = outputs_per_hour(seconds + export, batch)
    args: dict[str, object] = {
        "card": short_name(row.row.name),
        "hour": count_text(hour),
        "day": count_text(24 * hour),
        "beside": count_text(outputs_per_hour(max(seconds, export), batch)),
    }
    return [Note("plan-throughput", args), *_batch(row)]


def demand(
    ranked: Sequence[Ranked], recommended: Recommended, batch: int, outputs_per_month: float
) -> list[Note]:
    """Cards for a month's outputs; none of them adds its memory to another's."""
    row = chosen(ranked, recommended)
    if row is None or row.row.seconds is None:
        return [Note("plan-outputs-no-seconds", {"outputs": f"{outputs_per_month:g}"})]
    seconds = row.row.seconds.likely
    count = cards_for(outputs_per_month, seconds, batch)
    hours = outputs_per_month / outputs_per_hour(seconds, batch)
    args: dict[str, object] = {
        "outputs": f"{outputs_per_month:g}",
        "hours": count_text(hours),
        "card": short_name(row.row.name),
        "count": count,
    }
    return [Note("plan-demand-one" if count == 1 else "plan-demand-many", args)]


def chosen(ranked: Sequence[Ranked], recommended: Recommended) -> Ranked | None:
    """The cheapest pick, else the fastest."""
    pick = recommended.cheapest or recommended.fastest
    if pick is None:
        return None
    return next((each for each in ranked if each.row.card == pick.card), None)


def _batch(row: Ranked) -> list[Note]:
    """Whether the spare memory is worth filling with a larger batch."""
    usable, spare = row.row.usable_bytes, row.row.headroom_bytes
    if row.time is None or usable is None or spare is None or spare < SPARE_SHARE * usable:
        return []
    helps = batch_helps(row.time)
    if helps is None:
        return []
    args: dict[str, object] = {"card": short_name(row.row.name), "spare": gib_text(spare)}
    return [Note("plan-batch-helps" if helps else "plan-batch-no-faster", args)]


def batch_helps(time: TimeEstimate) -> bool | None:
    """Whether denoising waits for the host or for weights rather than for arithmetic; None without a denoise stage."""
    stages = [stage for stage in time.stages if stage.name == "denoise"]
    if not stages:
        return None
    if any(stage.launch_bound for stage in stages):
        return True
    waiting = sum(s for stage in stages for kind, s in stage.parts if kind in _SAME_FOR_ANY_BATCH)
    whole = sum(s for stage in stages for kind, s in stage.parts if kind != "launch")
    return waiting > whole / 2


def count_text(value: float) -> str:
    """A number of outputs or hours as a person writes it."""
    return number(f"{value:.1f}" if value < 10 else f"{value:,.0f}")
