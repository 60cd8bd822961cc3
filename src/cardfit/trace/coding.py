"""A Trace as plain JSON values and back; events are flat lists of integers.

Whoever changes what `encode` writes raises `LAYOUT`: traces that are kept as data name the one they were written with.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Binding, Component, Event, Module, Segment, Stream, Trace, Work

LAYOUT = 1  # of what `encode` writes


def _flat(events: tuple[Event, ...]) -> list[int]:
    return list(chain.from_iterable((int(e[0]), e[1], e[2], e[3]) for e in events))


def _events(flat: list[int]) -> tuple[Event, ...]:
    numbers = iter(flat)
    return tuple(zip(numbers, numbers, numbers, numbers, strict=True))


def _bindings(bindings: tuple[Binding, ...]) -> list[list[list[int]]]:
    return [[list(b.inputs), list(b.outputs)] for b in bindings]


def _unbind(rows: list[list[list[int]]]) -> tuple[Binding, ...]:
    return tuple(Binding(tuple(i), tuple(o)) for i, o in rows)


def _component(part: Component) -> list[Any]:
    modules = [
        [
            m.path, m.kind, [list(t) for t in m.tensors], m.linear, m.block, m.buffers,
            *([m.rows] if m.rows else ()),
        ]
        for m in part.modules
    ]  # fmt: skip
    return [part.name, part.kind, part.dtype, modules]


def component_of(row: list[Any]) -> Component:
    """A Component from the JSON values that `encode` gave for it."""
    modules = tuple(
        Module(path, kind, tuple((n, s, d) for n, s, d in tensors), linear, block, buffers, *rows)
        for path, kind, tensors, linear, block, buffers, *rows in row[3]
    )
    return Component(row[0], row[1], row[2], modules)


def encode(trace: Trace) -> dict[str, Any]:
    """``trace`` without its request and settings, as JSON values."""
    streams = [
        [
            s.component, s.method, s.signature, s.inputs, _flat(s.events), list(s.outputs), _bindings(s.bindings),
            [[w.kind, w.dtype, w.flop, w.bytes, w.launches] for w in s.work],
        ]
        for s in trace.streams
    ]  # fmt: skip
    return {
        "versions": trace.versions,
        "pipeline": trace.pipeline,
        "offload_sequence": list(trace.offload_sequence),
        "excluded": list(trace.excluded),
        "components": [_component(c) for c in trace.components],
        "recasts": [_component(c) for c in trace.recasts],
        "stages": [list(s) for s in trace.stages],
        "streams": streams,
        "timeline": [[_flat(s.events), _bindings(s.bindings), s.repeat] for s in trace.timeline],
        "sites": [list(s) for s in trace.sites],
        "more_without_flash_bytes": trace.more_without_flash_bytes,
        "notes": [[code, args] for code, args in trace.notes],
    }


def decode(data: dict[str, Any], request: ExactRequest, settings: Settings) -> Trace:
    """The Trace that `encode` wrote, for ``request`` and ``settings``."""
    streams = tuple(
        Stream(c, m, sig, n, _events(ev), tuple(out), _unbind(b), tuple(Work(*w) for w in work))
        for c, m, sig, n, ev, out, b, work in data["streams"]
    )
    timeline = tuple(Segment(_events(ev), _unbind(b), n) for ev, b, n in data["timeline"])
    return Trace(
        request=request,
        settings=settings,
        versions=data["versions"],
        pipeline=data["pipeline"],
        offload_sequence=tuple(data["offload_sequence"]),
        components=tuple(component_of(c) for c in data["components"]),
        recasts=tuple(component_of(c) for c in data["recasts"]),
        stages=tuple((s, c) for s, c in data["stages"]),
        streams=streams,
        timeline=timeline,
        sites=tuple((o, p) for o, p in data["sites"]),
        more_without_flash_bytes=data["more_without_flash_bytes"],
        notes=tuple((code, args) for code, args in data["notes"]),
        excluded=tuple(data["excluded"]),
    )
