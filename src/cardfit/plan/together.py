"""One card for a whole list of requests: which card runs every one of them, and which of these is the cheapest.

In: the answers to each request, in their order, and how often each comes. Out: a `Together` (schema
``cardfit.plans/1``). A card runs the list when it fits every request; its offer is the one that has the host RAM for
the hungriest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.plan.answer import Answer, CardRow, Money, OfferRow, Said, Verdict
from cardfit.plan.offers import hourly, money_text
from cardfit.plan.target import short_name
from cardfit.plan.verdict import ORDER
from cardfit.units import human_seconds

SCHEMA: Literal["cardfit.plans/1"] = "cardfit.plans/1"
_HOUR = 3600


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class TogetherCard(_Frozen):
    """One card against the list: the worst verdict and the request (from 1) that has it first.

    ``seconds`` is the likely time of the whole list, one after another, loading left out; ``cost`` what the offer takes
    for it. Both are None where the time of one request cannot be told.
    """

    card: str
    name: str
    verdict: Verdict
    number: int
    settings_texts: tuple[str, ...]
    offer: OfferRow | None
    seconds: float | None
    cost: Money | None


class Together(_Frozen):
    """The answers, every card against all of them, and the two picks with a sentence each."""

    schema_: Annotated[Literal["cardfit.plans/1"], Field(alias="schema")] = SCHEMA
    counts: tuple[int, ...]
    cards: tuple[TogetherCard, ...]
    cheapest_hour: TogetherCard | None
    cheapest_list: TogetherCard | None
    said: tuple[Said, ...]
    plans: tuple[Answer, ...]


def together(answers: Sequence[Answer], counts: Sequence[int]) -> Together:
    """The list as a whole; ``answers`` are over the same cards."""
    by_card = [{row.card: row for row in answer.cards} for answer in answers]
    names = [card for card in by_card[0] if all(card in rows for rows in by_card)]
    cards = [_card([rows[card] for rows in by_card], counts) for card in names]
    cards.sort(key=lambda each: (ORDER.index(each.verdict), _price(each), each.card))
    fitting = [each for each in cards if each.verdict == "fits"]
    priced = _one_currency([each for each in fitting if each.offer is not None])
    costed = [each for each in priced if each.cost is not None]
    hour = min(priced, key=_price, default=None)
    whole = min(costed, key=lambda each: each.cost.amount if each.cost else 0.0, default=None)
    return Together(
        counts=tuple(counts),
        cards=tuple(cards),
        cheapest_hour=hour,
        cheapest_list=whole,
        said=tuple(_said(cards, fitting, hour, whole)),
        plans=tuple(answers),
    )


def _card(rows: Sequence[CardRow], counts: Sequence[int]) -> TogetherCard:
    worst = max(range(len(rows)), key=lambda at: ORDER.index(rows[at].verdict))
    holds = rows[worst].verdict in ("fits", "tight")
    hungriest = max(rows, key=lambda row: row.host_bytes or 0)
    offer = hungriest.offer if holds else None
    seconds = _seconds(rows, counts) if holds else None
    cost = None
    if offer is not None and seconds is not None and offer.period == "hour":
        amount = hourly(offer) * seconds / _HOUR
        cost = Money(amount=amount, currency=offer.price.currency)
    return TogetherCard(
        card=rows[0].card,
        name=rows[0].name,
        verdict=rows[worst].verdict,
        number=worst + 1,
        settings_texts=tuple(row.settings_text for row in rows),
        offer=offer,
        seconds=seconds,
        cost=cost,
    )


def _seconds(rows: Sequence[CardRow], counts: Sequence[int]) -> float | None:
    found = 0.0
    for row, count in zip(rows, counts, strict=True):
        if row.seconds is None:
            return None
        found += row.seconds.likely * count
    return found


def _price(each: TogetherCard) -> float:
    return float("inf") if each.offer is None else hourly(each.offer)


def _one_currency(cards: Sequence[TogetherCard]) -> list[TogetherCard]:
    """Those priced in the most common currency: nothing is converted."""
    names = [each.offer.price.currency for each in cards if each.offer is not None]
    if not names:
        return []
    common = min(set(names), key=lambda name: (-names.count(name), name))
    return [each for each in cards if each.offer and each.offer.price.currency == common]


def _said(
    cards: Sequence[TogetherCard],
    fitting: Sequence[TogetherCard],
    hour: TogetherCard | None,
    whole: TogetherCard | None,
) -> list[Said]:
    if not fitting:
        nearest = next((each for each in cards if each.verdict == "tight"), None)
        if nearest is None:
            return [Said.of("together-none")]
        return [Said.of("together-tight", card=short_name(nearest.name), number=nearest.number)]
    said = [Said.of("together-fit", count=len(fitting), cards=len(cards))]
    if hour is None or hour.offer is None:
        return [*said, Said.of("together-no-offer")]
    price = money_text(hourly(hour.offer), hour.offer.price.currency)
    args = {"card": short_name(hour.name), "price": price, "provider": hour.offer.provider}
    said.append(Said.of("together-hour", **args))
    if whole is not None and whole.cost is not None and whole.seconds is not None:
        said.append(
            Said.of(
                "together-list",
                card=short_name(whole.name),
                cost=money_text(whole.cost.amount, whole.cost.currency),
                seconds=human_seconds(whole.seconds),
            )
        )
    return said
