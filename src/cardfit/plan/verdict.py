"""The verdict for (estimate, card): a closed list that follows from figures the row shows.

    fits          the band's high end is inside what is surely usable, host RAM included
    tight         the likely figure is inside what is likely usable, the high end is not; host RAM likewise
    spills        Windows only: over the card, but the driver may back it with half of the host's RAM
    does_not_fit  over the card, the host's RAM or the disk, or numbers the hardware cannot compute
    unknown       facts are missing; the reason says which

Bytes in, `Judgement` out. Where the likely reserved figure is over the card but the allocated one
is not, PyTorch frees its cache and tries again; only a replay with the card as the limit tells,
and its answer is `tight` at best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cardfit.plan.answer import Grade, Price, Verdict
from cardfit.plan.target import Band
from cardfit.predict.estimate import MemoryEstimate

Reason = Literal[
    "surely",
    "likely",
    "with_limit",
    "device",
    "host",
    "host_likely",
    "disk",
    "spill",
    "unverified",
    "dtype",
]
Os = Literal["linux", "windows"]
RamOf = Literal["given", "machine", "container"]
ORDER: tuple[Verdict, ...] = ("fits", "tight", "spills", "pages", "unknown", "does_not_fit")


@dataclass(frozen=True, slots=True)
class Host:
    """The machine around the card; ``ram_bytes`` and ``disk_bytes`` are ``None`` when nobody said how much it has.

    ``ram_of`` says whose figure the RAM is: a container's limit is below the machine's. ``files_bytes`` is what the
    model's files and the outputs take of the disk, whatever the settings.
    """

    ram_bytes: int | None = None
    os: Os = "linux"
    ram_of: RamOf = "given"
    disk_bytes: int | None = None
    files_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """One verdict with the estimate that it rests on; ``over_bytes`` is the deficit, 0 where there is none."""

    verdict: Verdict
    reason: Reason
    estimate: MemoryEstimate
    usable: Band
    over_bytes: int

    @property
    def headroom_bytes(self) -> int:
        """Likely usable bytes less the likely reserved peak; negative where the card is too small."""
        return self.usable.likely - self.estimate.reserved_bytes


def deciding_stage(estimate: MemoryEstimate) -> str:
    """The first stage at which the allocator reserves the most: the one that the verdict hangs on."""
    stages = estimate.stages
    if not stages:
        return estimate.peak_stage
    return max(stages, key=lambda stage: stage.reserved_bytes).name


def judge(estimate: MemoryEstimate, usable: Band, host: Host) -> Judgement:
    """The verdict without a replay at the card's limit (see `judge_limited`)."""
    over = estimate.reserved_bytes - usable.likely
    ram = host.ram_bytes
    wall = _around(estimate, host)
    if wall is not None:
        return Judgement("does_not_fit", wall[0], estimate, usable, wall[1])
    if estimate.reserved_high_bytes <= usable.low and over <= 0:
        if ram is not None and ram_at_most_bytes(estimate, host) > ram:
            return Judgement("tight", "host_likely", estimate, usable, 0)
        return Judgement("fits", "surely", estimate, usable, 0)
    if over <= 0:
        return Judgement("tight", "likely", estimate, usable, 0)
    # Windows lets the driver back device memory with up to half of the host's RAM ("shared GPU
    # memory").
    if host.os == "windows" and ram is not None and over <= ram // 2:
        return Judgement("spills", "spill", estimate, usable, over)
    return Judgement("does_not_fit", "device", estimate, usable, over)


def ram_at_most_bytes(estimate: MemoryEstimate, host: Host) -> int:
    """The most host RAM that the run may take.

    Linux drops pages of weight files and reads them again; Windows counts them as committed memory.
    """
    if host.os == "windows":
        return max(estimate.host_high_bytes, estimate.host_committed_bytes)
    return estimate.host_high_bytes


def _around(estimate: MemoryEstimate, host: Host) -> tuple[Reason, int] | None:
    """What the machine around the card is short of, and by how many bytes; None where it is not or nobody knows."""
    if host.ram_bytes is not None and estimate.host_bytes > host.ram_bytes:
        return "host", estimate.host_bytes - host.ram_bytes
    need = host.files_bytes + estimate.offload_disk_bytes
    if host.disk_bytes is not None and need > host.disk_bytes:
        return "disk", need - host.disk_bytes
    return None


def needs_limit(judgement: Judgement) -> bool:
    """Whether only a replay with the card as the limit can tell: allocated <= usable < reserved."""
    return (
        judgement.reason in ("device", "spill")
        and judgement.estimate.allocated_bytes <= judgement.usable.likely
    )


def judge_limited(limited: MemoryEstimate, usable: Band, host: Host) -> Judgement | None:
    """The verdict after a replay with the usable bytes as the allocator's limit.

    A run that gets through by freeing its cache is ``tight``; ``None`` when it does not get through.
    """
    if _around(limited, host) is not None:
        return None
    if limited.failure is None and limited.reserved_bytes <= usable.likely:
        return Judgement("tight", "with_limit", limited, usable, 0)
    return None


def grade(verdict: Verdict, prices: tuple[Price, ...]) -> Grade | None:
    """Green: reference weights at full speed. Amber: lossy, slower or tight. Red: no. None: unknown.

    >>> grade("fits", ()), grade("fits", ("lossy",)), grade("unknown", ())
    ('green', 'amber', None)
    """
    if verdict == "unknown":
        return None
    if verdict == "does_not_fit":
        return "red"
    paid = "slower" in prices or "lossy" in prices
    return "green" if verdict == "fits" and not paid else "amber"
