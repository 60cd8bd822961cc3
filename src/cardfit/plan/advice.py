"""Advice on finished rows: three picks, each with why, and the cautions that belong to the answer.

Cheapest is the lowest price per hour among the cards that fit (a month counts as 730 hours).
Safest keeps full precision, pays the least in speed and has at least a tenth of the card to
spare; of those the cheapest, since more room than that adds no safety. Fastest takes the least
likely seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cardfit.errors import Note
from cardfit.plan.answer import CardRow, OfferRow, Pick, Recommended, Said
from cardfit.plan.bill import Use
from cardfit.plan.offers import currencies, hourly, money_text
from cardfit.plan.rows import Ranked
from cardfit.plan.target import Target, short_name
from cardfit.plan.throughput import demand, rates
from cardfit.predict.efficiency import held_out
from cardfit.predict.timing import LEFT_OUT
from cardfit.request import ExactRequest
from cardfit.units import gib_text, human_seconds

SAFE_SHARE = 0.1  # of the usable bytes: the spare room from which a card counts as safe
CLOSE_SHARE = 0.2  # of the usable bytes: with more to spare a decode that comes last is no catch


def sort_key(row: CardRow, order: Sequence[str], currency: str | None) -> tuple[object, ...]:
    """Rows that hold it first, then the cheapest; a card without a comparable price after those with one."""
    return (
        order.index(row.verdict),
        *_price_key(row, currency),
        row.memory_bytes or 0,
        row.card,
    )


def recommend(
    rows: Iterable[CardRow], currency: str | None, use: Use | None = None
) -> tuple[Recommended, tuple[Note, ...]]:
    """The picks, and a note for each that cannot be made. With a stated ``use`` the least bill is the cheapest."""
    fitting = [row for row in rows if row.verdict == "fits"]
    if not fitting:
        none = Recommended(cheapest=None, fastest=None, safest=None)
        return none, (Note("plan-nothing-fits"),)
    notes = []
    fastest = _fastest(fitting)
    if fastest is None:
        notes.append(Note("plan-no-seconds"))
    cheapest = _least_bill(fitting, currency) if use is not None and use.stated else None
    cheapest = cheapest or _cheapest(fitting, currency)
    if cheapest is None:
        priced = any(row.offer for row in fitting)
        notes.append(
            Note("plan-no-currency-match", {"currency": currency})
            if priced
            else Note("plan-no-offer")
        )
    safest = _safest(fitting, currency)
    if safest is None:
        notes.append(Note("plan-none-full"))
    return Recommended(cheapest=cheapest, fastest=fastest, safest=safest), tuple(notes)


def cautions(
    ranked: Sequence[Ranked],
    recommended: Recommended,
    targets: Sequence[Target],
    request: ExactRequest,
    *,
    currency: str | None,
    ram_known: bool,
    use: Use,
    tiles: bool,
) -> tuple[Note, ...]:
    """What a reader must know beside the table."""
    notes = []
    if request.runtime == "comfyui":
        notes.append(Note("plan-comfyui"))
    notes += _catches(ranked, recommended, tiles, ram_known=ram_known)
    if not ram_known and (unknown := _ram_unknown(ranked)) is not None:
        notes.append(unknown)
    names = currencies(targets)
    if len(names) > 1:
        notes.append(
            Note("plan-currencies", {"currencies": ", ".join(names), "currency": currency})
        )
    if any(each.row.offer and each.row.offer.period == "month" for each in ranked):
        notes.append(Note("plan-monthly"))
    notes += rates(ranked, recommended, request.batch)
    if use.outputs_per_month is not None:
        made = use.outputs_per_month / use.session.keep_rate
        notes += demand(ranked, recommended, request.batch, made)
    notes += _time_basis(ranked)
    left_out = sorted({name for each in ranked if each.estimate for name in each.estimate.left_out})
    if left_out:
        notes.append(Note("plan-left-out", {"names": ", ".join(left_out)}))
    return tuple(notes)


def _time_basis(ranked: Sequence[Ranked]) -> list[Note]:
    """What the seconds rest on and leave out, once."""
    timed = [each.time for each in ranked if each.time is not None and each.row.seconds]
    if not timed:
        return []
    found = held_out()
    args: dict[str, object] = {
        "rows": found["n"],
        "median": f"{found['median_abs_pct']:.0f}",
        "names": ", ".join(LEFT_OUT),
    }
    return [Note("plan-time-basis", args)]


def _fastest(fitting: list[CardRow]) -> Pick | None:
    timed = [row for row in fitting if row.seconds is not None]
    if not timed:
        return None
    row = min(timed, key=lambda each: each.seconds.likely if each.seconds else 0.0)
    assert row.seconds is not None and row.settings is not None
    args = {
        "seconds": human_seconds(row.seconds.likely),
        "low": human_seconds(row.seconds.low),
        "high": human_seconds(row.seconds.high),
    }
    return Pick(card=row.card, settings=row.settings, why=Said.of("plan-fastest", **args))


def _price_key(row: CardRow, currency: str | None) -> tuple[bool, float]:
    if row.offer is None or row.offer.price.currency != currency:
        return (True, 0.0)
    return (False, hourly(row.offer))


def _cheapest(fitting: list[CardRow], currency: str | None) -> Pick | None:
    priced = [row for row in fitting if row.offer and row.offer.price.currency == currency]
    if not priced:
        return None
    row = min(
        priced,
        key=lambda each: (
            _price_key(each, currency),
            len(each.price_of_it),
            each.memory_bytes or 0,
        ),
    )
    assert row.offer is not None and row.settings is not None
    return Pick(card=row.card, settings=row.settings, why=_price_said(row.offer))


def _least_bill(fitting: list[CardRow], currency: str | None) -> Pick | None:
    """The row whose outputs cost least; None where no bill can be made."""
    billed = [
        (row.cost.total.amount, len(row.price_of_it), row.memory_bytes or 0, row, row.cost)
        for row in fitting
        if row.cost is not None and row.cost.total.currency == currency
    ]
    if not billed:
        return None
    *_, row, cost = min(billed, key=lambda each: each[:3])
    assert row.offer is not None and row.settings is not None
    args = {
        "count": f"{cost.accepted_outputs:,.0f}",
        "total": money_text(cost.total.amount, cost.total.currency),
        "each": money_text(cost.per_output.amount, cost.total.currency),
        "provider": row.offer.provider,
    }
    code = "plan-cheapest-bill-spot" if row.offer.spot else "plan-cheapest-bill"
    return Pick(card=row.card, settings=row.settings, why=Said.of(code, **args))


def _price_said(offer: OfferRow) -> Said:
    code = "plan-cheapest-month" if offer.period == "month" else "plan-cheapest-hour"
    if offer.spot:
        code = "plan-cheapest-spot"
    currency = offer.price.currency
    return Said.of(
        code,
        price=money_text(offer.price.amount, currency),
        hour=money_text(hourly(offer), currency),
        provider=offer.provider,
    )


def _safest(fitting: list[CardRow], currency: str | None) -> Pick | None:
    full = [row for row in fitting if "lossy" not in row.price_of_it]
    if not full:
        return None
    roomy = [row for row in full if _spare_share(row) >= SAFE_SHARE]
    if roomy:
        row = min(
            roomy,
            key=lambda each: (
                len(each.price_of_it),
                *_price_key(each, currency),
                each.memory_bytes or 0,
            ),
        )
    else:
        row = min(full, key=lambda each: (-(each.headroom_bytes or 0), len(each.price_of_it)))
    assert row.settings is not None and row.headroom_bytes is not None
    why = Said.of(
        "plan-safest" if roomy else "plan-safest-less", headroom=gib_text(row.headroom_bytes)
    )
    return Pick(card=row.card, settings=row.settings, why=why)


def _spare_share(row: CardRow) -> float:
    return (row.headroom_bytes or 0) / (row.usable_bytes or 1)


def _catches(
    ranked: Sequence[Ranked], recommended: Recommended, tiles: bool, *, ram_known: bool
) -> list[Note]:
    """What can go wrong with the recommended pick: decode after all the steps, RAM that nobody stated."""
    pick = recommended.cheapest or recommended.safest
    each = next((each for each in ranked if pick is not None and each.row.card == pick.card), None)
    if each is None or each.estimate is None or each.row.settings is None:
        return []
    row, settings, found = each.row, each.row.settings, []
    needs = {stage.name: stage.allocated_bytes for stage in each.estimate.stages}
    decode, denoise = gib_text(needs.get("decode", 0)), gib_text(needs.get("denoise", 0))
    last = needs.get("decode", 0) > needs.get("denoise", 0) > 0 and decode != denoise
    if last and needs["decode"] > (1 - CLOSE_SHARE) * (row.usable_bytes or 0):
        open_tiling = tiles and not settings.vae_tiling
        code = "plan-catch-decode-tiling" if open_tiling else "plan-catch-decode"
        found.append(
            Note(code, {"card": short_name(row.name), "decode": decode, "denoise": denoise})
        )
    if not ram_known and _ram_open(each):
        need = gib_text(each.estimate.host_bytes)
        found.append(Note("plan-catch-ram", {"card": short_name(row.name), "need": need}))
    return found


def _ram_unknown(ranked: Sequence[Ranked]) -> Note | None:
    """How many cards lean on host RAM that nobody stated, and the most that takes."""
    needs = [each.estimate.host_bytes for each in ranked if each.estimate and _ram_open(each)]
    if not needs:
        return None
    return Note("plan-ram-unknown", {"count": len(needs), "need": gib_text(max(needs))})


def _ram_open(each: Ranked) -> bool:
    """Whether the card holds it by leaning on host RAM that nobody stated."""
    row = each.row
    leans = row.verdict in ("fits", "tight") and "slower" in row.price_of_it
    return leans and (row.offer is None or row.offer.ram_bytes is None)
