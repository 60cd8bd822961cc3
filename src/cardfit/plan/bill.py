"""The bill of a row's outputs: what its offer costs for a stated use, line by line.

In: an offer, seconds of a run, a `Session` (what is known of the time and prices around the runs). Out: a `Cost`, or
None where the offer is monthly and nobody stated a use. With a use the machine is taken once for a month's outputs:
started, filled, loaded, run, ended. Without one the bill is that of one more output of a machine that runs already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from cardfit.offers.providers import Provider, plain_name
from cardfit.plan.answer import Cost, Download, OfferRow, Said
from cardfit.plan.cost import (
    HOUR_S,
    Job,
    Prices,
    cost,
    download_s,
    energy_kwh,
    gb,
    line,
    outputs_at,
    summed,
)
from cardfit.plan.figures import check_figures, read_fields
from cardfit.plan.offers import HOURS_PER_MONTH
from cardfit.units import human_bytes, human_rate, human_seconds

# Where nobody states a rate: half a gigabit, common for rented machines. An assumption, named wherever it counts.
ASSUMED_BYTES_PER_S = 62.5e6


class Session(BaseModel):
    """The time and the prices around the runs; prices are in ``currency``. None is not known and not counted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: str = "USD"
    keep_rate: float = 1.0
    boot_s: float | None = None
    down_bytes_per_s: float | None = None
    idle_hours: float | None = None
    stopped_hours: float | None = None
    output_bytes: int | None = None
    disk_per_gb_month: float | None = None
    disk_stopped_per_gb_month: float | None = None
    egress_per_gb: float | None = None
    power_w: float | None = None
    energy_price_per_kwh: float | None = None


FLAGS: dict[str, str] = {
    "currency": "--currency",
    "keep_rate": "--keep",
    "boot_s": "--boot",
    "down_bytes_per_s": "--down",
    "idle_hours": "--idle-hours",
    "stopped_hours": "--stopped-hours",
    "output_bytes": "--output-size",
    "disk_per_gb_month": "--disk-price",
    "disk_stopped_per_gb_month": "--disk-stopped-price",
    "egress_per_gb": "--egress-price",
    "power_w": "--power",
    "energy_price_per_kwh": "--energy-price",
}


def session_of(fields: Mapping[str, object]) -> Session:
    """The session with ``fields``. Raises BadRequest naming the first that is unknown, wrong or absurd."""
    found = read_fields(Session, fields)
    check_figures(found, FLAGS)
    return found


@dataclass(frozen=True, slots=True)
class Use:
    """What is asked of a machine: accepted outputs a month or hours a week, and the session around them."""

    session: Session = field(default_factory=Session)
    outputs_per_month: float | None = None
    hours_per_week: float | None = None
    providers: Mapping[str, Provider] | None = None
    download_bytes: int | None = None

    @property
    def stated(self) -> bool:
        """Whether anybody said how much is to be made."""
        return self.outputs_per_month is not None or self.hours_per_week is not None

    def made(self, seconds: float) -> float | None:
        """Outputs made a month, those that are not kept included; None where no use was stated."""
        if self.outputs_per_month is not None:
            return self.outputs_per_month / self.session.keep_rate
        return None if self.hours_per_week is None else outputs_at(self.hours_per_week, seconds)

    def download(self) -> Download | None:
        """Fetching the model's files once; None where their size is not known."""
        if not self.download_bytes:
            return None
        rate = self.session.down_bytes_per_s or ASSUMED_BYTES_PER_S
        return Download(
            size_bytes=self.download_bytes,
            bytes_per_s=rate,
            seconds=download_s(self.download_bytes, rate) or 0.0,
            assumed=self.session.down_bytes_per_s is None,
        )


