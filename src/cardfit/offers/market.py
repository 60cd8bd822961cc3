"""The offers at hand: the shipped snapshot, a person's own file on top, the cheapest for a card.

In: CSV files. Out: `Offer` values, own rows first. Prices of different currencies or periods are
never compared. What rent costs over time (boot, idle, disk while stopped) is left out here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import cast

from cardfit.cards import Card, table
from cardfit.cards import load as load_cards
from cardfit.cards.catalog import find, suggestion
from cardfit.errors import Note, UnknownCard
from cardfit.messages import day, say
from cardfit.offers.offer import Offer, Period
from cardfit.units import GIB

COLUMNS: tuple[str, ...] = (
    "provider",
    "card_id",
    "gpus",
    "price",
    "currency",
    "per",
    "spot",
    "vcpus",
    "ram_gib",
    "disk_gb_included",
    "extra_disk_price_per_gb_month",
    "charged_while_stopped",
    "region",
    "as_of",
    "source",
    "tier",
    "notes",
)
REQUIRED: tuple[str, ...] = ("provider", "card_id", "gpus", "price", "currency", "per", "as_of")
# price_per_gpu is derived; a file that carries it is read, the column is not used.
ACCEPTED: tuple[str, ...] = (*COLUMNS, "price_per_gpu")
CURRENCIES: tuple[str, ...] = (
    *("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF"),
    *("IDR", "ILS", "INR", "JPY", "KRW", "MXN", "MYR", "NOK", "NZD", "PLN", "RON"),
    *("SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "VND", "ZAR"),
)
PERIODS: tuple[Period, ...] = ("hour", "month")
OLD_DAYS = 90
SHIPPED = Path(__file__).with_name("data") / "offers.csv"
ALONE: ContextVar[bool] = ContextVar("alone", default=False)
"""Whether the offers of the reader's own file stand alone, as on the pages of a host."""


def load(
    offers_file: Path | None = None,
    *,
    cards: Mapping[str, Card] | None = None,
    today: date | None = None,
) -> tuple[Offer, ...]:
    """The offers: those of ``offers_file``, those of the last update, the shipped ones.

    ``cards`` is the catalog that own rows may name (the shipped one when left out). A shipped price gives way to the
    update's for the same provider and card. Raises BadFile, naming file, row and column, for what is wrong in
    ``offers_file`` or in the kept file.
    """
    known = load_cards() if cards is None else cards
    day = today or date.today()
    own = () if offers_file is None else read_file(offers_file, known, day)
    if ALONE.get():
        return own
    file = kept_file()
    if not file.is_file():
        return (*own, *_shipped())
    kept = tuple(replace(each, own=False) for each in read_file(file, load_cards(), day))
    newer = {(each.provider, each.card, each.period) for each in kept}
    older = (each for each in _shipped() if (each.provider, each.card, each.period) not in newer)
    return (*own, *kept, *older)


def read_file(file: Path, cards: Mapping[str, Card], today: date) -> tuple[Offer, ...]:
    """The offers in a CSV file of the reader's own. Raises BadFile naming row and column."""
    latest = today + timedelta(days=1)  # the reader may live east of the writer
    rows = table.read(file, columns=ACCEPTED, required=REQUIRED)
    return tuple(_offer(row, cards, latest, own=True) for row in rows)


def kept_file() -> Path:
    """Where `cardfit offers update` keeps prices: in ``CARDFIT_CACHE``, else the user's cache folder."""
    if given := os.environ.get("CARDFIT_CACHE"):
        return Path(given) / "offers.csv"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "cardfit" / "offers.csv"


def cheapest(
    offers: Iterable[Offer],
    card_id: str,
    *,
    spot: bool = False,
    period: Period | None = None,
    currency: str | None = None,
) -> Offer | None:
    """The offer with the lowest price for one GPU of ``card_id``; ``None`` when there is none.

    Spot prices count only with ``spot=True``. Machines with a single GPU come before larger ones,
    whose price must be paid as a whole (`node_note`). ``period=None`` takes hourly prices, monthly
    ones only when there are no others; ``currency=None`` takes that of the first fitting offer (own
    rows stand first), `other_currencies` names the rest.
    """
    for wanted in PERIODS if period is None else (period,):
        fitting = _fitting(offers, card_id, spot=spot, period=wanted)
        if not fitting:
            continue
        money = currency or fitting[0].currency
        same = [offer for offer in fitting if offer.currency == money]
        if same:
            return min(same, key=lambda offer: (offer.gpus > 1, offer.price_per_gpu))
    return None


