"""Weights that stay on the card or come and go as whole components, by the rules of the hooks that move them.

In: a Trace, settings and the allocator. Out: `Placement` (everything resident) and `ModelOffload`, which move weights
as the pipeline enters and leaves components, and say what waits on the host (`Waiting`). On top of both, the last
``blocks_to_swap`` blocks of every denoiser may wait on the host and come in for their own forward, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from cardfit.errors import BadRequest
from cardfit.predict.allocator import Allocator, Block
from cardfit.predict.weights import ModuleWeights, module_weights
from cardfit.request import Settings
from cardfit.trace.repeats import Repeat
from cardfit.trace.stream import Component, Event, Trace

ROOT = 0  # the index of the component itself among its modules
DENOISERS = ("transformer", "unet", "prior")
# bitsandbytes before 0.48 and transformers before 4.58 cannot move these, so diffusers leaves them on the card
# (diffusers 0.42.1, pipeline_utils, enable_model_cpu_offload)
UNMOVABLE_BEFORE_BNB_0_48 = frozenset({"bnb-int8"})


@dataclass(frozen=True, slots=True)
class Waiting:
    """Weights away from the card at the worst moment between load and export, in bytes.

    ``pageable_bytes`` lie in ordinary memory, ``pinned_bytes`` in page-locked memory, rounded as torch rounds it;
    ``passing_bytes`` are pinned only while a group is copied; ``disk_bytes`` are files that hooks wrote. With
    ``in_files`` the pageable ones are still pages of the weight files where their dtype allows it.
    """

    pageable_bytes: int = 0
    pinned_bytes: int = 0
    passing_bytes: int = 0
    disk_bytes: int = 0
    in_files: bool = False


def swap_blocks(component: Component) -> tuple[int, ...]:
    """The blocks of a denoiser that block swapping counts, in order: elements of a list whose class says "Block"."""
    return tuple(n for n, m in enumerate(component.modules) if m.block and "Block" in m.kind)


def _swapped(component: Component, asked: int | None) -> dict[int, tuple[int, ...]]:
    """The last ``asked`` blocks of a denoiser, each with the modules in it. Raises BadRequest where it has fewer."""
    if asked is None or not component.name.startswith(DENOISERS):
        return {}
    blocks = swap_blocks(component)
    if not blocks:
        raise BadRequest(
            "swap-no-blocks", asked=asked, component=component.name, kind=component.kind
        )
    if asked > len(blocks):
        raise BadRequest(
            "swap-too-many", asked=asked, component=component.name, allowed=len(blocks)
        )
    found = {}
    for block in blocks[-asked:]:
        path = component.modules[block].path
        inside = [n for n, m in enumerate(component.modules) if m.path.startswith(f"{path}.")]
        found[block] = (block, *inside)
    return found


class Does(NamedTuple):
    """What a module's forward brings in and sends away: passing bytes, and the modules whose tensors move."""

    burst_bytes: int
    scratch_bytes: int
    members: tuple[Sequence[int], ...]


@dataclass(frozen=True, slots=True)
class Moving:
    """A stretch of a call that repeats, and the modules whose own tensors come or go in it."""

    repeat: Repeat
    members: frozenset[int]


