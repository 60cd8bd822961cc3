"""Offers: machines for rent, a dated snapshot with sources and a person's own prices on top."""

from cardfit.offers.market import (
    OLD_DAYS,
    age_days,
    cheapest,
    load,
    node_note,
    old_note,
    other_currencies,
)
from cardfit.offers.offer import Offer, Period

__all__ = [
    "OLD_DAYS",
    "Offer",
    "Period",
    "age_days",
    "cheapest",
    "load",
    "node_note",
    "old_note",
    "other_currencies",
]
