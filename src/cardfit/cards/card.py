"""`Card`: a GPU as physics and capability, as the data files state it.

In: one row of a cards table. Out: a frozen value in base units (bytes, bytes/s, FLOP/s, watts).
What a source does not state is ``None`` or an absent key, never zero; ``nvenc_count == 0`` means
that the card has no encoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FLOP_KINDS: tuple[str, ...] = ("fp32", "fp16_fp32acc", "bf16", "tf32", "int8", "fp8", "fp4")


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of GPU.

    ``memory_bytes`` is what the driver reports (nvidia-smi), ``memory_ecc_bytes`` the same with ECC
    switched on where that takes memory away and was seen. ``flop_per_s`` holds dense rates by
    `FLOP_KINDS`, with FP32 accumulation where the two differ; a kind that is unknown or not
    supported has no key. ``tdp_w`` is the board's power limit in watts.
    """

    id: str
    name: str
    vendor: str
    architecture: str
    compute_capability: str | None
    release_year: int | None
    memory_bytes: int | None
    memory_ecc_bytes: int | None
    memory_marketing_gb: int | None
    bandwidth_bytes_per_s: float | None
    flop_per_s: dict[str, float] = field(hash=False)
    pcie_gen: int | None
    pcie_lanes: int | None
    tdp_w: int | None
    nvenc_count: int | None
    nvdec_count: int | None
    unified_memory: bool
    source: str
    notes: str
    aliases: tuple[str, ...] = ()
    sm_count: int | None = None
    boost_hz: float | None = None
