"""What this machine really is: card, link as trained, rates of link and disk, limits, other tenants, container.

In: the driver, the kernel, a folder on the disk that counts. Out: a `Probe`; held against a listing, what is less than
it says. Everything takes well under a minute, so that a rented machine can be sent back before it costs.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.cards import Card
from cardfit.cards import detect as detecting
from cardfit.errors import BadFile, MissingExtra
from cardfit.measure.here import here
from cardfit.media.codecs import Codecs
from cardfit.offers import Offer
from cardfit.records.models import Machine, Reason
from cardfit.units import MIB, human_bytes

SCHEMA = "cardfit.probe/1"
DISK_BYTES = 256 * MIB
_LINK_S = 40  # for the process that measures the link
_LESS = 0.95  # of what was listed, below which something is missing
_LINK_SHARE = 0.6  # of a link's rate, below which it is not the link that was listed
# bytes a second and lane, by PCIe generation, encoding included
_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.56e9}

What = Literal["card", "memory", "link_gen", "link_lanes", "link_rate", "ram", "cores", "disk"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Link(_Frozen):
    """The host link: as trained, and as fast as it was."""

    gen: int | None = None
    lanes: int | None = None
    pinned_bytes_per_s: float | None = None
    paged_bytes_per_s: float | None = None


class ProbedCard(_Frozen):
    """One card: what it is, what others hold of it, and its link."""

    card: str
    name: str
    memory_bytes: int
    used_bytes: int
    tenants: Annotated[int | None, Field(description="processes with memory on it")] = None
    ecc: bool | None = None
    link: Link = Link()


class Container(_Frozen):
    """What the container allows."""

    driver_capabilities: str | None = None
    video: Annotated[bool | None, Field(description="encoding and decoding on the card")] = None
    shared_memory_bytes: int | None = None
    locked_memory_bytes: Annotated[
        int | None, Field(description="None: no limit, or not known")
    ] = None


class Finding(_Frozen):
    """One thing that was listed, and what was found."""

    what: What
    less: bool
    text: Reason


class Probe(_Frozen):
    """This machine. ``silent`` says why a figure is ``None``."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    machine: Machine
    cards: tuple[ProbedCard, ...]
    container: Container
    disk_write_bytes_per_s: float | None
    disk_read_bytes_per_s: float | None
    silent: dict[str, Reason]
    against: tuple[Finding, ...] = ()
    codecs: Annotated[Codecs | None, Field(description="as `cardfit codecs`, where asked")] = None
    seconds: float

    @property
    def less(self) -> tuple[Finding, ...]:
        """What is less than it was listed as."""
        return tuple(finding for finding in self.against if finding.less)


@dataclass(frozen=True, slots=True)
class Listed:
    """What was promised; ``None`` is what the listing does not say."""

    card: Card | None = None
    gen: int | None = None
    lanes: int | None = None
    ram_bytes: int | None = None
    cores: int | None = None
    disk_bytes: int | None = None

    @classmethod
    def of(cls, offer: Offer | None, card: Card | None, **given: int | None) -> Listed:
        """An offer and its card, with ``given`` figures on top."""
        found: dict[str, int | None] = {
            "gen": card.pcie_gen if card else None,
            "lanes": card.pcie_lanes if card else None,
            "ram_bytes": offer.ram_bytes if offer else None,
            "cores": offer.vcpus if offer else None,
            "disk_bytes": offer.disk_included_bytes if offer else None,
        }
        found |= {name: value for name, value in given.items() if value is not None}
        return cls(card=card, **found)


def probe(
    folder: Path,
    *,
    listed: Listed | None = None,
    link: Callable[[int], Mapping[str, Any]] | None = None,
    nvml: Any = None,
    disk_bytes: int = DISK_BYTES,
) -> Probe:
    """Look at this machine; ``folder`` is on the disk that counts. Raises BadFile where it cannot be written.

    ``link`` measures the link of a card, ``nvml`` replaces pynvml.
    """
    began = time.monotonic()
    silent: dict[str, Reason] = {}
    machine = here("auto", nvml=nvml, folder=folder).machine
    cards = _cards(nvml, link or measured_link, silent)
    write, read = disk_rates(folder, disk_bytes, silent)
    found = Probe(
        machine=machine,
        cards=cards,
        container=container(),
        disk_write_bytes_per_s=write,
        disk_read_bytes_per_s=read,
        silent=silent,
        seconds=0.0,
    )
    against = () if listed is None else held_against(found, listed)
    return found.model_copy(update={"against": against, "seconds": time.monotonic() - began})


def _cards(
    nvml: Any, link: Callable[[int], Mapping[str, Any]], silent: dict[str, Reason]
) -> tuple[ProbedCard, ...]:
    try:
        found = detecting.here(nvml=nvml)
    except MissingExtra as error:
        silent["cards"] = Reason.of(error.code)
        return ()
    if found is None:
        silent["cards"] = Reason.of("probe-no-card")
        return ()
    rows = []
    for card, device in zip(found.cards, found.devices, strict=True):
        rates = link(device.index)
        if "why" in rates:
            silent[f"link_{device.index}"] = Reason.of("probe-link-not-measured", why=rates["why"])
        rows.append(
            ProbedCard(
                card=card.id,
                name=device.name,
                memory_bytes=device.memory_bytes,
                used_bytes=device.used_bytes,
                tenants=_tenants(device.index, nvml),
                ecc=device.ecc,
                link=Link(
                    gen=rates.get("gen") or device.pcie_gen,
                    lanes=rates.get("lanes") or device.pcie_lanes,
                    pinned_bytes_per_s=rates.get("pinned_bytes_per_s"),
                    paged_bytes_per_s=rates.get("paged_bytes_per_s"),
                ),
            )
        )
    return tuple(rows)


