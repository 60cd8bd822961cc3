"""A machine that was probed elsewhere: what `cardfit probe --json` wrote there, read for a plan.

In: a file, the catalog. Out: `Probed`: the machine as `cards.detect` describes one at hand, the rates of its links and
of its disk. Nothing of this machine is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from cardfit.cards import Card, detect
from cardfit.errors import BadFile
from cardfit.measure.probe import SCHEMA, Probe, ProbedCard
from cardfit.predict.transfers import PAGEABLE_BYTES_PER_S, PAGEABLE_SHARE, Host, Link
from cardfit.request.read import read_text
from cardfit.units import MIB

MAX_BYTES = MIB


@dataclass(frozen=True, slots=True)
class Probed:
    """A machine with what was measured of it; ``links`` by card id, only where the rate was measured."""

    machine: detect.Machine
    links: Mapping[str, Link]
    host: Host


def read_machine(path: Path, catalog: Mapping[str, Card]) -> Probed:
    """The machine that the file at ``path`` describes. Raises BadFile for one that is too large or something else."""
    text = read_text(path, MAX_BYTES)
    try:
        found = Probe.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "-"
        raise BadFile("machine-bad-file", path=path, where=where, why=first["msg"]) from None
    if found.schema_ != SCHEMA:
        raise BadFile("machine-other-schema", path=path, found=found.schema_, wanted=SCHEMA)
    known = [
        detect.card_of(catalog, _device(at, card), None) for at, card in enumerate(found.cards)
    ]
    links = {
        card.id: link
        for (card, _), probed in zip(known, found.cards, strict=True)
        if (link := _link(probed)) is not None
    }
    seen = found.machine
    machine = detect.Machine(
        cards=tuple(card for card, _ in known),
        devices=tuple(_device(at, card) for at, card in enumerate(found.cards)),
        ram_bytes=seen.ram_bytes,
        ram_limit_bytes=seen.ram_limit_bytes,
        disk_free_bytes=seen.disk_free_bytes,
        os=seen.os,
        driver=seen.driver,
        notes=tuple(note for _, note in known if note is not None),
    )
    return Probed(machine, links, Host(disk_bytes_per_s=found.disk_read_bytes_per_s))


def _device(at: int, card: ProbedCard) -> detect.Device:
    return detect.Device(
        index=at,
        name=card.name,
        memory_bytes=card.memory_bytes,
        used_bytes=card.used_bytes,
        ecc=card.ecc,
        pcie_gen=card.link.gen,
        pcie_lanes=card.link.lanes,
    )


def _link(card: ProbedCard) -> Link | None:
    pinned = card.link.pinned_bytes_per_s
    if pinned is None:
        return None
    paged = card.link.paged_bytes_per_s
    return Link(pinned, paged or min(PAGEABLE_SHARE * pinned, PAGEABLE_BYTES_PER_S))
