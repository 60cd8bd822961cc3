"""The arguments that a script takes: what `argparse` declares, read as if the script were started without any.

In: the calls on a parser. Out: the namespace, with an answer or the default for every argument; one that has neither is
a question under its own name.
"""

from __future__ import annotations

from typing import Any

from cardfit.script.things import Answers
from cardfit.script.values import Lines, Open, Thing, is_plain

PARSER = "argparse.ArgumentParser"
_DECLARED = "declared arguments"  # no name of Python, so no part is called so
_GROUPS = ("add_argument_group", "add_mutually_exclusive_group")
_PARSES = ("parse_args", "parse_known_args")
_SWITCHES = {"store_true": False, "store_false": True}
_KINDS = {"builtins.int": int, "builtins.float": float, "builtins.str": str}


def parser_of(thing: Thing | None) -> Thing | None:
    """The parser that a thing is, or is a group of."""
    while thing is not None:
        if thing.made == PARSER:
            return thing
        thing = thing.owner
    return None


def call(
    parser: Thing,
    method: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    line: int,
    answers: Answers,
) -> Any:
    """What a method of a parser gives."""
    declared: dict[str, tuple[Any, Lines]] = parser.attrs.setdefault(_DECLARED, {})
    if method == "add_argument":
        _declare(declared, args, kwargs, line, answers)
        return None
    if method == "set_defaults":
        declared |= {name: (value, (line,)) for name, value in kwargs.items()}
        return None
    if method in _GROUPS:
        return Thing(f"{PARSER}.{method}", line, owner=parser, name=method)
    if method in _PARSES:
        names = Thing("argparse.Namespace", line)
        names.attrs = {name: value for name, (value, _) in declared.items()}
        names.lines = {name: where for name, (_, where) in declared.items()}
        return names if method == "parse_args" else (names, [])
    return Thing(f"{PARSER}.{method}", line)


def _declare(
    declared: dict[str, tuple[Any, Lines]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    line: int,
    answers: Answers,
) -> None:
    names = [name for name in args if isinstance(name, str)]
    long = next((name for name in names if name.startswith("--")), names[0] if names else "")
    dest = (
        kwargs.get("dest")
        if isinstance(kwargs.get("dest"), str)
        else long.lstrip("-").replace("-", "_")
    )
    if not dest:
        return
    given = answers.take(dest)
    action = kwargs.get("action")
    switch = _SWITCHES.get(action) if isinstance(action, str) else None
    if given is not None:
        value: Any = _typed(given, kwargs)
    elif "default" in kwargs:
        value = _typed(kwargs["default"], kwargs)
    elif switch is not None:
        value = switch
    elif kwargs.get("required") is True or not long.startswith("-"):
        choices = kwargs.get("choices")
        many = choices if isinstance(choices, (list, tuple)) and all(map(is_plain, choices)) else ()
        code = "script-ask-choice" if many else "script-ask-argument"
        value = Open.of(line, code, what=", ".join(map(str, many[:12])) or dest, name=dest)
    else:
        value = None
    declared[dest] = (value, (line,))


def _typed(value: Any, kwargs: dict[str, Any]) -> Any:
    """A default or an answer in the type that the argument has: argparse converts texts only."""
    kind = _KINDS.get(getattr(kwargs.get("type"), "path", ""))
    try:
        if kind is str and is_plain(value) and value is not None:
            return str(value)
        return kind(value) if kind is not None and isinstance(value, str) else value
    except ValueError:
        return value
