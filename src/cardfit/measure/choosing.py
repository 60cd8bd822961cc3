"""The verb `choose`, wired: records from the store, usable bytes from the catalog, prices from the offers.

In: a sweep's name, or a request. Out: a `Choice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cardfit.cards import load as load_cards
from cardfit.cards import usable
from cardfit.errors import BadRequest
from cardfit.library.load import load
from cardfit.library.rules import resolve
from cardfit.measure.choose import HEADROOM, By, Choice, Limits
from cardfit.measure.choose import choose as choose_among
from cardfit.offers import load as load_offers
from cardfit.records.models import Record
from cardfit.records.verbs import listed
from cardfit.request import Request


def choose(
    request: Request | str | None = None,
    *,
    sweep: str | None = None,
    records: Sequence[Record] | None = None,
    by: By = "memory",
    headroom: float = HEADROOM,
    demand_per_hour: float | None = None,
    price_per_hour: float | None = None,
    min_ssim: float | None = None,
    max_seam: float | None = None,
    store: str | None = None,
    offers_file: Path | None = None,
) -> Choice:
    """The smallest measured configuration of one request that passed, and how many cards ``demand_per_hour`` takes.

    The records are those of ``sweep``, those of ``request`` (open fields count as asked), or those handed in.
    ``price_per_hour`` in USD stands in for the offers' cheapest. ``min_ssim`` and ``max_seam`` are limits for the
    output against its reference, as `compare`, `decode` or a sweep with a reference kept it in the records.
    Raises BadRequest for no records or those of several requests, InputError for a request that cannot be made.
    """
    found = tuple(records) if records is not None else _records(request, sweep, store)
    catalog = load_cards()
    market = load_offers(offers_file, cards=catalog)

    def room(record: Record) -> int | None:
        card = catalog.get(record.machine.card or "")
        if card is None:
            return record.machine.card_memory_bytes
        try:
            # a peak that NVML saw holds the context too: then the whole of CUDA's memory is the room
            band = usable(card)
        except BadRequest:
            return record.machine.card_memory_bytes
        whole = record.peak("device_used_peak_bytes") is not None
        return card.memory_bytes if whole else band.usable.likely

    def price(card: str) -> float | None:
        if price_per_hour is not None:
            return price_per_hour
        hourly = [
            offer.price_per_gpu
            for offer in market
            if offer.card == card
            and offer.period == "hour"
            and offer.currency == "USD"
            and not offer.spot
        ]
        return min(hourly, default=None)

    return choose_among(
        found,
        by=by,
        headroom=headroom,
        demand_per_hour=demand_per_hour,
        limits=Limits(min_ssim=min_ssim, max_seam=max_seam),
        usable=room,
        price_per_hour=price,
    )


def _records(
    request: Request | str | None, sweep: str | None, store: str | None
) -> tuple[Record, ...]:
    if (request is None) == (sweep is None):
        raise BadRequest("choose-what")
    if sweep is not None:
        return listed(store, sweep=sweep, unread=[], short=True)
    asked = Request(model=request) if isinstance(request, str) else request
    assert asked is not None
    entry = load(asked.model)
    exact, _ = resolve(entry, asked)
    wanted = exact.model_dump(include=asked.model_fields_set - {"model", "seed"})
    return tuple(
        record
        for record in listed(store, model=entry.id, asked=wanted, unread=[], short=True)
        if record.request is not None
        and record.resumed is None
        and record.request.model_dump(include=set(wanted)) == wanted
    )
