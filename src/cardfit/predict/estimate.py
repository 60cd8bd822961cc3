"""What memory prediction returns: stages whose parts sum to the peak, with a band and a basis.

For every stage ``weights_bytes + activation_bytes == allocated_bytes`` and ``allocated_bytes <= reserved_bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Basis = Literal["traced", "atlas", "measured", "published", "rule"]


@dataclass(frozen=True, slots=True)
class StageMemory:
    """One stage at the moment its allocated peak stands; ``site`` is the op and module path of that moment."""

    name: str
    component: str
    calls: int
    weights_bytes: int
    activation_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    low_bytes: int
    high_bytes: int
    basis: Basis
    site: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a run under a limit ends: the text of the error before it happens."""

    stage: str
    component: str
    site: str
    tried_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Device and host memory of one trace under one placement.

    ``reserved_low_bytes .. reserved_high_bytes`` is the band of the allocator's peak. ``host_bytes`` is what the
    process keeps in host RAM at its worst, ``left_out`` the names of what was not counted.
    """

    stages: tuple[StageMemory, ...]
    peak_stage: str
    allocated_bytes: int
    reserved_bytes: int
    reserved_low_bytes: int
    reserved_high_bytes: int
    host_bytes: int
    failure: Failure | None
    left_out: tuple[str, ...]