class Placement:
    """Moves weights in and out of ``allocator`` as the pipeline enters and leaves components and modules."""

    granular = False  # whether it listens to single modules

    def __init__(self, trace: Trace, settings: Settings, allocator: Allocator) -> None:
        self.trace = trace
        self.settings = settings
        self.allocator = allocator
        self.schemes = settings.quantization
        self.swaps = [_swapped(c, settings.blocks_to_swap) for c in trace.components]
        self.swapped = [frozenset(m for block in s.values() for m in block) for s in self.swaps]
        self.current: list[Component] = list(trace.components)
        self.weights = [self._weights_of(c) for c in trace.components]
        self.held: dict[tuple[int, int], list[Block]] = {}
        self.scratch: dict[tuple[int, int], Block] = {}
        self.weights_bytes = 0
        self.version = 0  # of what `does` answers
        self.fresh = True  # whether nothing was learned in runs before this one
        self._where: frozenset[object] | None = None  # of `where`, until something moves
        self.has_scratch = [any(m.scratch_bytes for m in w) for w in self.weights]
        self.note: Callable[[], None] = lambda: (
            None
        )  # called where what is allocated peaks within a step

    def _weights_of(self, component: Component) -> tuple[ModuleWeights, ...]:
        """As `_weights`, worked out once for all traces that share the component."""
        scheme = self.schemes.get(component.name, "none")
        key = ("weights", type(self), scheme, component.name in self.trace.excluded, id(component))
        kept = self.trace.shared
        if key not in kept:  # the component is kept with it: its id stays its own
            kept[key] = component, self._weights(component)
        found: tuple[ModuleWeights, ...] = kept[key][1]
        return found

    def _weights(self, component: Component) -> tuple[ModuleWeights, ...]:
        return module_weights(component, self.schemes.get(component.name, "none"))

    # -- moving --------------------------------------------------------------------------------

    def load(self, component: int, module: int, stream: int = 0) -> None:
        """Bring one module's own tensors in, unless they are there."""
        if (component, module) in self.held or not self.weights[component][module].tensors:
            return
        self._where = None
        blocks = self.held[component, module] = []
        for size in self.weights[component][module].tensors:
            if size:
                blocks.append(self.allocator.allocate(size, stream))
                self.weights_bytes += blocks[-1].size

    def unload(self, component: int, module: int) -> None:
        """Send one module's own tensors away, if they are there."""
        self._where = None
        for block in self.held.pop((component, module), ()):
            self.weights_bytes -= block.size
            self.allocator.free(block)

    def load_all(self, component: int) -> None:
        """Bring a whole component in, but for blocks that are swapped."""
        for module in range(len(self.weights[component])):
            if module not in self.swapped[component]:
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
        self._where = None
        self.version += 1
        self.current[component] = after
        self.weights[component] = self._weights_of(after)
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
        """A module's forward begins: a swapped block comes in."""
        for member in self.swaps[component].get(module, ()):
            self.load(component, member)
        weights = self.weights[component][module]
        burst = self.allocator.allocate(weights.burst_bytes) if weights.burst_bytes else None
        if weights.scratch_bytes:
            self.scratch[component, module] = self.allocator.allocate(weights.scratch_bytes)
        if burst is not None:
            self.note()
            self.allocator.free(burst)

    def leave(self, component: int, module: int) -> None:
        """A module's forward ends: a swapped block goes."""
        block = self.scratch.pop((component, module), None)
        if block is not None:
            self.allocator.free(block)
        for member in self.swaps[component].get(module, ()):
            self.unload(component, member)

    def finish(self) -> None:
        """The pipeline's call has returned: what is on the card stays for the next one."""

    def listens(self, component: int) -> bool:
        """Whether module entries of this component matter."""
        return self.granular or self.has_scratch[component] or bool(self.swaps[component])

    # -- what happens again --------------------------------------------------------------------

    def does(self, component: int, module: int) -> Does:
        """What entering and leaving ``module`` moves."""
        weights = self.weights[component][module]
        swapped = self.swaps[component].get(module, ())
        return Does(weights.burst_bytes, weights.scratch_bytes, (swapped,))

    def knows(self, component: int) -> object:
        """What beside the settings decides what `does` answers for the modules of a component."""
        return ()

    def where(self) -> frozenset[object]:
        """Where all weights lie."""
        if self._where is None:
            self._where = frozenset(
                (key, *(block.address for block in blocks)) for key, blocks in self.held.items()
            )
        return self._where

    def around(self, component: int, moving: Moving, turn: int) -> frozenset[object]:
        """Where weights that come and go with ``moving`` lie, and scratch, counted from turn number ``turn``."""
        found = set[object]()
        stride = turn * moving.repeat.modules
        if moving.members:
            for (owner, module), blocks in self.held.items():
                if owner == component and module in moving.members:
                    found.add((module - stride, *(block.address for block in blocks)))
        for (_, module), block in self.scratch.items():
            found.add((module, block.address))
        return frozenset(found)

    def skip(self, component: int, moving: Moving, turns: int, left_out: Sequence[Event]) -> None:
        """``turns`` periods, whose events are ``left_out``, were not played: what is held stands for later modules."""
        if not moving.members:
            return
        self._where = None
        stride = turns * moving.repeat.modules
        self.held = {
            (owner, module + stride * (owner == component and module in moving.members)): blocks
            for (owner, module), blocks in self.held.items()
        }

    # -- host ----------------------------------------------------------------------------------

    def waiting(self) -> Waiting:
        """What waits on the host while the pipeline runs."""
        return Waiting(pageable_bytes=sum(self._swapped_bytes(c) for c in range(len(self.current))))

    def _bytes(self, component: int) -> int:
        return sum(sum(m.tensors) for m in self.weights[component])

    def _swapped_bytes(self, component: int) -> int:
        return sum(sum(self.weights[component][m].tensors) for m in self.swapped[component])


class ModelOffload(Placement):
    """``enable_model_cpu_offload``.

    A component outside the sequence that the pipeline excludes is on the card from the first. ``legacy_bnb`` leaves
    8-bit components of bitsandbytes there too, and out of the chain of predecessors.
    """

    def __init__(
        self, trace: Trace, settings: Settings, allocator: Allocator, *, legacy_bnb: bool = False
    ) -> None:
        super().__init__(trace, settings, allocator)
        numbers = {c.name: number for number, c in enumerate(self.current)}
        named = [n for n in dict.fromkeys(trace.offload_sequence) if n in numbers]
        unmoved = UNMOVABLE_BEFORE_BNB_0_48 if legacy_bnb else frozenset[str]()
        stuck = [n for n in named if self.schemes.get(n, "none") in unmoved]
        # the pipeline hooks a component once, however often the sequence names it
        order = [numbers[n] for n in named if n not in stuck]
        self.before = {now: before for before, now in pairwise(order)}
        excluded = [n for n in trace.excluded if n in numbers and n not in named]
        self.resident_from_start = frozenset(numbers[n] for n in (*excluded, *stuck))

    def start(self) -> None:
        """Everything waits on the host, but for what no hook moves."""
        for component in sorted(self.resident_from_start):
            self.load_all(component)

    def on(self, component: int, method: str) -> None:
        """Predecessor out, cache emptied, component in."""
        before = self.before.get(component)
        if before is not None and self.resident(before):
            self.unload_all(before)
            self.allocator.empty_cache()
        self.load_all(component)
        super().on(component, method)

    def finish(self) -> None:
        """`maybe_free_model_hooks`: everything goes back and the cache is emptied (diffusers 0.42.1)."""
        for component in range(len(self.current)):
            self.unload_all(component)
        self.allocator.empty_cache()

    def waiting(self) -> Waiting:
        """All weights come back at the end, before the frames are written."""
        moved = set(range(len(self.current))) - self.resident_from_start
        return Waiting(pageable_bytes=sum(self._bytes(c) for c in moved))
