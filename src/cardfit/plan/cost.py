"""Cost of one accepted output, line by line, and what a machine costs while it exists.

In: prices of one machine and what is done with it. Out: a `Cost` whose lines sum to the total. A line whose size or
price nobody stated has no amount and is named in ``not_counted``; it is never taken as zero. A month counts as 730
hours, storage is billed by the decimal GB and month. Left out: taxes (`cardfit.plan.rent` adds them), discounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import prod

from cardfit.cards import Card
from cardfit.offers import Offer
from cardfit.plan.answer import Cost, CostLine, LineName, Money, OfferRow, Said
from cardfit.plan.offers import HOURS_PER_MONTH, best_offer, hourly, money_text, offer_rows
from cardfit.predict.totals import totals
from cardfit.trace.stream import Trace

HOUR_S = 3600
GB_BYTES = 10**9
WEEKS_PER_MONTH = HOURS_PER_MONTH / (7 * 24)


@dataclass(frozen=True, slots=True)
class Prices:
    """What a machine is billed by: the hour, disk by GB and month while running and while stopped, traffic, energy.

    All in ``currency``; what is not known is None.
    """

    currency: str
    per_hour: float
    disk_per_gb_month: float | None = None
    disk_stopped_per_gb_month: float | None = None
    egress_per_gb: float | None = None
    energy_per_kwh: float | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """``outputs`` of ``seconds`` each, of which the share ``keep_rate`` is accepted, and the time around them.

    ``export_s`` is what the host takes after each of them. The other times are seconds of the whole job, sizes bytes.
    None is not known and not counted; zero is none.
    """

    outputs: float
    seconds: float
    keep_rate: float = 1.0
    export_s: float | None = None
    boot_s: float | None = None
    download_bytes: int | None = None
    down_bytes_per_s: float | None = None
    load_s: float | None = None
    idle_s: float | None = None
    stopped_s: float | None = None
    disk_bytes: int | None = None
    egress_bytes: int | None = None
    power_w: float | None = None


def download_s(size_bytes: int | None, bytes_per_s: float | None) -> float | None:
    """Seconds to fetch ``size_bytes``; None where the size or the rate is not known.

    >>> download_s(400 * 10**9, 62.5e6)
    6400.0
    """
    if size_bytes == 0:
        return 0.0
    if size_bytes is None or bytes_per_s is None:
        return None
    return size_bytes / bytes_per_s


def storage_cost(size_bytes: int, hours: float, per_gb_month: float) -> float:
    """What ``size_bytes`` cost for ``hours`` at a price for a GB and a month of 730 hours.

    >>> round(storage_cost(400 * 10**9, 730, 0.07), 6)
    28.0
    """
    return size_bytes / GB_BYTES * per_gb_month * hours / HOURS_PER_MONTH


def cost(job: Job, prices: Prices) -> Cost:
    """(boot + download + load + N x (seconds + export) + idle + disks + egress + energy) / (N x keep rate).

    Raises ValueError where nothing is accepted.
    """
    accepted = job.outputs * job.keep_rate
    if not accepted > 0 or job.keep_rate > 1:
        raise ValueError(accepted)
    spans: dict[LineName, float | None] = {
        "boot": job.boot_s,
        "download": download_s(job.download_bytes, job.down_bytes_per_s),
        "load": job.load_s,
        "generate": job.outputs * job.seconds,
        "export": None if job.export_s is None else job.outputs * job.export_s,
        "idle": job.idle_s,
    }
    money = prices.currency
    lines = [_timed(name, span, prices.per_hour, money) for name, span in spans.items()]
    running_s = sum(span for span in spans.values() if span is not None)
    lines += _disk_lines(job, prices, running_s)
    lines.append(
        line("egress", gb(job.egress_bytes), prices.egress_per_gb, money, hours=None),
    )
    kwh = energy_kwh(job.power_w, job.outputs * job.seconds)
    if prices.energy_per_kwh is not None:
        lines.append(line("energy", kwh, prices.energy_per_kwh, money, hours=None))
    return summed(lines, money, accepted, kwh)


def summed(lines: Sequence[CostLine], currency: str, accepted: float, kwh: float | None) -> Cost:
    """``lines`` with their sum, by ``accepted`` outputs too."""
    total = sum(each.amount.amount for each in lines if each.amount is not None)
    return Cost(
        lines=tuple(lines),
        total=Money(amount=total, currency=currency),
        per_output=Money(amount=total / accepted, currency=currency),
        accepted_outputs=accepted,
        energy_kwh=kwh,
        not_counted=tuple(each.name for each in lines if each.amount is None),
    )


def _disk_lines(job: Job, prices: Prices, running_s: float) -> list[CostLine]:
    """The disk while the machine runs and while it is stopped."""
    spans: tuple[tuple[LineName, float | None, float | None], ...] = (
        ("disk_running", running_s, prices.disk_per_gb_month),
        ("disk_stopped", job.stopped_s, prices.disk_stopped_per_gb_month),
    )
    found = []
    for name, span, price in spans:
        hours = None if span is None else span / HOUR_S
        size = gb(job.disk_bytes)
        months = None if size is None or hours is None else size * hours / HOURS_PER_MONTH
        found.append(line(name, months, price, prices.currency, hours=hours))
    return found


def gb(size_bytes: int | None) -> float | None:
    return None if size_bytes is None else size_bytes / GB_BYTES


def _timed(name: LineName, span_s: float | None, per_hour: float, currency: str) -> CostLine:
    hours = None if span_s is None else span_s / HOUR_S
    return line(name, hours, per_hour, currency, hours=hours)


def line(
    name: LineName,
    count: float | None,
    price: float | None,
    currency: str,
    *,
    hours: float | None = None,
) -> CostLine:
    """``count`` times ``price``; nothing costs nothing whatever its price."""
    if count == 0:
        return CostLine(name=name, hours=hours, amount=Money(amount=0.0, currency=currency))
    known = None if count is None or price is None else count * price
    amount = None if known is None else Money(amount=known, currency=currency)
    return CostLine(name=name, hours=hours, amount=amount)


def outputs_at(hours_per_week: float, seconds: float) -> float:
    """Outputs a month of a machine that makes one after another for ``hours_per_week``.

    >>> round(outputs_at(20, 3600), 2)
    86.9
    """
    return hours_per_week * WEEKS_PER_MONTH * HOUR_S / seconds


def elements(latent: Iterable[int], *, batch: int = 1) -> int:
    """Elements of a latent, as guides count them: the product of its sides, in proportion to the batch.

    >>> elements((4, 128, 128)), elements((4, 256, 256), batch=2)
    (65536, 524288)
    """
    return prod(latent) * batch


def energy_kwh(power_w: float | None, seconds: float) -> float | None:
    """Energy at ``power_w`` for ``seconds``; None where the power is not known.

    >>> energy_kwh(350, 7200)
    0.7
    """
    return None if power_w is None else power_w * seconds / HOUR_S / 1000


def daily(offer: OfferRow) -> Said:
    """What the machine costs a day, whether anything runs on it or not."""
    return daily_of(hourly(offer), offer.price.currency)


def daily_of(per_hour: float, currency: str) -> Said:
    """The sentence that a machine at ``per_hour`` costs so much a day while it exists."""
    return Said.of("cost-daily", money=money_text(24 * per_hour, currency))


@dataclass(frozen=True, slots=True)
class Worth:
    """What one unit of money an hour buys of a card: bytes/s and half-precision tensor FLOP/s; None where not known.

    ``balance_flop_per_byte`` is where the two limits meet: work with more FLOPs to a byte is bound by arithmetic.
    """

    card: str
    offer: OfferRow | None
    bytes_per_s_per_price: float | None
    flop_per_s_per_price: float | None
    balance_flop_per_byte: float | None


def worth(card: Card, offer: OfferRow | None) -> Worth:
    """The bandwidth and tensor throughput that a unit of the offer's currency buys for an hour."""
    rate = card.flop_per_s.get("fp16_fp32acc") or card.flop_per_s.get("bf16")
    price = None if offer is None else hourly(offer)
    band = card.bandwidth_bytes_per_s
    return Worth(
        card=card.id,
        offer=offer,
        bytes_per_s_per_price=None if price is None or band is None else band / price,
        flop_per_s_per_price=None if price is None or rate is None else rate / price,
        balance_flop_per_byte=None if rate is None or not band else rate / band,
    )


