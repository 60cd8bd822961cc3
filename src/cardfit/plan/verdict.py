"""The verdict for (estimate, card): a closed list that follows from figures the row shows.

    fits          the band's high end is inside what is surely usable, host RAM included
    tight         the likely figure is inside what is likely usable, the high end is not
    spills        Windows only: over the card, but the driver may back it with half of the host's RAM
    does_not_fit  over the card, over the host's RAM, or numbers the hardware cannot compute
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

Reason = Literal["surely", "likely", "with_limit", "device", "host", "spill", "unverified", "dtype"]
Os = Literal["linux", "windows"]
ORDER: tuple[Verdict, ...] = ("fits", "tight", "spills", "pages", "unknown", "does_not_fit")


@dataclass(frozen=True, slots=True)
class Host:
    """The machine around the card; ``ram_bytes`` is ``None`` when nobody said how much it has."""

    ram_bytes: int | None = None
    os: Os = "linux"


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
    if ram is not None and estimate.host_bytes > ram:
        return Judgement("does_not_fit", "host", estimate, usable, estimate.host_bytes - ram)
    if estimate.reserved_high_bytes <= usable.low and over <= 0:
        return Judgement("fits", "surely", estimate, usable, 0)
    if over <= 0:
        return Judgement("tight", "likely", estimate, usable, 0)
    # Windows lets the driver back device memory with up to half of the host's RAM ("shared GPU
    # memory").
    if host.os == "windows" and ram is not None and over <= ram // 2:
        return Judgement("spills", "spill", estimate, usable, over)
    return Judgement("does_not_fit", "device", estimate, usable, over)


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
    if host.ram_bytes is not None and limited.host_bytes > host.ram_bytes:
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
