"""What memory prediction returns: stages whose parts sum to the peak, with a band and a basis.

For every stage ``weights_bytes + activation_bytes == allocated_bytes`` and ``allocated_bytes <= reserved_bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
class HostMoment:
    """Host RAM at one moment: ``load``, ``ingest``, ``run`` or ``export``. ``parts`` sum to ``likely_bytes``.

    ``mapped_bytes`` are pages of weight files: Linux drops and reads them again, Windows counts them as committed.
    """

    name: str
    low_bytes: int
    likely_bytes: int
    high_bytes: int
    mapped_bytes: int
    parts: tuple[tuple[str, int], ...]


# The most that another release has moved a peak in the published rows, either way: CogVideoX-2B in fp16, 24.51 GiB with
# diffusers of late 2024 and 29.04 with 0.42.1 (docs/accuracy.md).
OTHER_VERSIONS = 0.185


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Device and host memory of one trace under one placement.

    ``reserved_low_bytes .. reserved_high_bytes`` is the band of the allocator's peak. ``host_bytes`` is what the
    process keeps in host RAM at its worst of the moments in ``host``, ``left_out`` the names of what was not counted,
    ``offload_disk_bytes`` what offloading writes to disk.
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
    host: tuple[HostMoment, ...] = ()
    offload_disk_bytes: int = 0

    @property
    def host_high_bytes(self) -> int:
        """The high end of host RAM, pages of weight files left out."""
        return max([self.host_bytes, *(moment.high_bytes for moment in self.host)])

    @property
    def host_committed_bytes(self) -> int:
        """Likely host RAM with the pages of weight files, which Windows counts as committed memory."""
        return max([self.host_bytes, *(m.likely_bytes + m.mapped_bytes for m in self.host)])

    @property
    def host_moment(self) -> str:
        """The name of the moment at which host RAM is highest; empty where moments are not known."""
        return max(self.host, key=lambda each: each.likely_bytes).name if self.host else ""


def wider(estimate: MemoryEstimate, share: float) -> MemoryEstimate:
    """``estimate`` with bands that reach ``share`` further on both sides; what is likely stays."""
    stages = tuple(
        replace(
            stage,
            low_bytes=round(stage.low_bytes * (1 - share)),
            high_bytes=round(stage.high_bytes * (1 + share)),
        )
        for stage in estimate.stages
    )
    return replace(
        estimate,
        stages=stages,
        reserved_low_bytes=round(estimate.reserved_low_bytes * (1 - share)),
        reserved_high_bytes=round(estimate.reserved_high_bytes * (1 + share)),
    )
