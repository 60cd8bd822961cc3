"""Seconds of one run by card and settings.

In: a library entry, the memo of traces and the catalog. Out: a `Timer`. The work of a trace is summed once.
"""

from __future__ import annotations

from collections.abc import Mapping

from cardfit.cards.card import Card
from cardfit.library.models import Model
from cardfit.plan.rows import Timer
from cardfit.plan.search import Estimates
from cardfit.predict import calibration
from cardfit.predict.timing import TimeEstimate, seconds
from cardfit.predict.totals import Totals, head_dim_of, totals
from cardfit.request import Settings


def timer_of(entry: Model, estimates: Estimates, catalog: Mapping[str, Card]) -> Timer:
    """The clock for ``entry``; it says None for a card that the catalog does not hold."""
    head_dim = head_dim_of(entry)
    work: dict[int, Totals] = {}

    def time(card: str, settings: Settings) -> TimeEstimate | None:
        known = catalog.get(card)
        if known is None:  # a card of this machine that the catalog does not hold
            return None
        traced = estimates.trace(settings)
        if id(traced) not in work:
            work[id(traced)] = totals(traced, head_dim=head_dim)
        found = work[id(traced)]
        if not any(each.work for each in found.stages):
            return None
        return seconds(found, settings, known, correction=calibration.correction(card))

    return time
