"""Memory of one trace under one placement: per stage allocated and reserved, and where a full card ends the run.

In: a Trace, settings, the card's architecture for cuBLAS's workspace, and perhaps a limit. Out: a MemoryEstimate. The
births and deaths of the trace are replayed through the allocator; equal steps in a row, and equal blocks within a
call, are replayed until a state of the allocator comes back. Left out is named in the estimate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from cardfit.predict.activations import with_copies
from cardfit.predict.alloc_conf import parse_alloc_conf
from cardfit.predict.allocator import Allocator, Block, DeviceFull
from cardfit.predict.estimate import Failure, MemoryEstimate, StageMemory
from cardfit.predict.host import host_moments
from cardfit.predict.loading import Loading
from cardfit.predict.offload import Moving
from cardfit.predict.placement import placement
from cardfit.predict.tuned import allocator_of
from cardfit.predict.turns import Turns, alike, only_moving
from cardfit.request import Settings
from cardfit.trace.repeats import repeats, without_modules
from cardfit.trace.stream import Binding, Event, Form, Op, Segment, Stream, Trace
from cardfit.units import KIB, MIB

# cuBLAS's workspace as torch sets it: ":4096:2:16:8" before Hopper, 32 MiB from Hopper on
CUBLAS_WORKSPACE_BYTES = 2 * 4096 * KIB + 8 * 16 * KIB
CUBLAS_WORKSPACE_HOPPER_BYTES = 32 * MIB
_BIRTH, _DEATH, _WORKSPACE = int(Op.BIRTH), int(Op.DEATH), int(Op.WORKSPACE)
_HOPPER_ON = ("Hopper", "Blackwell")
LEFT_OUT = (
    "the CUDA context, which counts against the card beside the allocator",
    "cuBLASLt's workspace and algorithms that cuDNN picks by benchmarking",
)
LOAD = "load"
_STAGE_ORDER = (
    "ingest",
    "encode_prompt",
    "encode_condition",
    "denoise",
    "decode",
    "post",
    "export",
)


@dataclass(slots=True)
class _StagePeak:
    component: int
    calls: int = 0
    allocated: int = 0
    weights: int = 0
    reserved: int = 0
    site: int = 0


@cache
def bands() -> dict[str, float]:
    """Relative band below and above a reserved peak, from the residuals of published measurements."""
    text = files("cardfit.predict").joinpath("data/bands.json").read_text(encoding="utf-8")
    reserved = json.loads(text)["bands"]["reserved"]
    return {"low": float(reserved["low"]), "high": float(reserved["high"])}


class Replay:
    """One replay of a trace; with ``allocator`` it goes on where that stands, whose limit then holds."""

    def __init__(
        self,
        trace: Trace,
        settings: Settings,
        architecture: str | None,
        limit_bytes: int | None,
        *,
        legacy_bnb: bool = False,
        allocator: Allocator | None = None,
    ) -> None:
        self.trace = trace
        self.loads = allocator is None  # a process that goes on has loaded before
        if allocator is None:
            allocator = allocator_of(parse_alloc_conf(settings.alloc_conf), limit_bytes)
        self.allocator = allocator
        self.placement = placement(trace, settings, self.allocator, legacy_bnb=legacy_bnb)
        hopper = architecture is not None and architecture.startswith(_HOPPER_ON)
        self.workspace_bytes = CUBLAS_WORKSPACE_HOPPER_BYTES if hopper else CUBLAS_WORKSPACE_BYTES
        self.has_workspace = False
        self.peaks: list[_StagePeak] = []
        numbers = {c.name: n for n, c in enumerate(trace.components)}
        for _, name in trace.stages:
            self.peaks.append(_StagePeak(numbers.get(name, -1)))
        self.load_peak = _StagePeak(-1)
        self.stage = self.load_peak
        self.site = 0
        self.component = -1
        self.ids: dict[int, Block] = {}
        self.placement.note = self._note_if_higher
        self.loading = Loading(self.placement, self._note_load)
        self.loaded = ("", "")  # the component and the module that arrive at the peak of loading
        self._named = settings.model_dump_json()
        self._lean: dict[object, Any] = {}

    def run(self) -> None:
        """Loading, weights as the placement has them, then the timeline. Raises DeviceFull."""
        try:
            self._run()
        finally:
            self._note_reserved()

    def _run(self) -> None:
        if self.loads:
            self.loading.run()
        else:
            self.placement.start()
            self._note_if_higher()
        self._note_reserved()
        if self.peaks:  # what the pipeline makes before the first call belongs to the first stage
            self.allocator.reserved_peak_bytes = 0
            self.stage = self.peaks[0]
            self._note(0)
        for segment in self.trace.timeline:
            self._segment(segment)

    def _segment(self, segment: Segment) -> None:
        """Play every repetition, or, once a state comes back, only those beyond whole periods of it."""
        stride, first = _births(segment), _first_id(segment)
        calls_before = [peak.calls for peak in self.peaks]

        def state() -> object:
            living = _living(self.ids, first, turns.at * stride)
            return self.allocator.fingerprint(), living, self.placement.where()

        turns = Turns(segment.repeat)
        while turns.left:
            self._play(segment.events, segment.bindings, self.ids, turns.at * stride)
            played = turns.at + 1
            skipped = turns.played(state)
            if skipped:
                self.ids = _moved(self.ids, first, skipped * stride)
                for peak, before in zip(self.peaks, calls_before, strict=True):
                    peak.calls += (peak.calls - before) // played * skipped

    def _stream(self, number: int, ids: dict[int, Block]) -> dict[int, Block]:
        """Play a call whose storages are ``ids``; of blocks that do the same only those that differ in state."""
        stream = self.trace.streams[number]
        events, found = self._events(number)
        at = 0
        for moving in found:
            self._play(events[at : moving.repeat.start], stream.bindings, ids, 0)
            ids = self._turns(moving, events, stream, ids)
            at = moving.repeat.end
        self._play(events[at:], stream.bindings, ids, 0)
        return ids

    def _turns(
        self, moving: Moving, events: tuple[Event, ...], stream: Stream, ids: dict[int, Block]
    ) -> dict[int, Block]:
        """Play a period again until a state comes back; what lives then stands for what lives at the end."""
        component, repeat = stream.component, moving.repeat
        listens = self.placement.listens(component)

        def state() -> object:
            living = _living(ids, repeat.first, turns.at * repeat.births)
            held = self.placement.around(component, moving, turns.at) if listens else None
            return self.allocator.fingerprint(), living, held

        turns = Turns(repeat.count)
        while turns.left:
            start = repeat.start + turns.at * repeat.period
            self._play(events[start : start + repeat.period], stream.bindings, ids, 0)
            skipped = turns.played(state)
            if skipped:
                ids = _moved(ids, repeat.first, skipped * repeat.births)
                if listens:
                    before = repeat.start + (turns.at - skipped) * repeat.period
                    left_out = events[before : repeat.start + turns.at * repeat.period]
                    self.placement.skip(component, moving, skipped, left_out)
        return ids

    def _play(
        self,
        events: tuple[Event, ...],
        bindings: tuple[Binding, ...],
        ids: dict[int, Block],
        shift: int,
    ) -> None:
        allocator = self.allocator
        for op, a, b, site in events:
            if op == _BIRTH:
                self.site = site
                ids[a + shift] = allocator.allocate(b)
                if allocator.allocated_bytes > self.stage.allocated:
                    self._note(site)
            elif op == _DEATH:
                allocator.free(ids.pop(a + shift))
            elif op == _WORKSPACE:
                self.site = site
                block = allocator.allocate(b)
                if allocator.allocated_bytes > self.stage.allocated:
                    self._note(site)
                allocator.free(block)
            else:
                self._rare(op, a, b, bindings, ids, shift)
        self._note_reserved()

    def _rare(
        self,
        op: int,
        a: int,
        b: int,
        bindings: tuple[Binding, ...],
        ids: dict[int, Block],
        shift: int,
    ) -> None:
        if op == Op.CALL:
            self._call(a, bindings[b], ids, shift)
        elif op == Op.ENTER:
            self.placement.enter(self.component, a)
            self._note_if_higher()
        elif op == Op.EXIT:
            self.placement.leave(self.component, a)
        elif op == Op.STAGE:
            self._note_reserved()
            self.allocator.reserved_peak_bytes = 0
            self.stage = self.peaks[a]
            self.stage.calls += 1
        elif op == Op.ON:
            self.component = a
        elif op == Op.OFF:
            self.placement.off(a)
        elif op == Op.RECAST:
            self.placement.recast(a, self.trace.recasts[b])
            self._note_if_higher()
        elif op == Op.MATMUL and not self.has_workspace:
            self.has_workspace = True
            self.allocator.allocate(self.workspace_bytes)
            self._note_if_higher()

    def _call(self, number: int, binding: Binding, ids: dict[int, Block], shift: int) -> None:
        stream = self.trace.streams[number]
        if ids is self.ids:
            self.placement.on(self.component, stream.method)
            self._note_if_higher()
        local: dict[int, Block] = {}
        for inner, outer in enumerate(binding.inputs):
            if outer >= 0 and outer + shift in ids:
                local[inner] = ids[outer + shift]
        before = set(local)
        local = self._stream(number, local)
        for inner in before - set(local):  # an input that the call let go
            ids.pop(binding.inputs[inner] + shift)
        for inner, outer in zip(stream.outputs, binding.outputs, strict=True):
            ids[outer + shift] = local.pop(inner)

    def _events(self, number: int) -> tuple[tuple[Event, ...], tuple[Moving, ...]]:
        """The stream's events, without entries of modules that move nothing, and what repeats in them.

        Worked out once for a trace and settings, whatever the limit; where they repeat once for all sizes.
        """
        placed = self.placement
        kept = self.trace.memo if placed.fresh else self._lean
        key = ("moving", self._named, number, placed.version)
        if key not in kept:
            stream = self.trace.streams[number]
            weights = placed.weights[stream.component]
            events = stream.events
            if any(each.tokens is not None for each in weights):
                events = with_copies(events, weights)
                places, moving = self._outline(events, stream.component)
            elif stream.form is None:
                places, moving = self._outline(events, stream.component)
            else:
                places, moving = self._outline_of(stream.form, stream.component)
            kept[key] = tuple([events[n] for n in places]), moving
        found: tuple[tuple[Event, ...], tuple[Moving, ...]] = kept[key]
        return found

    def _outline_of(self, form: Form, component: int) -> tuple[tuple[int, ...], tuple[Moving, ...]]:
        """The outline of all streams that have this form, under placements that do the same."""
        same = self.placement.current[component]
        key = (self._named, id(same), self.placement.knows(component))
        if key not in form.memo:  # `same` is kept: its id stays its own
            form.memo[key] = same, self._outline(form.events, component)
        found: tuple[tuple[int, ...], tuple[Moving, ...]] = form.memo[key][1]
        return found

    def _outline(
        self, events: Sequence[Event], component: int
    ) -> tuple[tuple[int, ...], tuple[Moving, ...]]:
        """The places of ``events`` that matter to the placement, and what repeats among them."""
        placed = self.placement
        if placed.listens(component):
            places = only_moving(events, placed, component)
        else:
            places = without_modules(events)
        played = [events[n] for n in places]
        moving = (alike(each, played, placed, component) for each in repeats(played))
        return places, tuple(chain.from_iterable(moving))

    def _note_if_higher(self) -> None:
        if self.allocator.allocated_bytes > self.stage.allocated:
            self._note(self.site)

    def _note_load(self) -> None:
        if self.allocator.allocated_bytes > self.stage.allocated:
            self._note(0)
            self.loaded = self.loading.where()

    def _note(self, site: int) -> None:
        stage = self.stage
        stage.allocated = self.allocator.allocated_bytes
        stage.weights = self.placement.weights_bytes
        stage.site = site
        self._note_reserved()

    def _note_reserved(self) -> None:
        """A cache emptied in between (model offload, a full card) does not hide what was reserved before."""
        seen = max(self.allocator.reserved_peak_bytes, self.allocator.reserved_bytes)
        if seen > self.stage.reserved:
            self.stage.reserved = seen


def _living(ids: dict[int, Block], first: int, shift: int) -> frozenset[tuple[int, bool, int]]:
    """Where each storage lies, those from ``first`` on by their number without ``shift``."""
    return frozenset(
        (i - shift if i >= first else i, i >= first, block.address) for i, block in ids.items()
    )


def _moved(ids: dict[int, Block], first: int, shift: int) -> dict[int, Block]:
    """``ids`` after turns that were left out: what lives now stands for what lives that many ids later."""
    return {i + shift if i >= first else i: block for i, block in ids.items()}


def _first_id(segment: Segment) -> int:
    """The lowest id that the segment makes, by a birth or as a call's output."""
    ids = [event[1] for event in segment.events if event[0] == Op.BIRTH]
    return min([*ids, *(i for b in segment.bindings for i in b.outputs)], default=0)


