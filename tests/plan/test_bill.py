"""The bill of a row's outputs: lines by hand, what providers say, a month, and what cannot be meant."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest

from cardfit.errors import BadRequest
from cardfit.offers.providers import Provider
from cardfit.plan.answer import Cost, Money, OfferRow
from cardfit.plan.bill import (
    ASSUMED_BYTES_PER_S,
    FLAGS,
    Run,
    Session,
    Use,
    bill,
    cheapest,
    fetched_note,
    session_of,
)
from cardfit.plan.figures import HIGHEST
from cardfit.plan.make import make
from cardfit.plan.verdict import Host
from cardfit.predict.timing import Seconds, TimeEstimate
from cardfit.request import Settings

GB = 10**9
RUN = Run(seconds=90, export_s=10, load_s=60, power_w=400, disk_bytes=50 * GB)
SESSION = Session(
    keep_rate=0.5,
    boot_s=120,
    down_bytes_per_s=62.5e6,
    idle_hours=1,
    stopped_hours=73,
    output_bytes=30_000_000,
    disk_per_gb_month=0.10,
    disk_stopped_per_gb_month=0.20,
    egress_per_gb=0.05,
    energy_price_per_kwh=0.30,
)
USE = Use(SESSION, outputs_per_month=100, download_bytes=25 * GB)


def offer(amount: float, period: str = "hour", currency: str = "USD", **more: object) -> OfferRow:
    fields: dict[str, object] = {
        "provider": "p",
        "price": Money(amount=amount, currency=currency),
        "period": period,
        "spot": False,
        "as_of": "2026-11-01",
        "age_days": 30,
        "ram_bytes": None,
        "source": "page",
    }
    return OfferRow.model_validate(fields | more)


def provider(**facts: object) -> Provider:
    fields: dict[str, object] = {
        "can_stop": None,
        "gpu_billed_while_stopped": None,
        "disk_billed_while_stopped": None,
        "disk_price_per_gb_month": None,
        "disk_price_stopped_per_gb_month": None,
        "currency": None,
        "egress_billed": None,
    }
    return Provider("p", **(fields | facts), as_of=date(2026, 11, 1), source="page")  # type: ignore[arg-type]


def amounts(found: Cost | None) -> dict[str, float | None]:
    assert found is not None
    return {line.name: line.amount.amount if line.amount else None for line in found.lines}


def test_every_line_of_a_stated_use_by_hand() -> None:
    found = bill(offer(0.36), RUN, USE)
    running_h = (120 + 400 + 60 + 200 * 100 + 3600) / 3600  # 200 are made for 100 that are kept
    assert amounts(found) == pytest.approx(
        {
            "boot": 120 * 0.0001,
            "download": 400 * 0.0001,  # 25 GB at 500 Mbit/s
            "load": 60 * 0.0001,
            "generate": 200 * 90 * 0.0001,
            "export": 200 * 10 * 0.0001,
            "idle": 3600 * 0.0001,
            "disk_running": 50 * 0.10 * running_h / 730,
            "disk_stopped": 50 * 0.20 * 0.1,  # 73 of 730 hours
            "egress": 3 * 0.05,  # only what is kept leaves
            "energy": 0.4 * 5 * 0.30,
        }
    )
    assert found is not None and found.not_counted == () and found.accepted_outputs == 100
    assert found.per_output.amount == pytest.approx(found.total.amount / 100)
    assert sum(v or 0 for v in amounts(found).values()) == pytest.approx(found.total.amount)


def test_without_a_use_the_bill_is_one_more_output_of_a_machine_that_runs() -> None:
    found = bill(offer(0.36), RUN, Use(download_bytes=25 * GB))
    assert found is not None
    assert found.per_output.amount == pytest.approx(90 * 0.0001)
    assert {"boot", "download", "load", "export", "idle"} <= set(found.not_counted)
    half = bill(offer(0.36), RUN, Use(Session(keep_rate=0.5)))
    assert half is not None and half.per_output.amount == pytest.approx(2 * 90 * 0.0001)


def test_what_nobody_stated_is_null_and_named() -> None:
    found = bill(offer(1.0), replace(RUN, load_s=None), Use(outputs_per_month=10))
    assert found is not None
    assert set(found.not_counted) == {
        *("boot", "download", "load", "idle", "disk_running", "disk_stopped", "egress")
    }


def test_a_month_is_paid_whole_and_only_for_a_use_that_it_can_hold() -> None:
    month = offer(286, "month")
    assert bill(month, RUN, Use()) is None
    found = bill(month, replace(RUN, seconds=900), Use(outputs_per_month=40))
    assert found is not None and found.per_output == Money(amount=7.15, currency="USD")
    assert amounts(found) == {"machine": 286, "egress": None}
    week = bill(month, replace(RUN, seconds=3600), Use(hours_per_week=20))
    assert week is not None and week.per_output.amount == pytest.approx(286 / (20 * 730 / 168))
    assert bill(month, replace(RUN, seconds=3600), Use(outputs_per_month=731)) is None


def test_prices_of_another_currency_are_not_used() -> None:
    found = bill(offer(1.0, currency="EUR"), RUN, USE)
    assert found is not None and found.total.currency == "EUR"
    assert {"disk_running", "disk_stopped", "egress"} <= set(found.not_counted)
    assert "energy" not in amounts(found)


def test_what_an_offer_includes_and_a_provider_says_counts() -> None:
    included = bill(offer(1.0, disk_included_bytes=60 * GB), RUN, Use(outputs_per_month=1))
    assert amounts(included)["disk_running"] == 0.0
    facts = {
        "p": provider(
            disk_price_per_gb_month=0.07,
            disk_price_stopped_per_gb_month=0.14,
            currency="USD",
            egress_billed=False,
        )
    }
    use = Use(Session(stopped_hours=730), outputs_per_month=1, providers=facts)
    found = amounts(bill(offer(1.0), RUN, use))
    assert found["egress"] == 0.0 and found["disk_stopped"] == pytest.approx(50 * 0.14)
    own = amounts(bill(offer(1.0, disk_per_gb_month=0.5), RUN, use))
    assert own["disk_running"] == pytest.approx(50 * 0.5 * (60 + 100) / 3600 / 730)


def test_the_rate_is_stated_or_assumed_and_the_note_says_which() -> None:
    stated, assumed = USE.download(), replace(USE, session=Session()).download()
    assert stated is not None and assumed is not None
    assert (stated.seconds, stated.assumed) == (400, False)
    assert (assumed.bytes_per_s, assumed.assumed) == (ASSUMED_BYTES_PER_S, True)
    assert "6 min 40 to download at 500 Mbit/s." in fetched_note(stated).text
    assert "assumed; --down gives another" in fetched_note(assumed).text
    assert Use().download() is None


def test_the_least_bill_is_not_the_least_hourly_price() -> None:
    """A month at $73 is $0.10 an hour, but a few outputs are cheaper by the hour."""
    month, hour, spot = (
        offer(73, "month"),
        offer(0.40),
        offer(0.01).model_copy(update={"spot": True}),
    )
    few = cheapest([spot, month, hour], RUN, Use(outputs_per_month=40), "USD")
    many = cheapest([spot, month, hour], RUN, Use(outputs_per_month=20_000), "USD")
    assert few is not None and few[0] is hour
    assert many is not None and many[0] is month
    assert cheapest([month, hour], RUN, Use(outputs_per_month=40), "EUR") is None


def test_the_cheapest_pick_follows_the_bill_of_the_stated_use(fakes: SimpleNamespace) -> None:
    took = {"slow": 90.0, "quick": 9.0}

    def timer(card: str, _settings: Settings) -> TimeEstimate:
        span = Seconds(took[card], took[card], took[card])
        return TimeEstimate((), span, None, None, None, None, None, "published", 1, (), ())

    def pick(use: Use) -> str:
        found = make(
            fakes.exact(),
            Settings(),
            (fakes.target("slow", 60, price=1.0), fakes.target("quick", 60, price=5.0)),
            Host(),
            fakes.knobs(),
            fakes.estimates(),
            fakes.facts(),
            use=use,
            timer=timer,
        )
        assert found.recommended.cheapest is not None
        row = next(row for row in found.cards if row.card == found.recommended.cheapest.card)
        assert row.cost is not None and row.cost_per_output == row.cost.per_output
        return row.card

    assert pick(Use()) == "slow"
    assert pick(Use(outputs_per_month=100)) == "quick"


@pytest.mark.parametrize("name", sorted(set(FLAGS) & set(HIGHEST)))
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e18])
def test_a_figure_that_cannot_be_meant_is_named_and_refused(name: str, value: float) -> None:
    with pytest.raises(BadRequest) as caught:
        session_of({name: value})
    assert FLAGS[name] in str(caught.value) or name in str(caught.value)


def test_every_field_has_a_flag_and_a_currency_is_one_that_is_known() -> None:
    assert set(FLAGS) == set(Session.model_fields)
    with pytest.raises(BadRequest, match="--currency DOGE"):
        session_of({"currency": "DOGE"})
    with pytest.raises(BadRequest, match="downn"):
        session_of({"downn": 1})
