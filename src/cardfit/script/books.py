"""What the ledger keeps: a pipeline and its components with their knobs, and the calls of pipelines.

In: nothing; these are types, and how a dtype is named. Out: `Pipe`, `Part` and `Run`, filled by `cardfit.script.ledger`
and `cardfit.script.effects`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cardfit.script.known import Known
from cardfit.script.scopes import Event
from cardfit.script.values import Lines, Ref, Thing


@dataclass(frozen=True, slots=True)
class Told:
    """A value and the lines that say it."""

    value: Any
    lines: Lines = ()


@dataclass(slots=True)
class Part:
    """One component: of its own loading, or named through its pipeline."""

    kind: str | None = None
    source: str | None = None
    dtype: Told | None = None
    scheme: Told | None = None
    group: Told | None = None
    device: str | None = None
    removed: bool = False
    own: bool = False  # loaded by a call of its own
    package: str = ""
    lines: set[int] = field(default_factory=set)
    knobs: dict[str, Told] = field(default_factory=dict)  # said before a pipeline has it
    left: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class Pipe:
    """A pipeline: its class, where it is loaded from, its components and its knobs."""

    kind: str
    repo: str | None
    line: int
    variant: str | None = None
    dtype: Told | None = None
    parts: dict[str, Part] = field(default_factory=dict)
    knobs: dict[str, Told] = field(default_factory=dict)
    device: Told | None = None
    group: Told | None = None
    excluded: tuple[str, ...] = ()
    loras: dict[str, dict[str, Any]] = field(default_factory=dict)
    left: list[tuple[int, str]] = field(default_factory=list)  # (line, what nothing here follows)

    def copy(self) -> Pipe:
        """As it stands now."""
        return replace(
            self,
            parts={name: replace(part) for name, part in self.parts.items()},
            knobs=dict(self.knobs),
            loras={name: dict(each) for name, each in self.loras.items()},
            left=list(self.left),
        )


@dataclass(slots=True)
class Run:
    """A call of a pipeline, and what is written of its output."""

    pipe: Pipe
    event: Event
    fps: Told | None = None
    before: list[Event] = field(default_factory=list)  # calls of pipelines whose output goes in


def knob(pipe: Pipe | None, part: Part | None, name: str, told: Told) -> None:
    """Set a knob; of a component that no pipeline has yet it waits there."""
    holder = pipe or part
    if holder is not None:
        holder.knobs[name] = told


def leave(pipe: Pipe | None, part: Part | None, line: int, what: str) -> None:
    """Note what nothing here follows: on its pipeline, else on the component until one has it."""
    holder = pipe or part
    if holder is not None:
        holder.left.append((line, what))


def dtype_named(value: Any, known: Known) -> Any:
    """A dtype from torch's name or a text; a mapping of components; the value where it is neither."""
    if isinstance(value, dict):
        return {str(name): dtype_named(each, known) for name, each in value.items()}
    word = value.path if isinstance(value, Ref) else value
    return known.dtypes.get(word, value) if isinstance(word, str) else value


def device_named(value: Any) -> str | None:
    """``cuda`` or ``cpu`` ...: the kind of a device, without its number."""
    if isinstance(value, Thing) and value.made.endswith("device") and value.args:
        value = value.args[0]
    return value.partition(":")[0] if isinstance(value, str) else None
