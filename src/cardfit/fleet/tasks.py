"""One function over many items on a cluster: a task each, a bounded number at once, lost ones again.

In: a `Cluster`, a function that travels, items by what they need of a node. Out: every item once, as it ends, with what
the function gave or a `Reason` why there is nothing. Work is repeated only when its node or worker was lost: what the
function returns or raises is an answer. Items are drawn when there is room for them, never before. Leaving the loop
early, by Ctrl-C too, ends what still runs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cardfit.fleet.cluster import Cluster, Needs, versions_found
from cardfit.records.models import Reason

T = TypeVar("T")
R = TypeVar("R")

RETRIES = 3  # times that an item whose node was lost is started again
NO_ROOM_S = 20.0  # after which items that no node can take are given up
_WAIT_S = 0.5
_END_S = 15.0  # for runs that were told to end


@dataclass(frozen=True, slots=True)
class State:
    """Where the work is: items that are at a node or on their way, that ended, and the nodes that may work."""

    going: int
    ended: int
    nodes: int


def each(
    cluster: Cluster,
    function: Callable[[T], R],
    queues: Mapping[Needs, Iterator[T]],
    *,
    in_flight: int | None = None,
    retries: int = RETRIES,
    fresh: bool = False,
    watch: Callable[[State], None] = lambda _state: None,
) -> Generator[tuple[T, R | Reason], None, None]:
    """Call ``function`` for every item of ``queues`` on a node that has what it needs; close it to end it early.

    As many items are in flight as the nodes can hold, ``in_flight`` at most. ``fresh`` gives each a process of its own.
    ``watch`` is called about twice a second.
    """
    work = _Work(cluster, function, dict(queues), in_flight, retries, fresh, watch)
    try:
        yield from work.run()
    finally:
        work.end()


@dataclass(slots=True)
class _Try(Generic[T]):
    item: T
    needs: Needs
    number: int = 0


@dataclass
class _Work(Generic[T, R]):
    cluster: Cluster
    function: Callable[[T], R]
    queues: dict[Needs, Iterator[T]]
    in_flight: int | None
    retries: int
    fresh: bool
    watch: Callable[[State], None]
    going: dict[Any, _Try[T]] = field(default_factory=dict)
    again: dict[Needs, deque[_Try[T]]] = field(default_factory=dict)
    roomless: dict[Needs, float] = field(default_factory=dict)  # since when
    ended: int = 0

    def run(self) -> Iterator[tuple[T, R | Reason]]:
        """The loop."""
        self.again = {needs: deque() for needs in self.queues}
        own = {
            "max_calls": 1 if self.fresh else 0
        }  # left to Ray, a GPU's worker serves one task only
        self.call = self.cluster.ray.remote(**own)(_guarded())
        self.packed = self.cluster.ray.cloudpickle.dumps(self.function)
        while True:
            for needs in list(self.queues):
                yield from self._fill(needs)
            self.watch(State(len(self.going), self.ended, len(self.cluster.nodes())))
            if self.going:
                refs = list(self.going)
                ready, _ = self.cluster.ray.wait(refs, timeout=_WAIT_S)
                for ref in ready:
                    yield from self._take(ref)
            elif self.queues:
                time.sleep(_WAIT_S)
            else:
                return

    def _fill(self, needs: Needs) -> Iterator[tuple[T, Reason]]:
        """Start as many items with these ``needs`` as there is room for; give them up where there is none for long."""
        room = self.cluster.room(needs)
        mine = sum(each.needs == needs for each in self.going.values())
        if room:
            self.roomless.pop(needs, None)
        elif time.monotonic() - self.roomless.setdefault(needs, time.monotonic()) > NO_ROOM_S:
            yield from self._give_up(needs)
            return
        while mine < room and (self.in_flight is None or len(self.going) < self.in_flight):
            started = self._next(needs)
            if started is None:
                if not mine:
                    del self.queues[needs]
                return
            self._start(started)
            mine += 1

    def _next(self, needs: Needs) -> _Try[T] | None:
        """The next item to start, lost ones first; None when there is none."""
        if self.again[needs]:
            return self.again[needs].popleft()
        for item in self.queues[needs]:
            return _Try(item, needs)
        return None

    def _start(self, one: _Try[T]) -> None:
        needs = one.needs.resources()
        call = self.call.options(
            num_cpus=needs.pop("CPU", 0),
            num_gpus=needs.pop("GPU", 0),
            resources=needs or None,
            max_retries=0,  # counted here: what Ray repeats on its own nobody hears of
            label_selector=self.cluster.where(),
            scheduling_strategy="SPREAD",
        )
        item = self.cluster.ray.cloudpickle.dumps(one.item)
        self.going[call.remote(dict(self.cluster.expected), self.packed, item)] = one

    def _take(self, ref: Any) -> Iterator[tuple[T, R | Reason]]:
        """What became of a task."""
        one = self.going.pop(ref)
        errors = self.cluster.ray.exceptions
        found: Any
        try:
            how, said, node_id = self.cluster.ray.get(ref)
        except errors.RayTaskError as error:  # what it gave does not travel
            found = Reason.of("fleet-failed", why=str(error).strip().splitlines()[-1])
        except errors.OutOfMemoryError:
            found = Reason.of("fleet-node-memory")
        except errors.RayError:
            one.number += 1
            if one.number <= self.retries:
                self.again[one.needs].append(one)
                self.cluster.say("fleet-again", number=one.number, of=self.retries)
                return
            found = Reason.of("fleet-lost", times=one.number)
        else:
            if how == "differs":  # a node that came later, with other versions
                self.cluster.refuse(node_id, said)
                self.again[one.needs].append(one)
                return
            found = Reason.of("fleet-failed", why=said) if how == "failed" else said
        self.ended += 1
        yield one.item, found

    def _give_up(self, needs: Needs) -> Iterator[tuple[T, Reason]]:
        """Settle everything with ``needs`` that no node has."""
        waiting = [ref for ref, each in self.going.items() if each.needs == needs]
        for ref in waiting:
            self.cluster.ray.cancel(ref, force=True)
        lost = [self.going.pop(ref).item for ref in waiting]
        lost += [each.item for each in self.again[needs]]
        why = Reason.of("fleet-no-room", needs=needs.said(), offered=self.cluster.offered())
        for item in (*lost, *self.queues.pop(needs)):
            self.ended += 1
            yield item, why

    def end(self) -> None:
        """End what still runs, and wait until it has: gently first, so that children are ended in their own way."""
        ray, waiting = self.cluster.ray, list(self.going)
        self.going.clear()
        for force, seconds in ((False, _END_S), (True, _END_S / 3)):
            if not waiting:
                return
            for ref in waiting:
                ray.cancel(ref, force=force)
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=seconds)


def _guarded() -> Callable[[dict[str, str], bytes, bytes], tuple[str, Any, str]]:
    """What a task runs: it looks at the node's versions before anything of cardfit is loaded there.

    An error comes back as words: Ray would take one that does not travel for a lost node.
    """
    versions = versions_found()

    def call(expected: dict[str, str], function: bytes, item: bytes) -> tuple[str, Any, str]:
        import pickle

        import ray

        node_id = ray.get_runtime_context().get_node_id()
        there = versions()
        if any(there.get(name) != here for name, here in expected.items()):
            return "differs", there, node_id
        try:
            return "gave", pickle.loads(function)(pickle.loads(item)), node_id
        except Exception as error:
            return "failed", f"{type(error).__name__}: {error}", node_id

    return call
