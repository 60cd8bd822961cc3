"""List scheduling: tasks onto slots with hours, deadlines, kept kinds of card and a shared host RAM.

In: tasks and slots as numbers, seconds after the start. Out: a `Schedule`: where each task runs and when. The order is
by priority; within one, several orders are tried (by deadline, by how few slots can take a task, longest or shortest
first) and each task goes where it is done first; the best is kept. A heuristic: near the best, not proven to be.

A task is ``runs`` of the pipeline, one after another on one slot; it may pause between two runs where a slot's hours
end, and loads again after that. Weights that the slot's last task left loaded are not loaded again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cardfit.fleet.times import Span

_ROUNDED = 1e-9  # of a run: what a division of seconds may lose


@dataclass(frozen=True, slots=True)
class Slot:
    """One card of a machine; ``kind`` is what a kept sequence may not mix, ``rank`` sets the larger cards last."""

    machine: int
    kind: str
    rank: float
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """A task on a slot: seconds of loading once and of each run, likely and at worst, and what of the RAM it takes.

    ``weights`` names what stays loaded for the next task.
    """

    load_s: float
    each_s: float
    load_high_s: float
    each_high_s: float
    host_bytes: int
    weights: str


@dataclass(frozen=True, slots=True)
class Task:
    """``runs`` on any slot of ``works``; tasks of one ``group`` must end up on slots of one kind."""

    runs: int
    works: Mapping[int, Work]
    priority: int = 0
    deadline_s: float | None = None
    group: str | None = None

    @property
    def least_s(self) -> float:
        """Seconds on the slot that is quickest."""
        return min(
            (each.load_s + self.runs * each.each_s for each in self.works.values()), default=0.0
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of work: from, until, in seconds after the start, and the runs made in it."""

    begins_s: float
    ends_s: float
    runs: int


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a task runs and when; ``done_high_s`` is the end if everything takes as long as its band allows."""

    slot: int
    segments: tuple[Segment, ...]
    done_high_s: float | None = None

    @property
    def done_s(self) -> float:
        """When the last run ends."""
        return self.segments[-1].ends_s


@dataclass(slots=True)
class _State:
    """What the slots have taken on: when each is free, what is loaded there, what each machine's RAM holds when."""

    free_s: list[float]
    loaded: list[str | None]
    held: dict[int, list[tuple[float, float, int]]] = field(default_factory=dict)
    waited: set[int] = field(default_factory=set)  # machines whose RAM made some work wait

    def copy(self) -> _State:
        held = {machine: list(spans) for machine, spans in self.held.items()}
        return _State(list(self.free_s), list(self.loaded), held, self.waited)

    def take(self, slot: int, machine: int, work: Work, segments: Iterable[Segment]) -> None:
        for each in segments:
            self.free_s[slot] = each.ends_s
            self.held.setdefault(machine, []).append((each.begins_s, each.ends_s, work.host_bytes))
        self.loaded[slot] = work.weights


@dataclass(frozen=True, slots=True)
class Floor:
    """The slots, and the RAM of each machine in bytes where it is known."""

    slots: tuple[Slot, ...]
    ram_bytes: Mapping[int, int]

    def start(self) -> _State:
        """Nothing taken on yet."""
        return _State([0.0] * len(self.slots), [None] * len(self.slots))

    def segments(
        self, state: _State, at: int, work: Work, runs: int, *, high: bool = False
    ) -> tuple[Segment, ...] | None:
        """When ``runs`` of ``work`` fit on the slot ``at`` after all it has; None where its hours end before."""
        slot, free = self.slots[at], state.free_s[at]
        load_s, each_s = (
            (work.load_high_s, work.each_high_s) if high else (work.load_s, work.each_s)
        )
        found: list[Segment] = []
        left, warm = runs, state.loaded[at] == work.weights
        first = bisect_right(slot.spans, free, key=lambda span: span[1])
        for begins, ends in slot.spans[first:]:
            at_s = max(begins, free)
            warm = (
                warm and begins <= free and not found
            )  # what was loaded stays until the hours end
            while True:
                load = 0.0 if warm else load_s
                fit = left if ends == math.inf else _whole((ends - at_s - load) / each_s, left)
                if fit < 1:
                    break
                until = at_s + load + fit * each_s
                later = self._room(state, slot.machine, at_s, until, work.host_bytes)
                if later is None:
                    found.append(Segment(at_s, until, fit))
                    left -= fit
                    break
                state.waited.add(slot.machine)
                at_s = later
            if not left:
                return tuple(found)
        return None

    def _room(
        self, state: _State, machine: int, begins: float, ends: float, need: int
    ) -> float | None:
        """None where the RAM has room for ``need`` bytes all the while; else when some of it comes free."""
        ram, held = self.ram_bytes.get(machine), state.held.get(machine)
        if ram is None or not held:
            return None
        over = [each for each in held if each[0] < ends and each[1] > begins]
        moments = [begins, *(each[0] for each in over if each[0] > begins)]
        for moment in moments:
            if need + sum(size for a, b, size in over if a <= moment < b) > ram:
                return min(b for _, b, _ in over)
        return None


def _whole(count: float, most: int) -> int:
    return max(0, min(most, math.floor(count + _ROUNDED)))


@dataclass(frozen=True, slots=True)
class Schedule:
    """By the number of a task where it runs; the numbers of those that no hours hold, and of those whose kept
    sequence no one kind of card can take. ``short_of_ram`` are machines on which work waited for host RAM.
    """

    placed: Mapping[int, Placed]
    no_hours: tuple[int, ...] = ()
    no_kind: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    short_of_ram: frozenset[int] = frozenset()


