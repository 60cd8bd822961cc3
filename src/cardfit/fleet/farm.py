"""The YAML file of a farm: machines, each probed or in a few words, and when they are free.

In: a path, the catalog. Out: `Machine` values: cards as the plan sees them, with the RAM and disk around them. Machines
that are alike share a `Kind`, so that a request is planned once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.cards import Card, find
from cardfit.errors import BadFile, BadRequest, Note, UnknownCard
from cardfit.fleet.shots import Name
from cardfit.fleet.times import Span, Window, spans
from cardfit.offers import Offer
from cardfit.plan.answer import Money
from cardfit.plan.machine import Probed, read_machine
from cardfit.plan.offers import main_currency
from cardfit.plan.place import own_currency, place_of
from cardfit.plan.target import Target
from cardfit.plan.verdict import Host
from cardfit.request.read import Lines, kind_of, read_fields, validate_fields
from cardfit.units import parse_bytes

MAX_MACHINES = 500
_WORDS = ("card", "count", "ram", "disk", "os")  # what a probe says by itself


class Rate(BaseModel):
    """What an hour of one card costs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    amount: Annotated[float, Field(ge=0, le=1e6)]
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$", description="ISO 4217, as in USD")]


class MachineEntry(BaseModel):
    """One machine of the file: what ``cardfit probe --json`` wrote there, or its card, their count, RAM and disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    probe: Annotated[
        str | None,
        Field(min_length=1, max_length=1000, description="file of cardfit probe --json, from here"),
    ] = None
    card: Annotated[str | None, Field(min_length=1, max_length=200, description="card id")] = None
    count: Annotated[int, Field(ge=1, le=64, description="cards in this machine")] = 1
    ram: Annotated[
        str | None, Field(max_length=40, description="host RAM of the machine, as in 64GB")
    ] = None
    disk: Annotated[str | None, Field(max_length=40, description="its disk, as in 2TB")] = None
    os: Literal["linux", "windows"] = "linux"
    windows: Annotated[
        tuple[Window, ...], Field(max_length=100, description="when it is free; always without")
    ] = ()
    daily: Annotated[
        str | None, Field(max_length=20, description="hours of every day, as in 19:00-08:00")
    ] = None
    price_per_hour: Annotated[Rate | None, Field(description="of one card")] = None


class FarmFile(BaseModel):
    """What a YAML file of machines holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    machines: Annotated[tuple[MachineEntry, ...], Field(min_length=1, max_length=MAX_MACHINES)]


@dataclass(frozen=True, slots=True)
class Kind:
    """A card in its machine, as far as a plan depends on them; ``probed`` holds the rates that were measured."""

    target: Target
    host: Host
    probed: Probed | None = field(default=None, compare=False)
    rates: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: the kind of each card, its host RAM in bytes, when it is free, the price of a card's hour."""

    name: str
    kinds: tuple[Kind, ...]
    ram_bytes: int | None
    spans: tuple[Span, ...]
    price_per_hour: Money | None
    notes: tuple[Note, ...] = ()


def read_farm(
    path: str | Path, catalog: Mapping[str, Card], start: datetime
) -> tuple[Machine, ...]:
    """The machines in the YAML file at ``path``: a list, or a mapping with ``machines``.

    Raises BadFile and BadRequest naming file and line, UnknownCard for a card that nobody knows.
    """
    path = Path(path)
    fields, lines = read_fields(path, dates=True)
    if isinstance(fields, list):
        fields, lines = {"machines": fields}, {("machines", *at): n for at, n in lines.items()}
    if not isinstance(fields, dict):
        raise BadFile("farm-not-a-list", path=str(path), found=kind_of(fields))
    listed = fields.pop("machines", None)
    if not isinstance(listed, list) or not listed:
        raise BadFile("farm-no-list", path=str(path))
    if len(listed) > MAX_MACHINES:
        raise BadFile("farm-too-many", path=str(path), found=len(listed), allowed=MAX_MACHINES)
    entries = [_entry(each, number, path, lines) for number, each in enumerate(listed)]
    found = validate_fields(FarmFile, {**fields, "machines": [e for e, _ in entries]}, path, lines)
    names = [each.name for each in found.machines]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadFile("farm-twice", path=str(path), name=twice)
    return tuple(_machine(entry, where, path.parent, catalog, start) for entry, where in entries)


