"""Figures that people state about prices and use: what each may be at most, and the words for one that cannot be meant.

In: a frozen model of such figures (`RentQuestion`, `Session`) and the flag of each field. Out: the model, or a
BadRequest that names the flag, what was given and what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from cardfit.errors import BadRequest
from cardfit.offers.market import CURRENCIES

Figures = TypeVar("Figures", bound=BaseModel)
# Above these a figure is a slip, not a price or a use: (highest, unit as written). All must be above zero.
HIGHEST: dict[str, tuple[float, str]] = {
    "monthly": (1e6, ""),
    "hourly": (1e3, ""),
    "disk_per_gb_month": (10.0, "GB-month"),
    "disk_stopped_per_gb_month": (10.0, "GB-month"),
    "down_bytes_per_s": (1.25e11, "bytes/s"),
    "library_bytes": (1e15, "bytes"),
    "boot_s": (86400.0, "s"),
    "hours_per_week": (168.0, "h"),
    "sessions_per_week": (168.0, ""),
    "outputs_per_month": (1e9, ""),
    "seconds": (2.6e6, "s"),
    "keep_rate": (1.0, ""),
    "term_months": (120.0, "mo"),
    "vat_percent": (100.0, "%"),
    "api_price": (1e4, ""),
    "own_price": (1e6, ""),
    "own_power_w": (2e4, "W"),
    "power_w": (2e4, "W"),
    "own_life_months": (240.0, "mo"),
    "energy_price_per_kwh": (10.0, "kWh"),
    "egress_per_gb": (10.0, "GB"),
    "idle_hours": (730.0, "h"),
    "stopped_hours": (8760.0, "h"),
    "output_bytes": (1e12, "bytes"),
}
_MONEY = (
    *("monthly", "hourly", "disk_per_gb_month", "disk_stopped_per_gb_month"),
    *("api_price", "own_price", "energy_price_per_kwh", "egress_per_gb"),
)
# Of these a unit is worth so little that prices look large.
_SMALL_UNITS = {"VND": 3e4, "IDR": 2e4, "KRW": 2e3, "HUF": 500.0, "JPY": 200.0}
_FREE = frozenset(
    {"vat_percent", "boot_s", "idle_hours", "stopped_hours", "egress_per_gb"}
)  # zero is an answer


def read_fields(kind: type[Figures], fields: Mapping[str, object]) -> Figures:
    """The ``kind`` with ``fields``. Raises BadRequest naming the first that is unknown or of another type."""
    try:
        return kind.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        raise BadRequest(
            "rent-bad-field",
            field=name,
            asked=repr(fields.get(name)),
            why=first["msg"],
            allowed=", ".join(kind.model_fields),
        ) from None


def check_figures(found: BaseModel, flags: Mapping[str, str]) -> None:
    """Raise BadRequest for the first figure of ``found`` that cannot be meant; ``flags`` are its fields' names."""
    currency = str(getattr(found, "currency"))  # noqa: B009
    if currency not in CURRENCIES:
        raise BadRequest(
            "rent-bad-currency",
            flag=flags["currency"],
            asked=currency,
            allowed=", ".join(CURRENCIES),
        )
    scale = _SMALL_UNITS.get(currency, 1.0)
    for name, (highest, unit) in HIGHEST.items():
        value = getattr(found, name, None)
        if value is None or (value == 0 and name in _FREE):
            continue
        limit = highest * scale if name in _MONEY else highest
        if not (math.isfinite(value) and 0 < value <= limit):
            said = currency if name in _MONEY and not unit else unit
            most = f"{limit:,.0f} {said}".strip()
            raise BadRequest("rent-bad-figure", flag=flags[name], asked=f"{value:g}", most=most)
