"""Weights that come and go by module, and the table of placements.

``sequential``: each layer for its own forward. ``group-block`` and ``group-leaf``: streamed, the group in use and the
one that followed it in the component's first call; without a stream one group at a time, which may hold several
blocks. Pinned, pinned only while copying, or on disk: that changes the host alone. Tests run accelerate's and
diffusers' own hooks beside it. Whole components: `cardfit.predict.offload`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from cardfit.predict.allocator import Allocator
from cardfit.predict.offload import ROOT, Does, ModelOffload, Moving, Placement, Waiting
from cardfit.predict.weights import ModuleWeights
from cardfit.request import Settings
from cardfit.trace.stream import Component, Event, Op, Stream, Trace

COPY_STREAM = (
    1  # the CUDA stream that streamed groups are allocated on: its pools serve nothing else
)


def streams(settings: Settings) -> bool:
    """Whether group offload copies on a stream: unless told otherwise, or groups hold several blocks.

    diffusers streams single blocks only (0.42.1: it sets `num_blocks_per_group` to 1).
    """
    if settings.use_stream is not None:
        return settings.use_stream
    return settings.num_blocks_per_group in (None, 1)


def pinned_bytes(size_bytes: int) -> int:
    """What page-locked memory of ``size_bytes`` takes: the next power of two (torch 2.13, CachingHostAllocator.h).

    >>> pinned_bytes(3000), pinned_bytes(4096), pinned_bytes(0)
    (4096, 4096, 0)
    """
    return 1 << (size_bytes - 1).bit_length() if size_bytes else 0


class ModuleOffload(Placement):
    """What both kinds of offload by module share: nothing is on the card unless a module asks for it."""

    granular = True

    def __init__(self, trace: Trace, settings: Settings, allocator: Allocator) -> None:
        super().__init__(trace, settings, allocator)
        self.tied = [tied(trace, number) for number in range(len(trace.components))]
        self.methods: dict[int, str] = {}  # what a component is being called for

    def start(self) -> None:
        """Everything waits on the host."""

    def on(self, component: int, method: str) -> None:
        """The component's own hook fires as that of any module."""
        self.methods[component] = method
        super().on(component, method)

    def knows(self, component: int) -> object:
        """Which modules share the weights of others."""
        return tuple(self.tied[component].items())

    def waiting(self) -> Waiting:
        """All weights keep their place on the host."""
        return Waiting(pageable_bytes=sum(self._bytes(c) for c in range(len(self.current))))


class SequentialOffload(ModuleOffload):
    """``enable_sequential_cpu_offload``: a module's own tensors are on the card for its own forward only.

    The buffers of a component that owns no parameter directly stay on the card: diffusers offloads buffers only where
    the component does. A component that the pipeline excludes is on the card from the first.
    """

    def __init__(self, trace: Trace, settings: Settings, allocator: Allocator) -> None:
        super().__init__(trace, settings, allocator)
        names = enumerate(trace.components)
        self.excluded = frozenset(n for n, c in names if c.name in trace.excluded)

    def _weights(self, component: Component) -> tuple[ModuleWeights, ...]:
        whole = super()._weights(component)
        if _owns_parameters(component) or component.name in self.trace.excluded:
            return whole
        return tuple(
            replace(weights, tensors=weights.tensors[: len(weights.tensors) - module.buffers])
            for weights, module in zip(whole, component.modules, strict=True)
        )

    def start(self) -> None:
        """Buffers that stay are there from the first."""
        for number, component in enumerate(self.current):
            if number in self.excluded:
                self.load_all(number)
            if number in self.excluded or _owns_parameters(component):
                continue
            for index, module in enumerate(component.modules):
                self._stay(number, index, module.tensors[len(module.tensors) - module.buffers :])

    def _stay(self, component: int, module: int, tensors: tuple[tuple[str, int, str], ...]) -> None:
        """Tensors that no hook moves, held under a number of their own; nothing when they are there."""
        key = (component, -1 - module)
        if key not in self.held and any(size for _, size, _ in tensors):
            self.held[key] = [self.allocator.allocate(size) for _, size, _ in tensors if size]
            self.weights_bytes += sum(block.size for block in self.held[key])

    def enter(self, component: int, module: int) -> None:
        """Own tensors in, unless they are there."""
        self.load(component, self.tied[component].get(module, module))
        super().enter(component, module)

    def leave(self, component: int, module: int) -> None:
        """Own tensors out; after ``encode`` and ``decode`` accelerate leaves the component's own where they are."""
        super().leave(component, module)
        if component in self.excluded:
            return
        if module != ROOT or self.methods[component] == "forward":
            self.unload(component, self.tied[component].get(module, module))

    def does(self, component: int, module: int) -> Does:
        """As `Placement.does`, with the own tensors that come and go."""
        found = super().does(component, module)
        own = self.tied[component].get(module, module)
        return found._replace(members=(*found.members, (own,)))

    def waiting(self) -> Waiting:
        """The host's copies are those that were loaded: nothing comes back from the card."""
        moved = set(range(len(self.current))) - self.excluded
        return Waiting(pageable_bytes=sum(self._bytes(c) for c in moved), in_files=True)


