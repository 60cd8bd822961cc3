"""Where weights are at every moment, by the rules of the hooks that move them.

``none``: everything on the card before the first call. ``model``: on entry a component sends only its predecessor in
``model_cpu_offload_seq`` back, empties the cache and comes in; a component outside the sequence stays to the end.
``group-block`` and ``group-leaf`` (streamed): the group in use and the next one. ``sequential``: each layer for its own
forward. Checked against accelerate's CpuOffload and diffusers' ModuleGroup; left out: memory that a second stream
holds back until it has caught up.
"""

from __future__ import annotations

from collections.abc import Callable

from cardfit.predict.allocator import Allocator, Block
from cardfit.predict.weights import ModuleWeights, module_weights
from cardfit.request import Settings
from cardfit.trace.stream import Component, Event, Op, Trace


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

    # -- moving ----------------------------------------------------------------------------------------------------

    def load(self, component: int, module: int) -> None:
        """Bring one module's own tensors in, unless they are there."""
        if (component, module) in self.held or not self.weights[component][module].tensors:
            return
        blocks = []
        for size in self.weights[component][module].tensors:
            if size:
                blocks.append(self.allocator.allocate(size))
                self.weights_bytes += blocks[-1].size
        self.held[component, module] = blocks

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
        for module in range(len(self.weights[component])):
            if (component, module) in self.held:
                old = self.held.pop((component, module))
                self.load(component, module)
                for block in old:
                    self.weights_bytes -= block.size
                    self.allocator.free(block)

    # -- moments ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Before the first call."""
        for component in range(len(self.current)):
            self.load_all(component)

    def on(self, component: int, events: list[tuple[Op, int]]) -> None:
        """The pipeline calls a component; ``events`` are the module entries and exits to come."""

    def off(self, component: int) -> None:
        """The call has returned."""

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

    # -- host ------------------------------------------------------------------------------------------------------

    def host_bytes(self) -> int:
        """Weights in host RAM at the worst moment: the largest component passes through on its way to the card."""
        return max((self._bytes(c) for c in range(len(self.current))), default=0)

    def _bytes(self, component: int) -> int:
        return sum(sum(m.tensors) for m in self.weights[component])


class ModelOffload(Placement):
    """``enable_model_cpu_offload``."""

    def __init__(self, trace: Trace, settings: Settings, allocator: Allocator) -> None:
        super().__init__(trace, settings, allocator)
        names = [c.name for c in self.current]
        order = [names.index(name) for name in trace.offload_sequence if name in names]
        self.before = {now: before for before, now in zip(order, order[1:], strict=False)}

    def start(self) -> None:
        """Everything waits on the host."""

    def on(self, component: int, events: list[tuple[Op, int]]) -> None:
        """Predecessor out, cache emptied, component in."""
        before = self.before.get(component)
        if before is not None and self.resident(before):
            self.unload_all(before)
            self.allocator.empty_cache()
        self.load_all(component)

    def host_bytes(self) -> int:
        """All weights keep their place on the host."""
        return sum(self._bytes(c) for c in range(len(self.current)))


class SequentialOffload(ModelOffload):
    """``enable_sequential_cpu_offload``: a module's own tensors are on the card for its own forward only."""

    granular = True

    def on(self, component: int, events: list[tuple[Op, int]]) -> None:
        """Nothing moves before a module asks."""

    def enter(self, component: int, module: int) -> None:
        """Own tensors in."""
        self.load(component, module)
        super().enter(component, module)

    def leave(self, component: int, module: int) -> None:
        """Own tensors out."""
        super().leave(component, module)
        self.unload(component, module)


class GroupOffload(SequentialOffload):
    """Streamed group offload: while one group works the next one comes in."""

    def __init__(
        self,
        trace: Trace,
        settings: Settings,
        allocator: Allocator,
        group_of: Callable[[Component, int], int | None],
    ) -> None:
        super().__init__(trace, settings, allocator)
        self.groups: list[dict[int, list[int]]] = []
        self.ungrouped: list[list[int]] = []
        for component in self.current:
            groups: dict[int, list[int]] = {}
            rest = []
            for index in range(len(component.modules)):
                leader = group_of(component, index)
                if leader is None:
                    rest.append(index)
                else:
                    groups.setdefault(leader, []).append(index)
            self.groups.append(groups)
            self.ungrouped.append(rest)
        self.ahead: list[int] = []

    def on(self, component: int, events: list[tuple[Op, int]]) -> None:
        """What belongs to no group comes in for the whole call; the order of groups is known from the call."""
        for module in self.ungrouped[component]:
            self.load(component, module)
        leaders = self.groups[component]
        self.ahead = [module for op, module in events if op == Op.ENTER and module in leaders]
        self.ahead.reverse()

    def off(self, component: int) -> None:
        """What belongs to no group, and a group fetched ahead, leave."""
        self.unload_all(component)

    def enter(self, component: int, module: int) -> None:
        """The group's own tensors, then the next group's."""
        members = self.groups[component].get(module)
        if members is not None:
            if self.ahead:
                self.ahead.pop()
            self._load_group(component, members)
            if self.ahead:
                self._load_group(component, self.groups[component][self.ahead[-1]])
        Placement.enter(self, component, module)

    def leave(self, component: int, module: int) -> None:
        """The group leaves with its leader."""
        Placement.leave(self, component, module)
        for member in self.groups[component].get(module, ()):
            self.unload(component, member)

    def _load_group(self, component: int, members: list[int]) -> None:
        for member in members:
            self.load(component, member)

    def host_bytes(self) -> int:
        """Weights wait in pinned memory, which torch rounds up to powers of two per tensor."""
        total = 0
        for weights in self.weights:
            for module in weights:
                total += sum(1 << (size - 1).bit_length() if size else 0 for size in module.tensors)
        return total


def _leaf(component: Component, module: int) -> int | None:
    return module if component.modules[module].tensors else None


def _block(component: Component, module: int) -> int | None:
    """The index of the block that holds the module; leaf groups for a VAE, none where the class has no blocks."""
    if component.name.startswith("vae"):
        return _leaf(component, module)
    path = component.modules[module].path
    head = ".".join(path.split(".")[:2])
    for index, candidate in enumerate(component.modules):
        if candidate.block and candidate.path == head:
            return index
    return None


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
            return GroupOffload(trace, settings, allocator, _leaf)
        case _:
            return GroupOffload(trace, settings, allocator, _block)


def module_events(trace: Trace, stream: int, memo: dict[int, list[tuple[Op, int]]]) -> list[tuple[Op, int]]:
    """Module entries and exits of one call, nested calls included, in order."""
    if stream not in memo:
        out: list[tuple[Op, int]] = []
        event: Event
        for event in trace.streams[stream].events:
            if event[0] in (Op.ENTER, Op.EXIT):
                out.append((Op(event[0]), event[1]))
            elif event[0] == Op.CALL:
                out.extend(module_events(trace, event[1], memo))
        memo[stream] = out
    return memo[stream]