def schedule(tasks: Sequence[Task], floor: Floor) -> Schedule:
    """The best of the orders that are tried: most placed, then fewest late, least late, soonest all done."""
    known = [at for at, task in enumerate(tasks) if task.works]
    orders: tuple[Callable[[int], tuple[float, ...]], ...] = (
        lambda at: (_due(tasks[at]), -tasks[at].least_s),
        lambda at: (_due(tasks[at]), tasks[at].least_s),
        lambda at: (_due(tasks[at]), len(tasks[at].works), -tasks[at].least_s),
        lambda at: (len(tasks[at].works), -tasks[at].least_s),
        lambda at: (-tasks[at].least_s,),
    )
    tried = set[tuple[int, ...]]()
    best: tuple[tuple[float, ...], Schedule] | None = None
    for order in orders:
        queue = tuple(sorted(known, key=lambda at: (-tasks[at].priority, *order(at), at)))
        if queue in tried:
            continue
        tried.add(queue)
        found = _in_order(tasks, floor, queue)
        worth = _worth(tasks, found)
        if best is None or worth < best[0]:
            best = (worth, found)
    return Schedule({}) if best is None else _at_worst(tasks, floor, best[1])


def _due(task: Task) -> float:
    return math.inf if task.deadline_s is None else task.deadline_s


def late_s(task: Task, done_s: float) -> float:
    """Seconds after its deadline; 0 where it is kept or there is none."""
    return 0.0 if task.deadline_s is None else max(0.0, done_s - task.deadline_s)


def _worth(tasks: Sequence[Task], found: Schedule) -> tuple[float, ...]:
    ends = {at: each.done_s for at, each in found.placed.items()}
    late = [late_s(tasks[at], done) for at, done in ends.items()]
    return (
        -len(ends),
        sum(each > 0 for each in late),
        sum(late),
        max(ends.values(), default=0.0),
        sum(ends.values()),
    )


def _in_order(tasks: Sequence[Task], floor: Floor, queue: Sequence[int]) -> Schedule:
    state, placed = floor.start(), dict[int, Placed]()
    no_hours, no_kind, order, gone = list[int](), list[int](), list[int](), set[str]()
    for at in queue:
        group = tasks[at].group
        if group is None:
            found = _first_done(tasks[at], floor, state, tasks[at].works)
            if found is None:
                no_hours.append(at)
                continue
            _take(floor, state, tasks[at], found)
            placed[at] = found
            order.append(at)
        elif group not in gone:
            gone.add(group)
            members = [each for each in queue if tasks[each].group == group]
            kinds = _kinds(tasks, floor, group)
            if not kinds:
                no_kind += members
                continue
            state, laid = _together(tasks, floor, state, members, kinds)
            placed |= laid
            order += [each for each in members if each in laid]
            no_hours += [each for each in members if each not in laid]
    waited = frozenset(state.waited)
    return Schedule(placed, tuple(no_hours), tuple(no_kind), tuple(order), waited)


def _first_done(task: Task, floor: Floor, state: _State, slots: Iterable[int]) -> Placed | None:
    """The slot that is done first; of equals the smaller card."""
    best: tuple[float, float, int] | None = None
    chosen: Placed | None = None
    for at in slots:
        segments = floor.segments(state, at, task.works[at], task.runs)
        if segments is None:
            continue
        key = (segments[-1].ends_s, floor.slots[at].rank, at)
        if best is None or key < best:
            best, chosen = key, Placed(at, segments)
    return chosen


def _take(floor: Floor, state: _State, task: Task, found: Placed) -> None:
    machine = floor.slots[found.slot].machine
    state.take(found.slot, machine, task.works[found.slot], found.segments)


def _kinds(tasks: Sequence[Task], floor: Floor, group: str) -> list[str]:
    """The kinds of card that can take every task of ``group``, those without any slot included."""
    works = [task.works for task in tasks if task.group == group]
    return sorted(set.intersection(*({floor.slots[at].kind for at in each} for each in works)))


def _together(
    tasks: Sequence[Task], floor: Floor, state: _State, members: Sequence[int], kinds: Sequence[str]
) -> tuple[_State, dict[int, Placed]]:
    """The members on the one kind of card that serves them best."""
    best: tuple[tuple[float, ...], _State, dict[int, Placed]] | None = None
    for kind in kinds:
        tried, laid = state.copy(), dict[int, Placed]()
        for member in members:
            slots = [at for at in tasks[member].works if floor.slots[at].kind == kind]
            found = _first_done(tasks[member], floor, tried, slots)
            if found is not None:
                _take(floor, tried, tasks[member], found)
                laid[member] = found
        worth = _worth(tasks, Schedule(laid))
        if best is None or worth < best[0]:
            best = (worth, tried, laid)
    assert best is not None
    return best[1], best[2]


def _at_worst(tasks: Sequence[Task], floor: Floor, found: Schedule) -> Schedule:
    """The same places and order with every time at the high end of its band."""
    state, placed = floor.start(), dict(found.placed)
    for at in found.order:
        task, here = tasks[at], placed[at]
        work = task.works[here.slot]
        segments = floor.segments(state, here.slot, work, task.runs, high=True)
        if segments is None:
            continue
        state.take(here.slot, floor.slots[here.slot].machine, work, segments)
        placed[at] = Placed(here.slot, here.segments, segments[-1].ends_s)
    return replace(found, placed=placed)