class GroupOffload(ModuleOffload):
    """Group offload: a group comes in with its first module and leaves with its last.

    Streamed, from a component's second forward on, a group brings in the one that follows it. ``encode`` and
    ``decode`` are no forward: there the component's own group does not come in, and groups never learn what follows
    them. What belongs to no block comes in on the default stream, and is not pinned.
    """

    def __init__(
        self, trace: Trace, settings: Settings, allocator: Allocator, *, blocks: bool
    ) -> None:
        super().__init__(trace, settings, allocator)
        self.streamed = streams(settings)
        self.blocks = blocks
        self.groups: list[dict[int, list[int]]] = []  # by the module that brings a group in
        self.ends: list[dict[int, int]] = []  # the module that sends a group away -> its group
        together = 1 if self.streamed else settings.num_blocks_per_group or 1
        for component in self.current:
            first, ends = _leaders(component, together if blocks else 0)
            groups: dict[int, list[int]] = {}
            for index, module in enumerate(component.modules):
                if module.tensors:
                    groups.setdefault(first[index], []).append(index)
            self.groups.append(groups)
            self.ends.append(ends)
        # the order of the first forward: None once it is known, and never asked for without a stream
        self.order: list[list[int] | None] = [[] if self.streamed else None for _ in self.groups]
        self.next: list[dict[int, int]] = [{} for _ in self.groups]

    def off(self, component: int) -> None:
        """After the first forward the order of groups is known: each brings in the one that followed it."""
        super().off(component)
        order = self.order[component]
        if self.methods[component] == "forward" and order is not None:
            self.order[component] = None
            self.next[component] = dict(pairwise([ROOT, *order]))
            self.version += 1

    def enter(self, component: int, module: int) -> None:
        """The group comes in if nobody brought it, then the next one."""
        leader = self.tied[component].get(module, module)
        if leader != ROOT or self.methods[component] == "forward":
            self._learn(component, leader)
            self._load_group(component, leader)
            following = self.next[component].get(leader)
            if following is not None:
                self._load_group(component, following)
        super().enter(component, module)

    def leave(self, component: int, module: int) -> None:
        """The group leaves with its last module."""
        super().leave(component, module)
        last = self.tied[component].get(module, module)
        for member in self.groups[component].get(self.ends[component].get(last, -1), ()):
            self.unload(component, member)

    def does(self, component: int, module: int) -> Does:
        """As `Placement.does`, with the groups that come and go."""
        found = super().does(component, module)
        groups, own = self.groups[component], self.tied[component].get(module, module)
        leaders = (own, self.next[component].get(own, -1), self.ends[component].get(own, -1))
        return found._replace(
            members=(*found.members, *(groups.get(leader, ()) for leader in leaders))
        )

    def knows(self, component: int) -> object:
        """As `ModuleOffload.knows`, and which group brings in which."""
        return super().knows(component), tuple(self.next[component].items())

    def skip(self, component: int, moving: Moving, turns: int, left_out: Sequence[Event]) -> None:
        """As `Placement.skip`; in a component's first forward the order of groups is learned all the same."""
        super().skip(component, moving, turns, left_out)
        if self.order[component] is not None:
            for op, module, _, _ in left_out:
                if op == Op.ENTER:
                    self._learn(component, self.tied[component].get(module, module))

    def _learn(self, component: int, leader: int) -> None:
        order = self.order[component]
        if order is not None and leader != ROOT and leader in self.groups[component]:
            order.append(leader)

    def _load_group(self, component: int, leader: int) -> None:
        for member in self.groups[component].get(leader, ()):
            self.load(component, member, self._stream(component, leader))

    def _stream(self, component: int, leader: int) -> int:
        unmatched = self.blocks and leader == ROOT and not by_leaf(self.current[component])
        return COPY_STREAM if self.streamed and not unmatched else 0

    def waiting(self) -> Waiting:
        """In pinned memory, tensor by tensor, where a stream copies ahead; else in ordinary memory or on disk."""
        on_disk, low = bool(self.settings.offload_to_disk), bool(self.settings.low_cpu_mem_usage)
        plain = pinned = 0
        passing: Counter[int] = Counter()  # size class -> blocks that one group takes at most
        for component, groups in enumerate(self.groups):
            for leader, members in groups.items():
                weights = self.weights[component]
                sizes = [size for member in members for size in weights[member].tensors]
                plain += sum(sizes)
                if self._stream(component, leader) == COPY_STREAM:
                    classes = Counter(pinned_bytes(size) for size in sizes)
                    pinned += sum(classes.elements()) - sum(sizes)
                    passing |= classes
        through = sum(passing.elements())
        if on_disk:
            return Waiting(passing_bytes=through, disk_bytes=plain)
        if not self.streamed:
            return Waiting(pageable_bytes=plain)
        if low:
            return Waiting(pageable_bytes=plain, passing_bytes=through, in_files=True)
        ordinary = self._unpinned_bytes()
        return Waiting(pageable_bytes=ordinary, pinned_bytes=plain - ordinary + pinned)

    def _unpinned_bytes(self) -> int:
        return sum(
            sum(self.weights[component][member].tensors)
            for component, groups in enumerate(self.groups)
            for leader, members in groups.items()
            if self._stream(component, leader) != COPY_STREAM
            for member in members
        )


