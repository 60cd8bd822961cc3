"""Usable memory of a card: CUDA's total minus its context and other tenants, low / likely / high.

The total that CUDA reports (the "total capacity" of an out-of-memory text) lies below what the
driver reports. It is taken from published texts where the card has one (`data/cuda_total.csv`);
elsewhere the gap of the same generation is subtracted, basis ``rule``. Display memory is left out:
pass it as another tenant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from cardfit.cards import table
from cardfit.cards.card import Card
from cardfit.errors import BadRequest, Note
from cardfit.units import MIB

# An idle process with current PyTorch and lazy loading of kernels: eight published readings from
# 256 to 682 MiB. Figures from before CUDA 11.7 (about 1 GB) no longer hold.
CONTEXT_LOW_BYTES = 250 * MIB
CONTEXT_LIKELY_BYTES = 450 * MIB
CONTEXT_HIGH_BYTES = 700 * MIB
CONTEXT_SOURCE = "pytorch issues 28113, 107667, 109888 and eight public readings of 2023 to 2026"

# Data-center dies with stacked memory; their gap is a smaller share than that of graphics cards.
_STACKED = frozenset({"7.0", "8.0", "9.0", "10.0", "10.3"})
_DATA = Path(__file__).with_name("data") / "cuda_total.csv"
_COLUMNS = (
    "card_id",
    "compute_capability",
    "driver_mib",
    "cuda_total_low_mib",
    "cuda_total_high_mib",
    "source",
)


@dataclass(frozen=True, slots=True)
class Interval:
    """Bytes as low / likely / high; ``low <= likely <= high``."""

    low: int
    likely: int
    high: int

    def __post_init__(self) -> None:
        if not self.low <= self.likely <= self.high:
            raise ValueError((self.low, self.likely, self.high))


@dataclass(frozen=True, slots=True)
class Usable:
    """Bytes that the allocator can reserve: total minus context minus other tenants.

    The low bound takes the high context and the other way round. ``basis`` is ``published`` when
    the total of this very card was, else ``rule``; ``source`` says where from.
    """

    total: Interval
    context: Interval
    usable: Interval
    basis: Literal["published", "rule"]
    source: str


@dataclass(frozen=True, slots=True)
class CudaTotal:
    """One published reading of CUDA's total memory beside the driver's."""

    card_id: str
    compute_capability: str
    driver_bytes: int
    low_bytes: int
    high_bytes: int
    source: str


@cache
def cuda_totals() -> tuple[CudaTotal, ...]:
    """The published readings that ship with cardfit."""
    return tuple(
        CudaTotal(
            row.text("card_id"),
            row.text("compute_capability"),
            int(row.text("driver_mib")) * MIB,
            int(row.text("cuda_total_low_mib")) * MIB,
            int(row.text("cuda_total_high_mib")) * MIB,
            row.text("source"),
        )
        for row in table.read(_DATA, columns=_COLUMNS, required=_COLUMNS)
    )


def usable(
    card: Card,
    *,
    ecc: bool | None = None,
    context_bytes_low: int = CONTEXT_LOW_BYTES,
    context_bytes_likely: int = CONTEXT_LIKELY_BYTES,
    context_bytes_high: int = CONTEXT_HIGH_BYTES,
    other_tenants_bytes: int = 0,
) -> Usable:
    """What one process can reserve on ``card``, in bytes; never below zero.

    ``ecc`` says whether error correction is on; ``None`` takes the smaller where both are known.
    ``other_tenants_bytes`` is what display and other processes hold.
    Raises BadRequest for a card whose memory is unknown.
    """
    memory_bytes = driver_bytes(card, ecc=ecc)
    total, basis, source = _total(card, memory_bytes)
    low, high = sorted((context_bytes_low, context_bytes_high))
    context = Interval(low, min(max(low, context_bytes_likely), high), high)
    left = Interval(
        max(0, total.low - context.high - other_tenants_bytes),
        max(0, total.likely - context.likely - other_tenants_bytes),
        max(0, total.high - context.low - other_tenants_bytes),
    )
    return Usable(total, context, left, basis, source)


def driver_bytes(card: Card, *, ecc: bool | None = None) -> int:
    """The memory the driver reports with ``ecc`` on or off; unknown takes the smaller.

    Raises BadRequest for a card whose memory is unknown.
    """
    if card.memory_bytes is None:
        raise BadRequest("card-memory-unknown", card=card.name)
    if ecc is False or card.memory_ecc_bytes is None:
        return card.memory_bytes
    return min(card.memory_bytes, card.memory_ecc_bytes)


def unverified_reason(card: Card) -> Note | None:
    """Why the memory rules are not checked for ``card``; ``None`` when they are."""
    if card.vendor != "NVIDIA":
        return Note("card-unverified-vendor", {"card": card.name, "vendor": card.vendor})
    if card.unified_memory:
        return Note("card-unverified-unified", {"card": card.name})
    if card.memory_bytes is None:
        return Note("card-unverified-memory", {"card": card.name})
    if card.compute_capability is None:
        return Note("card-unverified-capability", {"card": card.name})
    return None


def rates_missing(card: Card) -> Note | None:
    """Which rate a time figure would lack (bandwidth, fp32, half precision); ``None`` for none."""
    kinds = [kind for kind in ("fp32", "fp16_fp32acc") if kind not in card.flop_per_s]
    if card.bandwidth_bytes_per_s is None:
        kinds.insert(0, "bandwidth")
    if not kinds:
        return None
    return Note("card-rates-missing", {"card": card.name, "kinds": ", ".join(kinds)})


def _total(card: Card, memory_bytes: int) -> tuple[Interval, Literal["published", "rule"], str]:
    """CUDA's total for a card with ``memory_bytes`` as the driver reports it."""
    readings = cuda_totals()
    for reading in readings:
        if reading.card_id == card.id and reading.driver_bytes == memory_bytes:
            return _middle(reading.low_bytes, reading.high_bytes), "published", reading.source
    near = _same_generation(card, readings)
    names = ", ".join(sorted({reading.card_id for reading in near}))
    return _by_rule(memory_bytes, near), "rule", f"driver's memory minus the gap seen on {names}"


