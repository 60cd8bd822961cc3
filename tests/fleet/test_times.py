"""Hours as people write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from pydantic import BaseModel, ValidationError

from cardfit.fleet.times import (
    From,
    Until,
    Window,
    daily,
    parse_start,
    short_text,
    spans,
    time_text,
)

MONDAY = datetime(2026, 12, 7, 18)


class Both(BaseModel):
    begins: From | None = None
    ends: Until | None = None


@pytest.mark.parametrize(
    ("given", "begins", "ends"),
    [
        ("2026-12-08", datetime(2026, 12, 8), datetime(2026, 12, 9)),
        (date(2026, 12, 8), datetime(2026, 12, 8), datetime(2026, 12, 9)),
        ("2026-12-08 07:30", datetime(2026, 12, 8, 7, 30), datetime(2026, 12, 8, 7, 30)),
        (datetime(2026, 12, 8, 7), datetime(2026, 12, 8, 7), datetime(2026, 12, 8, 7)),
    ],
)
def test_a_date_is_its_first_moment_or_its_last(given, begins, ends):
    found = Both(begins=given, ends=given)
    assert (found.begins, found.ends) == (begins, ends)


def test_a_time_with_a_zone_is_turned_to_this_clock():
    given = datetime(2026, 12, 8, 7, tzinfo=timezone(timedelta(hours=9)))
    found = Both(ends=given).ends
    assert found is not None and found.tzinfo is None
    assert found.astimezone() == given


@pytest.mark.parametrize(
    "given", [5, True, 1.5, "tomorrow", "18:00", 1080, "", [], "0001-01-01", "9999-12-31"]
)
def test_what_is_no_time_is_refused(given):
    with pytest.raises(ValidationError, match="give a date or a time"):
        Both(begins=given, ends=given)


def test_hours_past_midnight_begin_the_day_before():
    early = datetime(2026, 12, 7, 3)
    found = list(daily("19:00-08:00", early))
    assert found[0] == (datetime(2026, 12, 6, 19), datetime(2026, 12, 7, 8))
    assert found[1] == (datetime(2026, 12, 7, 19), datetime(2026, 12, 8, 8))
    assert all(a < b for a, b in found) and all(
        b[0] - a[0] == timedelta(days=1) for a, b in zip(found, found[1:], strict=False)
    )


@pytest.mark.parametrize("text", ["19-8", "24:00-08:00", "19:00", "7:00-08:00", "", "19:00-08:00x"])
def test_hours_that_are_none(text):
    with pytest.raises(ValueError):
        daily(text, MONDAY)


def test_windows_become_seconds_in_order_and_apart():
    given = [
        Window.model_validate({"from": "2026-12-08 18:00", "until": "2026-12-08 20:00"}),
        Window.model_validate({"until": "2026-12-07 19:00"}),
        Window.model_validate({"from": "2026-12-07 18:30", "until": "2026-12-07 20:00"}),
        Window.model_validate({"until": "2026-12-06"}),  # over
    ]
    assert spans(given, None, MONDAY) == ((0.0, 7200.0), (86400.0, 93600.0))
    assert spans([], None, MONDAY) == ((0.0, float("inf")),)
    assert spans([Window.model_validate({"until": "2026-12-01"})], None, MONDAY) == ()


def test_daily_hours_hold_within_the_windows():
    week = [Window.model_validate({"from": "2026-12-08", "until": "2026-12-09"})]
    found = spans(week, "19:00-08:00", MONDAY)
    hours = [(a / 3600, b / 3600) for a, b in found]
    assert hours == [(6, 14), (25, 38), (49, 54)]  # 8 and 9 December, counted from Monday 18:00


def test_times_as_text():
    assert parse_start("2026-12-07T18:00") == MONDAY
    assert time_text(datetime(2027, 1, 1)) == "2026-12-31 24:00"
    assert short_text(MONDAY) == "12-07 18:00"
    with pytest.raises(ValueError):
        parse_start("18:00")
