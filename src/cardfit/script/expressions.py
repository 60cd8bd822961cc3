"""The value of an expression of a script, as far as the file says it.

In: a node and the `Scope` it stands in. Out: a value of `cardfit.script.values`. What cannot be known is `Open` with
its questions; a call to another package becomes a `Thing` and is noted by the walk (`cardfit.script.walk`), which this
is the lower half of.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cardfit.errors import BadFile
from cardfit.script import values
from cardfit.script.known import Known
from cardfit.script.scopes import Event, Function, Instance, Klass, Scope
from cardfit.script.things import Answers, attribute, item
from cardfit.script.values import MAX_ITEMS, Lines, NoValue, Open, Ref, Table, Thing, is_plain

_MOST_STEPS = 50_000
_MOST_DEPTH = 120  # expressions within expressions
_FORMAT = re.compile(r"[<>^]?0?\d{0,2}(?:\.\d{1,2})?[defgs%]?")
_KINDS: dict[type[ast.expr], str] = {
    ast.Attribute: "_attribute",
    ast.BinOp: "_binary",
    ast.BoolOp: "_either",
    ast.Call: "_call",
    ast.Compare: "_compare",
    ast.Dict: "_dict",
    ast.DictComp: "_comprehension",
    ast.FormattedValue: "_formatted",
    ast.GeneratorExp: "_comprehension",
    ast.IfExp: "_chosen",
    ast.JoinedStr: "_joined",
    ast.Lambda: "_lambda",
    ast.List: "_list",
    ast.ListComp: "_comprehension",
    ast.Name: "_name",
    ast.NamedExpr: "_named",
    ast.Set: "_list",
    ast.SetComp: "_comprehension",
    ast.Starred: "_starred",
    ast.Subscript: "_subscript",
    ast.Tuple: "_tuple",
    ast.UnaryOp: "_unary",
}


@dataclass(slots=True, kw_only=True)
class Evaluator:
    """Evaluates expressions; what they call is handed to `call_value`."""

    known: Known
    answers: Answers
    path: str
    events: list[Event] = field(default_factory=list)
    steps: int = 0
    depth: int = 0

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """The value of ``node``. Raises BadFile for a script that is too much to follow."""
        if isinstance(node, ast.Constant):
            return _constant(node)
        self.step(node)
        kind = _KINDS.get(type(node))
        if kind is None:
            return self.outside(node)
        self.depth += 1
        try:
            if self.depth > _MOST_DEPTH:
                raise BadFile("script-nested", path=self.path)
            return getattr(self, kind)(node, scope)
        except NoValue:
            return self.outside(node)
        finally:
            self.depth -= 1

    def step(self, node: ast.AST) -> None:
        """Count a step. Raises BadFile where a script takes more than any script needs."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            line = getattr(node, "lineno", 0)
            raise BadFile("script-too-much", path=self.path, line=line, limit=_MOST_STEPS)

    def lines_of(self, node: ast.expr, scope: Scope) -> Lines:
        """Where a value stands: the line of ``node`` and those that its names were given on."""
        found: dict[int, None] = {node.lineno: None}
        for name in _names_in(node):
            holder = scope.holder(name)
            if holder is None or isinstance(holder.names[name], (Ref, Function, Klass)):
                continue
            found |= dict.fromkeys(holder.lines.get(name, ()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):  # args.width
            holder = scope.holder(node.value.id)
            owner = None if holder is None else holder.names[node.value.id]
            declared = owner.lines.get(node.attr) if isinstance(owner, Thing) else None
            if declared:
                return tuple(sorted({node.lineno, *declared}))
        return tuple(sorted(found))

    def outside(self, node: ast.expr, *among: Any) -> Open:
        """The open value of what another package would say, or the questions of ``among``."""
        found = values.questions_in(*among)
        if found:
            return Open(found)
        return Open.of(node.lineno, "script-ask-outside", what=shown(node))

    # --- one kind of expression each

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        holder = scope.holder(node.id)
        if holder is not None:
            return holder.names[node.id]
        if hasattr(builtins, node.id):
            return Ref(f"builtins.{node.id}")
        if "*" in scope.outermost.names:
            return Ref(f"{scope.outermost.names['*']}.{node.id}")
        return Open.of(node.lineno, "script-ask-undefined", what=node.id, name=node.id)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute_of(self.value(node.value, scope), node.attr, node)

    def attribute_of(self, owner: Any, name: str, node: ast.expr) -> Any:
        """The attribute ``name`` of a value."""
        if isinstance(owner, Ref):
            path = f"{owner.path}.{name}"
            return self.known.values.get(path, Ref(path))
        if isinstance(owner, Thing):
            return attribute(owner, name, node.lineno, self.known, self.answers)
        if isinstance(owner, Instance):
            if name in owner.attrs:
                return owner.attrs[name]
            try:
                member = owner.klass.find(name)
            except KeyError:
                return self.outside(node)
            bound = isinstance(member, Function)
            return Function(member.node, member.scope, owner) if bound else member
        if isinstance(owner, Klass):
            return owner.scope.names.get(name, self.outside(node))
        return self.outside(node, owner)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node.slice, scope)
        index = self.value(node.slice, scope)
        if isinstance(owner, Thing):
            return item(owner, index, node.lineno)
        if isinstance(owner, (list, tuple, dict, str)) and is_plain(index):
            try:
                return owner[index]
            except (LookupError, TypeError) as error:
                raise NoValue from error
        return self.outside(node, owner, index)

    def _slice(self, owner: Any, node: ast.Slice, scope: Scope) -> Any:
        ends = [
            None if n is None else self.value(n, scope) for n in (node.lower, node.upper, node.step)
        ]
        if isinstance(owner, Thing):
            return owner
        if not isinstance(owner, (list, tuple, str)) or not all(map(is_plain, ends)):
            raise NoValue
        try:
            return owner[slice(*ends)]
        except (TypeError, ValueError) as error:
            raise NoValue from error

    def _binary(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if questions := values.questions_in(left, right):
            return Open(questions)
        return values.binary(node.op, left, right)

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Any:
        found = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            holds = values.truth(found)
            return self.outside(node, found) if holds is None else not holds
        return found if isinstance(found, Open) else values.unary(node.op, found)

    def _either(self, node: ast.BoolOp, scope: Scope) -> Any:
        found: Any = None
        for each in node.values:
            found = self.value(each, scope)
            holds = values.truth(found)
            if holds is None:
                # a thing is there: `image or load_image(...)`
                holds = True if isinstance(found, Thing) and isinstance(node.op, ast.Or) else None
            if holds is None:
                return self.outside(node, found)
            if holds == isinstance(node.op, ast.Or):
                break
        return found

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.value(node.left, scope)
        for sign, side in zip(node.ops, node.comparators, strict=True):
            right = self.value(side, scope)
            if questions := values.questions_in(left, right):
                return Open(questions)
            if not values.compared(sign, left, right):
                return False
            left = right
        return True

    def _chosen(self, node: ast.IfExp, scope: Scope) -> Any:
        holds = self.holds(node.test, scope)
        if isinstance(holds, Open):
            return holds
        return self.value(node.body if holds else node.orelse, scope)

    def holds(self, node: ast.expr, scope: Scope) -> bool | Open:
        """Whether a condition holds; an answer ``lineN`` settles one that the file leaves open."""
        found = self.value(node, scope)
        if isinstance(found, (Thing, Function, Klass, Instance)):
            return True
        holds = values.truth(found)
        if holds is not None:
            return holds
        name = f"line{node.lineno}"
        if (given := self.answers.take(name)) is not None:
            return bool(given)
        named = [each for each in values.questions_in(found) if each.name]
        if named:
            return Open(tuple(named))
        return Open.of(node.lineno, "script-ask-branch", what=shown(node), name=name)

    def _dict(self, node: ast.Dict, scope: Scope) -> Table:
        found = Table()
        for key, each in zip(node.keys, node.values, strict=True):
            value = self.value(each, scope)
            if key is None:
                if not isinstance(value, dict):
                    raise NoValue
                found.update(value)
                found.lines |= getattr(value, "lines", {})
                continue
            name = self.value(key, scope)
            if not is_plain(name):
                raise NoValue
            found[name] = value
            found.lines[name] = self.lines_of(each, scope)
        return found

    def _list(self, node: ast.List | ast.Set, scope: Scope) -> list[Any]:
        return self._items(node.elts, scope)

    def _tuple(self, node: ast.Tuple, scope: Scope) -> tuple[Any, ...]:
        return tuple(self._items(node.elts, scope))

    def _items(self, nodes: list[ast.expr], scope: Scope) -> list[Any]:
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                more = self.value(each.value, scope)
                if not isinstance(more, (list, tuple)):
                    raise NoValue
                found += more
            else:
                found.append(self.value(each, scope))
        return list(values.sized(found))

    def _starred(self, node: ast.Starred, scope: Scope) -> Any:
        return self.value(node.value, scope)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope
    ) -> Any:
        table, many = Table(), list[Any]()
        for inner in self._turns(node.generators, Scope(scope)):
            if isinstance(node, ast.DictComp):
                key = self.value(node.key, inner)
                if not is_plain(key):
                    raise NoValue
                table[key] = self.value(node.value, inner)
            else:
                many.append(self.value(node.elt, inner))
            values.sized(table or many)
        return table if isinstance(node, ast.DictComp) else many

    def _turns(self, loops: list[ast.comprehension], scope: Scope) -> Iterator[Scope]:
        if not loops:
            yield scope
            return
        many = self.value(loops[0].iter, scope)
        if not isinstance(many, (list, tuple)) or len(many) > MAX_ITEMS:
            raise NoValue
        for each in many:
            self.bind(loops[0].target, each, self.lines_of(loops[0].iter, scope), scope)
            found = [self.holds(test, scope) for test in loops[0].ifs]
            if any(isinstance(one, Open) for one in found):
                raise NoValue
            if all(found):
                yield from self._turns(loops[1:], scope)

    def _joined(self, node: ast.JoinedStr, scope: Scope) -> Any:
        parts = [self.value(each, scope) for each in node.values]
        if questions := values.questions_in(*parts):
            return Open(questions)
        return values.sized("".join(map(str, parts)))

    def _formatted(self, node: ast.FormattedValue, scope: Scope) -> Any:
        found = self.value(node.value, scope)
        if not is_plain(found):
            return self.outside(node, found)
        form = "" if node.format_spec is None else self.value(node.format_spec, scope)
        if not isinstance(form, str) or _FORMAT.fullmatch(form) is None:
            raise NoValue
        try:
            return format(found, form)
        except (TypeError, ValueError) as error:
            raise NoValue from error

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Function:
        return Function(node, scope)

    def _named(self, node: ast.NamedExpr, scope: Scope) -> Any:
        found = self.value(node.value, scope)
        self.bind(node.target, found, self.lines_of(node.value, scope), scope)
        return found

    # --- calls

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        given = self.given(node, scope)
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, scope)
            found = self._method(owner, node.func.attr, given)
            if found is not None:
                return found
            called = self.attribute_of(owner, node.func.attr, node.func)
        else:
            called = self.value(node.func, scope)
        return self.call_value(called, given, node, scope)

    def _method(self, owner: Any, name: str, given: Given) -> Any:
        """What a method of a plain value gives; None where the owner is none or the method is not known."""
        if isinstance(owner, list) and name in ("append", "extend", "insert"):
            more = given.args[-1:] if name != "extend" else tuple(_many(given.args))
            owner += values.sized([*owner, *more])[len(owner) :]
            return owner
        if isinstance(owner, Table) and name == "update":
            first = given.args[0] if given.args else None
            added = Table(first if isinstance(first, dict) else {})
            owner.update({**added, **given.kwargs})
            owner.lines |= added.lines | given.lines
            return owner
        method = values.method(owner, name)
        if method is None:
            return None
        if isinstance(owner, dict):
            if given.args and not is_plain(given.args[0]):
                raise NoValue
            return values.held(method, (owner, *given.args))
        return values.called(method, (owner, *given.args), given.kwargs)

    def given(self, node: ast.Call, scope: Scope) -> Given:
        """The arguments of a call."""
        found = Given()
        for each in node.args:
            value = self.value(each, scope)
            if not isinstance(each, ast.Starred):
                found.args += (value,)
            elif isinstance(value, (list, tuple)):
                found.args += tuple(value)
            else:
                found.rest = value
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            lines = self.lines_of(keyword.value, scope)
            if keyword.arg is not None:
                found.kwargs[keyword.arg] = value
                found.lines[keyword.arg] = tuple(sorted({keyword.value.lineno, *lines}))
            elif isinstance(value, dict):
                for name, inner in value.items():
                    found.kwargs[str(name)] = inner
                    found.lines[str(name)] = getattr(value, "lines", {}).get(name, lines)
            else:
                found.rest = value
        return found

    def call_value(self, called: Any, given: Given, node: ast.Call, scope: Scope) -> Any:
        """What calling a value gives; the walk says."""
        raise NotImplementedError

    def bind(self, target: ast.expr, value: Any, lines: Lines, scope: Scope) -> None:
        """Give ``value`` to a target; the walk says."""
        raise NotImplementedError


@dataclass(slots=True)
class Given:
    """The arguments of one call; ``rest`` is what came with a star and is no list or mapping."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)
    rest: Any = None


def shown(node: ast.AST) -> str:
    """A piece of code, short enough to show."""
    try:
        text = " ".join(ast.unparse(node).split())
    except RecursionError:
        return type(node).__name__
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    return text if len(text) <= 60 else text[:57] + "..."


def _constant(node: ast.Constant) -> Any:
    if isinstance(node.value, str) and len(node.value) > values.MAX_TEXT:
        return node.value[: values.MAX_TEXT]
    if is_plain(node.value):
        return node.value
    return Open.of(node.lineno, "script-ask-outside", what=shown(node))


def _names_in(node: ast.expr) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id


def _many(args: tuple[Any, ...]) -> list[Any]:
    if not args or not isinstance(args[0], (list, tuple)):
        raise NoValue
    return list(args[0])
