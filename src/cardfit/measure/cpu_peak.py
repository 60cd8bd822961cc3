"""What a run's tensors hold on a CPU: the trace's births and deaths, byte for byte.

In: a trace. Out: the most bytes alive at once beside the weights, by stage and component. Left out is what exists on a
card only: workspaces of cuDNN and cuBLAS, the caching allocator's rounding, copies that offloading makes.
"""

from __future__ import annotations

from collections.abc import Mapping

from cardfit.trace.stream import Binding, Event, Op, Trace

_TURNS = 3  # of equal steps: what one holds does not grow after the second


def cpu_peaks(trace: Trace) -> Mapping[tuple[str, str], int]:
    """The most bytes alive at once beside the weights, by stage and component."""
    walk = _Walk(trace)
    for segment in trace.timeline:
        born = [a for op, a, _, _ in segment.events if op == Op.BIRTH]
        born += [i for binding in segment.bindings for i in binding.outputs]
        turns = min(segment.repeat, _TURNS)
        for turn in range(turns):
            walk.play(segment.events, segment.bindings, walk.sizes, turn * len(born))
        walk.move(min(born, default=0), (segment.repeat - turns) * len(born))
    return walk.peaks


class _Walk:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.sizes: dict[int, int] = {}
        self.total = 0
        self.stage = trace.stages[0] if trace.stages else ("", "")
        self.peaks: dict[tuple[str, str], int] = {}

    def play(
        self,
        events: tuple[Event, ...],
        bindings: tuple[Binding, ...],
        sizes: dict[int, int],
        shift: int,
    ) -> None:
        for op, a, b, _ in events:
            if op == Op.BIRTH:
                sizes[a + shift] = b
                self._add(b)
            elif op == Op.DEATH:
                self.total -= sizes.pop(a + shift, 0)
            elif op == Op.STAGE:
                self.stage = self.trace.stages[a]
                self._add(0)
            elif op == Op.CALL:
                self._call(a, bindings[b], sizes, shift)

    def _add(self, size: int) -> None:
        self.total += size
        self.peaks[self.stage] = max(self.peaks.get(self.stage, 0), self.total)

    def _call(self, number: int, binding: Binding, sizes: dict[int, int], shift: int) -> None:
        stream = self.trace.streams[number]
        local = {
            inner: sizes[outer + shift]
            for inner, outer in enumerate(binding.inputs)
            if outer >= 0 and outer + shift in sizes
        }
        before = set(local)
        self.play(stream.events, stream.bindings, local, 0)
        for inner in before - set(local):  # an input that the call let go
            sizes.pop(binding.inputs[inner] + shift, None)
        for inner, outer in zip(stream.outputs, binding.outputs, strict=True):
            sizes[outer + shift] = local.pop(inner, 0)

    def move(self, first: int, by: int) -> None:
        """What lives now stands for what lives that many repetitions later."""
        if by:
            self.sizes = {i + by if i >= first else i: size for i, size in self.sizes.items()}
