"""Where a request is to run: the cards to look at, what they rent for, and this machine when asked.

In: the catalog, the offers, the names of cards. Out: a `Place`. Nothing is loaded but what the machine itself says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from cardfit.cards import detect, find, unverified_reason, usable
from cardfit.cards.card import Card
from cardfit.cards.usable import CONTEXT_HIGH_BYTES, CONTEXT_LIKELY_BYTES, CONTEXT_LOW_BYTES
from cardfit.errors import BadRequest, Note
from cardfit.messages import say
from cardfit.offers import Offer
from cardfit.plan.around import container_limit
from cardfit.plan.offers import offer_rows
from cardfit.plan.target import Band, Target
from cardfit.plan.verdict import Host, Os
from cardfit.predict import calibration
from cardfit.units import human_bytes

TARGET = "target"  # the id of a card that is nothing but a size


@dataclass(frozen=True, slots=True)
class Place:
    """Where the request is to run: the cards, the machine around them and what was said while looking."""

    targets: tuple[Target, ...]
    host: Host
    notes: tuple[Note, ...] = ()
    disk_free_bytes: int | None = None


def place_of(
    catalog: Mapping[str, Card],
    market: Sequence[Offer],
    names: Sequence[str] | None,
    host: Host,
    *,
    here: bool = False,
    machine: detect.Machine | None = None,
) -> Place:
    """The named cards (all when none was named) with their offers; with ``here`` those of this machine as well.

    ``machine`` is one that was read elsewhere. Raises BadRequest where no card is left to look at.
    """
    today = date.today()
    asked = here or machine is not None
    nothing = detect.none_found() if here else Note("machine-no-card")
    if here:
        machine = detect.here(catalog)
    if machine is not None and not machine.cards:
        machine = None
    if asked and machine is None and names is None:
        raise BadRequest(nothing.code, **nothing.args)
    chosen = {card.id: _target(card, market, today) for card in _named(catalog, names, machine)}
    if machine is None:
        return Place(tuple(chosen.values()), host, (nothing,) if asked else ())
    ram_bytes = min(filter(None, (machine.ram_bytes, machine.ram_limit_bytes)), default=None)
    limit = container_limit(machine.ram_bytes, machine.ram_limit_bytes)
    for card, device in zip(machine.cards, machine.devices, strict=True):
        target = _target(card, market, today, device.used_bytes, ram_bytes)
        chosen[card.id] = replace(target, ram_of="container") if limit else target
    os: Os = "windows" if machine.os == "windows" else host.os
    notes = (*machine.notes, *limit) if host.ram_bytes is None else machine.notes
    return Place(
        tuple(chosen.values()), replace(host, os=os), notes, disk_free_bytes=machine.disk_free_bytes
    )


def _named(
    catalog: Mapping[str, Card], names: Sequence[str] | None, machine: detect.Machine | None
) -> list[Card]:
    if names is None:
        return [] if machine else list(catalog.values())
    return [find(catalog, name) for name in names]


def _target(
    card: Card,
    market: Sequence[Offer],
    today: date,
    used_bytes: int = 0,
    ram_bytes: int | None = None,
) -> Target:
    """``used_bytes`` is what the driver says is taken on this machine's card now, the driver's own share included."""
    reason = unverified_reason(card)
    capability = card.compute_capability
    target = Target(
        card=card.id,
        name=card.name,
        memory_bytes=card.memory_bytes,
        architecture=card.architecture,
        compute_capability=None if capability is None else float(capability),
        total=None,
        context=None,
        offers=offer_rows(card.id, market, today),
        unverified=reason,
        machine_ram_bytes=ram_bytes,
        tdp_w=card.tdp_w,
    )
    if reason is not None or card.memory_bytes is None:
        return target
    room = usable(card, **calibration.context(card.id))
    # what CUDA's total leaves out of the driver's memory is in ``used_bytes`` already
    tenants = max(0, used_bytes - (card.memory_bytes - room.total.likely))
    total, context = room.total, room.context
    return replace(
        target,
        total=Band(*(max(0, each - tenants) for each in (total.low, total.likely, total.high))),
        context=Band(context.low, context.likely, context.high),
    )


def within(place: Place, target_bytes: int, *, named: bool) -> Place:
    """``place`` with ``target_bytes`` of device memory, the CUDA context included: all that a card of it may take.

    Where no card was named the target is the card: NVIDIA's rules, no machine and no price. Raises BadRequest for less
    than a context takes.
    """
    if target_bytes <= CONTEXT_HIGH_BYTES:
        raise BadRequest("target-too-small", least=human_bytes(CONTEXT_HIGH_BYTES))
    if named:
        return replace(place, targets=tuple(_cut(each, target_bytes) for each in place.targets))
    only = Target(
        card=TARGET,
        name=say("target-name", {"size": human_bytes(target_bytes)}),
        memory_bytes=target_bytes,
        architecture=None,
        compute_capability=None,
        total=Band(target_bytes, target_bytes, target_bytes),
        context=Band(CONTEXT_LOW_BYTES, CONTEXT_LIKELY_BYTES, CONTEXT_HIGH_BYTES),
    )
    return replace(place, targets=(only,), notes=(*place.notes, Note("target-is")))


def _cut(target: Target, most: int) -> Target:
    room = target.total
    if room is None:
        return target
    return replace(
        target, total=Band(*(min(each, most) for each in (room.low, room.likely, room.high)))
    )


def own_currency(market: Sequence[Offer]) -> str | None:
    """The currency of the reader's own offers, where there are any: prices are compared in it."""
    return next((offer.currency for offer in market if offer.own), None)
