"""The bill of an output: hand-computed lines, the guide's arithmetic, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit import cards
from cardfit.library.load import load as load_model
from cardfit.plan import cost
from cardfit.plan.answer import Money, OfferRow
from cardfit.plan.cost import Job, Prices
from cardfit.predict.rule import GUIDE_FACTOR


def offer(amount: float, period: str = "hour", currency: str = "USD") -> OfferRow:
    return OfferRow(
        provider="p",
        price=Money(amount=amount, currency=currency),
        period=period,  # type: ignore[arg-type]
        spot=False,
        as_of="2026-11-01",
        age_days=30,
        ram_bytes=None,
        source="page",
    )


FULL = Job(
    outputs=100,
    seconds=90,
    keep_rate=0.8,
    export_s=9,
    boot_s=180,
    download_bytes=60 * 10**9,
    down_bytes_per_s=62.5e6,
    load_s=240,
    idle_s=1800,
    stopped_s=720 * 3600,
    disk_bytes=100 * 10**9,
    egress_bytes=5 * 10**9,
    power_w=400,
)
ALL = Prices("USD", 0.40, 0.10, 0.20, 0.01, 0.30)


def amounts(found: cost.Cost) -> dict[str, float | None]:
    return {line.name: line.amount.amount if line.amount else None for line in found.lines}


def test_every_line_by_hand() -> None:
    found = cost.cost(FULL, ALL)
    running_h = (180 + 960 + 240 + 9000 + 900 + 1800) / 3600
    assert amounts(found) == pytest.approx(
        {
            "boot": 0.02,  # 3 min at $0.40
            "download": 960 / 3600 * 0.40,  # 60 GB at 500 Mbit/s take 960 s
            "load": 240 / 3600 * 0.40,
            "generate": 1.0,  # 100 x 90 s are 2.5 h
            "export": 0.1,
            "idle": 0.2,
            "disk_running": 100 * 0.10 * running_h / 730,
            "disk_stopped": 100 * 0.20 * 720 / 730,
            "egress": 0.05,
            "energy": 0.4 * 2.5 * 0.30,
        }
    )
    assert found.energy_kwh == pytest.approx(1.0)
    assert found.accepted_outputs == 80
    assert found.per_output.amount == pytest.approx(found.total.amount / 80)
    assert found.not_counted == ()


def test_what_nobody_stated_is_named_and_is_not_zero() -> None:
    found = cost.cost(Job(outputs=10, seconds=360), Prices("EUR", 1.0))
    assert found.total == Money(amount=1.0, currency="EUR")
    assert amounts(found)["boot"] is None
    assert found.not_counted == (
        "boot",
        "download",
        "load",
        "export",
        "idle",
        "disk_running",
        "disk_stopped",
        "egress",
    )
    assert found.energy_kwh is None


def test_a_size_without_a_price_is_not_counted_and_nothing_costs_nothing() -> None:
    found = cost.cost(
        Job(outputs=1, seconds=60, egress_bytes=10**9, stopped_s=0), Prices("USD", 1.0)
    )
    assert "egress" in found.not_counted
    none = cost.cost(
        Job(outputs=1, seconds=60, egress_bytes=0, download_bytes=0), Prices("USD", 1.0)
    )
    assert amounts(none)["egress"] == 0.0 and amounts(none)["download"] == 0.0


@pytest.mark.parametrize(("outputs", "keep"), [(0, 1.0), (1, 0.0), (1, -0.5), (1, 1.5)])
def test_nothing_accepted_has_no_cost_per_output(outputs: float, keep: float) -> None:
    with pytest.raises(ValueError):
        cost.cost(Job(outputs=outputs, seconds=1, keep_rate=keep), Prices("USD", 1.0))


def test_a_day_of_a_machine_that_exists() -> None:
    assert cost.daily(offer(0.40)).text == "This machine costs $9.60 a day while it exists."
    assert cost.daily(offer(365, "month", "EUR")).text == (
        "This machine costs 12.00 EUR a day while it exists."
    )


def test_the_guides_arithmetic() -> None:
    """Latent elements, x 4 for a doubled edge, a batch in proportion, weights plus 15 %."""
    sdxl = load_model("sdxl-base")
    small, large = sdxl.latent_shape(1024, 1024, 1), sdxl.latent_shape(2048, 2048, 1)
    assert cost.elements(small) == 4 * 128 * 128
    assert cost.elements(large) == 4 * cost.elements(small)
    assert cost.elements(small, batch=3) == 3 * cost.elements(small)
    assert GUIDE_FACTOR == 1.15


def test_what_an_hour_of_money_buys() -> None:
    card = cards.load()["rtx-4090"]
    assert card.bandwidth_bytes_per_s is not None
    found = cost.worth(card, offer(0.5))
    rate = card.flop_per_s["fp16_fp32acc"]
    assert found.bytes_per_s_per_price == card.bandwidth_bytes_per_s / 0.5
    assert found.flop_per_s_per_price == rate / 0.5
    assert found.balance_flop_per_byte == rate / card.bandwidth_bytes_per_s
    monthly = cost.worth(card, offer(365, "month"))
    assert monthly.flop_per_s_per_price == pytest.approx(rate / 0.5)
    unpriced = cost.worth(card, None)
    assert unpriced.bytes_per_s_per_price is None and unpriced.balance_flop_per_byte is not None


def test_which_of_them_matters() -> None:
    catalog = cards.load()
    found = [cost.worth(catalog[name], offer(1)) for name in ("rtx-4090", "h100-sxm")]
    balances = [one.balance_flop_per_byte for one in found]
    assert cost.matters(found).code == "cost-matters"
    between = sum(balances) / 2  # type: ignore[arg-type]
    said = cost.matters(found, between)
    assert (said.args["bound"], said.args["known"]) == (1, 2)


some = st.none() | st.floats(0, 1e6)
sizes = st.none() | st.integers(0, 10**13)


@given(
    st.builds(
        Job,
        outputs=st.floats(1, 1e4),
        seconds=st.floats(0.1, 1e4),
        keep_rate=st.floats(0.1, 1),
        boot_s=some,
        download_bytes=sizes,
        down_bytes_per_s=st.none() | st.floats(1e5, 1e10),
        load_s=some,
        idle_s=some,
        stopped_s=some,
        disk_bytes=sizes,
        egress_bytes=sizes,
    ),
    st.floats(0.01, 100),
    st.none() | st.floats(0.01, 1),
)
def test_lines_sum_and_a_better_keep_rate_never_costs_more(
    job: Job, hour: float, disk: float | None
) -> None:
    from dataclasses import replace

    prices = Prices("USD", hour, disk, disk)
    found = cost.cost(job, prices)
    assert found.total.amount == pytest.approx(
        sum(line.amount.amount for line in found.lines if line.amount)
    )
    assert {line.name for line in found.lines if line.amount is None} == set(found.not_counted)
    kept = cost.cost(replace(job, keep_rate=1.0), prices)
    assert kept.per_output.amount <= found.per_output.amount * (1 + 1e-9)
