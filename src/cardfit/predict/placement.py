"""Where weights are at every moment, by the rules of the hooks that move them.

``none``: everything on the card before the first call. ``model``: on entry a component sends only its predecessor in
``model_cpu_offload_seq`` back, empties the cache and comes in; a component outside the sequence stays to the end.
``sequential``: each layer for its own forward. ``group-block`` and ``group-leaf`` (streamed): the group in use and the
one that followed it in the component's first call. Tests run accelerate's and diffusers' own hooks beside it. Left out:
``_exclude_from_cpu_offload``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from cardfit.predict.allocator import Allocator, Block
from cardfit.predict.weights import ModuleWeights, module_weights
from cardfit.request import Settings
from cardfit.trace.stream import Component, Op, Trace

ROOT = 0  # the index of the component itself among its modules
COPY_STREAM = (
    1  # the CUDA stream that streamed groups are allocated on: its pools serve nothing else
)


class Placement:
    """Moves weights in and out of ``allocator`` as the pipeline enters and leaves components and modules."""

    granular = False  # whether it listens to single modules

    def __init__(self, trace: Trace, settings: Settings, allocator: Allocator) -> None:
        self.trace = trace
        self.allocator = allocator
        self.schemes = settings.quantization
        self.current: list[Component] = list(trace.components)
        self.weights: list[tuple[ModuleWeights, ...]] = [self._weights(c) for c in trace.components]
        self.held: dict[tuple[int, int], list[Block]] = {}
        self.scratch: dict[tuple[int, int], Block] = {}
        self.weights_bytes = 0
        self.has_scratch = [any(m.scratch_bytes for m in w) for w in self.weights]

    def _weights(self, component: Component) -> tuple[ModuleWeights, ...]:
        return module_weights(component, self.schemes.get(component.name, "none"))

    # -- moving --------------------------------------------------------------------------------

    def load(self, component: int, module: int, stream: int = 0) -> None:
        """Bring one module's own tensors in, unless they are there."""
        if (component, module) in self.held or not self.weights[component][module].tensors:
            return
        blocks = self.held[component, module] = []
        for size in self.weights[component][module].tensors:
            if size:
                blocks.append(self.allocator.allocate(size, stream))
                self.weights_bytes += blocks[-1].size

    def unload(self, component: int, module: int) -> None:
        """Send one module's own tensors away, if they are there."""
        for block in self.held.pop((component, module), ()):
            self.weights_bytes -= block.size
            self.allocator.free(block)

    def load_all(self, component: int) -> None:
        """Bring a whole component in."""
        for module in range(len(self.weights[component])):
            self.load(component, module)

    def unload_all(self, component: int) -> None:
        """Send a whole component away."""
        for module in range(len(self.weights[component])):
            self.unload(component, module)

    def resident(self, component: int) -> bool:
        """Whether any tensor of the component is on the card."""
        return any(key[0] == component for key in self.held)

    def recast(self, component: int, after: Component) -> None:
        """The pipeline changed a component's dtype: tensor by tensor the new one is born before the old one dies."""
        self.current[component] = after
        self.weights[component] = self._weights(after)
        for module, new in enumerate(self.weights[component]):
            old = self.held.pop((component, module), None)
            if old is None:
                continue
            blocks = self.held[component, module] = []
            for size, block in zip((size for size in new.tensors if size), old, strict=True):
                blocks.append(self.allocator.allocate(size, block.pool[0]))
                self.weights_bytes += blocks[-1].size - block.size
                self.allocator.free(block)

    # -- moments -------------------------------------------------------------------------------

    def start(self) -> None:
        """Before the first call."""
        for component in range(len(self.current)):
            self.load_all(component)

    def on(self, component: int, method: str) -> None:
        """The pipeline calls a component's ``method``: forward, encode or decode."""
        self.enter(component, ROOT)

    def off(self, component: int) -> None:
        """The call has returned."""
        self.leave(component, ROOT)

    def enter(self, component: int, module: int) -> None:
        """A module's forward begins."""
        scratch = self.weights[component][module].scratch_bytes
        if scratch:
            self.scratch[component, module] = self.allocator.allocate(scratch)

    def leave(self, component: int, module: int) -> None:
        """A module's forward ends."""
        block = self.scratch.pop((component, module), None)
        if block is not None:
            self.allocator.free(block)

    def listens(self, component: int) -> bool:
        """Whether module entries of this component matter."""
        return self.granular or self.has_scratch[component]

    # -- host ----------------------------------------------------------------------------------

    def host_bytes(self) -> int:
        """Weights in host RAM at the worst moment: the largest component passes through on its way to the card."""
        return max((self._bytes(c) for c in range(len(self.current))), default=0)

    def _bytes(self, component: int) -> int:
        return sum(sum(m.tensors) for m in self.weights[component])


class ModelOffload(Placement):
    """``enable_model_cpu_offload``."""

    def __init__(self, trace: Trace, settings: Settings, allocator: Allocator) -> None:
        super().__init__(trace, settings, allocator)
        numbers = {c.name: number for number, c in enumerate(self.current)}
        # the pipeline hooks a component once, however often the sequence names it
        order = [numbers[n] for n in dict.fromkeys(trace.offload_sequence) if n in numbers]
        self.before = {now: before for before, now in pairwise(order)}

    def start(self) -> None:
        """Everything waits on the host."""

    def on(self, component: int, method: str) -> None:
        """Predecessor out, cache emptied, component in."""
        before = self.before.get(component)
        if before is not None and self.resident(before):
            self.unload_all(before)
            self.allocator.empty_cache()
        self.load_all(component)
        super().on(component, method)

    def host_bytes(self) -> int:
        """All weights keep their place on the host."""
        return sum(self._bytes(c) for c in range(len(self.current)))


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

    def host_bytes(self) -> int:
        """All weights keep their place on the host."""
        return sum(self._bytes(c) for c in range(len(self.current)))


