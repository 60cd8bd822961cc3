"""Moments and peaks on a device: CUDA events and the allocator's peaks on a card, the wall clock on a CPU.

In: a torch device. Out: marks that can be subtracted once the device has caught up, and peaks since the last reset.
Marks do not wait for the device, so that they do not disturb what they time.
"""

from __future__ import annotations

import time
from typing import Any

import torch

Peaks = tuple[int | None, int | None]  # allocated, reserved bytes


class Clock:
    """The wall clock; nothing counts a CPU's memory on its own."""

    counts = False

    def mark(self) -> Any:
        """This moment."""
        return time.perf_counter()

    def wait(self) -> None:
        """Until the device has done what it was told."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two marks."""
        return float(end - begin)

    def peaks(self) -> Peaks:
        """Highest allocated and reserved bytes since the last call, and a fresh begin."""
        return None, None

    def held(self) -> int | None:
        """Bytes allocated now."""
        return None

    def counters(self) -> dict[str, float]:
        """What the allocator counts over a process's life."""
        return {}


class CudaClock(Clock):
    """CUDA events and the caching allocator of one card."""

    counts = True

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def mark(self) -> Any:
        event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self.device))
        return event

    def wait(self) -> None:
        torch.cuda.synchronize(self.device)

    def seconds(self, begin: Any, end: Any) -> float:
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000

    def peaks(self) -> Peaks:
        found = (
            torch.cuda.max_memory_allocated(self.device),
            torch.cuda.max_memory_reserved(self.device),
        )
        torch.cuda.reset_peak_memory_stats(self.device)
        return found

    def held(self) -> int | None:
        return int(torch.cuda.memory_allocated(self.device))

    def counters(self) -> dict[str, float]:
        stats = torch.cuda.memory_stats(self.device)
        names = {
            "allocator_retries": "num_alloc_retries",
            "allocator_segments": "segment.all.allocated",
        }
        return {name: float(stats.get(key, 0)) for name, key in names.items()}


def clock_of(device: torch.device) -> Clock:
    """The clock of ``device``."""
    return CudaClock(device) if device.type == "cuda" else Clock()