def _entry(fields: Any, number: int, path: Path, lines: Lines) -> tuple[MachineEntry, str]:
    """One machine and where it stands."""
    own = {at[2:]: line for at, line in lines.items() if at[:2] == ("machines", number)}
    where = Note("in-file-line", {"path": str(path), "line": own.get((), 1)}).text
    if not isinstance(fields, dict):
        raise BadRequest("farm-not-a-machine", where=where, found=kind_of(fields))
    found = validate_fields(MachineEntry, fields, path, own)
    if (found.probe is None) == (found.card is None):
        raise BadRequest("farm-probe-or-card", where=where, name=found.name)
    said = [word for word in _WORDS if word in found.model_fields_set]
    if found.probe is not None and said:
        raise BadRequest("farm-probe-says", where=where, name=found.name, fields=", ".join(said))
    return found, where


def _machine(
    entry: MachineEntry, where: str, folder: Path, catalog: Mapping[str, Card], start: datetime
) -> Machine:
    try:
        free = spans(entry.windows, entry.daily, start)
    except ValueError:
        raise BadRequest("farm-bad-daily", where=where, asked=entry.daily) from None
    rate = entry.price_per_hour
    price = None if rate is None else Money(amount=rate.amount, currency=rate.currency)
    if entry.probe is not None:
        kinds, ram_bytes, notes = _probed(folder / entry.probe, catalog)
    else:
        kinds, ram_bytes, notes = _worded(entry, where, catalog)
    return Machine(entry.name, kinds, ram_bytes, free, price, notes)


def _worded(
    entry: MachineEntry, where: str, catalog: Mapping[str, Card]
) -> tuple[tuple[Kind, ...], int | None, tuple[Note, ...]]:
    """A machine in a few words."""
    ram, disk = _size(entry.ram, True, where), _size(entry.disk, False, where)
    try:
        card = find(catalog, entry.card or "")
    except UnknownCard as unknown:
        raise BadRequest("farm-bad-card", where=where, why=str(unknown)) from None
    host = Host(None, entry.os, disk_bytes=disk)
    (target,) = place_of(catalog, (), [card.id], host).targets
    kind = Kind(replace(target, machine_ram_bytes=ram), host)
    return (kind,) * entry.count, ram, ()


def _size(text: str | None, memory: bool, where: str) -> int | None:
    if text is None:
        return None
    try:
        size = parse_bytes(text, memory=memory)
    except ValueError:
        size = 0
    if size <= 0:
        raise BadRequest("farm-bad-size", where=where, asked=text)
    return size


def _probed(
    file: Path, catalog: Mapping[str, Card]
) -> tuple[tuple[Kind, ...], int | None, tuple[Note, ...]]:
    """A machine as it was probed; each card with what others held of it then."""
    found = read_machine(file, catalog)
    machine = found.machine
    if not machine.cards:
        raise BadFile("farm-no-card", path=str(file))
    kinds, ram_bytes = [], None
    for card, device in zip(machine.cards, machine.devices, strict=True):
        alone = replace(machine, cards=(card,), devices=(device,))
        place = place_of(catalog, (), None, Host(), machine=alone)
        (target,) = place.targets
        ram_bytes = target.machine_ram_bytes
        rates = (found.links.get(card.id), found.host)
        kinds.append(Kind(target, place.host, found, rates))
    return tuple(kinds), ram_bytes, place.notes


def kinds_for_rent(catalog: Mapping[str, Card], market: Sequence[Offer]) -> tuple[Kind, ...]:
    """Every card that is offered by the hour in the currency of the reader's own offers, else in the most common one.

    Monthly offers are left out: a farm lacks hours.
    """
    hourly = [offer for offer in market if offer.period == "hour"]
    place = place_of(catalog, hourly, None, Host())
    money = own_currency(hourly) or main_currency(place.targets)
    kept = [
        replace(each, offers=tuple(o for o in each.offers if o.price.currency == money))
        for each in place.targets
    ]
    return tuple(Kind(each, place.host) for each in kept if each.offers)
