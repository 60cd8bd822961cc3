"""One rented card for the shots that a farm has no place for, or finishes late.

In: these shots with a row for each card that is offered by the hour. Out: the card and offer that keep all deadlines
for the least money, else that keep most. The card is rented at the start, fetches each model's files once, and makes
the shots one after another, the earliest deadline first. Left out: starting the machine, copying outputs, tax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cardfit.fleet.result import Rented
from cardfit.plan.answer import CardRow, Download, Money, OfferRow
from cardfit.plan.offers import hourly

_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Wanted:
    """One shot: its id, runs and deadline, its model, the fetching of its files.

    ``rows`` are the cards that may take it, by id, with the seconds of one run and its export.
    """

    id: str
    runs: int
    deadline: datetime | None
    model: str
    download: Download | None
    rows: dict[str, tuple[CardRow, float]]


def rented_for(wanted: Sequence[Wanted], start: datetime) -> Rented | None:
    """The one card for all of ``wanted``; None where there is nothing to do or no card can take every one of them."""
    if not wanted:
        return None
    queue = sorted(wanted, key=lambda each: (each.deadline or datetime.max, each.id))
    common = set.intersection(*(set(each.rows) for each in queue))
    found = [one for card in sorted(common) if (one := _on(card, queue, start)) is not None]
    return min(found, key=lambda one: (len(one.late), one.cost.amount, one.card), default=None)


def _on(card: str, queue: Sequence[Wanted], start: datetime) -> Rented | None:
    """``queue`` on ``card``, at the offer that has the host RAM for the hungriest; None without one."""
    rows = [each.rows[card][0] for each in queue]
    offer = max(rows, key=lambda row: row.host_bytes or 0).offer
    if offer is None or offer.period != "hour":
        return None
    passed, fetched, late = 0.0, 0.0, list[str]()
    here, loaded = set[str](), ""
    for each in queue:
        row, seconds = each.rows[card]
        if each.model not in here and each.download is not None:
            here.add(each.model)
            fetched += each.download.seconds
            passed += each.download.seconds
        weights = f"{each.model} {row.settings}"
        if weights != loaded and row.load_seconds is not None:
            passed += row.load_seconds.likely
        loaded = weights
        passed += each.runs * seconds
        if each.deadline is not None and _after(start, passed) > each.deadline:
            late.append(each.id)
    hours = passed / _HOUR
    return Rented(
        card=card,
        name=rows[0].name,
        shots=tuple(each.id for each in queue),
        hours=hours,
        download_seconds=fetched,
        download_assumed=any(each.download is not None and each.download.assumed for each in queue),
        cost=_cost(offer, hours),
        offer=offer,
        done=_after(start, passed),
        late=tuple(late),
    )


def _cost(offer: OfferRow, hours: float) -> Money:
    return Money(amount=hourly(offer) * hours, currency=offer.price.currency)


def _after(start: datetime, seconds: float) -> datetime:
    return start + timedelta(seconds=round(seconds))
