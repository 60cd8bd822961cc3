"""`rent`: by the month, by the hour, from an API, or not at all.

In: quotes and a use (`RentQuestion`), the offers and what providers say about stopped machines. Out: `Rent`, with the
bill of every way, the break-evens, a verdict that can be "don't rent", and its reason. A quote that was given counts
before one from the shipped offers. Nothing is loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from cardfit.cards import Card, find
from cardfit.messages import day
from cardfit.offers import Offer, Period, cheapest, node_note, old_note
from cardfit.offers.market import PERIODS
from cardfit.offers.providers import Provider, plain_name
from cardfit.offers.providers import find as find_provider
from cardfit.plan.answer import Money, Said
from cardfit.plan.cost import daily_of
from cardfit.plan.offers import HOURS_PER_MONTH, money_text
from cardfit.plan.rent_answer import BreakEven, Option, Rent, RentVerdict, Use, Way, way_words
from cardfit.plan.rent_even import break_evens
from cardfit.plan.rent_options import Terms, curves_of, options_of, use_of
from cardfit.plan.rent_question import RentQuestion, check

CLOSE = 0.05  # costs that differ by less than this share are called equal
_CHOSEN: dict[Way, str] = {
    "monthly": "rent-do-monthly",
    "hourly_stop": "rent-do-hourly_stop",
    "hourly_destroy": "rent-do-hourly_destroy",
    "api": "rent-do-api",
    "own": "rent-do-own",
}
_QUOTES: dict[Period, str] = {"hour": "hourly", "month": "monthly"}
_RENTED = frozenset({"monthly", "hourly_stop", "hourly_destroy"})


def make_rent(
    question: RentQuestion,
    catalog: Mapping[str, Card],
    market: Sequence[Offer],
    providers: Mapping[str, Provider],
    today: date,
) -> Rent:
    """Compare the ways that ``question`` has prices for.

    Raises BadRequest for a figure that cannot be meant, UnknownCard for a card that is not in ``catalog``.
    """
    check(question)
    asked, said = _filled(question, catalog, market, today)
    facts = None if asked.provider is None else _facts(asked.provider, providers, question)
    asked, more = _with_disk(asked, facts)
    check(asked)
    terms = _terms(asked, facts)
    options = options_of(terms)
    pairs = break_evens(terms)
    hourly = asked.hourly
    return Rent(
        question=asked,
        use=terms.use,
        options=options,
        break_even=pairs,
        verdict=_verdict(asked, options, pairs),
        curves=curves_of(terms),
        full_hours=float(HOURS_PER_MONTH),
        daily=None if hourly is None else daily_of(hourly * terms.vat, asked.currency),
        notes=(*said, *more, *_notes(terms, options, facts)),
    )


def _filled(
    asked: RentQuestion, catalog: Mapping[str, Card], market: Sequence[Offer], today: date
) -> tuple[RentQuestion, tuple[Said, ...]]:
    """The question with the prices of ``asked.card`` from the offers where none were given."""
    if asked.card is None:
        return asked, ()
    card = find(catalog, asked.card)
    changes: dict[str, object] = {"card": card.id}
    said: list[Said] = []
    named = None if asked.provider is None else plain_name(asked.provider)
    offers = [each for each in market if named in (None, plain_name(each.provider))]
    for period in PERIODS:
        field = _QUOTES[period]
        if getattr(asked, field) is not None:
            continue
        found = cheapest(offers, card.id, period=period, currency=asked.currency)
        if found is None:
            args = {"card": card.name, "currency": asked.currency}
            said.append(Said.of(f"rent-no-offer-{period}", **args))
            continue
        changes[field] = found.price
        if period == "hour" and asked.provider is None:
            changes["provider"] = found.provider
        said += _from_offer(found, today)
    return asked.model_copy(update=changes), tuple(said)


def _from_offer(offer: Offer, today: date) -> list[Said]:
    """Whose price it is, of which day, and what is to be said of it."""
    args = {"money": money_text(offer.price, offer.currency), "as_of": day(offer.as_of)}
    said = [Said.of(f"rent-from-offer-{offer.period}", provider=offer.provider, **args)]
    notes = (node_note(offer), old_note(offer, today))
    return said + [Said.of(note.code, **note.args) for note in notes if note is not None]


def _facts(name: str, providers: Mapping[str, Provider], question: RentQuestion) -> Provider | None:
    """The provider that was named, or that an offer names; an own offer's may be unknown to the table."""
    if question.provider is None and name not in providers:
        return None
    return find_provider(providers, name)


