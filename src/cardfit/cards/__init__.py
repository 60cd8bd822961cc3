"""Cards: GPUs as physics and capability, from data files with a source and date per row."""

from cardfit.cards.card import FLOP_KINDS, Card
from cardfit.cards.catalog import find, load
from cardfit.cards.detect import Device, Machine, here, none_found
from cardfit.cards.usable import (
    Interval,
    Usable,
    driver_bytes,
    rates_missing,
    unverified_reason,
    usable,
)

__all__ = [
    "FLOP_KINDS",
    "Card",
    "Device",
    "Interval",
    "Machine",
    "Usable",
    "driver_bytes",
    "find",
    "here",
    "load",
    "none_found",
    "rates_missing",
    "unverified_reason",
    "usable",
]
