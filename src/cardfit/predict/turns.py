"""Turns of a loop that need not be played: after a state has come back everything happens again.

In: how many turns there are, and after each what decides the next. Out: how many may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from cardfit.predict.offload import ROOT, Moving, Placement
from cardfit.trace.repeats import LEAST_TURNS, Repeat
from cardfit.trace.stream import Event, Op

_MODULES = (int(Op.ENTER), int(Op.EXIT))


class Turns:
    """``count`` turns; ``at`` is the next one to play."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.at = 0
        self._seen: dict[object, int] | None = {}

    @property
    def left(self) -> int:
        """Turns to play."""
        return self.count - self.at

    def played(self, state: Callable[[], object]) -> int:
        """One turn was played: how many are left out now, in whole periods of the state that came back."""
        self.at += 1
        if self._seen is None or self.left < 1:
            return 0
        now = state()
        before = self._seen.setdefault(now, self.at)
        if before == self.at:
            return 0
        period = self.at - before
        skipped = self.left // period * period
        self.at += skipped
        self._seen = None
        return skipped


def only_moving(events: Sequence[Event], placed: Placement, component: int) -> tuple[int, ...]:
    """The places of ``events`` but for entries of modules that bring nothing in and send nothing away."""
    weights = placed.weights[component]
    known = {ROOT: True}

    def moves(module: int) -> bool:
        if module not in known:
            does = placed.does(component, module)
            members = (each for group in does.members for each in group)
            known[module] = bool(does.burst_bytes or does.scratch_bytes) or any(
                weights[each].tensors for each in members
            )
        return known[module]

    return tuple([n for n, e in enumerate(events) if e[0] not in _MODULES or moves(e[1])])


def alike(
    repeat: Repeat, events: Sequence[Event], placed: Placement, component: int
) -> tuple[Moving, ...]:
    """The stretches of ``repeat`` in which modules move the same weights, counted from their own number."""
    period = events[repeat.start : repeat.start + repeat.period]
    modules = tuple({module for op, module, _, _ in period if op in (Op.ENTER, Op.EXIT)})
    weights = placed.weights[component]
    members: list[set[int]] = []

    def doing(turn: int) -> tuple[object, ...]:
        moved = set[int]()
        said: list[object] = []
        for module in (each + turn * repeat.modules for each in modules):
            does = placed.does(component, module)
            said += (does.burst_bytes, does.scratch_bytes)
            for group in does.members:
                moved.update(group)
                said.append([(each - module, weights[each].tensors) for each in group])
        members.append(moved)
        return tuple(said)

    found = []
    for _, group in groupby(range(repeat.count), key=doing):
        turns = list(group)
        if len(turns) >= LEAST_TURNS:
            moved = frozenset().union(*(members[turn] for turn in turns))
            found.append(Moving(repeat.part(turns[0], len(turns)), moved))
    return tuple(found)
