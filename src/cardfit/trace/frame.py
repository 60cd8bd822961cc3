"""A stream while it is written, and a call remembered once it is.

`Frame` collects events, bindings and work of one distinct call (or of the timeline); `Known` is what the recorder
needs to write the same call again and hand back fresh results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from cardfit.trace.stream import Binding, Event


class Frame:
    """A stream while it is being written."""

    def __init__(self, component: int, method: str) -> None:
        self.component = component
        self.method = method
        self.events: list[Event] = []
        self.bindings: list[Binding] = []
        self.work: dict[tuple[str, str], list[float]] = {}
        self.input_ids: dict[int, int] = {}  # storage key -> id, for storages handed in
        self.sizes: dict[int, int] = {}
        self.killed: set[int] = set()
        self.late_deaths: list[int] = []
        self.next_id = 0
        self.has_matmul = False

    def new_id(self, nbytes: int) -> int:
        """The next storage id, whose size is ``nbytes``."""
        self.sizes[self.next_id] = nbytes
        self.next_id += 1
        return self.next_id - 1

    def add_work(
        self, kind: str, dtype: str, flop: float, nbytes: float, launches: float = 1
    ) -> None:
        """Count one kernel."""
        entry = self.work.setdefault((kind, dtype), [0.0, 0.0, 0])
        entry[0] += flop
        entry[1] += nbytes
        entry[2] += launches


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor in a remembered result: over output ``index`` (or input, when ``of_input``), or a value kept whole."""

    index: int
    of_input: bool
    shape: torch.Tensor | None  # a meta tensor of the right size, strides, dtype
    value: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Known:
    """A call seen before: its stream and the result to hand back."""

    stream: int
    result: Any  # with the lists among the arguments as the call left them
    output_bytes: tuple[int, ...]
    killed: frozenset[int]  # inputs that the call let go
