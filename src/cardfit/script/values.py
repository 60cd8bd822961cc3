"""What a name in a script can stand for, and arithmetic on it that cannot run away.

In: plain values and things. Out: plain values, `Thing`s or `Open`. Numbers, texts, truth values, lists and mappings are
Python's own; a `Ref` is a name of another package, a `Thing` what a call to one made, and `Open` a value that the file
does not say, with the questions that would settle it. Nothing of a script is called: only the operators and functions
listed here have values, within limits of size.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_TEXT = 10_000
MAX_ITEMS = 4_096
_BIG = 10**15
Lines = tuple[int, ...]
LOADERS = ("from_pretrained", "from_single_file", "from_pipe", "from_config")


@dataclass(frozen=True, slots=True)
class Question:
    """What would settle a value: its name in the script, or None where only the request's field has one."""

    line: int
    code: str
    name: str | None = None
    what: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """A value that the file does not say."""

    questions: tuple[Question, ...]

    @classmethod
    def of(cls, line: int, code: str, what: str = "", name: str | None = None) -> Open:
        """The open value of one question."""
        return cls((Question(line, code, name, what),))


@dataclass(frozen=True, slots=True)
class Ref:
    """A name of another package: ``torch.bfloat16``."""

    path: str

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.path.rpartition(".")[2]


@dataclass(eq=False, slots=True)
class Thing:
    """What a call made, or a part of it; ``attrs`` are the parts that were named or set so far.

    ``made`` is the dotted name that was called. A part has an ``owner`` and its ``name`` there. ``base`` is the thing
    that parts are shared with, ``size`` the width and height in pixels of a picture.
    """

    made: str
    line: int
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)  # where the value of an argument stands
    owner: Thing | None = None
    name: str = ""
    base: Thing | None = None
    size: tuple[Any, Any] | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    def part(self, name: str, line: int) -> Any:
        """The part ``name``: the one that was set, that of ``base``, else a new one."""
        if name not in self.attrs:
            if self.base is not None:
                return self.base.part(name, line)
            self.attrs[name] = Thing(f"{self.made}.{name}", line, owner=self, name=name)
        return self.attrs[name]

    def argument(self, place: int, *names: str) -> Any:
        """An argument by name or place; None where it was not given."""
        for name in names:
            if name in self.kwargs:
                return self.kwargs[name]
        return self.args[place] if place < len(self.args) else None


def kind_of(made: str) -> str:
    """The class that a call makes: ``diffusers.FluxPipeline.from_pretrained`` makes a ``FluxPipeline``."""
    head, _, last = made.removesuffix(".__call__").rpartition(".")
    return head.rpartition(".")[2] if last in LOADERS else last


def word_of(value: Any) -> str:
    """A value as a short word: the last part of a name, a text, a number."""
    if isinstance(value, Ref):
        return value.last
    if isinstance(value, Thing):
        return kind_of(value.made)
    if isinstance(value, Open):
        return "?"
    text = str(value) if is_plain(value) else type(value).__name__
    return text if len(text) <= 40 else text[:37] + "..."


def path_of(thing: Thing) -> str:
    """A thing as a person reads it: its class, and the part."""
    return (
        f"{path_of(thing.owner)}.{thing.name}" if thing.owner is not None else kind_of(thing.made)
    )


