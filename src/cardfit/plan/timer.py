"""The clock of a plan: seconds of one run by card and settings, the work of each trace summed once.

In: a library entry, its traces, the catalog, and what was measured of a machine. Out: the function that rows ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cardfit.cards import Card
from cardfit.library.models import Model
from cardfit.plan.rows import Timer
from cardfit.plan.search import Estimates
from cardfit.predict import calibration
from cardfit.predict.timing import TimeEstimate, seconds
from cardfit.predict.totals import Totals, head_dim_of, totals
from cardfit.request import Settings

if TYPE_CHECKING:
    from cardfit.plan.machine import Probed


def timer(
    entry: Model,
    estimates: Estimates,
    catalog: Mapping[str, Card],
    probed: Probed | None = None,
    work: dict[int, Totals] | None = None,
) -> Timer:
    """Seconds of one run; None for a card that the catalog does not hold, or where nothing was counted.

    ``work`` is shared by the clocks of several machines, so that each trace is summed once for all.
    """
    head_dim = head_dim_of(entry)
    work = {} if work is None else work
    links = {} if probed is None else probed.links
    host = None if probed is None else probed.host

    def time(card: str, settings: Settings) -> TimeEstimate | None:
        known = catalog.get(card)
        if known is None:
            return None
        traced = estimates.trace(settings)
        if id(traced) not in work:
            work[id(traced)] = totals(traced, head_dim=head_dim)
        found = work[id(traced)]
        if not any(each.work for each in found.stages):
            return None
        return seconds(
            found,
            settings,
            known,
            link=links.get(card),
            machine=host,
            correction=calibration.correction(card),
        )

    return time
