"""Which offer stands beside a card, and when one price is lower than another.

Money keeps its currency: amounts of different currencies are never compared, so the offers of the
most common one come first. A month counts as 730 hours (365 x 24 / 12). An offer that can be
taken away (spot) is named only where no other is, and one known to have too little host RAM is
not named at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date

from cardfit.messages import number
from cardfit.offers import Offer, age_days
from cardfit.plan.answer import Money, OfferRow
from cardfit.plan.target import Target

HOURS_PER_MONTH = 730
_SIGNS = {"USD": "$"}


def hourly(offer: OfferRow) -> float:
    """The price of one card for an hour, in the offer's own currency; a month counts as 730 hours."""
    return offer.price.amount / (HOURS_PER_MONTH if offer.period == "month" else 1)


def money_text(amount: float, currency: str) -> str:
    """An amount with its currency.

    >>> money_text(0.4, "USD"), money_text(286, "EUR"), money_text(0.0014, "USD"), money_text(2.3e-5, "USD")
    ('$0.40', '286 EUR', '$0.0014', '$0.000023')
    """
    digits = (
        0 if amount >= 100 else 2 if amount >= 0.1 or amount == 0 else 4 if amount >= 1e-3 else 6
    )
    text = number(f"{amount:.{digits}f}")
    sign = _SIGNS.get(currency)
    return f"{sign}{text}" if sign else f"{text} {currency}"


def main_currency(targets: Iterable[Target]) -> str | None:
    """The currency that most offers are in (the first by name where two are as common); None without offers."""
    counted = Counter(offer.price.currency for target in targets for offer in target.offers)
    return min(counted, key=lambda name: (-counted[name], name)) if counted else None


def currencies(targets: Iterable[Target]) -> tuple[str, ...]:
    """All currencies that offers are in, sorted."""
    return tuple(sorted({offer.price.currency for each in targets for offer in each.offers}))


def with_ram(offers: Iterable[OfferRow], need_ram_bytes: int) -> list[OfferRow]:
    """Those of ``offers`` whose machine is not known to have less RAM than needed."""
    return [each for each in offers if each.ram_bytes is None or each.ram_bytes >= need_ram_bytes]


def best_offer(
    offers: tuple[OfferRow, ...], currency: str | None, need_ram_bytes: int
) -> OfferRow | None:
    """The cheapest of ``offers`` whose machine is not known to have less RAM than needed; None if there is none."""
    return min(
        with_ram(offers, need_ram_bytes),
        key=lambda each: (
            each.price.currency != currency,
            each.price.currency,
            each.spot,
            hourly(each),
            each.provider,
        ),
        default=None,
    )


def offer_rows(card: str, market: Sequence[Offer], today: date) -> tuple[OfferRow, ...]:
    """The offers for one ``card`` (its id); those of several cards together only where there is no other."""
    own = [offer for offer in market if offer.card == card]
    alone = [offer for offer in own if offer.gpus == 1]
    return tuple(
        OfferRow(
            provider=offer.provider,
            price=Money(amount=offer.price_per_gpu, currency=offer.currency),
            period=offer.period,
            spot=offer.spot,
            as_of=offer.as_of.isoformat(),
            age_days=age_days(offer, today),
            ram_bytes=offer.ram_bytes,
            source=offer.source,
            disk_included_bytes=offer.disk_included_bytes,
            disk_per_gb_month=offer.disk_price_per_gb_month,
        )
        for offer in alone or own
    )
