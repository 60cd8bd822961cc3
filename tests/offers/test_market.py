"""Offers: the shipped table is held to rules, own files fail by place, the cheapest is honest."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit import cards, offers
from cardfit.errors import BadFile
from cardfit.offers import Offer
from cardfit.offers.market import COLUMNS, SHIPPED

TODAY = date(2026, 12, 1)
HEADER = "provider,card_id,gpus,price,currency,per,as_of"
GOOD = "me,rtx-4090,2,1.0,USD,hour,2026-11-01"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*lines: str) -> Path:
        path = tmp_path / "offers.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


def offer(price: float, **changes: object) -> Offer:
    plain = Offer("p", "l4", 1, price, "USD", "hour", False, date(2026, 8, 2), "page")
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_the_shipped_table() -> None:
    with SHIPPED.open(newline="") as stream:
        assert next(csv.reader(stream)) == list(COLUMNS)
    shipped = offers.load()
    known = cards.load()
    assert len(shipped) == 311
    for one in shipped:
        assert one.card in known
        assert 0 < one.price_per_gpu < 400
        assert one.currency == "USD"
        assert date(2026, 1, 1) <= one.as_of <= date(2026, 11, 30)
        assert len(one.source) > 10
        assert (one.tier == "spot") == one.spot
        assert not one.own


def test_names_without_a_form_are_counted_as_said() -> None:
    said = [one for one in offers.load() if "published as" in one.notes]
    assert len(said) == 60
    for one in said:
        assert f"counted as {one.card}, the slowest card of that name" in one.notes
    known = cards.load()
    for slow, fast in (("h100-pcie", "h100-sxm"), ("a100-pcie-80gb", "a100-sxm-80gb")):
        assert known[slow].memory_bytes == known[fast].memory_bytes
        assert known[slow].bandwidth_bytes_per_s < known[fast].bandwidth_bytes_per_s  # type: ignore[operator]


def test_the_licence_is_honoured() -> None:
    text = SHIPPED.with_name("ATTRIBUTION.md").read_text(encoding="utf-8")
    assert "gpurentalprices.com" in text
    assert "creativecommons.org/licenses/by/4.0" in text
    count = sum("gpurentalprices.com" in one.source for one in offers.load())
    assert f"{count} of 311" in " ".join(text.split())


def test_the_guides_monthly_prices_are_there() -> None:
    shipped = offers.load()
    prices = {}
    for card_id in ("l4", "rtx-a6000"):
        found = offers.cheapest(shipped, card_id, period="month")
        assert found is not None
        prices[card_id] = (found.price, found.currency)
    assert prices == {"l4": (125.0, "USD"), "rtx-a6000": (286.0, "USD")}


def test_own_rows_come_on_top(write: Write) -> None:
    header = HEADER + ",ram_gib,spot,charged_while_stopped,price_per_gpu"
    found = offers.load(write(header, GOOD + ",64,no,unknown,0.5"), today=TODAY)
    assert len(found) == 312
    assert found[0].own
    assert found[0].price_per_gpu == 0.5
    assert found[0].ram_bytes == 64 * 1024**3
    assert found[0].charged_while_stopped is None
    assert found[0].period == "hour"
    assert found[0].source.endswith("offers.csv")


def test_own_rows_may_name_cards_as_people_do(write: Write, tmp_path: Path) -> None:
    found = offers.load(write(HEADER, GOOD.replace("rtx-4090", "RTX 4090")), today=TODAY)
    assert found[0].card == "rtx-4090"
    cards_file = tmp_path / "cards.csv"
    cards_file.write_text("id,vram_mib_reported\nrtx-9090,65000\n")
    path = write(HEADER, GOOD.replace("rtx-4090", "rtx-9090"))
    known = cards.load(cards_file)
    assert offers.load(path, cards=known, today=TODAY)[0].card == "rtx-9090"
    with pytest.raises(BadFile, match="rtx-9090"):
        offers.load(path, today=TODAY)


@pytest.mark.parametrize("column", HEADER.split(","))
def test_a_missing_column_is_named(write: Write, column: str) -> None:
    left = [name for name in HEADER.split(",") if name != column]
    with pytest.raises(BadFile, match=rf"offers.csv, row 1: the column {column} is missing"):
        offers.load(write(",".join(left)), today=TODAY)


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("provider", ""),
        ("card_id", "rtx-4091"),
        ("card_id", "H100"),
        ("card_id", ""),
        ("gpus", "0"),
        ("gpus", "-1"),
        ("gpus", "1.5"),
        ("gpus", ""),
        ("price", "-0.5"),
        ("price", "0"),
        ("price", "nan"),
        ("price", "inf"),
        ("price", "1e999"),
        ("price", "$1"),
        ("price", ""),
        ("currency", "DOGE"),
        ("currency", "usd"),
        ("per", "week"),
        ("per", ""),
        ("as_of", "yesterday"),
        ("as_of", "2026-13-01"),
        ("as_of", "2027-06-01"),
        ("as_of", ""),
        ("spot", "maybe"),
        ("ram_gib", "-64"),
    ],
)
def test_a_bad_cell_is_named_by_row_and_column(write: Write, column: str, cell: str) -> None:
    header = (HEADER + ",spot,ram_gib").split(",")
    good = dict(zip(header, (GOOD + ",no,64").split(",")))
    bad = {**good, column: cell}
    path = write(",".join(header), ",".join(good.values()), ",".join(bad.values()))
    with pytest.raises(BadFile) as caught:
        offers.load(path, today=TODAY)
    assert caught.value.code == "table-bad-cell"
    assert f"offers.csv, row 3, column {column}: found '{cell}'" in str(caught.value)


def test_an_unknown_card_gets_a_suggestion(write: Write) -> None:
    with pytest.raises(BadFile, match="did you mean rtx-4090"):
        offers.load(write(HEADER, GOOD.replace("rtx-4090", "rtx-4091")), today=TODAY)


def test_an_unknown_column_is_named(write: Write) -> None:
    with pytest.raises(BadFile, match="the column pirce is not known. did you mean price"):
        offers.load(write(HEADER + ",pirce", GOOD + ",1"), today=TODAY)


def test_cheapest_by_hand() -> None:
    market = [
        offer(0.5),
        offer(0.4, provider="q"),
        offer(1.6, gpus=8, provider="node"),
        offer(0.1, spot=True, provider="spot"),
        offer(100, period="month", provider="monthly"),
    ]
    found = offers.cheapest(market, "l4")
    assert found is not None and found.provider == "q"
    found = offers.cheapest(market, "l4", spot=True)
    assert found is not None and found.provider == "spot"
    found = offers.cheapest(market, "l4", period="month")
    assert found is not None and found.provider == "monthly"
    assert offers.cheapest(market, "t4") is None
    assert offers.cheapest(market[3:4], "l4") is None
    found = offers.cheapest(market[4:], "l4")
    assert found is not None and found.period == "month"


def test_a_larger_machine_only_where_no_single_card_is_for_rent() -> None:
    found = offers.cheapest([offer(1.6, gpus=8)], "l4")
    assert found is not None and found.price_per_gpu == 0.2
    note = offers.node_note(found)
    assert note is not None and "machines of 8 only" in note.text
    assert offers.node_note(offer(1)) is None


def test_currencies_are_never_mixed() -> None:
    market = [offer(2, currency="EUR"), offer(3, currency="EUR"), offer(1, currency="USD")]
    found = offers.cheapest(market, "l4")
    assert found is not None and (found.price, found.currency) == (2, "EUR")
    note = offers.other_currencies(market, found)
    assert note is not None and note.args["others"] == "USD"
    found = offers.cheapest(market, "l4", currency="USD")
    assert found is not None and found.price == 1
    assert offers.other_currencies(market[:2], market[0]) is None
    assert offers.cheapest(market, "l4", currency="JPY") is None


def test_age() -> None:
    one = offer(1, as_of=date(2026, 9, 2))
    assert offers.age_days(one, TODAY) == 90
    assert offers.old_note(one, TODAY) is None
    note = offers.old_note(one, date(2026, 12, 2))
    assert note is not None and note.args["days"] == 91
    assert "2026-09-02" in note.text
    assert offers.age_days(offer(1, as_of=date(2026, 12, 2)), TODAY) == 0


prices = st.floats(min_value=0.01, max_value=1e4)
markets = st.lists(
    st.builds(
        offer,
        prices,
        gpus=st.integers(1, 8),
        spot=st.booleans(),
        currency=st.sampled_from(["USD", "EUR"]),
        period=st.sampled_from(["hour", "month"]),
    ),
    max_size=8,
)


@given(markets, st.booleans(), st.sampled_from([None, "hour", "month"]))
def test_nothing_comparable_is_cheaper(market: list[Offer], spot: bool, period: str | None) -> None:
    found = offers.cheapest(market, "l4", spot=spot, period=period)  # type: ignore[arg-type]
    if found is None:
        assert not [
            one for one in market if (spot or not one.spot) and period in (None, one.period)
        ]
        return
    assert spot or not found.spot
    assert period in (None, found.period)
    for one in market:
        if (one.period, one.currency) == (found.period, found.currency) and (spot or not one.spot):
            assert found.price_per_gpu <= one.price_per_gpu or (found.gpus == 1 < one.gpus)
