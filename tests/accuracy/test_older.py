"""Which diffusers a row's time had, by the version or the day that the row names."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.accuracy import older
from cardfit.accuracy.rows import read

DATA = Path(__file__).parents[2] / "benchmarks" / "data"
ANY = read(DATA / "measured.csv")[0][0]


@pytest.mark.parametrize(
    ("day", "series"),
    [
        ("2024-08-06", "0.29"),
        ("2024-08-07", "0.30"),
        ("2024-10-21", "0.30"),
        ("2024-10-22", "0.31"),
        ("0de1 (2025-05-08)", "0.33"),
        ("2025-01", "0.32"),
        ("2022-01-01", None),
        ("date not recorded", None),
        ("2024-13-40", None),
        ("dataset revision 152f7ca3", None),
    ],
)
def test_a_day_falls_into_the_series_that_was_the_newest(made, day, series):
    assert older.series_of(made(source_commit_or_date=day)) == series


@pytest.mark.parametrize(
    ("text", "series"),
    [
        ("diffusers 0.33.0.dev0, torch 2.5.1+cu124", "0.32"),
        ("diffusers 0.31.0", "0.31"),
        ("torch 2.4.0, diffusers bce9105ac79636f68dcfdcfc9481b89533db65e5", "0.36"),
    ],
)
def test_a_version_that_the_row_names_goes_before_its_day(made, text, series):
    row = made(framework_version=text, source_commit_or_date="2026-01-02")
    assert older.series_of(row) == series


def test_the_earliest_day_counts(made):
    row = made(source_commit_or_date="c0ffee (2025-05-08)", notes="warm; 2024-07-31")
    assert older.published_on(row) == date(2024, 7, 31)
    page = made(source="huggingface/blog sd3.md", source_commit_or_date="04fdd03 (2025-02-01)")
    assert older.published_on(page) == date(2024, 6, 12)


def test_releases_go_up():
    days = [day for day, _ in older.RELEASES]
    numbers = [int(series.partition(".")[2]) for _, series in older.RELEASES]
    assert days == sorted(set(days))
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


@given(st.dates(date(2023, 8, 1), date(2027, 1, 1)), st.integers(0, 400))
def test_a_later_day_never_has_an_older_series(day, more):
    row = replace(ANY, framework_version="", page="", notes="", dated=day.isoformat())
    later = replace(row, dated=(day + timedelta(days=more)).isoformat())
    names = [series for _, series in older.RELEASES]
    assert names.index(older.series_of(row)) <= names.index(older.series_of(later))


@pytest.mark.parametrize(
    ("series", "left"),
    [(None, False), ("0.33", True), ("0.36", True), ("0.37", False), ("1.0", False)],
)
def test_8_bit_parts_stay_on_the_card_up_to_0_36(series, left):
    assert older.legacy_bnb(series) is left
