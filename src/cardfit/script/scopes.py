"""What a walk through a script keeps: names with the lines they were given on, functions and classes, calls.

In: nothing; these are types, and what names a statement binds. Out: the values of `cardfit.script.walk`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cardfit.script.values import Lines, Thing


@dataclass(eq=False, slots=True)
class Scope:
    """Names with their values and lines; a name that is not here is looked for in ``outer``."""

    outer: Scope | None = None
    names: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)
    elsewhere: dict[str, Scope] = field(default_factory=dict)  # global and nonlocal names

    def holder(self, name: str) -> Scope | None:
        """The scope that has ``name``."""
        found: Scope | None = self.elsewhere.get(name, self)
        while found is not None and name not in found.names:
            found = found.outer
        return found

    def give(self, name: str, value: Any, lines: Lines) -> None:
        """Bind ``name``."""
        target = self.elsewhere.get(name, self)
        target.names[name], target.lines[name] = value, lines

    @property
    def outermost(self) -> Scope:
        """The scope of the module."""
        found = self
        while found.outer is not None:
            found = found.outer
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A function of the file; ``bound`` is the instance that it is a method of."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    bound: Instance | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Klass:
    """A class of the file: its body as a scope, and the classes of the file that it inherits from."""

    name: str
    scope: Scope
    parents: tuple[Klass, ...] = ()

    def find(self, name: str) -> Any:
        """The member ``name``. Raises KeyError."""
        for each in (self, *self.parents):
            if name in each.scope.names:
                return each.scope.names[name]
        raise KeyError(name)

    @property
    def fields(self) -> list[str]:
        """The names that a generated constructor takes, in their order."""
        found = [name for each in reversed(self.parents) for name in each.fields]
        own = [n for n, value in self.scope.names.items() if not isinstance(value, Function)]
        return list(dict.fromkeys([*found, *own]))


@dataclass(frozen=True, eq=False, slots=True)
class Instance:
    """An object of a class of the file."""

    klass: Klass
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Event:
    """A call to another package, or an attribute that was set (``name`` begins with ``=``).

    ``receiver`` is the thing whose method was called, None for a function; ``name`` then is its dotted name. ``times``
    is how often it comes, None where nobody knows; ``within`` are the context managers around it.
    """

    receiver: Thing | None
    name: str
    line: int
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)
    times: int | None = 1
    within: tuple[Thing, ...] = ()
    result: Any = None
    used: bool = True

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]

    def argument(self, place: int, *names: str) -> Any:
        """An argument by name or place; None where it was not given."""
        for name in names:
            if name in self.kwargs:
                return self.kwargs[name]
        return self.args[place] if place < len(self.args) else None


class Left(Exception):
    """A function returns ``value``."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        super().__init__()


class Looped(Exception):
    """A loop goes on (``ends`` false) or is left."""

    def __init__(self, ends: bool) -> None:
        self.ends = ends
        super().__init__()


class Stopped(Exception):
    """The script would end here: it raises, or leaves."""


def assigned(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements bind."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, ast.alias):
                yield (node.asname or node.name).partition(".")[0]


def words_in(body: Sequence[ast.stmt]) -> set[str]:
    """The names and attributes that stand in statements."""
    found = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Name):
                found.add(node.id)
    return found
