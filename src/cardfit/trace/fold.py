"""Fold the timeline: equal denoising steps in a row become one segment that repeats.

In: the timeline as recorded and where each step ended. Out: segments. Two steps are equal when they do the same with
ids counted from their own first birth, so nothing about the order of births and deaths is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from cardfit.trace.frame import Frame
from cardfit.trace.stream import Binding, Event, Op, Segment


@dataclass(frozen=True, slots=True)
class _Step:
    """What a step does, with ids relative to its first birth; ``inputs`` of its calls as they are."""

    base: int
    does: tuple[object, ...]
    inputs: tuple[int, ...]

    def again(self, first: _Step) -> bool:
        """Whether this step repeats ``first``: calls take the same storage, or the one of this step in its place."""
        return (
            self.does == first.does
            and len(self.inputs) == len(first.inputs)
            and all(
                mine == its or mine - self.base == its - first.base
                for mine, its in zip(self.inputs, first.inputs, strict=True)
            )
        )


def _step(events: list[Event], bindings: list[Binding]) -> _Step:
    born = [e[1] for e in events if e[0] == Op.BIRTH]
    born += [i for e in events if e[0] == Op.CALL for i in bindings[e[2]].outputs]
    base = min(born, default=0)
    does: list[object] = []
    inputs: list[int] = []
    for op, a, b, site in events:
        if op in (Op.BIRTH, Op.DEATH):
            does.append((op, a - base, b, site))
        elif op == Op.CALL:
            does.append((op, a, tuple(i - base for i in bindings[b].outputs)))
            does.append(len(bindings[b].inputs))
            inputs.extend(bindings[b].inputs)
        else:
            does.append((op, a, b, site))
    return _Step(base, tuple(does), tuple(inputs))


def _segment(events: list[Event], bindings: list[Binding], repeat: int) -> Segment:
    used: list[Binding] = []
    out: list[Event] = []
    for op, a, b, site in events:
        if op == Op.CALL:
            used.append(bindings[b])
            out.append((op, a, len(used) - 1, site))
        else:
            out.append((op, a, b, site))
    return Segment(tuple(out), tuple(used), repeat)


def fold(timeline: Frame, step_ends: list[int]) -> tuple[Segment, ...]:
    """Segments of ``timeline`` cut at ``step_ends`` (event counts), equal neighbours folded into one."""
    cuts = sorted({0, *step_ends, len(timeline.events)})
    segments: list[Segment] = []
    first: _Step | None = None  # of the segment that grows
    for start, end in pairwise(cuts):
        events = timeline.events[start:end]
        step = _step(events, timeline.bindings)
        if first is not None and step.again(first):
            before = segments[-1]
            segments[-1] = Segment(before.events, before.bindings, before.repeat + 1)
        else:
            segments.append(_segment(events, timeline.bindings, 1))
            first = step
    return tuple(segments)
