"""Points in time as people write them in a file, and the hours in which a machine is free.

In: dates, times of day and texts in ISO 8601. Out: naive `datetime` values of one clock, the reader's own; a time with
a zone is turned to it. Left out: the hour that a clock skips or repeats when summer time begins or ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from cardfit.messages import say

DAYS_AHEAD = 400  # how far hours that come daily are laid out
_DAILY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
_DAY = timedelta(days=1)
Span = tuple[float, float]  # seconds after the start


def _wrong() -> PydanticCustomError:
    return PydanticCustomError("time", "{why}", {"why": say("shots-bad-time")})


def _point(value: Any, day_ends: bool) -> datetime:
    """``value`` as a time; a bare date is its first moment, or with ``day_ends`` its last."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value.strip())
        except ValueError:
            try:
                value = datetime.fromisoformat(value.strip())
            except ValueError:
                raise _wrong() from None
    if isinstance(value, datetime):
        try:
            return value.astimezone().replace(tzinfo=None) if value.tzinfo else value
        except (OverflowError, ValueError, OSError):
            raise _wrong() from None
    if not isinstance(value, date) or not date(1971, 1, 1) < value < date(9000, 1, 1):
        raise _wrong()
    return datetime.combine(value, time()) + (_DAY if day_ends else timedelta())


From = Annotated[datetime, BeforeValidator(lambda value: _point(value, False))]
Until = Annotated[datetime, BeforeValidator(lambda value: _point(value, True))]


class Window(BaseModel):
    """When a machine is free; open where an end is left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    from_: Annotated[From | None, Field(alias="from", description="date or time")] = None
    until: Annotated[Until | None, Field(description="date (its end) or time")] = None


def parse_start(text: str) -> datetime:
    """A time from a flag. Raises ValueError.

    >>> parse_start("2026-12-07 18:00").isoformat()
    '2026-12-07T18:00:00'
    """
    try:
        return _point(text, False)
    except PydanticCustomError as error:
        raise ValueError(text) from error


def daily(text: str, start: datetime) -> Iterable[tuple[datetime, datetime]]:
    """Every day's hours ``"19:00-08:00"``, past midnight where the end comes first. Raises ValueError.

    >>> next(iter(daily("19:00-08:00", datetime(2026, 12, 7, 3))))[1].isoformat()
    '2026-12-07T08:00:00'
    """
    match = _DAILY.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    first, last = time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
    today = start.date() - _DAY
    found = []
    for each in range(DAYS_AHEAD):
        day = today + each * _DAY
        ends = day if first < last else day + _DAY
        found.append((datetime.combine(day, first), datetime.combine(ends, last)))
    return [(begins, ends) for begins, ends in found if ends > start]


def spans(windows: Sequence[Window], hours: str | None, start: datetime) -> tuple[Span, ...]:
    """When a machine is free, in seconds after ``start``, in order and apart; always where nothing was said.

    ``windows`` and daily ``hours`` together mean the hours within the windows.

    >>> spans([], None, datetime(2026, 12, 7))
    ((0.0, inf),)
    """
    given = [(each.from_, each.until) for each in windows] or [(None, None)]
    free = [
        (_after(begins, start, 0.0), _after(ends, start, float("inf"))) for begins, ends in given
    ]
    if hours is not None:
        nights = [
            (_after(begins, start, 0.0), _after(ends, start, 0.0))
            for begins, ends in daily(hours, start)
        ]
        free = [(max(a, c), min(b, d)) for a, b in free for c, d in nights]
    found: list[Span] = []
    for begins, ends in sorted((max(0.0, begins), ends) for begins, ends in free):
        if ends <= begins:
            continue
        if found and begins <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ends))
        else:
            found.append((begins, ends))
    return tuple(found)


def _after(point: datetime | None, start: datetime, unsaid: float) -> float:
    return unsaid if point is None else (point - start).total_seconds()


def time_text(point: datetime) -> str:
    """A time to the minute, as it sorts; the end of a day as such.

    >>> time_text(datetime(2026, 12, 7, 18, 5, 31)), time_text(datetime(2026, 12, 9))
    ('2026-12-07 18:05', '2026-12-08 24:00')
    """
    if point.time() == time():
        return f"{(point - _DAY).date().isoformat()} 24:00"
    return point.isoformat(" ", "minutes")


def short_text(point: datetime) -> str:
    """The same without the year, for a table.

    >>> short_text(datetime(2026, 12, 7, 18, 5, 31))
    '12-07 18:05'
    """
    return time_text(point).partition("-")[2]
