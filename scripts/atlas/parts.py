"""A trace taken apart: what stays the same when the size changes (structure), and what does not (slots).

In: a Trace. Out: its timeline and each distinct call that the pipeline makes, as a structure that can be compared and
a list of numbers in a fixed order: the bytes of every birth and workspace, the work, how often a segment repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cardfit.trace.atlas.layout import EARLY
from cardfit.trace.coding import encode
from cardfit.trace.stream import Op, Segment, Trace

_SIZED = (Op.BIRTH, Op.WORKSPACE)
Number = int | float


@dataclass(frozen=True, slots=True)
class Part:
    """``structure`` is hashable and equal wherever the same happens; ``slots`` are its numbers."""

    structure: tuple[Any, ...]
    slots: tuple[Number, ...]
    kinds: str  # of the slots: s bytes, w work, r repeats


def _events(events: Any, index: dict[int, int], slots: list[Number], canon: Any) -> tuple[Any, ...]:
    out = []
    for op, a, b, site in events:
        if op in _SIZED:
            slots.append(b)
            out.append((int(op), canon(a) if op == Op.BIRTH else 0, 0, site))
        elif op == Op.DEATH:
            out.append((int(op), canon(a), 0, 0))
        elif op == Op.CALL:
            out.append((int(op), index[a], b, 0))
        else:
            out.append((int(op), a, b, site))
    return tuple(out)


def call(trace: Trace, top: int, more: int) -> Part:
    """The distinct call ``top`` with the calls nested in it, the outermost first."""
    order: list[int] = []

    def visit(number: int) -> None:
        if number not in order:
            order.append(number)
            for op, a, _, _ in trace.streams[number].events:
                if op == Op.CALL:
                    visit(a)

    visit(top)
    index = {number: n for n, number in enumerate(order)}
    slots: list[Number] = [more]
    structure = []
    for number in order:
        stream = trace.streams[number]
        events = _events(stream.events, index, slots, lambda i: i)
        for work in stream.work:
            slots += [work.flop, work.bytes, work.launches]
        structure.append(
            (
                stream.component,
                stream.method,
                stream.inputs,
                events,
                stream.outputs,
                tuple((b.inputs, b.outputs) for b in stream.bindings),
                tuple((w.kind, w.dtype) for w in stream.work),
            )
        )
    return Part(tuple(structure), tuple(slots), _kinds(structure))


def _kinds(streams: list[Any]) -> str:
    return "s" + "".join(
        "s" * sum(e[0] in _SIZED for e in stream[3]) + "wws" * len(stream[6]) for stream in streams
    )


def names(trace: Trace) -> dict[int, str]:
    """The distinct calls in order of first appearance: stream -> ``component.method.number``."""
    found: dict[int, str] = {}
    seen: dict[str, int] = {}
    for segment in trace.timeline:
        for op, a, _, _ in segment.events:
            if op == Op.CALL and a not in found:
                stream = trace.streams[a]
                kind = f"{trace.components[stream.component].name}.{stream.method}"
                found[a] = f"{kind}.{seen.get(kind, 0)}"
                seen[kind] = seen.get(kind, 0) + 1
    return found


def _span(segment: Segment) -> tuple[int | None, int]:
    ids = [e[1] for e in segment.events if e[0] == Op.BIRTH]
    ids += [i for b in segment.bindings for i in b.outputs]
    return min(ids, default=None), len(ids)


def timeline(trace: Trace, called: dict[int, str]) -> Part:
    """The timeline, with ids as if every segment ran once; an earlier turn's storage is marked with its turn."""
    spans = [_span(segment) for segment in trace.timeline]
    bases, canonical, at, c = [], [], 0, 0
    for segment, (base, stride) in zip(trace.timeline, spans, strict=True):
        if base is not None and base != at:
            raise ValueError(f"segment begins at {base}, not {at}")
        bases.append(at)
        canonical.append(c)
        at += stride * segment.repeat
        c += stride
    bases.append(at)
    local = {number: n for n, number in enumerate(called)}
    slots: list[Number] = []
    structure = []
    for s, segment in enumerate(trace.timeline):

        def canon(i: int, s: int = s) -> int:
            if i < 0:
                return i
            where = next(n for n, (low, high) in enumerate(pairwise(bases)) if low <= i < high)
            turn, k = divmod(i - bases[where], spans[where][1])
            if where == s and turn:
                raise ValueError("a segment's first turn names a later one")
            last = trace.timeline[where].repeat - 1
            tag = 0 if where == s or turn == last else (1 if turn == 0 else 1 + last - turn)
            return (tag * EARLY) + canonical[where] + k

        events = _events(segment.events, local, slots, canon)
        bindings = tuple(
            (tuple(map(canon, b.inputs)), tuple(map(canon, b.outputs))) for b in segment.bindings
        )
        slots.append(segment.repeat)
        structure.append((events, bindings, spans[s][1]))
    more = (trace.stages, tuple(called.values()), _frozen(encode_recasts(trace)))
    sized = ["s" * sum(e[0] in _SIZED for e in events) + "r" for events, _, _ in structure]
    return Part((tuple(structure), *more), tuple(slots), "".join(sized))


def encode_recasts(trace: Trace) -> list[Any]:
    """The components after the pipeline changed their dtype, as JSON values."""
    found: list[Any] = encode(trace)["recasts"] if trace.recasts else []
    return found


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
