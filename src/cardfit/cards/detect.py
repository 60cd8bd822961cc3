"""This machine: its cards as the driver names them, RAM and the container's limit, disk, system.

In: NVML, psutil or /proc, and the cgroup files. Out: a `Machine`, or ``None`` without an NVIDIA
card. A card is known by its memory first and its name second, since boards with changed memory are
sold under the same name. Every source can be handed in, so that nothing here needs a GPU to test.
"""

from __future__ import annotations

import importlib
import platform
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cardfit.cards.card import Card
from cardfit.cards.catalog import answers_to, load
from cardfit.errors import MissingExtra, Note
from cardfit.units import GIB, KIB, human_bytes

# Driver releases move the reported memory a little: V100 32768 and 32510 MiB.
MEMORY_TOLERANCE = 0.01
# cgroup v1 writes "no limit" as a page-rounded 2**63.
_NO_LIMIT = 2**60


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU as the driver reports it now. ``pcie_gen`` and ``pcie_lanes`` are the live link.

    A link in idle state may be trained down: read it under load. ``used_bytes`` is what all
    processes and the driver hold; ``None`` is what the driver does not say.
    """

    index: int
    name: str
    memory_bytes: int
    used_bytes: int
    ecc: bool | None
    pcie_gen: int | None
    pcie_lanes: int | None


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine at hand. ``cards[i]`` is the catalog's card for ``devices[i]``.

    ``ram_limit_bytes`` is the container's limit (cgroup), ``None`` without one; the smaller of it
    and ``ram_bytes`` holds. ``os`` is "linux", "windows" or "darwin". ``notes`` says what differs
    from the catalog.
    """

    cards: tuple[Card, ...]
    devices: tuple[Device, ...]
    ram_bytes: int | None
    ram_limit_bytes: int | None
    disk_free_bytes: int | None
    os: str
    driver: str | None
    notes: tuple[Note, ...] = ()


def none_found() -> Note:
    """What to say when `here` returns ``None``."""
    return Note("no-gpu-here")


def here(
    cards: Mapping[str, Card] | None = None,
    *,
    nvml: Any = None,
    ram: Callable[[], int | None] | None = None,
    root: Path = Path("/"),
    folder: Path = Path(),
    system: str | None = None,
) -> Machine | None:
    """This machine; ``None`` when it has no NVIDIA card or no driver (`none_found`).

    ``nvml`` is a module like pynvml, ``ram`` a function that returns bytes, ``root`` where proc and
    sys hang, ``folder`` the place whose disk counts. Raises MissingExtra when pynvml is needed and
    not installed.
    """
    library = _pynvml() if nvml is None else nvml
    known = load() if cards is None else cards
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    try:
        devices, notes = _devices(library)
        driver = _text(_ask(library, library.nvmlSystemGetDriverVersion))
    finally:
        library.nvmlShutdown()
    if not devices:
        return None
    found = [card_of(known, device, capability) for device, capability in devices]
    return Machine(
        cards=tuple(card for card, _ in found),
        devices=tuple(device for device, _ in devices),
        ram_bytes=(ram or (lambda: ram_bytes(root)))(),
        ram_limit_bytes=ram_limit_bytes(root),
        disk_free_bytes=disk_free_bytes(folder),
        os=(system or platform.system()).lower(),
        driver=driver,
        notes=(*notes, *(note for _, note in found if note is not None)),
    )


