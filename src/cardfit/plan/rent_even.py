"""Where one way becomes cheaper than another: in hours that the machine exists, in outputs a month, or in months.

In: the terms of a question. Out: a `BreakEven` for every pair that the given prices allow. By the hour the formula is
that of rental guides, (monthly - storage per month) / hourly price, with the disk of a running machine in the price
of an hour where the two disks differ.
"""

from __future__ import annotations

from cardfit.plan.answer import Said
from cardfit.plan.cost import HOUR_S, WEEKS_PER_MONTH
from cardfit.plan.offers import HOURS_PER_MONTH, money_text
from cardfit.plan.rent_answer import BreakEven, Way, way_words
from cardfit.plan.rent_options import Terms, energy_per_hour, options_of
from cardfit.plan.rent_question import RentQuestion


def break_evens(terms: Terms) -> tuple[BreakEven, ...]:
    """Every pair that the given prices allow."""
    pairs = (
        _monthly_or_stop(terms),
        _monthly_or_destroy(terms),
        _monthly_or_api(terms),
        _hourly_or_api(terms),
        _own_or_monthly(terms),
        _own_or_hourly(terms),
        _own_or_api(terms),
    )
    return tuple(pair for pair in pairs if pair is not None)


def guide_hours(monthly: float, storage: float, hourly: float) -> float:
    """Hours a month from which the month is cheaper: (monthly - storage per month) / hourly price.

    >>> round(guide_hours(286, 28, 0.45), 1)
    573.3
    """
    return (monthly - storage) / hourly


def _monthly_or_stop(terms: Terms) -> BreakEven | None:
    asked = terms.asked
    if asked.monthly is None or asked.hourly is None or terms.stop is not None:
        return None
    if terms.billed_stopped:
        return None
    stored, running = terms.stored or 0.0, terms.disk_per_hour or 0.0
    # an hour that it runs costs the running disk in place of the stopped one
    hours = guide_hours(asked.monthly, stored, asked.hourly + running - stored / HOURS_PER_MONTH)
    return _hours(terms, "monthly", "hourly_stop", hours)


def _monthly_or_destroy(terms: Terms) -> BreakEven | None:
    asked = terms.asked
    if asked.monthly is None or asked.hourly is None or terms.download_hours is None:
        return None
    return _hours(terms, "monthly", "hourly_destroy", asked.monthly / terms.existing_hour)


def _hours(terms: Terms, one: Way, other: Way, hours: float) -> BreakEven:
    """The break-even in hours that the machine exists; above a month's length it is never reached."""
    names = _names(one, other)
    if hours <= 0:
        return _pair(one, other, Said.of("rent-even-always", **names))
    if hours > HOURS_PER_MONTH:
        args = {"hours": f"{hours:.0f}", "most": HOURS_PER_MONTH}
        return _pair(one, other, Said.of("rent-even-never-hours", **names, **args))
    args = {"hours": f"{hours:.0f}", "week": f"{hours / WEEKS_PER_MONTH:.0f}"}
    useful = hours
    if other == "hourly_destroy":
        lost = (terms.download_hours or 0.0) + terms.boot_hours
        useful = hours * terms.session_hours / (terms.session_hours + lost)
    rate = terms.outputs_per_hour
    outputs = None if rate is None else useful * rate
    text = Said.of("rent-even-hours", **names, **args)
    if outputs is not None:
        text = Said.of("rent-even-hours-outputs", **names, **args, outputs=f"{outputs:.0f}")
    return _pair(one, other, text, hours=hours, outputs=outputs)


def _names(one: Way, other: Way) -> dict[str, str]:
    return {"one": way_words(one), "other": way_words(other)}


def _pair(
    one: Way,
    other: Way,
    text: Said,
    *,
    hours: float | None = None,
    outputs: float | None = None,
    months: float | None = None,
) -> BreakEven:
    return BreakEven(
        one=one,
        other=other,
        hours_per_month=hours,
        outputs_per_month=outputs,
        months=months,
        text=text,
    )


def _outputs(one: Way, other: Way, outputs: float | None) -> BreakEven:
    names = _names(one, other)
    if outputs is None:
        return _pair(one, other, Said.of("rent-even-never-outputs", **names))
    text = Said.of("rent-even-outputs", **names, outputs=f"{outputs:.0f}")
    return _pair(one, other, text, outputs=outputs)


def _monthly_or_api(terms: Terms) -> BreakEven | None:
    asked = terms.asked
    if asked.monthly is None or asked.api_price is None:
        return None
    outputs = asked.monthly / (asked.api_price / asked.keep_rate)
    if asked.seconds is not None:
        most = HOURS_PER_MONTH * HOUR_S / asked.seconds * asked.keep_rate
        if outputs > most:
            args = {"outputs": f"{outputs:.0f}", "most": f"{most:.0f}"}
            text = Said.of("rent-even-too-slow", **_names("monthly", "api"), **args)
            return _pair("monthly", "api", text)
    return _outputs("monthly", "api", outputs)


def _hourly_or_api(terms: Terms) -> BreakEven | None:
    asked = terms.asked
    if asked.hourly is None or asked.api_price is None or asked.seconds is None:
        return None
    if terms.stop is not None or terms.stored is None:
        return None
    on_top = (terms.disk_per_hour or 0.0) - terms.stored / HOURS_PER_MONTH
    made = asked.seconds / HOUR_S * (asked.hourly + on_top)
    gain = (asked.api_price - made) / asked.keep_rate
    return _outputs("hourly_stop", "api", terms.stored / gain if gain > 0 else None)


def _own_or_monthly(terms: Terms) -> BreakEven | None:
    asked, hours = terms.asked, terms.busy_hours
    if asked.own_price is None or asked.monthly is None:
        return None
    energy = energy_per_hour(asked)
    spent = 0.0 if hours is None or energy is None else hours * energy
    return _months("own", "monthly", asked, asked.monthly * terms.vat - spent)


def _own_or_hourly(terms: Terms) -> BreakEven | None:
    asked, hours = terms.asked, terms.busy_hours
    if asked.own_price is None or asked.hourly is None or hours is None or terms.stop is not None:
        return None
    stop = next(each for each in options_of(terms) if each.way == "hourly_stop")
    if stop.per_month is None:
        return None
    spent = hours * (energy_per_hour(asked) or 0.0)
    return _months("own", "hourly_stop", asked, stop.per_month.amount - spent)


def _own_or_api(terms: Terms) -> BreakEven | None:
    asked, count, hours = terms.asked, terms.use.outputs_per_month, terms.busy_hours
    if asked.own_price is None or asked.api_price is None or count is None:
        return None
    spent = (hours or 0.0) * (energy_per_hour(asked) or 0.0)
    paid = count * asked.api_price / asked.keep_rate * terms.vat
    return _months("own", "api", asked, paid - spent)


def _months(one: Way, other: Way, asked: RentQuestion, saved: float) -> BreakEven:
    """After how many months what is saved each month has paid for the card."""
    names = _names(one, other)
    price = asked.own_price or 0.0
    if saved <= 0:
        return _pair(one, other, Said.of("rent-even-never-months", **names))
    months = price / saved
    life = asked.own_life_months
    args = {"months": f"{months:.0f}", "saved": money_text(saved, asked.currency)}
    if life is not None and months > life:
        text = Said.of("rent-even-months-too-late", **names, **args, life=f"{life:.0f}")
        return _pair(one, other, text, months=months)
    return _pair(one, other, Said.of("rent-even-months", **names, **args), months=months)