def _with_disk(
    asked: RentQuestion, facts: Provider | None
) -> tuple[RentQuestion, tuple[Said, ...]]:
    """The provider's disk prices where none were given and its currency is the question's."""
    if facts is None or facts.currency != asked.currency or asked.disk_per_gb_month is not None:
        return asked, ()
    changes = {
        "disk_per_gb_month": facts.disk_price_per_gb_month,
        "disk_stopped_per_gb_month": asked.disk_stopped_per_gb_month
        or facts.disk_price_stopped_per_gb_month,
    }
    said = Said.of(
        "rent-disk-from-provider",
        provider=facts.provider,
        running=f"{facts.disk_price_per_gb_month:g}" if facts.disk_price_per_gb_month else "?",
        stopped=f"{changes['disk_stopped_per_gb_month']:g}"
        if changes["disk_stopped_per_gb_month"]
        else "?",
        currency=asked.currency,
        source=facts.source,
    )
    return asked.model_copy(update=changes), (said,)


def _terms(asked: RentQuestion, facts: Provider | None) -> Terms:
    use = use_of(asked)
    if facts is None:
        return Terms(asked, use)
    stop = Said.of("rent-cannot-stop", provider=facts.provider) if facts.can_stop is False else None
    return Terms(asked, use, stop, billed_stopped=facts.gpu_billed_while_stopped is True)


# --- the verdict


def _verdict(
    asked: RentQuestion, options: Sequence[Option], pairs: Sequence[BreakEven]
) -> RentVerdict:
    if asked.private:
        return _said("own", False, Said.of("rent-why-private"))
    ranked = sorted(
        (each for each in options if each.over_term is not None), key=lambda each: _over(each)
    )
    if len(ranked) < 2:
        return _undecided(options, pairs)
    best = _worth_waiting(ranked, asked)
    others = [each for each in ranked if each is not best]
    return _compared(asked, best, others[0], pairs)


def _over(option: Option) -> float:
    assert option.over_term is not None
    return option.over_term.amount


def _worth_waiting(ranked: Sequence[Option], asked: RentQuestion) -> Option:
    """The cheapest, but one that waits for downloads only where an hour of waiting saves an hour of the machine."""
    best = ranked[0]
    lost = best.hours_lost_per_month or 0.0
    if best.way != "hourly_destroy" or not lost or asked.hourly is None:
        return best
    saved = (_over(ranked[1]) - _over(best)) / asked.term_months
    return best if saved >= lost * asked.hourly else ranked[1]


def _undecided(options: Sequence[Option], pairs: Sequence[BreakEven]) -> RentVerdict:
    """The one break-even that decides, where the use is open; else which price or figure is missing."""
    open_use = any(
        each.why_not is not None and each.why_not.code == "rent-no-use" for each in options
    )
    even = next((each for each in pairs if each.other == "hourly_stop"), None)
    if even is not None and open_use:
        return _said(None, None, Said.of("rent-why-even", even=even.text.text))
    if open_use:
        return _said(None, None, Said.of("rent-why-no-use"))
    return _said(None, None, Said.of("rent-why-one"))