def identify(
    cards: Mapping[str, Card], name: str, memory_bytes: int, capability: str | None = None
) -> tuple[Card, Note | None]:
    """The card that a driver calls ``name`` and gives ``memory_bytes``, and what differs.

    A name the catalog knows with a memory it does not gives that card with the driver's memory and
    an id of its own; an unknown name gives a card without rates.
    """
    named = [card for card in cards.values() if answers_to(card, name)]
    memories = [card for card in named if _near(card, memory_bytes)]
    if not memories:
        # A modified board carries the plain name: look among the cards of the same die.
        plain = {card.name.split(" (")[0] for card in named}
        kin = [card for card in cards.values() if any(card.name.startswith(p) for p in plain)]
        memories = [card for card in kin if _near(card, memory_bytes)]
    if memories:
        return memories[0], None
    memory = human_bytes(memory_bytes)
    card_id = f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}-{memory_bytes // GIB}g-here"
    if named:
        base = named[0]
        expected = "?" if base.memory_bytes is None else human_bytes(base.memory_bytes)
        note = Note("card-modified-here", {"name": name, "memory": memory, "expected": expected})
        changed = replace(
            base,
            id=card_id,
            memory_bytes=memory_bytes,
            memory_ecc_bytes=None,
            memory_marketing_gb=None,
            source=f"memory: driver of this machine; rest: {base.source}",
        )
        return changed, note
    return _stranger(card_id, name, memory_bytes, capability), Note(
        "card-unknown-here", {"name": name, "memory": memory}
    )


def ram_bytes(root: Path = Path("/")) -> int | None:
    """The machine's RAM: from psutil if it is there, else from /proc/meminfo, else ``None``."""
    if root == Path("/"):
        with suppress(ImportError):
            return int(importlib.import_module("psutil").virtual_memory().total)
    found = re.search(r"^MemTotal:\s+(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE)
    return None if found is None else int(found[1]) * KIB


def ram_limit_bytes(root: Path = Path("/")) -> int | None:
    """The smallest memory limit of the control groups this process is in; ``None`` without one.

    Version 2 keeps it in ``memory.max``, version 1 in ``memory.limit_in_bytes``; a parent group may
    be tighter than the own one, so all up to the top are read.
    """
    limits = []
    for line in _read(root / "proc/self/cgroup").splitlines() or ["0::/"]:
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            base, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        steps = [step for step in group.split("/") if step not in ("", ".", "..")]
        for depth in range(len(steps) + 1):
            text = _read(base.joinpath(*steps[:depth], name)).strip()
            if text.isdecimal() and 0 < int(text) < _NO_LIMIT:
                limits.append(int(text))
    return min(limits, default=None)


def _pynvml() -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise MissingExtra("run-extra-missing") from None


def _devices(library: Any) -> tuple[list[tuple[Device, str | None]], list[Note]]:
    """Every device that can be read, with its compute capability; a note for each that can't."""
    found: list[tuple[Device, str | None]] = []
    notes: list[Note] = []
    for index in range(int(_ask(library, library.nvmlDeviceGetCount) or 0)):
        try:
            handle = library.nvmlDeviceGetHandleByIndex(index)
            memory = library.nvmlDeviceGetMemoryInfo(handle)
            name = _text(library.nvmlDeviceGetName(handle)) or "?"
        except library.NVMLError:
            notes.append(Note("card-unreadable-here", {"index": index}))
            continue
        ecc = _ask(library, library.nvmlDeviceGetEccMode, handle)
        capability = _ask(library, library.nvmlDeviceGetCudaComputeCapability, handle)
        device = Device(
            index=index,
            name=name,
            memory_bytes=int(memory.total),
            used_bytes=int(memory.used),
            ecc=None if ecc is None else bool(ecc[0]),
            pcie_gen=_ask(library, library.nvmlDeviceGetCurrPcieLinkGeneration, handle),
            pcie_lanes=_ask(library, library.nvmlDeviceGetCurrPcieLinkWidth, handle),
        )
        found.append((device, None if capability is None else "{}.{}".format(*capability)))
    return found, notes


def card_of(
    cards: Mapping[str, Card], device: Device, capability: str | None
) -> tuple[Card, Note | None]:
    """The catalog's card for ``device``, with the memory that its driver reports, and what differs."""
    card, note = identify(cards, device.name, device.memory_bytes, capability)
    # What the driver reports now has error correction in it already.
    return replace(card, memory_bytes=device.memory_bytes, memory_ecc_bytes=None), note


def _near(card: Card, memory_bytes: int) -> bool:
    return any(
        known is not None and abs(known - memory_bytes) <= MEMORY_TOLERANCE * known
        for known in (card.memory_bytes, card.memory_ecc_bytes)
    )


def _stranger(card_id: str, name: str, memory_bytes: int, capability: str | None) -> Card:
    return Card(
        id=card_id,
        name=name,
        vendor="NVIDIA",
        architecture="",
        compute_capability=capability,
        release_year=None,
        memory_bytes=memory_bytes,
        memory_ecc_bytes=None,
        memory_marketing_gb=None,
        bandwidth_bytes_per_s=None,
        flop_per_s={},
        pcie_gen=None,
        pcie_lanes=None,
        tdp_w=None,
        nvenc_count=None,
        nvdec_count=None,
        unified_memory=False,
        source="driver of this machine",
        notes="",
    )


def _ask(library: Any, question: Callable[..., Any], *args: object) -> Any:
    """The driver's answer; ``None`` when this card or driver has none."""
    try:
        return question(*args)
    except library.NVMLError:
        return None


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def disk_free_bytes(folder: Path) -> int | None:
    """Free bytes on the disk that holds ``folder``; ``None`` where it cannot be asked."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