def _leaders(component: Component, together: int) -> tuple[list[int], dict[int, int]]:
    """For every module the one that brings its group in; and who sends a group away -> who brings it in.

    ``together`` blocks of a list form a group; with 0, and in an autoencoder, every module is a group of its own.
    """
    own = list(range(len(component.modules)))
    if not together or by_leaf(component):
        return own, {index: index for index in own}
    lists: dict[str, list[int]] = {}
    for index, module in enumerate(component.modules):
        if module.block:
            lists.setdefault(module.path.partition(".")[0], []).append(index)
    first: dict[str, int] = {}
    ends = {ROOT: ROOT}
    for blocks in lists.values():
        for start in range(0, len(blocks), together):
            group = blocks[start : start + together]
            ends[group[-1]] = group[0]
            first |= {component.modules[block].path: group[0] for block in group}
    heads = [".".join(module.path.split(".")[:2]) for module in component.modules]
    return [first.get(head, ROOT) for head in heads], ends


def _owns_parameters(component: Component) -> bool:
    """Whether the component itself, not a module in it, has a parameter."""
    root = component.modules[ROOT]
    return len(root.tensors) > root.buffers


def by_leaf(component: Component) -> bool:
    """Whether block-level offload takes this component by leaves.

    Pipelines call an autoencoder's ``encode`` and ``decode``, where the hook of what belongs to no block never fires.
    """
    return component.kind.startswith("Autoencoder")


def tied(trace: Trace, component: int) -> dict[int, int]:
    """Modules that own nothing because they share a weight, and the module that the trace books it under.

    An embedding or linear layer without tensors is tied; the owner is the only one of its kind that no call enters
    (T5's ``shared`` beside ``encoder.embed_tokens``).
    """
    modules = trace.components[component].modules
    entered = set[int]()
    for stream in trace.streams:
        if stream.component == component:
            entered |= _entered(stream)
    found = {}
    for index in entered:
        module = modules[index]
        if module.tensors or not (module.linear or module.kind == "Embedding"):
            continue
        owners = [
            n
            for n, m in enumerate(modules)
            if m.tensors and m.kind == module.kind and n not in entered
        ]
        if len(owners) == 1:
            found[index] = owners[0]
    return found


def _entered(stream: Stream) -> frozenset[int]:
    """The modules that a stream enters, looked up once for all streams of a form."""
    kept: dict[object, Any] = {} if stream.form is None else stream.form.memo
    if "entered" not in kept:
        kept["entered"] = frozenset(event[1] for event in stream.events if event[0] == Op.ENTER)
    found: frozenset[int] = kept["entered"]
    return found


def placement(
    trace: Trace, settings: Settings, allocator: Allocator, *, legacy_bnb: bool = False
) -> Placement:
    """The placement that ``settings`` name; ``legacy_bnb`` is the rule before bitsandbytes 0.48 (`ModelOffload`)."""
    match settings.offload or "none":
        case "none":
            return Placement(trace, settings, allocator)
        case "model":
            return ModelOffload(trace, settings, allocator, legacy_bnb=legacy_bnb)
        case "sequential":
            return SequentialOffload(trace, settings, allocator)
        case "group-leaf":
            return GroupOffload(trace, settings, allocator, blocks=False)
        case _:
            return GroupOffload(trace, settings, allocator, blocks=True)