def _births(segment: Segment) -> int:
    born = sum(1 for event in segment.events if event[0] == Op.BIRTH)
    return born + sum(len(b.outputs) for b in segment.bindings)


def _site(trace: Trace, number: int) -> str:
    op, path = trace.sites[number]
    return f"{op} in {path}" if path else op


def _load_row(replay: Replay) -> StageMemory:
    """What the card holds at worst while it is loaded; no call where offloading leaves all weights on the host."""
    top, band = replay.load_peak, bands()
    component, module = replay.loaded
    return StageMemory(
        name=LOAD,
        component=component,
        calls=int(top.allocated > 0),
        weights_bytes=top.weights,
        activation_bytes=top.allocated - top.weights,
        allocated_bytes=top.allocated,
        reserved_bytes=top.reserved,
        low_bytes=max(top.allocated, round(top.reserved * (1 - band["low"]))),
        high_bytes=round(top.reserved * (1 + band["high"])),
        basis="rule",
        site=module,
    )


def _rows(trace: Trace, replay: Replay) -> tuple[StageMemory, ...]:
    """One row per stage: the component where its peak stands, calls of all its components."""
    band = bands()
    rows = [_load_row(replay)] if replay.load_peak.allocated else []
    for name in _STAGE_ORDER:
        found = [
            p for (stage, _), p in zip(trace.stages, replay.peaks, strict=True) if stage == name
        ]
        if not found:
            continue
        top = max(found, key=lambda peak: peak.allocated)
        reserved = max(peak.reserved for peak in found)
        rows.append(
            StageMemory(
                name=name,
                component=trace.components[top.component].name,
                calls=sum(peak.calls for peak in found),
                weights_bytes=top.weights,
                activation_bytes=top.allocated - top.weights,
                allocated_bytes=top.allocated,
                reserved_bytes=reserved,
                low_bytes=max(top.allocated, round(reserved * (1 - band["low"]))),
                high_bytes=round(reserved * (1 + band["high"])),
                basis=trace.basis,
                site=_site(trace, top.site),
            )
        )
    return tuple(rows)


