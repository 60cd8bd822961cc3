"""The samplers, as one table: what reads a run from outside, and the figures that come of it.

| sampler | reads | where |
|---|---|---|
| process | resident and proportional memory, processor time, disk bytes of the child | /proc/PID |
| cgroup | memory, peak, limit and kills of its control group, version 1 or 2 | /sys/fs/cgroup |
| pressure | seconds in which work waited for memory, disk, processor | /proc/pressure |
| nvml | memory of the card, power, clocks, throttling, link, encoder | the NVIDIA driver |

torch's allocator is read inside the process (`cardfit.measure.runner.clock`). Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cardfit.measure.samplers import host, nvml
from cardfit.measure.samplers.base import Figure, Sampler
from cardfit.records.models import Reason


@dataclass(frozen=True, slots=True)
class Target:
    """What is sampled: a process, and the index of its card (``None`` on a CPU). ``nvml`` replaces pynvml.

    ``own`` is the reader's own process, whose high-water mark is left alone.
    """

    pid: int
    card: int | None = None
    nvml: Any = None
    own: bool = False


class NoCard:
    """Stands where NVML would when the run is on a CPU."""

    def __init__(self) -> None:
        self.silent = {figure.raw: Reason.of("sampler-no-card") for figure in nvml.FIGURES.values()}

    def mark(self) -> None:
        """Nothing."""

    def read(self, border: bool = False) -> dict[str, float]:
        """Nothing."""
        return {}

    def close(self) -> None:
        """Nothing."""


SAMPLERS: dict[str, Callable[[Target], Sampler]] = {
    "process": lambda target: host.Process(target.pid, fresh=not target.own),
    "cgroup": lambda target: host.Cgroup(target.pid),
    "pressure": lambda _target: host.Pressure(),
    "nvml": lambda target: NoCard() if target.card is None else nvml.Nvml(target.card, target.nvml),
}
FIGURES: dict[str, Figure] = {**host.FIGURES, **nvml.FIGURES}
