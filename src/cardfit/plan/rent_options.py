"""The ways to get the work done, each with its bill for a month and its line in the chart.

In: a checked question and the use it states. Out: `Option` and `Curve`. VAT is added to what is rented or
bought by the piece; a card of one's own and its energy count as paid. Left out: what a card is sold for after its life,
interest, the room and the host around a card of one's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cardfit.plan.answer import CostLine, LineName, Money, Said
from cardfit.plan.cost import HOUR_S, WEEKS_PER_MONTH, download_s, storage_cost
from cardfit.plan.offers import HOURS_PER_MONTH
from cardfit.plan.rent_answer import Curve, Option, Use, Way
from cardfit.plan.rent_question import RentQuestion

SESSION_HOURS = 8.0  # the longest a session is taken to be where nobody says how many there are


def use_of(asked: RentQuestion) -> Use:
    """Hours that the machine exists, hours it generates, sessions and outputs of a month; None where not stated."""
    runs = None if asked.outputs_per_month is None else asked.outputs_per_month / asked.keep_rate
    made = None if runs is None or asked.seconds is None else runs * asked.seconds / HOUR_S
    stated = None if asked.hours_per_week is None else asked.hours_per_week * WEEKS_PER_MONTH
    known = [each for each in (stated, made) if each is not None]
    hours = max(known) if known else None
    sessions = None
    if asked.sessions_per_week is not None:
        sessions = asked.sessions_per_week * WEEKS_PER_MONTH
    elif hours is not None:
        sessions = math.ceil(hours / WEEKS_PER_MONTH / SESSION_HOURS - 1e-9) * WEEKS_PER_MONTH
    outputs = asked.outputs_per_month
    if outputs is None and hours is not None and asked.seconds is not None:
        outputs = hours * HOUR_S / asked.seconds * asked.keep_rate
    return Use(
        hours_per_month=hours,
        generating_hours_per_month=made,
        sessions_per_month=sessions,
        outputs_per_month=outputs,
    )


_Part = tuple[LineName, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Terms:
    """The question with what follows from it: hourly rates and a session's lost hours, before VAT."""

    asked: RentQuestion
    use: Use
    stop: Said | None = None  # why stopping is no way here
    billed_stopped: bool = False  # the GPU is billed while the machine is stopped

    @property
    def vat(self) -> float:
        """The factor that VAT puts on a price."""
        return 1 + self.asked.vat_percent / 100

    @property
    def stored(self) -> float | None:
        """A month of the library's disk on a stopped machine; None where its size or price is not known."""
        price = self.asked.disk_stopped_per_gb_month or self.asked.disk_per_gb_month
        if self.asked.library_bytes is None or price is None:
            return None
        return storage_cost(self.asked.library_bytes, HOURS_PER_MONTH, price)

    @property
    def disk_per_hour(self) -> float | None:
        """An hour of the library's disk on a running machine."""
        price = self.asked.disk_per_gb_month
        if self.asked.library_bytes is None or price is None:
            return None
        return storage_cost(self.asked.library_bytes, 1, price)

    @property
    def download_hours(self) -> float | None:
        """Hours to fetch the library once."""
        span = download_s(self.asked.library_bytes, self.asked.down_bytes_per_s)
        return None if span is None else span / HOUR_S

    @property
    def existing_hour(self) -> float:
        """An hour of a machine that is destroyed after each session, with its disk where that is known."""
        return (self.asked.hourly or 0.0) + (self.disk_per_hour or 0.0)

    @property
    def boot_hours(self) -> float:
        """Hours that a start takes; none where not stated."""
        return (self.asked.boot_s or 0.0) / HOUR_S

    @property
    def outputs_per_hour(self) -> float | None:
        """Accepted outputs in an hour that the machine exists: as used where that is stated, else without a pause."""
        hours, count = self.use.hours_per_month, self.use.outputs_per_month
        if hours and count:
            return count / hours
        if self.asked.seconds is None:
            return None
        return HOUR_S / self.asked.seconds * self.asked.keep_rate

    @property
    def busy_hours(self) -> float | None:
        """Hours a month that the card works: generating where that is known, else all that it exists."""
        made = self.use.generating_hours_per_month
        return self.use.hours_per_month if made is None else made

    @property
    def session_hours(self) -> float:
        """Hours of use in one session."""
        hours, sessions = self.use.hours_per_month, self.use.sessions_per_month
        if not hours or not sessions:
            return SESSION_HOURS
        return hours / sessions


