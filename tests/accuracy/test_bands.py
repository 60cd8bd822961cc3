"""Bands: order statistics by hand, groups that are too thin, sources left out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.accuracy.bands import MIN_ROWS, band, coverage, edges, one_sided, residual


@dataclass(frozen=True)
class Row:
    kind: str
    source: str
    measured_bytes: int
    predicted_bytes: int = 1000


def rows(kind, per_source, sources="abc", start=1000):
    return [
        Row(kind, source, start + number)
        for source in sources
        for number in range(per_source)
    ]  # fmt: skip


def test_residuals_are_relative_to_the_prediction():
    assert residual(Row("allocated", "a", 1010)) == pytest.approx(0.01)
    assert residual(Row("allocated", "a", 980)) == pytest.approx(-0.02)


def test_one_sided_takes_an_order_statistic():
    assert one_sided([n / 100 for n in range(1, 20)]) == pytest.approx(0.19)
    assert one_sided([n / 1000 for n in range(1, 101)]) == pytest.approx(0.096)
    assert one_sided([-0.5, -0.1]) == 0
    assert one_sided([]) == 0


def test_a_kind_with_enough_rows_has_its_own_band():
    found = band([*rows("reserved", 7), *rows("allocated", 9, start=2000)], "reserved")
    assert (found.group, found.n, found.sources) == ("reserved", 21, ("a", "b", "c"))
    assert (found.low, found.high) == (0, 0.006)


@pytest.mark.parametrize(
    "thin", [rows("reserved", 6), rows("reserved", MIN_ROWS, "ab")], ids=["few rows", "two sources"]
)
def test_a_thin_kind_takes_the_wider_group_and_says_so(thin):
    others = rows("allocated", 7, start=1100)
    found = band([*thin, *others, Row("unnamed", "d", 9000)], "reserved")
    assert found.group == "allocated, reserved, device"
    assert found.n == len(thin) + len(others)
    assert found.high == pytest.approx(0.106)


def test_when_even_that_is_thin_every_row_counts():
    found = band([Row("reserved", "a", 1001), Row("unnamed", "b", 1002)], "reserved")
    assert (found.group, found.n) == ("all", 2)


def test_held_out_coverage_by_hand():
    inside = [Row("allocated", "a", 1000), Row("allocated", "a", 1010)]
    # b lies outside of what a alone would allow; a lies inside of what b allows
    found = [*inside, Row("allocated", "b", 1200), Row("allocated", "b", 990)]
    assert coverage(found) == pytest.approx(0.5)
    assert coverage(inside) is None


@given(st.lists(st.integers(500, 2000), min_size=1, max_size=60))
def test_nearly_all_rows_lie_inside_their_own_band(measured):
    found = [Row("allocated", "a", size) for size in measured]
    low, high = edges(found)
    above = sum(residual(row) > high for row in found)
    below = sum(residual(row) < -low for row in found)
    assert above <= 0.05 * len(found)
    assert below <= 0.05 * len(found)