def _middle(low: int, high: int) -> Interval:
    return Interval(low, (low + high) // 2, high)


def _by_rule(memory_bytes: int, readings: Sequence[CudaTotal]) -> Interval:
    """The total of a card of ``memory_bytes`` from readings on cards of its generation.

    The readings nearest in size decide. Seen gaps neither stay the same nor grow in step with the
    memory, so the interval spans both. More memory never gives less: where the next size of
    readings takes over, a bound keeps what it had reached.
    """
    sizes = _size_classes(readings)
    edges = [math.isqrt(a[-1].driver_bytes * b[0].driver_bytes) for a, b in pairwise(sizes)]
    starts, ends = [0, *edges], [*edges, memory_bytes]
    spans = [
        _span(min(memory_bytes, end), size)
        for size, start, end in zip(sizes, starts, ends, strict=True)
        if start < memory_bytes
    ]
    return Interval(
        max(span.low for span in spans),
        max(span.likely for span in spans),
        max(span.high for span in spans),
    )


def _span(memory_bytes: int, readings: Sequence[CudaTotal]) -> Interval:
    gaps = [
        gap * scale
        for reading in readings
        for gap in (
            reading.driver_bytes - reading.low_bytes,
            reading.driver_bytes - reading.high_bytes,
        )
        for scale in (1.0, memory_bytes / reading.driver_bytes)
    ]
    return _middle(memory_bytes - math.ceil(max(gaps)), memory_bytes - math.floor(min(gaps)))


def _size_classes(readings: Sequence[CudaTotal]) -> list[list[CudaTotal]]:
    """``readings`` by memory, those within a fifth of each other together, smallest first."""
    classes: list[list[CudaTotal]] = []
    for reading in sorted(readings, key=lambda one: one.driver_bytes):
        if classes and reading.driver_bytes <= 1.2 * classes[-1][0].driver_bytes:
            classes[-1].append(reading)
        else:
            classes.append([reading])
    return classes


def _same_generation(card: Card, readings: Sequence[CudaTotal]) -> list[CudaTotal]:
    """Readings of the same compute capability, else of the same kind of die, else all."""
    capability = card.compute_capability
    same = [r for r in readings if r.compute_capability == capability]
    if same:
        return same
    stacked = capability in _STACKED
    kin = [r for r in readings if (r.compute_capability in _STACKED) == stacked]
    return kin if capability is not None else list(readings)
