"""The tables of facts are held to rules: fixed columns, sources, dense rates, order, no strays."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cardfit import cards
from cardfit.cards import Card, codecs
from cardfit.cards.catalog import COLUMNS, SHIPPED
from cardfit.cards.usable import cuda_totals
from cardfit.units import GIB, MIB

CATALOG = cards.load()
CARDS = tuple(CATALOG.values())
IDS = [card.id for card in CARDS]

# Dense FP16 FLOP per clock and SM by compute capability (NVIDIA's architecture papers). A sparse
# figure is twice as high.
DENSE_FLOP_PER_CLOCK = {
    "7.0": 1024,
    "7.5": 1024,
    "8.0": 2048,
    "8.6": 1024,
    "8.9": 1024,
    "9.0": 4096,
    "10.0": 8192,
    "10.3": 8192,
    "12.0": 1024,
}
FP32_FLOP_PER_CLOCK = {"7.0": 128, "7.5": 128, "8.0": 128}  # 256 from GA10x on


def header(path: Path) -> list[str]:
    with path.open(newline="") as stream:
        return next(csv.reader(stream))


def test_the_columns_are_fixed() -> None:
    assert header(SHIPPED) == list(COLUMNS)
    assert header(codecs.SHIPPED) == list(codecs.COLUMNS)


def test_the_whole_catalog_is_there() -> None:
    assert len(CARDS) == 62
    assert len(codecs.facts()) == 560
    assert len(cuda_totals()) == 16


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_every_card_names_source_year_and_maker(card: Card) -> None:
    assert len(card.source) > 10
    assert card.release_year is not None
    assert 2017 <= card.release_year <= 2026
    assert card.vendor in {"NVIDIA", "AMD"}
    assert card.architecture


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_memory_is_there_or_the_notes_say_why(card: Card) -> None:
    if card.memory_bytes is None:
        assert "MiB:" in card.notes
        return
    assert card.memory_marketing_gb is not None
    share = card.memory_bytes / (card.memory_marketing_gb * GIB)
    # Decimal marketing sizes of stacked memory lie lowest (B300: 288 GB are 268.6 GiB).
    assert 0.92 < share <= 1.02
    if card.memory_ecc_bytes is not None:
        # Error correction on GDDR6 takes one sixteenth.
        assert card.memory_ecc_bytes / card.memory_bytes == pytest.approx(15 / 16, abs=0.001)


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_rates_are_dense(card: Card) -> None:
    rates = card.flop_per_s
    assert set(rates) <= set(cards.FLOP_KINDS)
    if card.sm_count is None or card.boost_hz is None or card.vendor != "NVIDIA":
        return
    clocks = card.sm_count * card.boost_hz
    assert card.compute_capability is not None
    if "fp16_fp32acc" in rates:
        dense = DENSE_FLOP_PER_CLOCK[card.compute_capability] * clocks
        assert rates["fp16_fp32acc"] <= 1.01 * dense
    if card.id != "rtx-pro-6000-blackwell-server":  # the sheet's 120 is at a lower clock
        per_clock = FP32_FLOP_PER_CLOCK.get(card.compute_capability, 256)
        assert rates["fp32"] == pytest.approx(per_clock * clocks, rel=0.035)


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_rates_stand_in_the_known_ratios(card: Card) -> None:
    rates = card.flop_per_s
    half = rates.get("fp16_fp32acc")
    if half is None:
        return
    if "bf16" in rates:
        assert rates["bf16"] == half
    if "tf32" in rates:
        assert rates["tf32"] == pytest.approx(half / 2, rel=0.02)
    if "fp8" in rates:
        assert rates["fp8"] == pytest.approx(2 * half, rel=0.03)
    if "fp4" in rates:
        assert rates["fp4"] >= 2 * rates["fp8"] * 0.99
    if "int8" in rates:
        assert 1.98 <= rates["int8"] / half <= 4.02  # GeForce: half rate with FP32 accumulation


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_no_rate_for_what_a_generation_lacks(card: Card) -> None:
    if card.vendor != "NVIDIA" or card.compute_capability is None:
        return
    capability = float(card.compute_capability)
    if capability < 8.0:
        assert not {"bf16", "tf32", "fp8", "fp4"} & set(card.flop_per_s)
    if capability < 8.9:
        assert "fp8" not in card.flop_per_s
    if capability < 10.0:
        assert "fp4" not in card.flop_per_s


def test_traps_of_data_sheets() -> None:
    tera = {card.id: card.flop_per_s.get("bf16", 0) / 1e12 for card in CARDS}
    assert tera["h100-sxm"] == 989.4  # 1979 is sparse
    assert tera["h100-nvl"] == 835  # 1671 is sparse or a pair
    assert tera["l4"] == 121  # 242 is sparse
    assert tera["b200"] == 2250
    assert tera["l40"] / tera["l40s"] == pytest.approx(0.5, rel=0.001)
    assert tera["rtx-4090"] == 165.2  # half rate with FP32 accumulation
    assert CATALOG["rtx-5090"].flop_per_s["fp4"] == 1676e12  # 3352 is sparse


@pytest.mark.parametrize(
    "ladder",
    [
        ("rtx-3060-12gb", "rtx-3090", "rtx-3090-ti"),
        ("rtx-4060-ti-16gb", "rtx-4070-ti-super", "rtx-4080", "rtx-4080-super", "rtx-4090"),
        ("rtx-5060-ti-16gb", "rtx-5070-ti", "rtx-5080", "rtx-5090"),
        ("rtx-a4000", "rtx-a4500", "rtx-a5000", "rtx-a5500", "rtx-a6000"),
        ("rtx-4000-ada", "rtx-4500-ada", "rtx-5000-ada", "rtx-6000-ada"),
        (
            "rtx-pro-4000-blackwell",
            "rtx-pro-4500-blackwell",
            "rtx-pro-5000-blackwell",
            "rtx-pro-6000-blackwell-workstation",
        ),
        ("v100-pcie-16gb", "v100-sxm2-16gb", "v100-sxm2-32gb"),
        ("a30", "a100-sxm-40gb", "a100-sxm-80gb"),
        ("h100-pcie", "h100-sxm", "h200-sxm"),
        ("b200", "b300"),
    ],
)
def test_a_higher_tier_is_never_less(ladder: tuple[str, ...]) -> None:
    for lower, higher in zip(ladder, ladder[1:]):
        low, high = CATALOG[lower], CATALOG[higher]
        assert low.compute_capability is not None and high.compute_capability is not None
        assert low.compute_capability[:2] == high.compute_capability[:2]
        assert low.memory_bytes is not None and high.memory_bytes is not None
        # 24576 and 24564 MiB are both 24 GB
        assert low.memory_bytes <= high.memory_bytes + 12 * MIB
        assert low.bandwidth_bytes_per_s is not None and high.bandwidth_bytes_per_s is not None
        assert low.bandwidth_bytes_per_s <= high.bandwidth_bytes_per_s
        assert low.flop_per_s["fp16_fp32acc"] <= high.flop_per_s["fp16_fp32acc"]


def test_codec_rows_name_a_card_or_a_generation() -> None:
    scopes = set(IDS) | set(codecs.GENERATIONS.values())
    assert {fact.scope for fact in codecs.facts()} <= scopes
    assert set(codecs.GENERATIONS.values()) <= {fact.scope for fact in codecs.facts()}
    assert all(fact.source for fact in codecs.facts())


def test_no_codec_row_contradicts_another() -> None:
    seen: dict[tuple[object, ...], bool] = {}
    for fact in codecs.facts():
        key = (fact.scope, fact.engine, fact.codec, fact.chroma, fact.bit_depth)
        assert seen.setdefault(key, fact.supported) == fact.supported, key


@pytest.mark.parametrize(
    "card_id",
    [
        *("a30", "a100-pcie-40gb", "a100-sxm-40gb", "a100-pcie-80gb", "a100-sxm-80gb"),
        *("h100-pcie", "h100-sxm", "h100-nvl", "h200-sxm", "h200-nvl", "gh200-96gb"),
        *("b200", "b300"),
    ],
)
def test_data_center_dies_have_no_encoder(card_id: str) -> None:
    card = CATALOG[card_id]
    assert card.nvenc_count == 0
    for codec in ("h264", "hevc", "av1"):
        assert codecs.supports(card, "nvenc", codec) is False


def test_readings_of_cudas_total_lie_below_the_drivers() -> None:
    for reading in cuda_totals():
        card = CATALOG[reading.card_id]
        assert reading.compute_capability == card.compute_capability
        assert reading.driver_bytes == card.memory_bytes
        assert reading.low_bytes <= reading.high_bytes < reading.driver_bytes
        assert reading.low_bytes > 0.97 * reading.driver_bytes
        assert reading.source
