"""`Offer`: a machine for rent, as its provider published it on one day.

In: one row of an offers table. Out: a frozen value; money is an amount and a currency, never
converted. Sizes are bytes; what the provider does not state is ``None``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

Period = Literal["hour", "month"]


@dataclass(frozen=True, slots=True)
class Offer:
    """One price: ``price`` for all ``gpus`` together, per ``period``, in ``currency`` (ISO 4217).

    ``card`` is a card id. ``charged_while_stopped`` says whether the disk (not the GPU) stays
    billed. ``own`` marks a row of the reader's own file.
    """

    provider: str
    card: str
    gpus: int
    price: float
    currency: str
    period: Period
    spot: bool
    as_of: date
    source: str
    ram_bytes: int | None = None
    vcpus: int | None = None
    disk_included_bytes: int | None = None
    disk_price_per_gb_month: float | None = None
    charged_while_stopped: bool | None = None
    region: str = ""
    tier: str = ""
    notes: str = ""
    own: bool = False

    @property
    def price_per_gpu(self) -> float:
        """The price of one GPU per period.

        >>> Offer("x", "l4", 8, 4.0, "USD", "hour", False, date(2026, 8, 2), "page").price_per_gpu
        0.5
        """
        return self.price / self.gpus
