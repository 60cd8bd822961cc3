"""The verb `sweep`: here, or on a Ray cluster.

In: what a person asks, an address. Out: a `Sweep`. Cells, order, early stop and going on are those of
`cardfit.measure.sweep`; the driver writes every record as it comes, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardfit.cards import find
from cardfit.cards import load as load_cards
from cardfit.errors import BadRequest, CardfitError
from cardfit.fleet.board import Board
from cardfit.fleet.cluster import CARD, LOCAL, Cluster, Needs, joined
from cardfit.fleet.node import OnNode
from cardfit.fleet.tasks import State, each
from cardfit.measure import sweeping
from cardfit.measure.again import check
from cardfit.measure.keep import Keeper
from cardfit.measure.run import Moment
from cardfit.measure.sweep import Cell, Ended, Queues, Run, Sweep
from cardfit.records import files
from cardfit.records.models import FAKE, Reason, Record

Where = Sequence[tuple[str, Moment]]
"""Nodes with where their runs are."""
Watch = Callable[[State, Where], None]


def sweep(
    request: Any,
    settings: Any = None,
    axes: Any = None,
    *,
    ray: str | None = None,
    in_flight: int | None = None,
    cards: Sequence[str] = (),
    device: str = "auto",
    watch: Watch | None = None,
    note: Callable[[Reason], None] = lambda _note: None,
    **asked: Any,
) -> Sweep:
    """Measure every combination, here one after the other or, with ``ray``, on the nodes of a cluster at once.

    Everything else is asked as of `cardfit.measure.sweeping.sweep`. ``ray`` is ``local``, ``auto`` or ``HOST:PORT``;
    ``cards`` are ids of cards that its nodes name as resources: every cell runs on each. ``in_flight`` bounds how many
    run at once. ``watch`` hears how far the runs are, ``note`` of nodes that are lost or left out. Raises as that verb
    and `joined` do, BadRequest for cards and counts that cannot be meant.
    """
    if ray is None:
        if cards or in_flight is not None:
            raise BadRequest("fleet-only-with-ray")
        return sweeping.sweep(request, settings, axes, device=device, **asked)
    if in_flight is not None and in_flight < 1:
        raise BadRequest("fleet-bad-in-flight", asked=in_flight)
    check(asked.get("repeats", 1), asked.get("timeout_s"), device)
    known = load_cards()
    cards = tuple(dict.fromkeys(find(known, card).id for card in cards))
    for name in ("weights", "configs"):  # a node stands in another folder
        if isinstance(asked.get(name), Path) and asked[name].exists():
            asked[name] = asked[name].resolve()
    pretended = {f"{CARD}{card}": 1.0 for card in cards} if device == FAKE and ray == LOCAL else {}
    with joined(ray, resources=pretended, note=note) as cluster:
        device, gpus = _device(cluster, device)
        if gpus and not cards:
            cards = _only_card(cluster)
        many = Many(cluster, gpus, in_flight, asked.get("store"), watch)
        found = sweeping.sweep(
            request, settings, axes, device=device, cards=cards, many=many, **asked
        )
        return found.model_copy(update={"notes": tuple(cluster.notes)})


def _device(cluster: Cluster, asked: str) -> tuple[str, float]:
    """The device that a run is told, and the GPUs it asks of a node. Raises BadRequest for a numbered one."""
    if asked.partition(":")[2]:
        raise BadRequest("fleet-bad-device", asked=asked)
    if asked == "auto":
        asked = "cuda" if cluster.room(Needs(gpus=1)) else "cpu"
    return asked, 1.0 if asked == "cuda" else 0.0


def _only_card(cluster: Cluster) -> tuple[str, ...]:
    """The one kind of card that the nodes name, or none where they name none. Raises BadRequest for several."""
    found = cluster.cards()
    if len(found) > 1:
        raise BadRequest("fleet-which-card", found=", ".join(found))
    return found


@dataclass(frozen=True, slots=True)
class Many:
    """Runs cells on the nodes of a cluster, as many at once as they hold."""

    cluster: Cluster
    gpus: float
    in_flight: int | None
    store: str | None
    watch: Watch | None

    def __call__(self, run: Run, queues: Queues) -> Ended:
        """Cells as they end, their records kept. Raises BadFile where one cannot be."""
        assert isinstance(run, sweeping.Each)
        board = Board(self.cluster) if self.watch is not None else None
        on_node = OnNode(run, None if board is None else board.name)

        def show(state: State) -> None:
            if self.watch is not None and board is not None:
                self.watch(state, board.read())

        asked: dict[Needs, Iterator[Cell]] = {
            Needs(gpus=self.gpus, card=card): queue for card, queue in queues.items()
        }
        work = each(self.cluster, on_node, asked, in_flight=self.in_flight, watch=show)
        with closing(work) as ended:
            for cell, found in ended:
                yield cell, found if isinstance(found, Reason) else self._kept(found)

    def _kept(self, found: dict[str, Any]) -> Record | Reason:
        """What a node sent, kept as a run of this machine is."""
        if "reason" in found:
            return Reason.model_validate(found["reason"])
        try:
            record = files.parse(found["record"], "node")
        except CardfitError as error:
            return Reason.of("sweep-refused", why=str(error))
        keeper = Keeper(record.id, self.store)
        try:
            for name, content in found["beside"].items():
                files.put(keeper.folder / name, content)
            return keeper.save(record)
        finally:
            keeper.close()
