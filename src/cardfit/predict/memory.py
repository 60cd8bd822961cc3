"""Memory of one trace under one placement: per stage allocated and reserved, and where a full card ends the run.

In: a Trace, settings, the card's architecture for cuBLAS's workspace, and perhaps a limit. Out: a MemoryEstimate. The
births and deaths of the trace are replayed through the allocator; equal steps in a row are replayed until a state of
the allocator comes back. Left out is named in the estimate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from cardfit.predict.activations import with_copies
from cardfit.predict.alloc_conf import parse_alloc_conf
from cardfit.predict.allocator import Allocator, Block, DeviceFull
from cardfit.predict.estimate import Failure, MemoryEstimate, StageMemory
from cardfit.predict.host import host_moments
from cardfit.predict.loading import Loading
from cardfit.predict.placement import placement
from cardfit.predict.tuned import allocator_of
from cardfit.request import Settings
from cardfit.trace.stream import Binding, Event, Op, Segment, Trace
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
        self._lean: dict[int, tuple[Event, ...]] = {}

    def run(self) -> None:
        """Loading, weights as the placement has them, then the timeline."""
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
        seen: dict[object, int] = {}
        calls_before = [peak.calls for peak in self.peaks]
        turn, looking = 0, True
        while turn < segment.repeat:
            self._play(segment.events, segment.bindings, self.ids, turn * stride)
            turn += 1
            left = segment.repeat - turn
            if not left or not looking:
                continue
            state = self._state(first, turn * stride)
            if state in seen:
                period = turn - seen[state]
                skipped = left // period * period
                # what lives now stands for what lives that many repetitions later
                moved = {i + skipped * stride if i >= first else i: b for i, b in self.ids.items()}
                self.ids = moved
                for peak, before in zip(self.peaks, calls_before, strict=True):
                    peak.calls += (peak.calls - before) // turn * skipped
                turn += skipped
                looking = False
            seen[state] = turn

    def _state(self, first: int, shift: int) -> object:
        """Everything that decides what a further repetition does: where free and living storages lie."""
        living = frozenset(
            (i - shift if i >= first else i, i >= first, block.address)
            for i, block in self.ids.items()
        )
        weights = frozenset(
            (key, *(block.address for block in blocks))
            for key, blocks in self.placement.held.items()
        )
        return self.allocator.fingerprint(), living, weights

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
        self._play(self._events(number), stream.bindings, local, 0)
        for inner in before - set(local):  # an input that the call let go
            ids.pop(binding.inputs[inner] + shift)
        for inner, outer in zip(stream.outputs, binding.outputs, strict=True):
            ids[outer + shift] = local.pop(inner)

    def _events(self, number: int) -> tuple[Event, ...]:
        """The stream's events, without module entries where nobody listens."""
        if number not in self._lean:
            stream = self.trace.streams[number]
            events = stream.events
            weights = self.placement.weights[stream.component]
            if any(each.tokens is not None for each in weights):
                events = with_copies(events, weights)
            if not self.placement.listens(stream.component):
                events = tuple(e for e in events if e[0] not in (Op.ENTER, Op.EXIT))
            self._lean[number] = events
        return self._lean[number]

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
