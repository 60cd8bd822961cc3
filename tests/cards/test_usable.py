"""Usable memory: figures by hand first, then laws over all sizes and generations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit import cards
from cardfit.cards.usable import Interval
from cardfit.errors import BadRequest
from cardfit.units import GIB, MIB

CATALOG = cards.load()
CAPABILITIES = ["7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0", "6.1", None]


def test_a_published_total_is_taken() -> None:
    usable = cards.usable(CATALOG["rtx-4090"])
    assert usable.basis == "published"
    assert usable.total == Interval(24207 * MIB, 24207 * MIB + MIB // 2, 24208 * MIB)  # 23.64 GiB
    assert usable.context == Interval(250 * MIB, 450 * MIB, 700 * MIB)
    assert usable.usable.low == (24207 - 700) * MIB
    assert usable.usable.high == (24208 - 250) * MIB
    assert "23.64" in usable.source


@pytest.mark.parametrize(
    ("card_id", "low_gib", "high_gib"),
    [
        ("t4", 14.74, 14.75),
        ("l4", 22.03, 22.09),
        ("a10g", 22.03, 22.09),
        ("a100-sxm-40gb", 39.38, 39.39),
        ("a100-sxm-80gb", 79.14, 79.25),
        ("h100-sxm", 79.14, 79.25),
        ("rtx-5090", 31.36, 31.36),
        ("l40", 44.3, 44.4),
    ],
)
def test_totals_as_error_texts_give_them(card_id: str, low_gib: float, high_gib: float) -> None:
    total = cards.usable(CATALOG[card_id]).total
    assert total.low / GIB == pytest.approx(low_gib, abs=0.002)
    assert total.high / GIB == pytest.approx(high_gib, abs=0.002)


def test_the_rule_spans_equal_gaps_and_equal_shares() -> None:
    # 5080: 16303 MiB. The one reading of its generation: 5090, 32607 MiB, 494 to 495 MiB less.
    usable = cards.usable(CATALOG["rtx-5080"])
    assert usable.basis == "rule"
    assert usable.total.low == (16303 - 495) * MIB
    assert usable.total.high == pytest.approx((16303 - 494 * 16303 / 32607) * MIB, abs=MIB)
    assert "rtx-5090" in usable.source


def test_error_correction_unknown_takes_the_smaller() -> None:
    card = CATALOG["rtx-a6000"]
    assert cards.driver_bytes(card) == 46068 * MIB
    assert cards.driver_bytes(card, ecc=True) == 46068 * MIB
    assert cards.driver_bytes(card, ecc=False) == 49140 * MIB
    assert cards.usable(card).usable.high < cards.usable(card, ecc=False).usable.low
    assert cards.driver_bytes(CATALOG["rtx-4090"], ecc=True) == 24564 * MIB


def test_changed_memory_no_longer_counts_as_published() -> None:
    modified = replace(CATALOG["rtx-4090"], memory_bytes=49140 * MIB)
    assert cards.usable(modified).basis == "rule"
    assert cards.usable(modified).total.low > 47 * GIB


def test_other_tenants_and_context_are_subtracted() -> None:
    card = CATALOG["l4"]
    alone = cards.usable(card).usable
    shared = cards.usable(card, other_tenants_bytes=GIB).usable
    assert shared == Interval(alone.low - GIB, alone.likely - GIB, alone.high - GIB)
    measured = cards.usable(card, context_bytes_low=9 * MIB, context_bytes_high=9 * MIB)
    assert measured.context == Interval(9 * MIB, 9 * MIB, 9 * MIB)
    assert cards.usable(card, other_tenants_bytes=10**15).usable == Interval(0, 0, 0)


@pytest.mark.parametrize(
    ("card_id", "code"),
    [
        ("mi300x", "card-unverified-vendor"),
        ("rx-7900-xtx", "card-unverified-vendor"),
        ("gb10-dgx-spark", "card-unverified-unified"),
    ],
)
def test_unverified_cards_say_why(card_id: str, code: str) -> None:
    card = CATALOG[card_id]
    note = cards.unverified_reason(card)
    assert note is not None
    assert note.code == code
    assert card.name in note.text
    with pytest.raises(BadRequest, match="vram_mib_reported"):
        cards.usable(card)


def test_missing_facts_are_a_reason() -> None:
    card = CATALOG["l4"]
    without_memory = cards.unverified_reason(replace(card, memory_bytes=None))
    without_capability = cards.unverified_reason(replace(card, compute_capability=None))
    assert without_memory is not None and without_memory.code == "card-unverified-memory"
    assert without_capability is not None
    assert without_capability.code == "card-unverified-capability"
    assert cards.unverified_reason(card) is None


def test_the_unverified_cards_are_these() -> None:
    unverified = {card.id for card in CATALOG.values() if cards.unverified_reason(card)}
    assert unverified == {
        *("mi210", "mi250x", "mi300x", "mi325x", "rx-7900-xtx", "w7900", "gb10-dgx-spark"),
    }


def test_rates_missing_are_named() -> None:
    assert cards.rates_missing(CATALOG["rtx-4090"]) is None
    note = cards.rates_missing(CATALOG["gh200-96gb"])
    assert note is not None
    assert note.args["kinds"] == "bandwidth, fp32, fp16_fp32acc"


def of(memory_bytes: int, capability: str | None) -> cards.Card:
    return replace(
        CATALOG["l4"],
        id="made-up",
        memory_bytes=memory_bytes,
        memory_ecc_bytes=None,
        compute_capability=capability,
    )


memories = st.integers(min_value=GIB, max_value=1000 * GIB)


@given(memories, st.sampled_from(CAPABILITIES))
def test_usable_is_below_memory(memory_bytes: int, capability: str | None) -> None:
    answer = cards.usable(of(memory_bytes, capability))
    assert answer.total.low <= answer.total.likely <= answer.total.high < memory_bytes
    assert answer.usable.low <= answer.usable.likely <= answer.usable.high
    assert answer.usable.high < answer.total.high
    # the gap stays a small matter
    assert answer.total.low > 0.9 * memory_bytes - 800 * MIB


@given(memories, memories, st.sampled_from(CAPABILITIES))
def test_more_memory_never_gives_less(one: int, two: int, capability: str | None) -> None:
    less = cards.usable(of(min(one, two), capability))
    more = cards.usable(of(max(one, two), capability))
    for small, large in ((less.total, more.total), (less.usable, more.usable)):
        assert small.low <= large.low
        assert small.likely <= large.likely
        assert small.high <= large.high


@given(st.sampled_from(sorted(CATALOG)), st.integers(min_value=0, max_value=200 * GIB))
def test_shipped_cards_hold_to_the_same(card_id: str, others: int) -> None:
    card = CATALOG[card_id]
    if card.memory_bytes is None:
        return
    answer = cards.usable(card, other_tenants_bytes=others)
    assert 0 <= answer.usable.low <= answer.usable.likely <= answer.usable.high
    assert answer.usable.high < card.memory_bytes
    assert answer.source


def test_an_interval_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="3"):
        Interval(3, 2, 4)
