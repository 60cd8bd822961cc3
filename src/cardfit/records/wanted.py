"""Which records are asked for.

In: filters. Out: a value that every store understands: a database as conditions, a folder record by record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cardfit.records.models import Record

ASKED = ("width", "height", "num_frames", "num_inference_steps", "batch")
"""Fields of the request that a database has a column for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters; what is left out does not matter. ``last``: the latest so many. ``asked``: fields of the request."""

    model: str | None = None
    card: str | None = None
    outcome: str | None = None
    sweep: str | None = None
    since: datetime | None = None
    last: int | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, Any]:
        """What is to be equal, by column; ``asked`` as far as it has columns."""
        named: dict[str, Any] = {
            "model": self.model,
            "card": self.card,
            "outcome": self.outcome,
            "sweep": self.sweep,
            **{name: value for name, value in self.asked.items() if name in ASKED},
        }
        return {name: value for name, value in named.items() if value is not None}

    @property
    def everything(self) -> bool:
        """Whether no record is left out."""
        return self == ALL

    def matches(self, record: Record) -> bool:
        """Whether ``record`` is asked for; ``last`` is for those who count."""
        request = record.request
        found = {
            "model": record.model,
            "card": record.machine.card,
            "outcome": record.outcome.kind,
            "sweep": record.sweep,
            **{name: None if request is None else getattr(request, name) for name in ASKED},
        }
        fits = all(found[name] == value for name, value in self.columns.items())
        return fits and (self.since is None or time_of(record) >= self.since)


ALL = Wanted()


def time_of(record: Record) -> datetime:
    """When ``record`` was begun, in UTC; a time without a zone is this machine's."""
    try:
        return record.created.astimezone(UTC)
    except (OverflowError, ValueError):  # at either end of the calendar
        return record.created.replace(tzinfo=UTC)
