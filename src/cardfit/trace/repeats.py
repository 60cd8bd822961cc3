"""Where a call does the same over and over: the blocks of a transformer, the layers of a text encoder.

In: the events of a stream. Out: `Repeat`s, stretches that follow one another and differ only in what they are counted
from: storage ids move on by what one period gives birth to, module numbers by the modules of one block. A replay whose
state comes back after a period need not play the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cardfit.trace.stream import Event, Op

_BIRTH, _DEATH, _CALL = int(Op.BIRTH), int(Op.DEATH), int(Op.CALL)
_ENTER, _EXIT = int(Op.ENTER), int(Op.EXIT)
_WINDOW = 12  # events that must agree before a stretch is looked at
_LEAST_PERIOD = 12  # events; a shorter period costs more to compare than to play
LEAST_TURNS = 4  # two are played and two compared before anything is saved


@dataclass(frozen=True, slots=True)
class Repeat:
    """``count`` periods of ``period`` events from ``start`` on; ``births`` and ``modules`` are a period's strides.

    ``first`` is the lowest storage id that the first period gives birth to, ``module`` the lowest number of a module
    that it enters or leaves.
    """

    start: int
    period: int
    count: int
    births: int
    modules: int
    first: int
    module: int

    @property
    def end(self) -> int:
        """Where the events after it begin."""
        return self.start + self.period * self.count

    def part(self, start: int, count: int) -> Repeat:
        """``count`` of its periods from number ``start`` on."""
        return Repeat(
            self.start + start * self.period,
            self.period,
            count,
            self.births,
            self.modules,
            self.first + start * self.births,
            self.module + start * self.modules,
        )


def without_modules(events: Sequence[Event]) -> tuple[int, ...]:
    """The places of ``events`` but for the entries of modules."""
    return tuple([n for n, event in enumerate(events) if event[0] not in (_ENTER, _EXIT)])


def repeats(events: Sequence[Event]) -> tuple[Repeat, ...]:
    """Stretches of ``events`` that repeat, in order and apart; those that save most are taken first."""
    words, ids = _words(events)
    taken: list[Repeat] = []
    for start, period, length in sorted(_runs(words), key=lambda run: run[1] - run[2]):
        count = length // period
        found = _repeat(events, ids, start, period, count)
        if found is not None and all(
            found.end <= each.start or each.end <= found.start for each in taken
        ):
            taken.append(found)
    return tuple(sorted(taken, key=lambda each: each.start))


def _repeat(
    events: Sequence[Event], ids: list[int], start: int, period: int, count: int
) -> Repeat | None:
    """The run as a `Repeat`; None where its periods are too few."""
    if count < LEAST_TURNS:
        return None
    numbers = [
        (a, at)
        for at, (op, a, _, _) in enumerate(events[start : start + period])
        if op in (_ENTER, _EXIT)
    ]
    lowest, where = min(numbers, default=(0, None))
    stride = 0 if where is None else events[start + where + period][1] - lowest
    births = ids[start + period] - ids[start]
    return Repeat(start, period, count, births, stride, ids[start], lowest)


def _words(events: Sequence[Event]) -> tuple[list[int], list[int]]:
    """One number an event, equal where two do the same counted from where they stand; and the next id at each."""
    numbers: dict[tuple[int, int, int], int] = {}
    words, ids = [], []
    coming, module = 0, 0
    for place, (op, a, b, _) in enumerate(events):
        ids.append(coming)
        if op == _BIRTH:
            word = (op, a - coming, b)
            coming = a + 1
        elif op == _DEATH:
            word = (op, coming - a, 0)
        elif op in (_ENTER, _EXIT):
            word = (op, a - module, 0)
            module = a
        elif op == _CALL:  # what it takes and gives is bound by absolute ids: never the same
            word = (op, place, b)
        else:
            word = (op, 0, b)
        words.append(numbers.setdefault(word, len(numbers)))
    return words, ids


def _runs(words: list[int]) -> list[tuple[int, int, int]]:
    """(start, period, length) of the longest stretches in which every event is that of a period before it."""
    found = []
    last: dict[tuple[int, ...], int] = {}
    known: dict[int, int] = {}  # period -> where the last run with it ended
    count = len(words)
    for at in range(count - _WINDOW):
        window = tuple(words[at : at + _WINDOW])
        period = at - last.get(window, at)
        last[window] = at
        if period < _LEAST_PERIOD or known.get(period, -1) > at:
            continue
        start, end = at, at + _WINDOW
        while start > period and words[start - 1] == words[start - 1 - period]:
            start -= 1
        while end < count and words[end] == words[end - period]:
            end += 1
        known[period] = end
        found.append((start - period, period, end - start + period))
    return found
