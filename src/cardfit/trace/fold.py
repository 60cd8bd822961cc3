"""Fold the timeline: equal denoising steps in a row become one segment that repeats.

In: the timeline as recorded and where each step ended. Out: segments. Two steps are equal when they do the same with
ids counted from their own first birth, so nothing about the order of births and deaths is lost.
"""

from __future__ import annotations

from itertools import pairwise

from cardfit.trace.frame import Frame
from cardfit.trace.stream import Binding, Event, Op, Segment


def _relative(events: list[Event], bindings: list[Binding]) -> tuple[tuple[object, ...], int]:
    """The chunk with ids relative to its first birth, and how many ids it makes."""
    born = [e[1] for e in events if e[0] == Op.BIRTH]
    born += [i for e in events if e[0] == Op.CALL for i in bindings[e[2]].outputs]
    base = min(born, default=0)
    out: list[object] = []
    for op, a, b, site in events:
        if op in (Op.BIRTH, Op.DEATH):
            out.append((op, a - base, b, site))
        elif op == Op.CALL:
            out.append((op, a, tuple(i - base for i in bindings[b].outputs)))
        else:
            out.append((op, a, b, site))
    return tuple(out), len(born)


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
    last: tuple[object, ...] | None = None
    for start, end in pairwise(cuts):
        events = timeline.events[start:end]
        shape, _ = _relative(events, timeline.bindings)
        if shape == last:
            before = segments[-1]
            segments[-1] = Segment(before.events, before.bindings, before.repeat + 1)
        else:
            segments.append(_segment(events, timeline.bindings, 1))
        last = shape
    return tuple(segments)
