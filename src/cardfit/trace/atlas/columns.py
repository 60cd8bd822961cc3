"""Events as the atlas writes them: a column for each part of an event, counted from the event before.

In: events. Out: four lists of small numbers that are the same over and over where a model does the same over and over,
so that they pack to a fraction of the events themselves; and back, number by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cardfit.trace.stream import Event, Op

_BIRTH, _DEATH = int(Op.BIRTH), int(Op.DEATH)
_MODULES = (int(Op.ENTER), int(Op.EXIT))
_BARE = (_DEATH, *_MODULES)  # their second number is always 0 and not written

Columns = list[list[int]]  # ops, first numbers, second numbers, sites


def columns(events: Iterable[Event]) -> Columns:
    """The columns of ``events``; a birth is counted from the id after the last, a death back from it.

    >>> columns([(0, 5, 7, 2), (1, 5, 0, 2)])
    [[0, 1], [5, 1], [7], [2, 0]]
    """
    ops: list[int] = []
    first: list[int] = []
    second: list[int] = []
    sites: list[int] = []
    coming = module = before = 0
    for op, a, b, site in events:
        ops.append(int(op))
        if op == _BIRTH:
            first.append(a - coming)
            coming = a + 1
        elif op == _DEATH:
            first.append(coming - a)
        elif op in _MODULES:
            first.append(a - module)
            module = a
        else:
            first.append(a)
        if op not in _BARE:
            second.append(b)
        elif b:
            raise ValueError((op, a, b, site))
        sites.append(site - before)
        before = site
    return [ops, first, second, sites]


def events_of(written: Sequence[Sequence[int]]) -> list[Event]:
    """The events of columns. Raises ValueError where a column is short or too long."""
    ops, first, second, sites = written
    numbers = iter(second)
    found: list[Event] = []
    coming = module = site = 0
    for op, a, moved in zip(ops, first, sites, strict=True):
        site += moved
        if op == _DEATH:
            found.append((op, coming - a, 0, site))
        elif op == _BIRTH:
            coming += a + 1
            found.append((op, coming - 1, next(numbers), site))
        elif op in _MODULES:
            module += a
            found.append((op, module, 0, site))
        else:
            found.append((op, a, next(numbers), site))
    return found