class Table(dict[Any, Any]):
    """A mapping that knows on which lines its values stand."""

    def __init__(self, values: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> None:
        super().__init__(values)
        self.lines: dict[Any, Lines] = dict(getattr(values, "lines", {}))


class NoValue(Exception):
    """The operation has no value here, or too large a one."""


def leaves(*values: Any) -> list[Any]:
    """``values`` and what stands inside their lists, each list once. Raises NoValue for more than a script has."""
    found, waiting, seen = [], list(reversed(values)), set[int]()
    while waiting:
        value = waiting.pop()
        if not isinstance(value, (list, tuple)):
            found.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            waiting += reversed(value)
        if len(found) + len(waiting) > 4 * MAX_ITEMS:
            raise NoValue
    return found


def questions_in(*values: Any) -> tuple[Question, ...]:
    """The questions of all open values among ``values`` and inside their lists, each once."""
    opened = [each for each in leaves(*values) if isinstance(each, Open)]
    return tuple(dict.fromkeys(question for each in opened for question in each.questions))


def is_plain(value: Any) -> bool:
    """Whether ``value`` is a number, text, truth value or None."""
    return value is None or isinstance(value, (bool, int, float, str))


def truth(value: Any) -> bool | None:
    """Whether ``value`` is true; None where nobody knows."""
    if is_plain(value) or isinstance(value, (list, tuple, dict)):
        return bool(value)
    return None


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


def binary(sign: ast.operator, left: Any, right: Any) -> Any:
    """The value of an operator. Raises NoValue."""
    made = _BINARY.get(type(sign))
    joined = (isinstance(left, str), isinstance(right, str))
    listed = (isinstance(left, (list, tuple)), isinstance(right, (list, tuple)))
    numbers = all(isinstance(each, (bool, int, float)) for each in (left, right))
    if made is None:
        raise NoValue
    if not numbers:
        same = all(joined) or (all(listed) and type(left) is type(right))
        repeated = any(joined) or any(listed)
        if isinstance(sign, ast.Add) and same:
            return sized(left + right)
        if isinstance(sign, ast.Mult) and repeated and not (all(joined) or all(listed)):
            return _repeated(left, right)
        if isinstance(sign, ast.BitOr) and isinstance(left, dict) and isinstance(right, dict):
            return Table({**left, **right})
        if isinstance(sign, ast.Div) and any(joined):  # pathlib
            return sized(f"{left}/{right}")
        raise NoValue
    if isinstance(sign, ast.Pow) and (abs(left) > _BIG or abs(right) > 64):
        raise NoValue
    return _finite(_guarded(made, left, right))


def _repeated(left: Any, right: Any) -> Any:
    many, count = (right, left) if isinstance(left, int) else (left, right)
    if not isinstance(count, int) or len(many) * max(count, 0) > MAX_ITEMS:
        raise NoValue
    return many * count


def unary(sign: ast.unaryop, value: Any) -> Any:
    """The value of a sign before a number. Raises NoValue."""
    made = _UNARY.get(type(sign))
    if made is None or not isinstance(value, (bool, int, float)):
        raise NoValue
    return _guarded(made, value)


def compared(sign: ast.cmpop, left: Any, right: Any) -> bool:
    """Whether a comparison holds. Raises NoValue."""
    if isinstance(sign, (ast.Is, ast.IsNot)):
        if left is None or right is None:
            return (left is right) == isinstance(sign, ast.Is)
        sign = ast.Eq() if isinstance(sign, ast.Is) else ast.NotEq()
    if not (_shallow(left) and _shallow(right)):
        raise NoValue
    return bool(_guarded(_COMPARE[type(sign)], left, right))


def _shallow(value: Any, within: int = 2) -> bool:
    """Whether ``value`` is plain, a name of a package, or a list or mapping of such; nothing that could unfold."""
    if is_plain(value) or isinstance(value, Ref):
        return True
    if isinstance(value, dict):
        return all(map(is_plain, value))
    listed = isinstance(value, (list, tuple)) and within > 0
    return listed and all(_shallow(each, within - 1) for each in value)


def _guarded(made: Callable[..., Any], *values: Any, **named: Any) -> Any:
    try:
        return made(*values, **named)
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise NoValue from error


def _finite(value: Any) -> Any:
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        raise NoValue
    if isinstance(value, int) and abs(value) > _BIG:
        raise NoValue
    return value


def sized(value: Any) -> Any:
    """``value`` unless it is longer than any script has use for. Raises NoValue."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise NoValue
    if isinstance(value, (list, tuple, dict)) and len(value) > MAX_ITEMS:
        raise NoValue
    return value


def _range(*ends: int) -> list[int]:
    return sized_range(range(*ends))


def sized_range(found: range) -> list[int]:
    """The numbers of a range. Raises NoValue for a long one."""
    if len(found) > MAX_ITEMS:
        raise NoValue
    return list(found)


def _rounded_to(value: float, digits: int | None = None) -> Any:
    return round(value) if digits is None else round(value, digits)


# functions that have a value when all of their arguments have one
PURE: dict[str, Callable[..., Any]] = {
    "builtins.abs": abs,
    "builtins.bool": bool,
    "builtins.enumerate": lambda many: list(enumerate(many)),
    "builtins.float": float,
    "builtins.int": int,
    "builtins.len": len,
    "builtins.list": lambda many=(): list(many),
    "builtins.max": max,
    "builtins.min": min,
    "builtins.pow": lambda left, right: binary(ast.Pow(), left, right),
    "builtins.range": _range,
    "builtins.reversed": lambda many: list(reversed(many)),
    "builtins.round": _rounded_to,
    "builtins.set": lambda many=(): list(many),
    "builtins.sorted": lambda many: sorted(many),
    "builtins.str": str,
    "builtins.sum": sum,
    "builtins.tuple": lambda many=(): tuple(many),
    "builtins.zip": lambda *many: list(zip(*many)),  # noqa: B905
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.sqrt": math.sqrt,
    "numpy.ceil": math.ceil,
    "numpy.floor": math.floor,
    "numpy.round": _rounded_to,
    "numpy.sqrt": math.sqrt,
    "pathlib.Path": lambda *parts: "/".join(parts),
    "os.path.join": lambda *parts: "/".join(parts),
}
# methods of texts, lists and mappings that have a value
_METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    str: {
        "endswith": str.endswith,
        "lower": str.lower,
        "removesuffix": str.removesuffix,
        "split": lambda text, *by: text.split(*by),
        "startswith": str.startswith,
        "strip": lambda text, *signs: text.strip(*signs),
        "upper": str.upper,
    },
    dict: {
        "get": lambda table, key, other=None: table.get(key, other),
        "items": lambda table: list(table.items()),
        "keys": lambda table: list(table),
        "values": lambda table: list(table.values()),
    },
}


def called(function: Callable[..., Any], args: Iterable[Any], named: Mapping[str, Any]) -> Any:
    """The value of a function of `PURE`. Raises NoValue."""
    args = tuple(args)
    if function in HOLDING:
        return held(function, args, named)
    if not all(map(_shallow, (*args, *named.values()))):
        raise NoValue
    return _finite(sized(_guarded(function, *args, **dict(named))))


def held(
    function: Callable[..., Any], args: Iterable[Any], named: Mapping[str, Any] | None = None
) -> Any:
    """The value of a function that only lays values side by side. Raises NoValue."""
    return sized(_guarded(function, *args, **dict(named or {})))


# what only lays values side by side may hold anything
HOLDING = frozenset(
    PURE[f"builtins.{name}"] for name in ("enumerate", "len", "list", "tuple", "reversed", "zip")
)


def method(value: Any, name: str) -> Callable[..., Any] | None:
    """A method of a text or mapping that has a value; None for any other."""
    for kind, methods in _METHODS.items():
        if isinstance(value, kind):
            return methods.get(name)
    return None