def worths(found: Iterable[Card], market: Sequence[Offer], today: date) -> tuple[Worth, ...]:
    """`worth` of each card at its cheapest offer, in the reader's own currency or the one that most offers are in."""
    own = [offer.currency for offer in market if offer.own]
    counted = Counter(offer.currency for offer in market)
    money = own[0] if own else min(counted, key=lambda name: (-counted[name], name), default=None)
    return tuple(
        worth(card, best_offer(offer_rows(card.id, market, today), money, 0)) for card in found
    )


def denoise_work(trace: Trace) -> tuple[float, float]:
    """FLOPs of the denoising in ``trace`` and the bytes that it moves."""
    stages = [each for each in totals(trace).stages if each.stage == "denoise"]
    works = [work for stage in stages for work in stage.work]
    return sum(work.flop for work in works), sum(work.bytes for work in works)


def matters(found: Iterable[Worth], intensity: float | None = None) -> Said:
    """Which of the two columns counts: the general rule, or for work of so many FLOPs to a byte that it moves."""
    if intensity is None:
        return Said.of("cost-matters")
    known = [one.balance_flop_per_byte for one in found if one.balance_flop_per_byte is not None]
    bound = sum(intensity >= balance for balance in known)
    args: dict[str, object] = {
        "intensity": f"{intensity:.0f}",
        "bound": bound,
        "known": len(known),
    }
    return Said.of("cost-matters-here", **args)
