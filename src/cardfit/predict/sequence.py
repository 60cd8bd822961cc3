"""Many requests one after another through one allocator: what each reserves where the one before left it.

In: planned requests (a pipeline's name and a trace each), the order in which they come, settings, perhaps a limit. Out:
what every request took, and where the first one failed. Between two requests a `State` says where everything lies; the
same state and the same request are replayed once. Weights of a pipeline stay where its placement leaves them; modules
that differ (another LoRA) go before the new ones come. Left out: what a program keeps of the outputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cardfit.predict.alloc_conf import parse_alloc_conf
from cardfit.predict.allocator import Allocator, Block, DeviceFull, Layout, layout
from cardfit.predict.estimate import Failure
from cardfit.predict.memory import Replay, failure_of
from cardfit.predict.offload import Placement
from cardfit.predict.placement import GroupOffload
from cardfit.predict.tuned import allocator_of
from cardfit.request import Settings
from cardfit.trace.stream import Trace

# Distinct (state, request) pairs that are replayed for one sequence; half a second each for an image model
MAX_REPLAYS = 240
Progress = Callable[[int, int], None]  # (requests that are done, requests in all)


@dataclass(frozen=True, slots=True)
class Planned:
    """One request: its trace, and the name of the pipeline whose weights it shares with others."""

    pipeline: str
    trace: Trace


@dataclass(frozen=True, slots=True)
class Process:
    """What all requests share. ``keep`` leaves a pipeline on the card when another one's turn comes; ``empty_cache``
    calls ``torch.cuda.empty_cache()`` before every request; ``limit_bytes`` is what the allocator may reserve.
    """

    settings: Settings
    architecture: str | None = None
    limit_bytes: int | None = None
    keep: bool = False
    empty_cache: bool = False


class Name(NamedTuple):
    """Whose tensor a block holds: the ``place``-th of a module; ``stays`` for one that no hook moves."""

    pipeline: str
    component: str
    path: str
    stays: bool
    place: int
    size_bytes: int


# (pipeline, component, number of its modules, which group brings in which): what streamed group offload has learned
Learned = tuple[str, str, int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class State:
    """Everything between two requests that later ones depend on. ``names`` belong to the taken blocks in order."""

    layout: Layout = ()
    names: tuple[Name | None, ...] = ()
    has_workspace: bool = False
    learned: tuple[Learned, ...] = ()


@dataclass(frozen=True, slots=True)
class Took:
    """What one request took: the most that was reserved and in which stage first, the most that was allocated.

    The stage is ``before`` where requests before it left as much reserved as it needed.
    """

    reserved_bytes: int
    stage: str
    allocated_bytes: int
    failure: Failure | None = None


@dataclass(slots=True)
class Line:
    """A process that serves requests; `serve` one after another. ``replays`` counts those that were not seen before."""

    process: Process
    planned: Sequence[Planned]
    replays: int = 0
    _numbers: dict[State, int] = field(default_factory=lambda: {State(): 0})
    _states: list[State] = field(default_factory=lambda: [State()])
    _seen: dict[tuple[int, int], tuple[Took, int]] = field(default_factory=dict)

    def alone(self, request: int) -> Took:
        """What ``request`` takes in a process of its own."""
        return self._step(0, request)[0]

    def serve(self, order: Sequence[int], progress: Progress | None = None) -> list[Took]:
        """What the requests took, in ``order`` (indices of ``planned``), up to the first that failed.

        Fewer than ``order`` without a failure where no state comes back within `MAX_REPLAYS`.
        """
        found, state = list[Took](), 0
        most = self.replays + MAX_REPLAYS
        for done, request in enumerate(order):
            if progress is not None:
                progress(done, len(order))
            if (state, request) not in self._seen and self.replays >= most:
                break
            took, state = self._step(state, request)
            found.append(took)
            if took.failure is not None:
                break
        return found

    def _step(self, number: int, request: int) -> tuple[Took, int]:
        key = (number, request)
        if key not in self._seen:
            self.replays += 1
            took, state = served(self._states[number], self.planned[request], self.process)
            if state not in self._numbers:
                self._numbers[state] = len(self._states)
                self._states.append(state)
            self._seen[key] = (took, self._numbers[state])
        return self._seen[key]


def served(state: State, planned: Planned, process: Process) -> tuple[Took, State]:
    """What one request takes from ``state`` on, and the state it leaves; that of a failed one is the empty state."""
    settings, limit = process.settings, process.limit_bytes
    allocator = allocator_of(parse_alloc_conf(settings.alloc_conf), limit)
    blocks = [block for pool, parts in state.layout for block in allocator.lay(pool, parts)]
    own: dict[Name, Block] = {}
    others: dict[Name, Block] = {}
    for name, block in zip(state.names, blocks, strict=True):
        if name is not None:
            (own if name.pipeline == planned.pipeline else others)[name] = block
    if not process.keep:
        for block in others.values():
            allocator.free(block)
        others = {}
    if process.empty_cache:
        allocator.empty_cache()
    replay = Replay(planned.trace, settings, process.architecture, limit, allocator=allocator)
    replay.has_workspace = state.has_workspace
    _take_over(own, replay.placement)
    _recall(state.learned, planned.pipeline, replay.placement)
    before = allocator.reserved_peak_bytes = allocator.reserved_bytes
    failure = None
    try:
        replay.run()
    except DeviceFull as full:
        failure = failure_of(planned.trace, replay, full, limit or 0)
    took = _took(planned.trace, replay, failure, before)
    if failure is not None:
        return took, State()
    for block in replay.ids.values():
        allocator.free(block)
    replay.placement.finish()
    return took, _state(allocator, planned.pipeline, replay, others, state.learned)


def _took(trace: Trace, replay: Replay, failure: Failure | None, before: int) -> Took:
    names = ("load", *(name for name, _ in trace.stages))
    peaks = (replay.load_peak, *replay.peaks)
    reserved = max(peak.reserved for peak in peaks)
    stage = next(n for n, p in zip(names, peaks, strict=True) if p.reserved == reserved)
    stage = "before" if reserved == before else stage
    return Took(reserved, stage, max(peak.allocated for peak in peaks), failure)


def _state(
    allocator: Allocator,
    pipeline: str,
    replay: Replay,
    others: dict[Name, Block],
    learned: tuple[Learned, ...],
) -> State:
    names = {id(block): name for name, block in others.items()}
    for name, block in _held(pipeline, replay.placement):
        names[id(block)] = name
    found, taken = layout(allocator)
    kept = tuple(each for each in learned if each[0] != pipeline)
    return State(
        layout=found,
        names=tuple(names.get(id(block)) for block in taken),
        has_workspace=replay.has_workspace,
        learned=(*kept, *_learned(pipeline, replay.placement)),
    )


def _held(pipeline: str, placement: Placement) -> list[tuple[Name, Block]]:
    found = []
    for (number, module), blocks in placement.held.items():
        component = placement.current[number]
        stays = module < 0
        index = -1 - module if stays else module
        sizes = [block.size for block in blocks] if stays else _sizes(placement, number, index)
        path = _path(component.modules[index].path)
        for place, (size, block) in enumerate(zip(sizes, blocks, strict=True)):
            found.append((Name(pipeline, component.name, path, stays, place, size), block))
    return found


def _sizes(placement: Placement, component: int, module: int) -> list[int]:
    return [size for size in placement.weights[component][module].tensors if size]


def _path(path: str) -> str:
    """An adapter wraps a layer: the layer's own weights stay where they are."""
    return path.removesuffix(".base_layer")