def use_of(
    session: Session | None, outputs: float | None, hours: float | None, weights_bytes: int
) -> Use:
    """What is asked of a machine; what providers say is read only where a bill needs it."""
    from cardfit.offers import providers

    known = None if outputs is None and hours is None else providers.load()
    return Use(session or Session(), outputs, hours, known, weights_bytes)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a row: likely seconds of an output on the card, of its export, of loading once; power, disk bytes."""

    seconds: float
    export_s: float | None = None
    load_s: float | None = None
    power_w: float | None = None
    disk_bytes: int | None = None


def bill(offer: OfferRow, run: Run, use: Use) -> Cost | None:
    """What ``offer`` costs for ``use``; None for a monthly price without a use or with one longer than a month."""
    made = use.made(run.seconds)
    if offer.period == "month":
        return None if made is None else _month(offer, run, use, made)
    session, power_w = use.session, use.session.power_w or run.power_w
    prices = _prices(offer, use)
    if made is None:
        one = Job(1 / session.keep_rate, run.seconds, session.keep_rate, power_w=power_w)
        return cost(one, prices)
    fetched = use.download()
    job = Job(
        outputs=made,
        seconds=run.seconds,
        keep_rate=session.keep_rate,
        export_s=run.export_s,
        boot_s=session.boot_s,
        download_bytes=use.download_bytes,
        down_bytes_per_s=None if fetched is None else fetched.bytes_per_s,
        load_s=run.load_s,
        idle_s=_seconds(session.idle_hours),
        stopped_s=_seconds(session.stopped_hours),
        disk_bytes=_paid_disk(offer, run),
        egress_bytes=_egress(offer, use, made),
        power_w=power_w,
    )
    return cost(job, prices)


def cheapest(
    offers: Iterable[OfferRow], run: Run, use: Use, currency: str | None
) -> tuple[OfferRow, Cost] | None:
    """The offer in ``currency`` with the least bill for a stated ``use``, spot prices last; None where none has one."""
    found = []
    for offer in offers:
        if offer.price.currency == currency and (made := bill(offer, run, use)) is not None:
            found.append((offer.spot, made.total.amount, offer.provider, offer, made))
    best = min(found, key=lambda each: each[:3], default=None)
    return None if best is None else (best[3], best[4])


def _month(offer: OfferRow, run: Run, use: Use, made: float) -> Cost | None:
    """A month is paid whole, whatever is done in it."""
    session, money = use.session, offer.price.currency
    if made * run.seconds > HOURS_PER_MONTH * HOUR_S:
        return None
    prices = _prices(offer, use)
    kwh = energy_kwh(session.power_w or run.power_w, made * run.seconds)
    lines = [
        line("machine", 1, offer.price.amount, money, hours=float(HOURS_PER_MONTH)),
        line("egress", gb(_egress(offer, use, made)), prices.egress_per_gb, money),
    ]
    if prices.energy_per_kwh is not None:
        lines.append(line("energy", kwh, prices.energy_per_kwh, money))
    return summed(lines, money, made * session.keep_rate, kwh)


def _seconds(hours: float | None) -> float | None:
    return None if hours is None else hours * HOUR_S


def _facts(offer: OfferRow, use: Use) -> Provider | None:
    return (use.providers or {}).get(plain_name(offer.provider))


def _prices(offer: OfferRow, use: Use) -> Prices:
    """The offer's price, and what was stated beside it, else what the offer or its provider says.

    Nothing is converted: a price in another currency than the offer's is none.
    """
    money, session, facts = offer.price.currency, use.session, _facts(offer, use)
    own = session if session.currency == money else Session(currency=money)
    theirs = facts if facts is not None and facts.currency == money else None
    running = own.disk_per_gb_month or offer.disk_per_gb_month
    if running is None and theirs is not None:
        running = theirs.disk_price_per_gb_month
    stopped = own.disk_stopped_per_gb_month
    if stopped is None and theirs is not None:
        stopped = theirs.disk_price_stopped_per_gb_month
    return Prices(
        currency=money,
        per_hour=offer.price.amount,
        disk_per_gb_month=running,
        disk_stopped_per_gb_month=stopped,
        egress_per_gb=own.egress_per_gb,
        energy_per_kwh=own.energy_price_per_kwh,
    )


def _paid_disk(offer: OfferRow, run: Run) -> int | None:
    """Bytes of disk beyond what the price includes."""
    if run.disk_bytes is None:
        return None
    return max(0, run.disk_bytes - (offer.disk_included_bytes or 0))


def _egress(offer: OfferRow, use: Use, made: float) -> int | None:
    """Bytes that leave the machine: what is kept; none that costs where the provider bills no traffic."""
    facts = _facts(offer, use)
    if facts is not None and facts.egress_billed is False:
        return 0
    size = use.session.output_bytes
    return None if size is None else round(size * made * use.session.keep_rate)


def fetched_note(found: Download) -> Said:
    """How long the model's files take to arrive, and whether the rate was stated or assumed."""
    return Said.of(
        "plan-download-assumed" if found.assumed else "plan-download",
        size=human_bytes(found.size_bytes),
        seconds=human_seconds(found.seconds),
        rate=human_rate(found.bytes_per_s),
    )
