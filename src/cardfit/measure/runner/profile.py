"""A repetition under torch's memory profiler: what a CPU run's tensors hold, stage by stage.

In: a pipeline that runs inside. Out: peaks of allocated bytes above what was held at the begin, put into the rows of a
`Repetition`. torch keeps no counters for a CPU, so this is the only way to see them there; it slows the run, which is
why it is a repetition of its own. Scratch memory of a CPU's own kernels is told apart, since a card has others.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch.profiler import ProfilerActivity, record_function

from cardfit.records.models import Call, Repetition, Stage

_MARK = "cardfit.call."
_MEMORY = "[memory]"


class Profile:
    """The profiler around one call of a pipeline."""

    def __init__(self) -> None:
        self._profiler: Any = torch.profiler.profile(
            activities=[ProfilerActivity.CPU],
            profile_memory=True,
            record_shapes=False,
            with_stack=False,
        )

    def __enter__(self) -> Profile:
        self._profiler.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._profiler.__exit__(kind, error, at)

    def call(self, number: int) -> AbstractContextManager[Any]:
        """What to put around the n-th call of a component, so that its stretch is known."""
        return record_function(f"{_MARK}{number}")

    def fill(self, row: Repetition) -> Repetition:
        """``row`` with the peaks that were seen; ``cpu_workspace_bytes`` is what `CPU_ONLY` adds to the highest."""
        found = read(self._profiler)
        if not found.tensors:
            return row
        calls = tuple(
            call.model_copy(update={"allocated_peak_bytes": found.peak(*found.marks[number])})
            if number in found.marks
            else call
            for number, call in enumerate(row.calls)
        )
        stages = tuple(
            stage.model_copy(update={"allocated_peak_bytes": _highest(stage, calls)})
            for stage in row.stages
        )
        highest = max(total for _, total in found.tensors)
        figures = {
            **row.figures,
            "cpu_allocated_peak_bytes": highest,
            "cpu_workspace_bytes": max(total for _, total in found.everything) - highest,
        }
        return row.model_copy(update={"calls": calls, "stages": stages, "figures": figures})


CPU_ONLY = ("aten::convolution", "aten::_scaled_dot_product_flash_attention_for_cpu")
"""Ops whose own scratch memory exists on a CPU only: oneDNN's blocked copies, im2col, a thread's attention buffers.
What is born and dead inside one of them is told apart; a card has workspaces of its own."""
Curve = list[tuple[int, int]]  # nanoseconds, bytes


@dataclass
class Seen:
    """Bytes held above the begin, by time: tensors alone and with `CPU_ONLY`; the stretch of every marked call."""

    tensors: Curve
    everything: Curve
    marks: dict[int, tuple[int, int]]

    def peak(self, begin: int, end: int) -> int:
        """The most bytes between two moments, what was held at the first included."""
        first = bisect_right(self.tensors, (begin, sys.maxsize))
        last = bisect_right(self.tensors, (end, sys.maxsize))
        return max(total for _, total in [(0, 0), *self.tensors[max(0, first - 1) : last]])


@dataclass(frozen=True, slots=True)
class _Memory:
    at: int
    size: int
    pointer: int
    inside: int  # end of the nearest op of `CPU_ONLY`, 0 outside one


def read(profiler: Any) -> Seen:
    """What a finished profiler saw of memory."""
    events: list[_Memory] = []
    marks: dict[int, tuple[int, int]] = {}
    open_ = [(event, 0) for event in profiler.profiler.kineto_results.experimental_event_tree()]
    while open_:
        event, inside = open_.pop()
        name = event.name
        if name == _MEMORY:
            fields = event.extra_fields
            events.append(_Memory(event.start_time_ns, fields.alloc_size, fields.ptr, inside))
        elif name.startswith(_MARK):
            marks[int(name.removeprefix(_MARK))] = (event.start_time_ns, event.end_time_ns)
        if name in CPU_ONLY and not inside:
            inside = event.end_time_ns
        open_ += [(child, inside) for child in event.children]
    events.sort(key=lambda each: each.at)
    return Seen(_curve(events, _scratch(events)), _curve(events, set()), marks)


def _scratch(events: list[_Memory]) -> set[int]:
    """The places in ``events`` of what is born and dead inside one op of `CPU_ONLY`."""
    found: set[int] = set()
    born: dict[int, tuple[int, int]] = {}  # pointer -> place, end of the op
    for place, each in enumerate(events):
        if each.size > 0 and each.inside:
            born[each.pointer] = (place, each.inside)
        elif each.size < 0 and each.pointer in born:
            birth, end = born.pop(each.pointer)
            if each.at <= end:
                found |= {birth, place}
    return found


def _curve(events: list[_Memory], without: set[int]) -> Curve:
    curve, total = [], 0
    for place, each in enumerate(events):
        if place not in without:
            total += each.size
            curve.append((each.at, total))
    return curve


def _highest(stage: Stage, calls: tuple[Call, ...]) -> int | None:
    own = [
        call.allocated_peak_bytes
        for call in calls
        if (call.stage, call.component) == (stage.name, stage.component)
        and call.allocated_peak_bytes is not None
    ]
    return max(own, default=None)
