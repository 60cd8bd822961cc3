"""This machine as a record holds it.

In: what the driver, the kernel and the container say. Out: `records.models.Machine`, and the catalog's card with what
it can reserve. Nothing here needs torch.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardfit.cards import Card, find, usable
from cardfit.cards import detect as detecting
from cardfit.cards import load as load_cards
from cardfit.errors import BadRequest, MissingExtra
from cardfit.records.models import FAKE, Machine


@dataclass(frozen=True, slots=True)
class Here:
    """The machine, and the card that runs, with the bytes that one process can reserve on it."""

    machine: Machine
    card: Card | None = None
    usable_bytes: int | None = None


def here(device: str = "auto", *, nvml: Any = None, folder: Path = Path()) -> Here:
    """This machine, with the card that ``device`` names (``auto``: the first); none for ``cpu``.

    ``fake:CARD`` is a card of the catalog that is not here: the machine has none, and as much of it as that card.
    Raises UnknownCard.
    """
    if device.partition(":")[0] == FAKE:
        return pretended(device.partition(":")[2] or None)
    found = None
    if device != "cpu":
        try:
            found = detecting.here(nvml=nvml, folder=folder)
        except MissingExtra:
            found = None  # without pynvml torch alone knows the card
    index = driver_index(0 if device in ("auto", "cuda") else int(device.partition(":")[2] or 0))
    common: dict[str, Any] = {
        "os": platform.system().lower(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "ram_bytes": detecting.ram_bytes(),
        "ram_limit_bytes": detecting.ram_limit_bytes(),
    }
    if found is None or index >= len(found.cards):
        return Here(Machine(**common, disk_free_bytes=detecting.disk_free_bytes(folder)))
    card, on = found.cards[index], found.devices[index]
    machine = Machine(
        **common,
        disk_free_bytes=found.disk_free_bytes,
        driver=found.driver,
        card=card.id,
        card_name=on.name,
        card_memory_bytes=on.memory_bytes,
        link_gen=on.pcie_gen,
        link_lanes=on.pcie_lanes,
    )
    return Here(machine, card, _usable(card, on.used_bytes))


def pretended(card_id: str | None) -> Here:
    """A machine somewhere else with the catalog's card; nothing is looked at. Raises UnknownCard."""
    machine = Machine(os=platform.system().lower())
    if card_id is None:
        return Here(machine)
    card = find(load_cards(), card_id)
    room = _usable(card, 0)
    return Here(machine.model_copy(update={"card_memory_bytes": room}), card, room)


def driver_index(index: int) -> int:
    """The driver's number of the card that CUDA numbers ``index``: CUDA_VISIBLE_DEVICES renumbers, NVML does not."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    found = shown[index].strip() if index < len(shown) else ""
    return int(found) if found.isdecimal() else index


def usable_bytes(device: str) -> int | None:
    """What one process can reserve on the card that ``device`` names; ``None`` without one, or for no device's name."""
    number = device.partition(":")[2]
    if device not in ("auto", "cuda") and not (device.startswith("cuda:") and number.isdigit()):
        return None
    return here(device).usable_bytes


def _usable(card: Card, used_bytes: int) -> int | None:
    try:
        room = usable(card)
    except BadRequest:
        return None
    # what CUDA's total leaves out of the driver's memory is in ``used_bytes`` already
    tenants = max(0, used_bytes - ((card.memory_bytes or 0) - room.total.likely))
    return max(0, room.usable.likely - tenants)


def _processor() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or None
    names = [
        line.partition(":")[2].strip()
        for line in text.splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine() or None
