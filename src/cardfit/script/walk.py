"""A script walked through without running it: the calls that it would make to other packages, in their order.

In: a syntax tree, what is known of diffusers' names and answers to what the file does not say. Out: a `Walk` with its
`Event`s, the questions of branches that nobody can choose, and what was taken as so. Assignments, arithmetic, branches,
loops, functions and classes of the file are followed with the values that stand in it; what comes from elsewhere is
`Open`. Nothing is imported, called or opened.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cardfit.errors import BadFile
from cardfit.script import arguments, values
from cardfit.script.expressions import Evaluator, Given, shown
from cardfit.script.known import Known
from cardfit.script.scopes import (
    Event,
    Function,
    Instance,
    Klass,
    Left,
    Looped,
    Scope,
    Stopped,
    assigned,
    words_in,
)
from cardfit.script.things import Answers, is_picture
from cardfit.script.values import (
    LOADERS,
    Lines,
    NoValue,
    Open,
    Question,
    Ref,
    Table,
    Thing,
    is_plain,
)

_MOST_TURNS = 64  # of a loop that is followed turn by turn; a longer one is one turn, so many times
_MOST_FUNCTIONS = 20  # functions within functions
_LEAVES = frozenset({"builtins.exit", "builtins.quit", "sys.exit", "os._exit"})
_GETENV = ("os.environ.get", "os.getenv")
_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.AnnAssign: "_annotated",
    ast.Assign: "_assign",
    ast.AsyncFor: "_for",
    ast.AsyncFunctionDef: "_function",
    ast.AsyncWith: "_with",
    ast.AugAssign: "_augmented",
    ast.ClassDef: "_class",
    ast.Expr: "_alone",
    ast.For: "_for",
    ast.FunctionDef: "_function",
    ast.Global: "_global",
    ast.If: "_if",
    ast.Import: "_import",
    ast.ImportFrom: "_import_from",
    ast.Nonlocal: "_nonlocal",
    ast.Return: "_return",
    ast.Try: "_try",
    ast.While: "_while",
    ast.With: "_with",
}


@dataclass(slots=True, kw_only=True)
class Walk(Evaluator):
    """One walk: its events in their order, branches that nobody can choose, and calls that were taken as so."""

    times: int | None = 1
    within: tuple[Thing, ...] = ()
    functions: int = 0
    open_branches: list[tuple[int, str, tuple[Question, ...]]] = field(default_factory=list)
    assumed: dict[str, int] = field(default_factory=dict)

    def run(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        """Walk through ``statements``."""
        for each in statements:
            self.step(each)
            kind = _STATEMENTS.get(type(each))
            if kind is not None:
                with suppress(NoValue):
                    getattr(self, kind)(each, scope)
            elif isinstance(each, ast.Raise):
                raise Stopped
            elif isinstance(each, (ast.Break, ast.Continue)):
                raise Looped(isinstance(each, ast.Break))
            elif isinstance(each, ast.Match):
                self._skip(each, each.subject, [s for case in each.cases for s in case.body], scope)

    # --- statements

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        value, lines = self.value(node.value, scope), self.lines_of(node.value, scope)
        for target in node.targets:
            self.bind(target, value, lines, scope)
        if all(isinstance(target, ast.Name) and target.id == "_" for target in node.targets):
            self._unused(value)

    def _annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            lines = self.lines_of(node.value, scope)
            self.bind(node.target, self.value(node.value, scope), lines, scope)
        elif isinstance(node.target, ast.Name) and isinstance(scope.names.get("*class"), str):
            open_ = Open.of(node.lineno, "script-ask-argument", node.target.id, node.target.id)
            scope.give(node.target.id, open_, (node.lineno,))

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        both = ast.copy_location(
            ast.BinOp(left=_loaded(node.target), op=node.op, right=node.value), node
        )
        self.bind(node.target, self.value(both, scope), (node.lineno,), scope)

    def bind(self, target: ast.expr, value: Any, lines: Lines, scope: Scope) -> None:
        """Give ``value`` to a name, to several, to an attribute or to an item."""
        if isinstance(target, ast.Name):
            scope.give(target.id, value, lines)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, lines, scope)
        elif isinstance(target, ast.Attribute):
            self._set(self.value(target.value, scope), target.attr, value, lines, target.lineno)
        elif isinstance(target, ast.Subscript):
            owner, index = self.value(target.value, scope), self.value(target.slice, scope)
            if isinstance(owner, Table) and is_plain(index):
                owner[index], owner.lines[index] = value, lines
                values.sized(owner)
            elif (
                isinstance(owner, list)
                and isinstance(index, int)
                and -len(owner) <= index < len(owner)
            ):
                owner[index] = value
            elif isinstance(owner, Ref):
                event = Event(None, f"{owner.path}[]", target.lineno, (index, value))
                self.events.append(event)

    def _unpack(self, targets: list[ast.expr], value: Any, lines: Lines, scope: Scope) -> None:
        plain = not any(isinstance(each, ast.Starred) for each in targets)
        listed = isinstance(value, (list, tuple)) and plain and len(value) == len(targets)
        for place, each in enumerate(targets):
            inner = each.value if isinstance(each, ast.Starred) else each
            one = value[place] if listed else self._part_of(value, place, inner)
            self.bind(inner, one, lines, scope)

    def _part_of(self, value: Any, place: int, target: ast.expr) -> Any:
        if isinstance(value, Thing):
            return value.part(f"[{place}]", target.lineno)
        return self.outside(target, value)

    def _set(self, owner: Any, name: str, value: Any, lines: Lines, line: int) -> None:
        if isinstance(owner, Instance):
            owner.attrs[name] = value
        elif isinstance(owner, Thing):
            owner.attrs[name] = value
            event = Event(owner, f"={name}", line, (value,), times=self.times, within=self.within)
            event.lines["value"] = lines
            self.events.append(event)

    def _alone(self, node: ast.Expr, scope: Scope) -> None:
        self._unused(self.value(node.value, scope))

    def _unused(self, value: Any) -> None:
        if self.events and isinstance(value, Thing) and self.events[-1].result is value:
            self.events[-1].used = False

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for each in node.names:
            whole = each.name if each.asname else each.name.partition(".")[0]
            scope.give(each.asname or whole, self._named_ref(whole), (node.lineno,))

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        room = "." * node.level + (node.module or "")
        for each in node.names:
            value = room if each.name == "*" else self._named_ref(f"{room}.{each.name}")
            scope.give(each.asname or each.name, value, (node.lineno,))

    def _named_ref(self, path: str) -> Any:
        return self.known.values.get(path, Ref(path))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        scope.give(node.name, Function(node, scope), (node.lineno,))

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        parents = tuple(
            each for base in node.bases if isinstance(each := self.value(base, scope), Klass)
        )
        inner = Scope(scope, {"*class": node.name})
        self.run(node.body, inner)
        del inner.names["*class"]
        scope.give(node.name, Klass(node.name, inner, parents), (node.lineno,))

    def _global(self, node: ast.Global, scope: Scope) -> None:
        scope.elsewhere |= dict.fromkeys(node.names, scope.outermost)

    def _nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            holder = None if scope.outer is None else scope.outer.holder(name)
            if holder is not None:
                scope.elsewhere[name] = holder

    def _return(self, node: ast.Return, scope: Scope) -> None:
        raise Left(None if node.value is None else self.value(node.value, scope))

    def _if(self, node: ast.If, scope: Scope) -> None:
        if _is_main(node.test):
            self.run(node.body, scope)
            return
        holds = self.holds(node.test, scope)
        if isinstance(holds, Open):
            self._skip(node, node.test, [*node.body, *node.orelse], scope, holds.questions)
        else:
            self.run(node.body if holds else node.orelse, scope)

    def _skip(
        self,
        node: ast.stmt,
        test: ast.expr,
        body: list[ast.stmt],
        scope: Scope,
        questions: tuple[Question, ...] = (),
    ) -> None:
        """Leave a branch out that nobody can choose: what it would set is open, what it would call is asked for."""
        code, name = "script-ask-branch", f"line{node.lineno}"
        asked = questions or (Question(node.lineno, code, name, shown(test)),)
        for each in assigned(body):
            scope.give(each, Open(asked), (node.lineno,))
        relevant = words_in(body) & (set(self.known.deciding) | set(LOADERS))
        if relevant:
            first = sorted(relevant, key=lambda word: (word not in LOADERS, word))[0]
            self.open_branches.append((node.lineno, first, asked))

    def _try(self, node: ast.Try, scope: Scope) -> None:
        self.run([*node.body, *node.orelse], scope)
        self.run(node.finalbody, scope)

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        before = self.within
        for each in node.items:
            manager = self.value(each.context_expr, scope)
            if isinstance(manager, Thing):
                self.within = (*self.within, manager)
            if each.optional_vars is not None:
                self.bind(each.optional_vars, manager, (node.lineno,), scope)
        try:
            self.run(node.body, scope)
        finally:
            self.within = before

    # --- loops

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        many = self._many(node.iter, scope)
        lines = self.lines_of(node.iter, scope)
        if isinstance(many, (list, tuple)) and len(many) <= _MOST_TURNS:
            for each in many:
                self.bind(node.target, each, lines, scope)
                if not self._turn(node.body, scope):
                    return
            self.run(node.orelse, scope)
            return
        one = Open.of(node.lineno, "script-ask-turn", what=shown(node.target))
        count = len(many) if isinstance(many, (list, tuple, range)) else None
        self.bind(node.target, one, lines, scope)
        before = self.times
        self.times = None if count is None or before is None else before * count
        try:
            self._turn(node.body, scope)
        finally:
            self.times = before

    def _many(self, node: ast.expr, scope: Scope) -> Any:
        """What a loop goes over; a long range stays one."""
        if isinstance(node, ast.Call) and not node.keywords:
            ends = [self.value(each, scope) for each in node.args]
            called = self.value(node.func, scope) if isinstance(node.func, ast.Name) else None
            whole = ends and len(ends) <= 3 and all(type(each) is int for each in ends)
            if called == Ref("builtins.range") and whole and (len(ends) < 3 or ends[2]):
                found = range(*ends)
                return found if len(found) > _MOST_TURNS else list(found)
            if isinstance(called, Ref) and called.last in ("tqdm", "trange") and ends:
                return self._many(node.args[0], scope)
        found = self.value(node, scope)
        return list(found) if isinstance(found, dict) else found

    def _turn(self, body: list[ast.stmt], scope: Scope) -> bool:
        """One turn of a loop; whether it goes on."""
        try:
            self.run(body, scope)
        except Looped as loop:
            return not loop.ends
        return True

    def _while(self, node: ast.While, scope: Scope) -> None:
        for _ in range(_MOST_TURNS):
            holds = self.holds(node.test, scope)
            if isinstance(holds, Open):
                self._skip(node, node.test, node.body, scope, holds.questions)
                return
            if not holds or not self._turn(node.body, scope):
                return
        for each in assigned(node.body):
            scope.give(each, Open.of(node.lineno, "script-ask-turn", what=each), (node.lineno,))

    # --- calls

    def call_value(self, called: Any, given: Given, node: ast.Call, scope: Scope) -> Any:
        """What calling a value gives; a call to another package is noted."""
        if isinstance(called, Function):
            return self._run_function(called, given, node)
        if isinstance(called, Klass):
            return self._instance(called, given, node)
        if isinstance(called, Ref):
            return self._call_ref(called, given, node, scope)
        if isinstance(called, Thing):
            return self._call_thing(called, given, node)
        if isinstance(called, Instance):
            with suppress(KeyError):
                member = called.klass.find("__call__")
                if isinstance(member, Function):
                    bound = Function(member.node, member.scope, called)
                    return self._run_function(bound, given, node)
        return self.outside(node, called)

    def _call_ref(self, called: Ref, given: Given, node: ast.Call, scope: Scope) -> Any:
        path = called.path
        if path in _LEAVES:
            raise Stopped
        if path in self.known.assumed:
            self.assumed.setdefault(path, node.lineno)
            return self.known.assumed[path]
        if path in _GETENV:
            return self._environment(given, node)
        if called.last in self.known.runners and given.args and isinstance(given.args[0], Function):
            return self._run_function(given.args[0], Given(), node)
        if path == "builtins.super":
            return self._super(scope, node)
        if path in ("builtins.getattr", "builtins.setattr") and len(given.args) > 1:
            return self._by_name(called.last, given.args, node)
        if path == "builtins.dict":
            return self._table(given)
        pure = values.PURE.get(path)
        if pure is not None:
            questions = values.questions_in(*given.args, *given.kwargs.values())
            if questions and pure not in values.HOLDING:
                return Open(questions)
            return values.called(pure, given.args, given.kwargs)
        if called.last in self.known.through and given.args:
            result = given.args[0]
        else:
            result = self._made(path, given, node)
        self._note(None, path, given, node, result)
        return result

    def _call_thing(self, called: Thing, given: Given, node: ast.Call) -> Any:
        owner, name = called.owner, called.name
        parser = arguments.parser_of(owner)
        if parser is not None:
            return arguments.call(parser, name, given.args, given.kwargs, node.lineno, self.answers)
        if owner is None or called.made.endswith("__call__"):
            result = self._made(f"{called.made}.__call__", given, node)
            self._note(called, "__call__", given, node, result)
            return result
        if name in self.known.same:
            result = owner
        else:
            result = self._made(called.made, given, node)
        if name == "resize" and is_picture(owner, self.known):
            result = Thing(owner.made, node.lineno, size=_size_of(given))
        self._note(owner, name, given, node, result)
        return result

    def _made(self, path: str, given: Given, node: ast.Call) -> Thing:
        lines = dict(given.lines)
        found = Thing(path, node.lineno, given.args, given.kwargs, lines)
        found.attrs = {
            name: each
            for name, each in given.kwargs.items()
            if each is None or isinstance(each, Thing)
        }
        base = given.rest
        if path.endswith(".from_pipe") and given.args:
            base = given.args[0]
        elif isinstance(base, Thing) and base.name == "components":
            base = base.owner
        found.base = base if isinstance(base, Thing) else None
        return found

    def _note(
        self, receiver: Thing | None, name: str, given: Given, node: ast.Call, result: Any
    ) -> None:
        kwargs = dict(given.kwargs)
        if given.rest is not None and not isinstance(given.rest, Thing):
            kwargs["**"] = given.rest
        event = Event(receiver, name, node.lineno, given.args, kwargs, dict(given.lines))
        event.times, event.within, event.result = self.times, self.within, result
        self.events.append(event)

    def _table(self, given: Given) -> Table:
        """``dict(...)``: a mapping that knows its lines."""
        first = given.args[0] if given.args else ()
        if not isinstance(first, (dict, list, tuple)) or given.rest is not None:
            raise NoValue
        if not isinstance(first, dict) and not all(
            isinstance(each, (list, tuple)) and len(each) == 2 and is_plain(each[0])
            for each in first
        ):
            raise NoValue
        found = Table(first)
        found.update(given.kwargs)
        found.lines |= given.lines
        return found

    def _environment(self, given: Given, node: ast.Call) -> Any:
        """A variable of the environment: an answer, else what the script takes where it is not set."""
        name = given.args[0] if given.args and isinstance(given.args[0], str) else shown(node)
        found = self.answers.take(name)
        if found is not None:
            return str(found)
        other = given.args[1] if len(given.args) > 1 else given.kwargs.get("default")
        self.assumed.setdefault(name, node.lineno)
        return other

    def _by_name(self, kind: str, args: tuple[Any, ...], node: ast.Call) -> Any:
        name = args[1]
        if not isinstance(name, str) or not name.isidentifier():
            raise NoValue
        if kind == "setattr" and len(args) > 2:
            self._set(args[0], name, args[2], (node.lineno,), node.lineno)
            return None
        return self.attribute_of(args[0], name, node)

    def _super(self, scope: Scope, node: ast.Call) -> Any:
        holder = scope.holder("self")
        own = holder.names["self"] if holder is not None else None
        if not isinstance(own, Instance) or not own.klass.parents:
            return self.outside(node)
        return Instance(own.klass.parents[0], own.attrs)

    def _run_function(self, called: Function, given: Given, node: ast.Call) -> Any:
        if self.functions >= _MOST_FUNCTIONS:
            return Open.of(node.lineno, "script-ask-outside", what=shown(node))
        inner = Scope(called.scope)
        self._parameters(called, given, node, inner)
        if isinstance(called.node, ast.Lambda):
            return self.value(called.node.body, inner)
        depth, self.depth = self.depth, 0
        self.functions += 1
        try:
            self.run(called.node.body, inner)
        except Left as left:
            return left.value
        finally:
            self.functions -= 1
            self.depth = depth
        return None

    def _parameters(self, called: Function, given: Given, node: ast.Call, inner: Scope) -> None:
        """Bind the parameters of a function; one that nobody gives is a question under its name."""
        spec = called.node.args
        names = [*spec.posonlyargs, *spec.args]
        args = given.args if called.bound is None else (called.bound, *given.args)
        defaults = dict(zip([n.arg for n in names][::-1], spec.defaults[::-1], strict=False))
        defaults |= {
            n.arg: each for n, each in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if each
        }
        kwargs = dict(given.kwargs)
        for place, each in enumerate([*names, *spec.kwonlyargs]):
            name, lines = each.arg, given.lines.get(each.arg, (node.lineno,))
            if place < len(args) and place < len(names):
                value = args[place]
                if place < len(node.args):
                    lines = (node.args[place].lineno,)
            elif name in kwargs:
                value = kwargs.pop(name)
            elif (answer := self.answers.take(name)) is not None:
                value = answer
            elif name in defaults:
                value = self.value(defaults[name], called.scope)
                lines = (defaults[name].lineno,)
            else:
                value = Open.of(each.lineno, "script-ask-argument", what=name, name=name)
            inner.give(name, value, lines)
        if spec.vararg is not None:
            inner.give(spec.vararg.arg, list(args[len(names) :]), (node.lineno,))
        if spec.kwarg is not None:
            rest = Table(kwargs)
            rest.lines = {name: given.lines.get(name, (node.lineno,)) for name in kwargs}
            inner.give(spec.kwarg.arg, rest, (node.lineno,))

    def _instance(self, klass: Klass, given: Given, node: ast.Call) -> Instance:
        made = Instance(klass)
        try:
            start = klass.find("__init__")
        except KeyError:  # a dataclass, or one without a constructor
            made.attrs.update(zip(klass.fields, given.args, strict=False))
            made.attrs.update(given.kwargs)
            return made
        if isinstance(start, Function):
            self._run_function(Function(start.node, start.scope, made), given, node)
        return made


def walked(tree: ast.Module, known: Known, answers: Answers, path: str) -> Walk:
    """The walk through a script. Raises BadFile for one that is nested or loops beyond measure."""
    walk = Walk(known=known, answers=answers, path=path)
    try:
        walk.run(tree.body, Scope(names={"__name__": "__main__", "__file__": path}))
    except (Left, Looped, Stopped):
        pass
    except (RecursionError, MemoryError) as error:
        raise BadFile("script-nested", path=path) from error
    return walk


def _is_main(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
    )


def _loaded(target: ast.expr) -> ast.expr:
    """A target of an assignment as the value that stands there before."""
    found: ast.expr = ast.copy_location(type(target)(**dict(ast.iter_fields(target))), target)
    if isinstance(found, (ast.Name, ast.Attribute, ast.Subscript)):
        found.ctx = ast.Load()
    return found


def _size_of(given: Given) -> tuple[Any, Any] | None:
    size = given.args[0] if given.args else given.kwargs.get("size")
    listed = isinstance(size, (list, tuple)) and len(size) == 2
    return (size[0], size[1]) if listed else None  # type: ignore[index]