class SequentialOffload(ModuleOffload):
    """``enable_sequential_cpu_offload``: a module's own tensors are on the card for its own forward only.

    The buffers of a component that owns no parameter directly stay on the card: diffusers offloads buffers only where
    the component does.
    """

    def _weights(self, component: Component) -> tuple[ModuleWeights, ...]:
        whole = super()._weights(component)
        if _owns_parameters(component):
            return whole
        return tuple(
            replace(weights, tensors=weights.tensors[: len(weights.tensors) - module.buffers])
            for weights, module in zip(whole, component.modules, strict=True)
        )

    def start(self) -> None:
        """Buffers that stay are there from the first."""
        for component in self.current:
            if _owns_parameters(component):
                continue
            for module in component.modules:
                for _, size, _ in module.tensors[len(module.tensors) - module.buffers :]:
                    self.weights_bytes += self.allocator.allocate(size).size

    def enter(self, component: int, module: int) -> None:
        """Own tensors in."""
        self.load(component, self.tied[component].get(module, module))
        super().enter(component, module)

    def leave(self, component: int, module: int) -> None:
        """Own tensors out; after ``encode`` and ``decode`` accelerate leaves the component's own where they are."""
        super().leave(component, module)
        if module != ROOT or self.methods[component] == "forward":
            self.unload(component, self.tied[component].get(module, module))


class GroupOffload(ModuleOffload):
    """Streamed group offload: from a component's second forward on, a group brings in the one that follows it.

    ``encode`` and ``decode`` are no forward: there the component's own group does not come in, and groups never
    learn what follows them.
    """

    def __init__(
        self,
        trace: Trace,
        settings: Settings,
        allocator: Allocator,
        leader_of: Callable[[Component, int], int],
        blocks: bool,
    ) -> None:
        super().__init__(trace, settings, allocator)
        self.blocks = blocks
        self.groups: list[dict[int, list[int]]] = []
        for component in self.current:
            groups: dict[int, list[int]] = {}
            for index, module in enumerate(component.modules):
                if module.tensors:
                    groups.setdefault(leader_of(component, index), []).append(index)
            self.groups.append(groups)
        self.order: list[list[int] | None] = [[] for _ in self.groups]  # None once it is known
        self.next: list[dict[int, int]] = [{} for _ in self.groups]

    def off(self, component: int) -> None:
        """After the first forward the order of groups is known: each brings in the one that followed it."""
        super().off(component)
        order = self.order[component]
        if self.methods[component] == "forward" and order is not None:
            self.order[component] = None
            self.next[component] = dict(pairwise([ROOT, *order]))

    def enter(self, component: int, module: int) -> None:
        """The group comes in if nobody brought it, then the next one."""
        leader = self.tied[component].get(module, module)
        if leader != ROOT or self.methods[component] == "forward":
            order = self.order[component]
            if order is not None and leader != ROOT and leader in self.groups[component]:
                order.append(leader)
            self._load_group(component, leader)
            following = self.next[component].get(leader)
            if following is not None:
                self._load_group(component, following)
        super().enter(component, module)

    def leave(self, component: int, module: int) -> None:
        """The group leaves with its leader."""
        super().leave(component, module)
        leader = self.tied[component].get(module, module)
        for member in self.groups[component].get(leader, ()):
            self.unload(component, member)

    def _load_group(self, component: int, leader: int) -> None:
        for member in self.groups[component].get(leader, ()):
            self.load(component, member, self._stream(component, leader))

    def _stream(self, component: int, leader: int) -> int:
        """What belongs to no block comes in on the default stream, and is not pinned."""
        unmatched = self.blocks and leader == ROOT
        return 0 if unmatched and not by_leaf(self.current[component]) else COPY_STREAM

    def host_bytes(self) -> int:
        """Weights wait on the host; streamed ones in pinned memory, rounded up to a power of two per tensor."""
        total = 0
        for component, groups in enumerate(self.groups):
            for leader, members in groups.items():
                pinned = self._stream(component, leader) == COPY_STREAM
                for member in members:
                    for size in self.weights[component][member].tensors:
                        total += 1 << (size - 1).bit_length() if pinned and size else size
        return total


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
    entered = {
        event[1]
        for stream in trace.streams
        if stream.component == component
        for event in stream.events
        if event[0] == Op.ENTER
    }
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


def _leaf(component: Component, module: int) -> int:
    """Every module that owns tensors is a group, led by itself."""
    return module


def _block(component: Component, module: int) -> int:
    """The index of the block that holds the module, else the component's own."""
    if by_leaf(component):
        return module
    head = ".".join(component.modules[module].path.split(".")[:2])
    for index, candidate in enumerate(component.modules):
        if candidate.block and candidate.path == head:
            return index
    return ROOT


def placement(trace: Trace, settings: Settings, allocator: Allocator) -> Placement:
    """The placement that ``settings.offload`` names."""
    match settings.offload or "none":
        case "none":
            return Placement(trace, settings, allocator)
        case "model":
            return ModelOffload(trace, settings, allocator)
        case "sequential":
            return SequentialOffload(trace, settings, allocator)
        case "group-leaf":
            return GroupOffload(trace, settings, allocator, _leaf, blocks=False)
        case _:
            return GroupOffload(trace, settings, allocator, _block, blocks=True)
