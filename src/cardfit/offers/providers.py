"""What providers do with a machine that is stopped, as they state it: a table of facts, most of them not published.

In: the shipped ``providers.csv``. Out: `Provider` values by name. An unknown fact is ``None`` and has a question that
the reader can put to the provider; it is never taken for yes or no.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from cardfit.cards import table
from cardfit.errors import BadRequest, Note
from cardfit.offers.market import CURRENCIES

COLUMNS: tuple[str, ...] = (
    "provider",
    "can_stop",
    "gpu_billed_while_stopped",
    "disk_billed_while_stopped",
    "disk_price_per_gb_month",
    "disk_price_stopped_per_gb_month",
    "currency",
    "egress_billed",
    "as_of",
    "source",
    "notes",
)
# The facts that decide a bill, with the code of the question to ask where one is not known.
ASK: dict[str, str] = {
    "can_stop": "provider-ask-stop",
    "gpu_billed_while_stopped": "provider-ask-gpu",
    "disk_billed_while_stopped": "provider-ask-disk",
    "disk_price_stopped_per_gb_month": "provider-ask-price",
    "egress_billed": "provider-ask-egress",
}
SHIPPED = Path(__file__).with_name("data") / "providers.csv"


@dataclass(frozen=True, slots=True)
class Provider:
    """What one provider says about stopped machines, disk and traffic; prices by decimal GB and month."""

    provider: str
    can_stop: bool | None
    gpu_billed_while_stopped: bool | None
    disk_billed_while_stopped: bool | None
    disk_price_per_gb_month: float | None
    disk_price_stopped_per_gb_month: float | None
    currency: str | None
    egress_billed: bool | None
    as_of: date
    source: str
    notes: str = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """The facts of `ASK` that nobody published."""
        return tuple(name for name in ASK if getattr(self, name) is None)

    def questions(self) -> tuple[Note, ...]:
        """What to ask the provider before renting."""
        return tuple(Note(ASK[name], {"provider": self.provider}) for name in self.unknown)


@cache
def load() -> Mapping[str, Provider]:
    """The shipped providers by name."""
    rows = table.read(SHIPPED, columns=COLUMNS, required=COLUMNS)
    found = [_provider(row) for row in rows]
    return {each.provider: each for each in found}


def find(providers: Mapping[str, Provider], name: str) -> Provider:
    """The provider called ``name``, without case and spaces. Raises BadRequest with suggestions."""
    asked = plain_name(name)
    if asked in providers:
        return providers[asked]
    near = table.did_you_mean(asked, list(providers))
    raise BadRequest("unknown-provider", asked=name, suggestion=near)


def plain_name(name: str) -> str:
    """A provider's name without case and spaces.

    >>> plain_name("Massed Compute")
    'massedcompute'
    """
    return name.lower().replace(" ", "")


def _provider(row: table.Row) -> Provider:
    return Provider(
        provider=row.text("provider"),
        can_stop=_fact(row, "can_stop"),
        gpu_billed_while_stopped=_fact(row, "gpu_billed_while_stopped"),
        disk_billed_while_stopped=_fact(row, "disk_billed_while_stopped"),
        disk_price_per_gb_month=row.number_above_zero("disk_price_per_gb_month"),
        disk_price_stopped_per_gb_month=row.number_above_zero("disk_price_stopped_per_gb_month"),
        currency=row.choice("currency", CURRENCIES) if row.cells["currency"] else None,
        egress_billed=_fact(row, "egress_billed"),
        as_of=row.day("as_of", latest=date.max),
        source=row.text("source"),
        notes=row.cells["notes"],
    )


def _fact(row: table.Row, column: str) -> bool | None:
    word = row.choice(column, ("yes", "no", "unknown"))
    return None if word == "unknown" else word == "yes"
