"""The answer to ``assign``: every shot with where it may run and where it runs, every machine with what it does.

Bytes and seconds are plain numbers with the unit in the key, times are ISO 8601 on the reader's clock, unknown is
``None``. Nothing here computes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.messages.said import Said
from cardfit.plan.answer import Money, OfferRow, Price, Seconds, Verdict
from cardfit.request import ExactRequest, Settings

SCHEMA: Literal["cardfit.assign/1"] = "cardfit.assign/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Option(_Frozen):
    """One kind of card against a request: the verdict, whether a shot may go there, and the settings if so.

    ``machines`` have such a card with such RAM and disk. ``seconds`` are of one run with its export.
    """

    card: str
    name: str
    machines: tuple[str, ...]
    verdict: Verdict
    allowed: bool
    price_of_it: tuple[Price, ...]
    settings: Settings | None
    settings_text: str
    device_bytes: int | None
    usable_bytes: int | None
    host_bytes: int | None
    seconds: Seconds | None
    load_seconds: Seconds | None
    why: Said
    near_miss: Said | None


class Planned(_Frozen):
    """One request with settings as given, planned once for every shot that asks for it."""

    number: int
    request: ExactRequest
    settings: Settings
    options: tuple[Option, ...]


class Stretch(_Frozen):
    """Work without a pause: loading, then ``runs`` of the pipeline."""

    begins: datetime
    ends: datetime
    runs: int


class Place(_Frozen):
    """Where a shot runs, in which settings, and when.

    ``done_at_worst`` is the end if every time is at the high end of its band; None where the machine's hours would
    end before. ``option`` counts from 0 in the options of the shot's request.
    """

    machine: str
    slot: Annotated[int, Field(description="which card of the machine, from 0")]
    option: int
    card: str
    settings: Settings
    settings_text: str
    verdict: Verdict
    stretches: tuple[Stretch, ...]
    begins: datetime
    done: datetime
    done_at_worst: datetime | None
    late_seconds: float
    may_be_late: bool
    cost: Money | None


class ShotRow(_Frozen):
    """One shot: what is due, and its place, or why it has none."""

    id: str
    sequence: str | None
    planned: Annotated[int, Field(description="number of its request")]
    count: int
    runs: int
    seed: int
    priority: int
    deadline: datetime | None
    place: Place | None
    why_not: Said | None


class SlotRow(_Frozen):
    """One card of a machine; ``idle_seconds`` are free hours before everything is done."""

    machine: str
    slot: int
    card: str
    name: str
    shots: tuple[str, ...]
    busy_seconds: float
    idle_seconds: float


class Requirement(_Frozen):
    """What another queue has to know: one shot on one card that it may use. Empty cells are not known."""

    shot: str
    sequence: str | None
    priority: int
    deadline: datetime | None
    model: str
    width: int
    height: int
    num_frames: int
    runs: int
    card: str
    machines: str
    verdict: Verdict
    min_vram_bytes: int | None
    host_bytes: int | None
    settings: str
    seconds_per_run: float | None
    load_seconds: float | None
    machine: str | None
    begins: datetime | None
    done: datetime | None


class Rented(_Frozen):
    """One rented card for the shots that have no place or come late; ``hours`` with fetching files and loading."""

    card: str
    name: str
    shots: tuple[str, ...]
    hours: float
    download_seconds: float
    download_assumed: Annotated[bool, Field(description="whether its rate is an assumption")]
    cost: Money
    offer: OfferRow
    done: datetime
    late: tuple[str, ...]


class Assignment(_Frozen):
    """The whole answer. ``done`` is when the last placed shot is; ``costs`` are by currency, nothing is converted."""

    schema_: Annotated[Literal["cardfit.assign/1"], Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    start: datetime
    done: datetime | None
    done_at_worst: datetime | None
    shots: tuple[ShotRow, ...]
    planned: tuple[Planned, ...]
    slots: tuple[SlotRow, ...]
    rented: Rented | None
    costs: tuple[Money, ...]
    requirements: tuple[Requirement, ...]
    said: tuple[Said, ...]
    notes: tuple[Said, ...]

    @property
    def kept(self) -> bool:
        """Whether every shot has a place and keeps its deadline."""
        return all(row.place is not None and not row.place.late_seconds for row in self.shots)