def options_of(terms: Terms) -> tuple[Option, ...]:
    """Every way that a price was given for."""
    asked, found = terms.asked, []
    if asked.monthly is not None:
        found.append(_monthly(terms, asked.monthly))
    if asked.hourly is not None:
        found += [_stop(terms, asked.hourly), _destroy(terms, asked.hourly)]
    if asked.api_price is not None:
        found.append(_api(terms, asked.api_price))
    if asked.own_price is not None:
        found.append(_own(terms, asked.own_price))
    return tuple(found)


def _monthly(terms: Terms, price: float) -> Option:
    months = max(1, math.ceil(terms.asked.term_months - 1e-9))
    lines = _lines(terms, [("machine", HOURS_PER_MONTH, price)])
    return _option(terms, "monthly", lines, exists=HOURS_PER_MONTH, months=months)


def _stop(terms: Terms, price: float) -> Option:
    hours, sessions = terms.use.hours_per_month, terms.use.sessions_per_month
    if terms.stop is not None:
        return _without("hourly_stop", terms.stop)
    if hours is None or sessions is None:
        return _without("hourly_stop", Said.of("rent-no-use"))
    boots = sessions * terms.boot_hours
    on = min(hours + boots, HOURS_PER_MONTH)
    off = HOURS_PER_MONTH - on
    billed = HOURS_PER_MONTH if terms.billed_stopped else hours
    running, stopped = terms.disk_per_hour, terms.stored
    boot: list[_Part] = [("boot", boots, boots * price)] if boots else []
    lines = _lines(
        terms,
        [
            ("machine", billed, billed * price),
            *boot,
            ("disk_running", on, None if running is None else running * on),
            ("disk_stopped", off, None if stopped is None else stopped * off / HOURS_PER_MONTH),
        ],
    )
    return _option(terms, "hourly_stop", lines, exists=HOURS_PER_MONTH, lost=boots)


def _destroy(terms: Terms, price: float) -> Option:
    hours, sessions = terms.use.hours_per_month, terms.use.sessions_per_month
    if hours is None or sessions is None:
        return _without("hourly_destroy", Said.of("rent-no-use"))
    each = terms.download_hours
    if each is None:
        return _without("hourly_destroy", Said.of("rent-no-download"))
    waiting, boots = sessions * each, sessions * terms.boot_hours
    exists = hours + waiting + boots
    if exists > HOURS_PER_MONTH:
        args = {"hours": f"{exists:.0f}", "most": HOURS_PER_MONTH}
        return _without("hourly_destroy", Said.of("rent-no-time", **args))
    running = terms.disk_per_hour
    boot: list[_Part] = [("boot", boots, boots * price)] if boots else []
    lines = _lines(
        terms,
        [
            ("machine", hours, hours * price),
            *boot,
            ("download", waiting, waiting * price),
            ("disk_running", exists, None if running is None else running * exists),
        ],
    )
    return _option(terms, "hourly_destroy", lines, exists=exists, lost=waiting + boots)


def _api(terms: Terms, price: float) -> Option:
    count = terms.use.outputs_per_month
    if count is None:
        return _without("api", Said.of("rent-no-outputs"))
    lines = _lines(terms, [("api", None, count * price / terms.asked.keep_rate)])
    return _option(terms, "api", lines)