def estimate(
    trace: Trace,
    settings: Settings,
    *,
    architecture: str | None = None,
    limit_bytes: int | None = None,
    legacy_bnb: bool = False,
    published: Mapping[str, str] | None = None,
) -> MemoryEstimate:
    """Memory of ``trace`` with the offload and quantization of ``settings``.

    ``architecture`` is the card's ("Ampere", "Hopper", ...), ``limit_bytes`` what the allocator may reserve; with a
    limit too small the estimate's ``failure`` says where the run ends. ``legacy_bnb`` is model offload as it was before
    bitsandbytes 0.48 (September 2025), ``published`` component -> dtype of its files, for the host's copies at load.
    """
    replay = Replay(trace, settings, architecture, limit_bytes, legacy_bnb=legacy_bnb)
    failure = None
    try:
        replay.run()
    except DeviceFull as full:
        failure = failure_of(trace, replay, full, limit_bytes or 0)
    rows = _rows(trace, replay)
    load = replay.load_peak
    top = max(rows, key=lambda row: row.reserved_bytes)
    first = next(row for row in rows if row.reserved_bytes == top.reserved_bytes)
    allocated = max([load.allocated, *(row.allocated_bytes for row in rows)])
    peak_stage = max(rows, key=lambda row: row.allocated_bytes).name if rows else first.name
    band = bands()
    waiting = replay.placement.waiting()
    host = host_moments(trace, settings, waiting, published)
    reserved = max(load.reserved, top.reserved_bytes)
    return MemoryEstimate(
        stages=rows,
        peak_stage=peak_stage,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        reserved_low_bytes=max(allocated, round(reserved * (1 - band["low"]))),
        reserved_high_bytes=round(reserved * (1 + band["high"])),
        host_bytes=max(moment.likely_bytes for moment in host),
        failure=failure,
        left_out=LEFT_OUT,
        host=host,
        offload_disk_bytes=waiting.disk_bytes,
    )


def failure_of(trace: Trace, replay: Replay, full: DeviceFull, limit_bytes: int) -> Failure:
    """Where ``replay`` stood when the card was full."""
    stage = next(
        (s for s, p in zip(trace.stages, replay.peaks, strict=True) if p is replay.stage), None
    )
    return Failure(
        stage=stage[0] if stage else LOAD,
        component=stage[1] if stage else replay.loading.where()[0],
        site=_site(trace, replay.site) if stage else replay.loading.where()[1],
        tried_bytes=full.tried_bytes,
        allocated_bytes=full.allocated_bytes,
        reserved_bytes=full.reserved_bytes,
        limit_bytes=limit_bytes,
    )
