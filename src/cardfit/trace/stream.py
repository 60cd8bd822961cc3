"""The Trace: what one request does, independent of any card.

Out of the dry run come streams of events (births and deaths of storages, workspaces, modules entered and left). A
stream is one distinct call; the timeline says in which order the pipeline makes the calls and what it holds between
them. Nothing here imports torch, so a trace can be read, cached and replayed anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from cardfit.request import ExactRequest, Settings


class Op(IntEnum):
    """Kinds of event; an event is the tuple ``(op, a, b, site)``."""

    BIRTH = 0  # a = storage id, b = bytes
    DEATH = 1  # a = storage id
    WORKSPACE = 2  # b = bytes, born and dead within the op
    ENTER = 3  # a = index into Component.modules
    EXIT = 4  # a = index into Component.modules
    CALL = 5  # a = stream index, b = index into the owner's bindings
    STAGE = 6  # a = index into Trace.stages (timeline only)
    RECAST = 7  # a = component index, b = index into Trace.recasts (timeline only)
    MATMUL = 8  # the first one brings cuBLAS's workspace to life
    ON = 9  # a = component index: its entry hook fires (timeline only)
    OFF = 10  # a = component index: its exit hook fires (timeline only)


Event = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Binding:
    """How a nested call's storages map to its owner's: ids of inputs, in order, then of outputs."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs, bytes read and written and launches of one kind of kernel in one dtype class (``half`` or ``fp32``)."""

    kind: str
    dtype: str
    flop: float
    bytes: float
    launches: int


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A stream before its sizes are worked out: in ``events`` equal numbers stand for sizes that are always equal.

    ``sized`` are the places of events that have a size, ``calls`` those of calls; ``memo`` is what is worked out from
    it once, whatever the sizes.
    """

    events: tuple[Event, ...]
    sized: tuple[int, ...]
    calls: tuple[int, ...]
    memo: dict[object, Any] = field(default_factory=dict, init=False)


@dataclass(frozen=True, slots=True)
class Stream:
    """One distinct call: ids ``0 .. inputs-1`` are storages handed in; ``outputs`` outlive the call.

    ``work`` includes the work of the calls nested in it. Streams of other requests may have the same ``form``.
    """

    component: int
    method: str
    signature: str
    inputs: int
    events: tuple[Event, ...]
    outputs: tuple[int, ...]
    bindings: tuple[Binding, ...]
    work: tuple[Work, ...]
    form: Form | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Module:
    """A module of a component: its dotted path, class and the byte sizes of the tensors it owns directly.

    The last ``buffers`` of the tensors are buffers, the others parameters.
    ``linear`` says that it is a torch.nn.Linear (what weight quantizers replace), ``rows`` how many outputs that has (0
    where it was not noted) and ``block`` that it is an element of a ModuleList or Sequential directly under the
    component (what block-level group offload groups).
    """

    path: str
    kind: str
    tensors: tuple[tuple[str, int, str], ...]  # (name, bytes, dtype)
    linear: bool = False
    block: bool = False
    buffers: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Component:
    """One component of the pipeline, its weights tensor by tensor."""

    name: str
    kind: str
    dtype: str
    modules: tuple[Module, ...]

    @property
    def weights_bytes(self) -> int:
        """Bytes of all parameters and persistent buffers, tied ones once."""
        return sum(size for module in self.modules for _, size, _ in module.tensors)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the timeline that happens ``repeat`` times in a row (one denoising step, say)."""

    events: tuple[Event, ...]
    bindings: tuple[Binding, ...]
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Trace:
    """What one request does. ``sites`` names the op and module path behind an event's last field."""

    request: ExactRequest
    settings: Settings
    versions: dict[str, str]
    pipeline: str
    offload_sequence: tuple[str, ...]
    components: tuple[Component, ...]
    recasts: tuple[Component, ...]  # a component after the pipeline changed its dtype
    stages: tuple[tuple[str, str], ...]  # (stage name, component that names it)
    streams: tuple[Stream, ...]
    timeline: tuple[Segment, ...]
    sites: tuple[tuple[str, str], ...]  # (op, module path)
    notes: tuple[tuple[str, dict[str, object]], ...] = field(default=())
    more_without_flash_bytes: int = 0  # in one attention call, on cards before Ampere
    excluded: tuple[
        str, ...
    ] = ()  # components that the pipeline keeps out of model and sequential offload
    basis: Literal["traced", "atlas"] = "traced"  # atlas: composed from shipped formulas
    # what is worked out from it once; a changed copy begins anew
    memo: dict[object, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    # the same of all traces that have the same components
    shared: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def component(self, name: str) -> Component:
        """The component called ``name``; KeyError when there is none."""
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)