def _own(terms: Terms, price: float) -> Option:
    asked, hours = terms.asked, terms.busy_hours
    if asked.own_life_months is None:
        return _without("own", Said.of("rent-no-life"))
    energy = energy_per_hour(asked)
    spent = None if hours is None or energy is None else hours * energy
    lines = [
        _line(asked, "wear", None, price / asked.own_life_months),
        _line(asked, "energy", hours, spent),
    ]
    return _option(terms, "own", lines, exists=HOURS_PER_MONTH, upfront=price)


def energy_per_hour(asked: RentQuestion) -> float | None:
    """What an hour of the own card's power costs; None where power or price is not known."""
    if asked.own_power_w is None or asked.energy_price_per_kwh is None:
        return None
    return asked.own_power_w / 1000 * asked.energy_price_per_kwh


def _without(way: Way, why: Said) -> Option:
    return Option(
        way=way,
        lines=(),
        per_month=None,
        over_term=None,
        per_output=None,
        upfront=None,
        hours_exists_per_month=None,
        hours_lost_per_month=None,
        not_counted=(),
        why_not=why,
    )


def _option(
    terms: Terms,
    way: Way,
    lines: list[CostLine],
    *,
    exists: float | None = None,
    lost: float | None = None,
    months: float | None = None,
    upfront: float | None = None,
) -> Option:
    asked, count = terms.asked, terms.use.outputs_per_month
    total = sum(line.amount.amount for line in lines if line.amount is not None)
    over = total * (asked.term_months if months is None else months)
    return Option(
        way=way,
        lines=tuple(lines),
        per_month=_money(asked, total),
        over_term=_money(asked, over),
        per_output=_money(asked, over / asked.term_months / count) if count else None,
        upfront=None if upfront is None else _money(asked, upfront),
        hours_exists_per_month=exists,
        hours_lost_per_month=lost,
        not_counted=tuple(line.name for line in lines if line.amount is None),
        why_not=None,
    )


def _money(asked: RentQuestion, amount: float) -> Money:
    return Money(amount=amount, currency=asked.currency)


def _line(
    asked: RentQuestion, name: LineName, hours: float | None, amount: float | None
) -> CostLine:
    money = None if amount is None else _money(asked, amount)
    return CostLine(name=name, hours=hours, amount=money)


def _lines(
    terms: Terms, parts: Iterable[tuple[LineName, float | None, float | None]]
) -> list[CostLine]:
    """Lines of what is bought from others: VAT is on each."""
    return [
        _line(terms.asked, name, hours, None if amount is None else amount * terms.vat)
        for name, hours, amount in parts
    ]


# --- the chart


def curves_of(terms: Terms) -> tuple[Curve, ...]:
    """The cost of a month by the hours that the machine is used in it, for every way that has one."""
    asked, full, vat = terms.asked, float(HOURS_PER_MONTH), terms.vat
    found = []
    if asked.monthly is not None:
        found.append(_curve("monthly", asked.monthly * vat, asked.monthly * vat))
    if asked.hourly is not None and terms.stop is None:
        zero = full * asked.hourly if terms.billed_stopped else terms.stored or 0.0
        end = full * (asked.hourly + (terms.disk_per_hour or 0.0))
        found.append(_curve("hourly_stop", zero * vat, end * vat))
    if asked.hourly is not None and terms.download_hours is not None:
        lost = 1 + (terms.download_hours + terms.boot_hours) / terms.session_hours
        found.append(_curve("hourly_destroy", 0.0, full * lost * terms.existing_hour * vat))
    rate = terms.outputs_per_hour
    if asked.api_price is not None and rate is not None:
        end = full * rate * asked.api_price / asked.keep_rate
        found.append(_curve("api", 0.0, end * vat))
    if asked.own_price is not None and asked.own_life_months is not None:
        wear = asked.own_price / asked.own_life_months
        hours, busy = terms.use.hours_per_month, terms.busy_hours
        share = busy / hours if busy and hours else 1.0
        found.append(_curve("own", wear, wear + full * share * (energy_per_hour(asked) or 0.0)))
    return tuple(found)


def _curve(way: Way, zero: float, full: float) -> Curve:
    return Curve(way=way, at_zero=zero, at_full=full)
