"""A small arithmetic language: what ComfyUI's math node is written in, and the rules of the node data.

In: text and a function that gives the value of a (dotted) name. Out: a number, truth value or text. Only names,
numbers, texts, arithmetic, comparison, ``and`` / ``or`` / ``not``, ``a if c else b`` and the functions listed below;
nothing is executed. Raises `ExpressionError`.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

MAX_LENGTH = 2000
MAX_DEPTH = 60
MAX_TEXT = 1_000_000
_BIG = 10**15


class ExpressionError(ValueError):
    """The text is no expression of this language, or it has no value."""


def numbers(text: object) -> int:
    """How many numbers stand in a list written as text.

    >>> numbers("1.0, 0.9937, 0.5, 0")
    4
    """
    return len(re.findall(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|-?\.\d+", str(text)))


def _ratio(label: object, part: int) -> float:
    """One side of a ratio at the head of a label such as ``16:9 (Widescreen)``."""
    found = re.match(r"\s*(\d+(?:\.\d+)?)\s*[:x×]\s*(\d+(?:\.\d+)?)", str(label))
    if found is None:
        raise ExpressionError
    return float(found.group(part))


def _position(options: object, choice: object) -> int:
    if not isinstance(options, list) or choice not in options:
        raise ExpressionError
    return options.index(choice)


def _number_in(text: object) -> float:
    """The number that a text is or begins with."""
    if isinstance(text, (int, float)):
        return float(text)
    found = re.match(r"\s*-?\d+(?:\.\d+)?", str(text))
    if found is None:
        raise ExpressionError
    return float(found.group())


def _factor_in(name: object) -> float:
    """The factor in the name of an upscaler: ``4x-UltraSharp``, ``RealESRGAN_x4plus``, ``x1.5``."""
    found = re.search(r"(?<![a-z0-9])(\d)x(?![a-z0-9])|(?<![a-z])x(\d(?:\.\d)?)", str(name).lower())
    if found is None:
        raise ExpressionError
    return float(found.group(1) or found.group(2))


def _short(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise ExpressionError
    return text


def _json_get(text: object, key: object) -> Any:
    """The value of a key of an object in JSON text; texts and numbers only."""
    try:
        found = json.loads(str(text))
    except RecursionError as error:
        raise ExpressionError from error
    value = found.get(str(key)) if isinstance(found, dict) else None
    if isinstance(value, dict):
        value = json.dumps(value)
    if not isinstance(value, (str, int, float)):
        raise ExpressionError
    return value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": int,
    "float": float,
    "log": math.log,
    "log2": math.log2,
    "max": max,
    "min": min,
    "pow": lambda base, power: _power(base, power),
    "round": round,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    # of the node data
    "json_get": _json_get,
    "joined": lambda *parts: _short("".join(str(part) for part in parts)),
    "replaced": lambda text, old, new: _short(str(text).replace(str(old), str(new))),
    "factor_in": _factor_in,
    "numbers": numbers,
    "number_in": _number_in,
    "position": _position,
    "ratio_width": lambda label: _ratio(label, 1),
    "ratio_height": lambda label: _ratio(label, 2),
}


def _power(base: float, power: float) -> Any:
    if abs(base) > _BIG or abs(power) > 64:
        raise ExpressionError
    return base**power


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr:
    """The tree of ``text``. Raises ExpressionError."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ExpressionError from error


def dotted(node: ast.expr) -> str | None:
    """The dotted name that ``node`` is, None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return None if head is None else f"{head}.{node.attr}"
    return None


def evaluate(text: str, name: Callable[[str], Any]) -> Any:
    """The value of ``text``; ``name`` gives that of a dotted name. Raises ExpressionError.

    >>> evaluate("floor(a * b) + 1 if b > 2 else 0", {"a": 5, "b": 16}.get)
    81
    """
    return evaluate_tree(parse(text), name)


def evaluate_tree(tree: ast.expr, name: Callable[[str], Any]) -> Any:
    """As `evaluate`, for a tree of `parse`."""
    try:
        return _of(tree, name, 0)
    except (ArithmeticError, TypeError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError from error


def _of(node: ast.expr, name: Callable[[str], Any], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ExpressionError
    deeper = depth + 1
    known = dotted(node)
    if known is not None:
        return name(known)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, bool)):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _of(node.left, name, deeper), _of(node.right, name, deeper)
        if isinstance(left, str) or isinstance(right, str):
            raise ExpressionError
        return _finite(_BINARY[type(node.op)](left, right))
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_of(node.operand, name, deeper))
    if isinstance(node, ast.IfExp):
        chosen = node.body if _of(node.test, name, deeper) else node.orelse
        return _of(chosen, name, deeper)
    if isinstance(node, ast.BoolOp):
        return _either(node, name, deeper)
    if isinstance(node, ast.Compare):
        return _compared(node, name, deeper)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        called = FUNCTIONS.get(node.func.id)
        if called is not None:
            return _finite(called(*[_of(each, name, deeper) for each in node.args]))
    raise ExpressionError


def _either(node: ast.BoolOp, name: Callable[[str], Any], depth: int) -> Any:
    value: Any = None
    for each in node.values:
        value = _of(each, name, depth)
        if bool(value) == isinstance(node.op, ast.Or):
            break
    return value


def _compared(node: ast.Compare, name: Callable[[str], Any], depth: int) -> bool:
    left = _of(node.left, name, depth)
    for sign, side in zip(node.ops, node.comparators, strict=True):
        compare = _COMPARE.get(type(sign))
        if compare is None:
            raise ExpressionError
        right = _of(side, name, depth)
        if not compare(left, right):
            return False
        left = right
    return True


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError
    if isinstance(value, int) and abs(value) > _BIG:
        raise ExpressionError
    return value
