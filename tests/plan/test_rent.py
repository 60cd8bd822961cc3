"""Rent or not: the guide's break-even, bills by hand, verdicts with their reason, refusals, and laws."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit import cards
from cardfit.errors import BadRequest, UnknownCard
from cardfit.offers import Offer, providers
from cardfit.plan.figures import HIGHEST
from cardfit.plan.rent import make_rent
from cardfit.plan.rent_answer import Option, Rent
from cardfit.plan.rent_even import guide_hours
from cardfit.plan.rent_question import FLAGS, RentQuestion, question_of

TODAY = date(2026, 12, 1)
GB = 10**9
WEEKS = 730 / 168
QUOTES: dict[str, Any] = {
    "monthly": 286,
    "hourly": 0.45,
    "disk_per_gb_month": 0.07,
    "library_bytes": 400 * GB,
    "down_bytes_per_s": 62.5e6,
}


def ask(market: tuple[Offer, ...] = (), **fields: Any) -> Rent:
    return make_rent(question_of(fields), cards.load(), market, providers.load(), TODAY)


def option(found: Rent, way: str) -> Option:
    return next(each for each in found.options if each.way == way)


def per_month(found: Rent, way: str) -> float:
    money = option(found, way).per_month
    assert money is not None
    return money.amount


def even(found: Rent, one: str, other: str) -> Any:
    return next(each for each in found.break_even if (each.one, each.other) == (one, other))


# --- the arithmetic


def test_the_guides_break_even() -> None:
    """(monthly - storage per month) / hourly price, with 400 GB at 0.07: (286 - 28) / 0.45."""
    assert guide_hours(286, 28, 0.45) == pytest.approx(573.33, abs=0.01)
    found = even(ask(**QUOTES), "monthly", "hourly_stop")
    assert found.hours_per_month == pytest.approx(guide_hours(286, 28, 0.45))
    assert "From 573 hours a month (132 a week) that the machine exists" in found.text.text


def test_vat_moves_no_break_even_between_rentals() -> None:
    plain, taxed = ask(**QUOTES), ask(**QUOTES, vat_percent=21)
    for other in ("hourly_stop", "hourly_destroy"):
        one = even(plain, "monthly", other).hours_per_month
        assert even(taxed, "monthly", other).hours_per_month == pytest.approx(one)


def test_bills_by_hand() -> None:
    found = ask(**QUOTES, hours_per_week=20, sessions_per_week=5, vat_percent=20)
    hours = 20 * WEEKS
    assert found.use.hours_per_month == pytest.approx(86.905, abs=0.001)
    assert per_month(found, "monthly") == pytest.approx(286 * 1.2)
    assert per_month(found, "hourly_stop") == pytest.approx((hours * 0.45 + 28) * 1.2)
    again = 5 * WEEKS * 6400 / 3600  # 400 GB at 500 Mbit/s take 6400 s
    disk = 28 / 730 * (hours + again)
    assert per_month(found, "hourly_destroy") == pytest.approx(
        ((hours + again) * 0.45 + disk) * 1.2
    )
    assert option(found, "hourly_destroy").hours_lost_per_month == pytest.approx(again)
    assert option(found, "hourly_destroy").hours_exists_per_month == pytest.approx(hours + again)


def test_the_disk_of_a_stopped_machine_may_cost_more() -> None:
    found = ask(**QUOTES, disk_stopped_per_gb_month=0.20, hours_per_week=20)
    hours = 20 * WEEKS
    expected = hours * 0.45 + 28 * hours / 730 + 80 * (730 - hours) / 730
    assert per_month(found, "hourly_stop") == pytest.approx(expected)
    at = even(found, "monthly", "hourly_stop").hours_per_month
    assert at * 0.45 + 28 * at / 730 + 80 * (730 - at) / 730 == pytest.approx(286)


def test_the_term_pays_whole_months_and_an_output_carries_the_use() -> None:
    found = ask(**QUOTES, hours_per_week=20, term_months=2.5, outputs_per_month=40, seconds=900)
    month = option(found, "monthly")
    assert month.over_term is not None and month.over_term.amount == 3 * 286
    assert month.per_output is not None
    assert month.per_output.amount == pytest.approx(3 * 286 / 2.5 / 40)
    assert any(note.code == "rent-whole-months" for note in found.notes)
    one = ask(monthly=286, hourly=0.45, outputs_per_month=40, seconds=900)
    money = option(one, "monthly").per_output
    assert money is not None and money.amount == pytest.approx(7.15)


def test_outputs_that_are_not_kept_are_made_again() -> None:
    found = ask(hourly=1, api_price=0.5, outputs_per_month=40, seconds=900, keep_rate=0.5)
    assert found.use.generating_hours_per_month == pytest.approx(20)
    assert per_month(found, "api") == pytest.approx(40)


def test_an_own_card_is_spread_over_its_life_and_its_energy_over_the_work() -> None:
    found = ask(
        monthly=286,
        own_price=1800,
        own_power_w=350,
        own_life_months=36,
        energy_price_per_kwh=0.30,
        outputs_per_month=400,
        seconds=900,
        vat_percent=21,
    )
    energy = 0.35 * 100 * 0.30
    assert per_month(found, "own") == pytest.approx(50 + energy)
    months = even(found, "own", "monthly").months
    assert months == pytest.approx(1800 / (286 * 1.21 - energy))
    assert (found.verdict.choice, found.verdict.rent) == ("own", False)
    assert found.verdict.text.text.startswith("Don't rent")


def test_break_even_in_outputs() -> None:
    found = ask(**QUOTES, api_price=0.04, seconds=60)
    assert even(found, "monthly", "api").outputs_per_month == pytest.approx(286 / 0.04)
    assert even(found, "hourly_stop", "api").outputs_per_month == pytest.approx(
        28 / (0.04 - 0.45 / 60), rel=1e-3
    )
    assert even(found, "monthly", "hourly_stop").outputs_per_month == pytest.approx(
        573.333 * 60, rel=1e-4
    )
    slow = ask(**QUOTES, api_price=0.04, seconds=3600)
    assert even(slow, "monthly", "api").text.code == "rent-even-too-slow"
    assert even(slow, "hourly_stop", "api").text.code == "rent-even-never-outputs"


def test_where_there_is_no_break_even_the_sentence_says_which_way() -> None:
    dear = ask(monthly=1000, hourly=0.45)
    assert even(dear, "monthly", "hourly_stop").text.code == "rent-even-never-hours"
    disk = ask(**{**QUOTES, "monthly": 20})
    assert even(disk, "monthly", "hourly_stop").text.code == "rent-even-always"


# --- the verdict


@pytest.mark.parametrize(
    ("more", "choice", "rent"),
    [
        ({"hours_per_week": 150}, "monthly", True),
        ({"hours_per_week": 100, "sessions_per_week": 21}, "hourly_stop", True),
        ({"hours_per_week": 4, "sessions_per_week": 1}, "hourly_destroy", True),
        ({"outputs_per_month": 20, "seconds": 60, "api_price": 0.04}, "api", False),
        ({"hours_per_week": 100, "own_price": 1800, "own_life_months": 36}, "own", False),
        ({"private": True}, "own", False),
        ({}, None, None),
    ],
)
def test_verdicts(more: dict[str, Any], choice: str | None, rent: bool | None) -> None:
    verdict = ask(**QUOTES, **more).verdict
    assert (verdict.choice, verdict.rent) == (choice, rent)
    assert verdict.text.text.startswith("Don't rent") == (rent is False)
    assert verdict.why.text


def test_an_open_use_is_answered_with_the_break_even() -> None:
    verdict = ask(**QUOTES).verdict
    assert "573 hours a month" in verdict.why.text and "--hours-per-week" in verdict.why.text
    assert ask(hourly=1).verdict.why.code == "rent-why-no-use"
    assert ask(monthly=286).verdict.why.code == "rent-why-one"


def test_waiting_that_saves_less_than_the_machine_costs_is_not_advised() -> None:
    found = ask(**QUOTES, hours_per_week=20, sessions_per_week=13)
    stop, destroy = per_month(found, "hourly_stop"), per_month(found, "hourly_destroy")
    lost = option(found, "hourly_destroy").hours_lost_per_month
    assert lost is not None and destroy > stop - lost * 0.45
    assert found.verdict.choice == "hourly_stop"
    few = ask(**{**QUOTES, "disk_per_gb_month": 0.12}, hours_per_week=20, sessions_per_week=6)
    stop, destroy = per_month(few, "hourly_stop"), per_month(few, "hourly_destroy")
    lost = option(few, "hourly_destroy").hours_lost_per_month or 0
    assert 0 < stop - destroy < lost * 0.45
    assert (few.verdict.choice, few.verdict.why.code) == ("hourly_stop", "rent-why-waiting")
    assert few.verdict.runner_up == "hourly_destroy"


def test_a_bill_with_an_unknown_line_says_so() -> None:
    found = ask(hourly=0.45, monthly=286, hours_per_week=20)
    assert option(found, "hourly_stop").not_counted == ("disk_running", "disk_stopped")
    assert found.verdict.why.code == "rent-why-uncounted"
    assert {note.code for note in found.notes} >= {
        "rent-uncounted-disk_running",
        "rent-uncounted-disk_stopped",
    }
    assert option(found, "hourly_destroy").why_not is not None


def test_a_day_is_said_with_the_hourly_price() -> None:
    found = ask(hourly=0.40)
    assert found.daily is not None
    assert found.daily.text == "This machine costs $9.60 a day while it exists."
    assert ask(monthly=286).daily is None


# --- offers and providers


def offer(price: float, **changes: Any) -> Offer:
    plain: dict[str, Any] = {
        "provider": "runpod",
        "card": "rtx-4090",
        "gpus": 1,
        "price": price,
        "currency": "USD",
        "period": "hour",
        "spot": False,
        "as_of": date(2026, 8, 2),
        "source": "page",
    }
    return Offer(**{**plain, **changes})


def test_prices_that_are_not_given_come_from_the_offers_and_say_so() -> None:
    found = ask((offer(0.34), offer(0.1, spot=True)), card="RTX 4090", library_bytes=100 * GB)
    assert (found.question.hourly, found.question.card) == (0.34, "rtx-4090")
    codes = [note.code for note in found.notes]
    assert {"rent-from-offer-hour", "offer-old", "rent-no-offer-month"} <= set(codes)
    assert found.question.disk_stopped_per_gb_month == 0.20
    given = ask((offer(0.34),), card="rtx-4090", hourly=0.5)
    assert given.question.hourly == 0.5


def test_a_named_provider_gives_its_own_price() -> None:
    market = (offer(0.2, provider="salad"), offer(0.34))
    found = ask(market, card="rtx-4090", provider="RunPod")
    assert found.question.hourly == 0.34
    assert ask(market, card="rtx-4090").question.provider == "salad"


def test_a_box_of_several_cards_is_paid_whole() -> None:
    found = ask((offer(16.0, gpus=8),), card="rtx-4090")
    assert found.question.hourly == 16.0
    assert any(note.code == "offer-node" for note in found.notes)


def test_an_offer_in_another_currency_is_not_converted() -> None:
    found = ask((offer(0.34),), card="rtx-4090", monthly=300, currency="EUR")
    assert found.question.hourly is None
    assert any(note.code == "rent-no-offer-hour" for note in found.notes)


def test_a_provider_is_asked_what_it_does_not_publish() -> None:
    found = ask(hourly=0.45, provider="Lambda")
    asked = {note.code for note in found.notes if note.code.startswith("provider-ask")}
    assert asked == set(providers.ASK.values())
    known = {note.code for note in ask(hourly=0.45, provider="runpod").notes}
    assert "provider-ask-stop" not in known and "provider-ask-egress" in known
    assert any(note.code == "rent-ask-any" for note in ask(hourly=0.45).notes)


def test_a_provider_that_cannot_stop_or_bills_the_gpu_meanwhile() -> None:
    from dataclasses import replace

    plain = providers.load()["lambda"]
    for change, code in (
        ({"can_stop": False}, "rent-cannot-stop"),
        ({"gpu_billed_while_stopped": True}, "rent-billed-stopped"),
    ):
        table = {"lambda": replace(plain, **change)}
        question = question_of({**QUOTES, "hours_per_week": 20, "provider": "lambda"})
        found = make_rent(question, cards.load(), (), table, TODAY)
        stop = option(found, "hourly_stop")
        if code == "rent-cannot-stop":
            assert stop.why_not is not None and stop.why_not.code == code
        else:
            assert any(note.code == code for note in found.notes)
            assert per_month(found, "hourly_stop") == pytest.approx(730 * 0.45 + 28)


# --- bad input


@pytest.mark.parametrize("name", sorted(set(HIGHEST) & set(FLAGS)))
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e18])
def test_a_figure_that_cannot_be_meant_is_named_and_refused(name: str, value: float) -> None:
    with pytest.raises(BadRequest) as caught:
        question_of({"monthly": 286, name: value})
    assert caught.value.code in ("rent-bad-figure", "rent-bad-field")
    assert FLAGS[name] in str(caught.value) or name in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "rent-no-price"),
        ({"hourly": 0}, "rent-bad-figure"),
        ({"monthly": 286, "currency": "DOGE"}, "rent-bad-currency"),
        ({"monthly": 0.45, "hourly": 286}, "rent-swapped"),
        ({"monthly": 286, "huorly": 1}, "rent-bad-field"),
        ({"monthly": "much"}, "rent-bad-field"),
        ({"hourly": 1, "outputs_per_month": 1000, "seconds": 3600}, "rent-too-much"),
        ({"hourly": 1, "hours_per_week": 169}, "rent-bad-figure"),
    ],
)
def test_bad_questions(fields: dict[str, Any], code: str) -> None:
    with pytest.raises(BadRequest) as caught:
        question_of(fields)
    assert caught.value.code == code


def test_unknown_names() -> None:
    with pytest.raises(UnknownCard, match="rtx-4090"):
        ask(card="rtx-4091", hourly=1)
    with pytest.raises(BadRequest, match="runpod"):
        ask(provider="runpodd", hourly=1)


def test_money_of_small_units_may_be_large() -> None:
    assert question_of({"hourly": 12000, "monthly": 7e6, "currency": "VND"}).hourly == 12000
    with pytest.raises(BadRequest):
        question_of({"hourly": 12000, "currency": "USD"})


def test_every_field_has_a_flag() -> None:
    assert set(FLAGS) == set(RentQuestion.model_fields)
    assert len(set(FLAGS.values())) == len(FLAGS)


# --- laws

prices = st.floats(0.05, 5)


@given(
    monthly=st.floats(50, 2000),
    hourly=prices,
    disk=st.floats(0.01, 0.3),
    gb=st.integers(1, 2000),
    hours=st.floats(1, 160),
    vat=st.floats(0, 25),
)
def test_the_cheapest_way_is_cheapest_and_break_evens_cut_the_curves(
    monthly: float, hourly: float, disk: float, gb: int, hours: float, vat: float
) -> None:
    found = ask(
        monthly=monthly,
        hourly=hourly,
        disk_per_gb_month=disk,
        library_bytes=gb * GB,
        down_bytes_per_s=125e6,
        hours_per_week=hours,
        vat_percent=vat,
    )
    for each in found.options:
        if each.per_month is not None:
            assert each.per_month.amount == pytest.approx(
                sum(line.amount.amount for line in each.lines if line.amount)
            )
    curve = {each.way: each for each in found.curves}
    at = even(found, "monthly", "hourly_stop").hours_per_month
    if at is not None:
        stop = curve["hourly_stop"]
        cost = stop.at_zero + (stop.at_full - stop.at_zero) * at / found.full_hours
        assert cost == pytest.approx(curve["monthly"].at_full)
    used = found.use.hours_per_month or 0
    for way in ("hourly_stop", "hourly_destroy"):
        if option(found, way).per_month is not None:
            line = curve[way]
            cost = line.at_zero + (line.at_full - line.at_zero) * used / found.full_hours
            assert cost == pytest.approx(per_month(found, way))
    costs = {each.way: per_month(found, each.way) for each in found.options if each.per_month}
    ranked = sorted(costs, key=lambda way: costs[way])
    if ranked[0] == "hourly_destroy":  # waiting may not be worth what it saves
        assert found.verdict.choice in ranked[:2]
    else:
        assert costs[found.verdict.choice or ""] == pytest.approx(costs[ranked[0]])