def _take_over(own: dict[Name, Block], placement: Placement) -> None:
    """Blocks whose module is in the new trace, with the same tensors, are held again; the others are freed."""
    groups: dict[tuple[str, str, bool], list[tuple[int, int, Block]]] = defaultdict(list)
    for name, block in own.items():
        key = (name.component, name.path, name.stays)
        groups[key].append((name.place, name.size_bytes, block))
    places = {
        (component.name, _path(module.path)): (number, index)
        for number, component in enumerate(placement.current)
        for index, module in enumerate(component.modules)
        if module.tensors
    }
    for (component, path, stays), members in groups.items():
        members.sort(key=lambda each: each[0])
        blocks = [block for _, _, block in members]
        place = places.get((component, path))
        sizes = [size for _, size, _ in members]
        if place is None or not (stays or _sizes(placement, *place) == sizes):
            for block in blocks:
                placement.allocator.free(block)
            continue
        number, index = place
        placement.held[number, -1 - index if stays else index] = blocks
        placement.weights_bytes += sum(block.size for block in blocks)


def _learned(pipeline: str, placement: Placement) -> list[Learned]:
    if not isinstance(placement, GroupOffload) or not placement.streamed:
        return []
    return [
        (pipeline, component.name, len(component.modules), tuple(following.items()))
        for component, order, following in zip(
            placement.current, placement.order, placement.next, strict=True
        )
        if order is None
    ]


def _recall(learned: tuple[Learned, ...], pipeline: str, placement: Placement) -> None:
    """Hooks stay on the pipeline: a component that is the same knows the order of its groups."""
    if not isinstance(placement, GroupOffload) or not placement.streamed:
        return
    known = {each[1:3]: each[3] for each in learned if each[0] == pipeline}
    for number, component in enumerate(placement.current):
        following = known.get((component.name, len(component.modules)))
        if following is not None:
            placement.fresh = False
            placement.order[number] = None
            placement.next[number] = dict(following)


def worst(found: Sequence[Took]) -> int:
    """The index of the first request that reserved the most of all."""
    most = max(took.reserved_bytes for took in found)
    return next(n for n, took in enumerate(found) if took.reserved_bytes == most)