def _compared(
    asked: RentQuestion, best: Option, second: Option, pairs: Sequence[BreakEven]
) -> RentVerdict:
    term = asked.term_months
    saved = (_over(second) - _over(best)) / term
    args: dict[str, object] = {
        "cost": money_text(_over(best) / term, asked.currency),
        "other": way_words(second.way),
        "other_cost": money_text(_over(second) / term, asked.currency),
    }
    code = f"rent-why-{best.way}"
    if saved < 0:  # cheaper, but its hours of waiting are not worth it
        args |= {"saved": money_text(-saved, asked.currency)}
        args |= {"lost": f"{second.hours_lost_per_month or 0.0:.0f}"}
        code = "rent-why-waiting"
    elif best.way == "hourly_destroy":
        args |= {"lost": f"{best.hours_lost_per_month or 0.0:.0f}"}
    elif best.way == "api":
        args |= {"outputs": f"{asked.outputs_per_month or 0:.0f}"}
    elif best.way == "own":
        args |= {"life": f"{asked.own_life_months or 0:.0f}"}
    elif saved <= CLOSE * _over(best) / term:
        code = "rent-why-close"
    why = Said.of(code, **args)
    even = next((each for each in pairs if {each.one, each.other} == {best.way, second.way}), None)
    if even is not None and saved >= 0:
        why = Said.of("rent-why-and-even", why=why.text, even=even.text.text)
    if best.not_counted:
        why = Said.of("rent-why-uncounted", why=why.text)
    money = Money(amount=saved, currency=asked.currency)
    return _said(best.way, best.way in _RENTED, why, saves=money, second=second.way)


def _said(
    choice: Way | None,
    rent: bool | None,
    why: Said,
    *,
    saves: Money | None = None,
    second: Way | None = None,
) -> RentVerdict:
    return RentVerdict(
        choice=choice,
        rent=rent,
        text=Said.of(_CHOSEN[choice] if choice else "rent-do-open"),
        why=why,
        saves_per_month=saves,
        runner_up=second,
    )


# --- what should be said beside it


def _notes(terms: Terms, options: Sequence[Option], facts: Provider | None) -> tuple[Said, ...]:
    asked, use = terms.asked, terms.use
    ways = {each.way for each in options}
    found: list[Said] = []
    if asked.hourly is not None:
        found += _stopped(terms, facts)
        found += _sessions(terms, use, ways)
    if asked.vat_percent:
        found.append(Said.of("rent-vat", vat=f"{asked.vat_percent:g}"))
    if asked.monthly is not None and asked.term_months % 1:
        found.append(Said.of("rent-whole-months"))
    made, stated = use.generating_hours_per_month, asked.hours_per_week
    if made is not None and stated is not None and use.hours_per_month == made:
        found.append(Said.of("rent-longer", made=f"{made:.0f}", stated=f"{stated:g}"))
    missing = sorted({name for each in options for name in each.not_counted})
    found += [Said.of(f"rent-uncounted-{name}") for name in missing]
    return tuple(found)


def _stopped(terms: Terms, facts: Provider | None) -> list[Said]:
    """What a stopped machine costs, and what to ask the provider about it."""
    asked = terms.asked
    found = []
    if terms.stored is not None and terms.stop is None:
        money = money_text(terms.stored * terms.vat, asked.currency)
        found.append(Said.of("rent-stopped-costs", money=money))
    if terms.billed_stopped and facts is not None:
        found.append(Said.of("rent-billed-stopped", provider=facts.provider))
    if facts is None:
        found.append(Said.of("rent-ask-any"))
        return found
    return found + [Said.of(note.code, **note.args) for note in facts.questions()]


def _sessions(terms: Terms, use: Use, ways: set[Way]) -> list[Said]:
    asked = terms.asked
    found = []
    assumed = asked.sessions_per_week is None and use.sessions_per_month is not None
    if assumed and "hourly_destroy" in ways and terms.download_hours is not None:
        args = {"hours": f"{terms.session_hours:.1f}"}
        found.append(Said.of("rent-sessions-assumed", **args))
    if terms.download_hours is not None:
        found.append(Said.of("rent-library-whole"))
    return found