def other_currencies(offers: Iterable[Offer], chosen: Offer, *, spot: bool = False) -> Note | None:
    """Which currencies were left aside when ``chosen`` was found; ``None`` when there were none."""
    fitting = _fitting(offers, chosen.card, spot=spot, period=chosen.period)
    others = sorted({offer.currency for offer in fitting} - {chosen.currency})
    if not others:
        return None
    return Note(
        "offer-currencies",
        {"card": chosen.card, "others": ", ".join(others), "currency": chosen.currency},
    )


def node_note(offer: Offer) -> Note | None:
    """The remark that ``offer`` is sold in machines of several GPUs; ``None`` for a single one."""
    if offer.gpus == 1:
        return None
    return Note(
        "offer-node",
        {
            "provider": offer.provider,
            "card": offer.card,
            "gpus": offer.gpus,
            "price": f"{offer.price:.2f}",
            "currency": offer.currency,
        },
    )


def age_days(offer: Offer, today: date) -> int:
    """Days since the price was published; 0 for one of tomorrow's date (time zones)."""
    return max(0, (today - offer.as_of).days)


def old_note(offer: Offer, today: date) -> Note | None:
    """The caution for an offer older than 90 days; ``None`` for a younger one."""
    days = age_days(offer, today)
    if days <= OLD_DAYS:
        return None
    return Note(
        "offer-old",
        {
            "provider": offer.provider,
            "card": offer.card,
            "as_of": day(offer.as_of),
            "days": days,
        },
    )


def _fitting(offers: Iterable[Offer], card_id: str, *, spot: bool, period: Period) -> list[Offer]:
    return [
        offer
        for offer in offers
        if offer.card == card_id and offer.period == period and (spot or not offer.spot)
    ]


@cache
def _shipped() -> tuple[Offer, ...]:
    rows = table.read(SHIPPED, columns=COLUMNS, required=COLUMNS)
    return tuple(_offer(row, load_cards(), date.max, own=False) for row in rows)


def _offer(row: table.Row, cards: Mapping[str, Card], latest: date, *, own: bool) -> Offer:
    """The offer in ``row``. Raises BadFile naming the column that does not hold what it should."""
    return Offer(
        provider=row.text("provider"),
        card=_card_id(row, cards),
        gpus=_gpus(row),
        price=_price(row),
        currency=row.choice("currency", CURRENCIES),
        period=cast(Period, row.choice("per", PERIODS)),
        spot=_flag(row, "spot") or False,
        as_of=row.day("as_of", latest=latest),
        source=row.cells.get("source", "") or row.file,
        ram_bytes=_scaled(row.number_above_zero("ram_gib"), GIB),
        vcpus=row.count("vcpus", lowest=1),
        disk_included_bytes=_scaled(row.number_above_zero("disk_gb_included"), 10**9),
        disk_price_per_gb_month=row.number_above_zero("extra_disk_price_per_gb_month"),
        charged_while_stopped=_flag(row, "charged_while_stopped"),
        region=row.cells.get("region", ""),
        tier=row.cells.get("tier", ""),
        notes=row.cells.get("notes", ""),
        own=own,
    )


def _gpus(row: table.Row) -> int:
    gpus = row.count("gpus", lowest=1)
    if gpus is None:
        raise row.bad("gpus", say("allowed-count", {"lowest": 1}))
    return gpus


def _price(row: table.Row) -> float:
    price = row.number_above_zero("price")
    if price is None:
        raise row.bad("price", say("allowed-above-zero"))
    return price


def _card_id(row: table.Row, cards: Mapping[str, Card]) -> str:
    asked = row.text("card_id")
    try:
        return find(cards, asked).id
    except UnknownCard:
        near = suggestion(cards, asked)
        raise row.bad("card_id", say("allowed-card", {"suggestion": near})) from None


def _flag(row: table.Row, column: str) -> bool | None:
    """Yes or no; ``None`` for an empty cell or "unknown"."""
    if not row.cells.get(column):
        return None
    word = row.choice(column, ("yes", "no", "unknown"))
    return None if word == "unknown" else word == "yes"


def _scaled(number: float | None, factor: int) -> int | None:
    return None if number is None else round(number * factor)