def _tenants(index: int, nvml: Any) -> int | None:
    """How many processes hold memory on the card; ``None`` where the driver does not say, as in many containers."""
    try:
        library: Any = nvml or importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    try:
        handle = library.nvmlDeviceGetHandleByIndex(index)
        return len(library.nvmlDeviceGetComputeRunningProcesses(handle))
    except library.NVMLError:
        return None
    finally:
        with suppress(library.NVMLError):
            library.nvmlShutdown()


def measured_link(index: int) -> Mapping[str, Any]:
    """Rates of the link, from a process of its own; ``why`` where there are none."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "cardfit.measure.runner.link", str(index)],
            capture_output=True,
            timeout=_LINK_S,
            env=environment,
        )
        found: Mapping[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError) as error:
        return {"why": type(error).__name__}
    return found


def disk_rates(
    folder: Path, size_bytes: int, silent: dict[str, Reason]
) -> tuple[float | None, float | None]:
    """Bytes a second written (until the disk has them) and read back past the page cache. Raises BadFile."""
    free = detecting.disk_free_bytes(folder)
    if free is not None and free < 2 * size_bytes:
        silent["disk"] = Reason.of("probe-disk-full", free=human_bytes(free))
        return None, None
    block = os.urandom(MIB)
    path = folder / f".cardfit-probe-{os.getpid()}"
    try:
        with path.open("xb", buffering=0) as file:
            began = time.perf_counter()
            for _ in range(size_bytes // MIB):
                file.write(block)
            os.fsync(file.fileno())
            write = size_bytes / (time.perf_counter() - began)
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with path.open("rb", buffering=0) as file:
            began = time.perf_counter()
            while file.read(8 * MIB):
                pass
            read = size_bytes / (time.perf_counter() - began)
    except OSError as error:
        raise BadFile("probe-disk", folder=str(folder), why=error.strerror or str(error)) from error
    finally:
        with suppress(OSError):
            path.unlink()
    if not hasattr(os, "posix_fadvise"):
        silent["disk_read_bytes_per_s"] = Reason.of("probe-disk-cached")
        return write, None
    return write, read


def container(
    environment: Mapping[str, str] = os.environ, shared: Path = Path("/dev/shm")
) -> Container:
    """What the container allows, as its environment and the kernel say."""
    said = environment.get("NVIDIA_DRIVER_CAPABILITIES")
    words = {word.strip() for word in (said or "").split(",")}
    total = None
    with suppress(OSError, AttributeError):
        stats = os.statvfs(shared)
        total = stats.f_frsize * stats.f_blocks
    locked = None
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        locked = None if soft == resource.RLIM_INFINITY else soft
    return Container(
        driver_capabilities=said,
        video=None if said is None else bool(words & {"all", "video"}),
        shared_memory_bytes=total,
        locked_memory_bytes=locked,
    )


def held_against(found: Probe, listed: Listed) -> tuple[Finding, ...]:
    """What was listed against what was found, in the order of what it costs to be without."""
    rows: list[Finding] = []

    def add(what: What, less: bool, **args: Any) -> None:
        code = f"probe-less-{what}" if less else f"probe-as-{what}"
        rows.append(Finding(what=what, less=less, text=Reason.of(code.replace("_", "-"), **args)))

    card = found.cards[0] if found.cards else None
    if listed.card is not None:
        add(
            "card",
            card is None or card.card != listed.card.id,
            listed=listed.card.name,
            found=card.name if card else "-",
        )
        wanted = listed.card.memory_bytes
        if card is not None and wanted is not None:
            sizes = {"listed": human_bytes(wanted), "found": human_bytes(card.memory_bytes)}
            add("memory", card.memory_bytes < _LESS * wanted, **sizes)
    if card is not None:
        link = card.link
        if listed.lanes is not None and link.lanes is not None:
            add("link_lanes", link.lanes < listed.lanes, listed=listed.lanes, found=link.lanes)
        measured_under_load = link.pinned_bytes_per_s is not None
        if listed.gen is not None and link.gen is not None and measured_under_load:
            add("link_gen", link.gen < listed.gen, listed=listed.gen, found=link.gen)
        if listed.gen in _LANE and listed.lanes is not None and link.pinned_bytes_per_s is not None:
            rate = _LANE[listed.gen] * listed.lanes
            sizes = {"listed": human_bytes(rate), "found": human_bytes(link.pinned_bytes_per_s)}
            add("link_rate", link.pinned_bytes_per_s < _LINK_SHARE * rate, **sizes)
    ram = min(filter(None, (found.machine.ram_bytes, found.machine.ram_limit_bytes)), default=None)
    if listed.ram_bytes is not None and ram is not None:
        sizes = {"listed": human_bytes(listed.ram_bytes), "found": human_bytes(ram)}
        add("ram", ram < _LESS * listed.ram_bytes, **sizes)
    if listed.cores is not None and found.machine.cores is not None:
        add(
            "cores",
            found.machine.cores < listed.cores,
            listed=listed.cores,
            found=found.machine.cores,
        )
    free = found.machine.disk_free_bytes
    if listed.disk_bytes is not None and free is not None:
        sizes = {"listed": human_bytes(listed.disk_bytes), "found": human_bytes(free)}
        add("disk", free < 0.9 * listed.disk_bytes, **sizes)
    return tuple(rows)
