"""Many runs of one request over settings, each in its own child, to be gone on with after any end.

In: cells, what was recorded before, how to run one. Out: a `Sweep` with a row a cell. The smallest predicted need runs
first; what needs at least as much as a cell that ran out of memory is left out, said so. A cell with a finished record
never runs again; one that was cut off does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadRequest, MissingExtra
from cardfit.measure.samples import headline
from cardfit.records import files
from cardfit.records.models import OutcomeKind, Predicted, Quality, Reason, Record
from cardfit.records.verbs import listed
from cardfit.request import ExactRequest, Request, Settings

SCHEMA = "cardfit.sweep/1"
_OVER: Mapping[OutcomeKind, Literal["reserved_bytes", "host_bytes", "seconds"]] = {
    "oom": "reserved_bytes",
    "host_oom": "host_bytes",
    "timeout": "seconds",
}


class SweepRow(BaseModel):
    """One cell: what was varied, and its record, or why it has none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cell: str
    values: dict[str, Any]
    record: str | None = None
    outcome: OutcomeKind | None = None
    peak_bytes: Annotated[
        float | None, Field(description="of the card; on a CPU of its tensors")
    ] = None
    host_bytes: float | None = None
    seconds: Annotated[float | None, Field(description="mean of the steady repetitions")] = None
    repeats: int = 0
    predicted_bytes: int | None = None
    quality: Annotated[
        Quality | None, Field(description="against the sweep's reference; None: not compared")
    ] = None
    skipped: Reason | None = None


class Sweep(BaseModel):
    """A sweep as it stands."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    id: str
    model: str
    rows: tuple[SweepRow, ...]
    ran: Annotated[int, Field(description="cells that ran now")]
    kept: Annotated[int, Field(description="cells that had run before")]
    cells: Annotated[int, Field(description="combinations in all")] = 0
    notes: Annotated[
        tuple[Reason, ...], Field(description="of a cluster: nodes lost, left out")
    ] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """A combination: what is asked for, its key, and what was predicted."""

    request: Request
    exact: ExactRequest
    settings: Settings
    values: dict[str, Any]
    key: str
    predicted: Predicted | None
    notes: tuple[Reason, ...] = ()  # about the prediction
    card: str | None = None  # where a card was named


Run = Callable[[Cell], Record]
Judge = Callable[[Cell, Record], Record]
Queues = Mapping[str | None, Iterator[Cell]]
"""Cells by the card they are for, to be drawn when there is room for one: a draw may leave hopeless ones out."""
Ended = Generator[tuple[Cell, Record | Reason], None, None]
"""Cells as they end, each with its record or why it has none."""
Many = Callable[[Run, Queues], Ended]


def in_turn(run: Run, queues: Queues) -> Ended:
    """Run one cell after the other, here. What a cell refuses (a setting that cannot be turned here) is its reason."""
    for cell in chain.from_iterable(queues.values()):
        try:
            yield cell, run(cell)
        except BadRequest as error:
            yield cell, Reason.of("sweep-refused", why=str(error))


def sweep_id(model: str, cells: Sequence[Cell]) -> str:
    """The name of a sweep: the same cells in any order have the same.

    >>> sweep_id("svd", []) == sweep_id("svd", [])
    True
    """
    text = json.dumps([model, sorted(cell.key for cell in cells)])
    return f"sweep-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def sweep(
    name: str,
    model: str,
    cells: Sequence[Cell],
    run: Run,
    *,
    many: Many = in_turn,
    first: str | None = None,
    judge: Judge = lambda _cell, record: record,
    said: Callable[[Sweep], None] = lambda _state: None,
    store: str | None = None,
) -> Sweep:
    """Run every cell that has no finished record yet. Raises BadRequest where the sweep runs already.

    ``many`` calls ``run`` for cells, one after the other here or several elsewhere. ``first`` is the key of a cell
    that runs before the others, as their reference does; ``judge`` is handed every record that ended well and returns
    it with its quality. ``said`` is called after every cell. What has a finished record among the files or in
    ``store`` is not run.
    """
    with _alone(name):
        going = _Going(name, model, cells, finished(name, store), judge, said)
        order = sorted(cells, key=_need)
        for part in (
            [cell for cell in order if cell.key == first],
            [cell for cell in order if cell.key != first],
        ):
            cards = dict.fromkeys(cell.card for cell in part)
            queues = {
                card: going.draw([cell for cell in part if cell.card == card]) for card in cards
            }
            with closing(many(run, queues)) as ended:
                for cell, found in ended:
                    going.take(cell, found)
        return going.state()


@dataclass
class _Going:
    """A sweep as it goes on."""

    name: str
    model: str
    cells: Sequence[Cell]
    before: Mapping[str, Record]
    judge: Judge
    said: Callable[[Sweep], None]
    rows: dict[str, SweepRow] = field(default_factory=dict)
    failed: list[tuple[Cell, OutcomeKind]] = field(default_factory=list)
    ran: int = 0
    kept: int = 0

    def draw(self, cells: Sequence[Cell]) -> Iterator[Cell]:
        """Those of ``cells`` that are to run, one at a time; the others are settled when it is their turn."""
        for cell in cells:
            if (record := self.before.get(cell.key)) is not None:
                self.kept += 1
                self._settle(cell, record)
            elif (why := _hopeless(cell, self.failed)) is not None:
                self.rows[cell.key] = _row(cell, None, why)
            else:
                yield cell

    def take(self, cell: Cell, found: Record | Reason) -> None:
        """What became of a cell that was drawn."""
        if isinstance(found, Reason):
            self.rows[cell.key] = _row(cell, None, found)
            return
        self.ran += 1
        self._settle(cell, found)

    def _settle(self, cell: Cell, record: Record) -> None:
        if record.ok:
            record = self.judge(cell, record)
        if record.outcome.kind in _OVER:
            self.failed.append((cell, record.outcome.kind))
        self.rows[cell.key] = _row(cell, record, None)
        self.said(self.state())

    def state(self) -> Sweep:
        """The sweep now."""
        listed = tuple(self.rows[cell.key] for cell in self.cells if cell.key in self.rows)
        return Sweep(
            id=self.name,
            model=self.model,
            rows=listed,
            ran=self.ran,
            kept=self.kept,
            cells=len(self.cells),
        )


def finished(name: str, store: str | None = None) -> dict[str, Record]:
    """The finished records of the sweep called ``name``, by cell; those that were cut off do not count.

    They are looked for among the files and, where one is named, in ``store``. Raises as `Store` does.
    """
    shared = listed(store, sweep=name, unread=[]) if store is not None else ()
    return {
        record.cell: record
        for record in (*shared, *files.each())
        if isinstance(record, Record)
        and record.sweep == name
        and record.cell is not None
        and record.finished
        and record.outcome.kind != "interrupted"
    }


def _row(cell: Cell, record: Record | None, skipped: Reason | None) -> SweepRow:
    predicted = None
    if cell.predicted is not None:
        on_cpu = cell.predicted.cpu_bytes
        predicted = cell.predicted.reserved_bytes if on_cpu is None else on_cpu
    if record is None:
        return SweepRow(
            cell=cell.key, values=cell.values, predicted_bytes=predicted, skipped=skipped
        )
    seen = headline(record)
    return SweepRow(
        cell=cell.key,
        values=cell.values,
        record=record.id,
        outcome=record.outcome.kind,
        peak_bytes=seen.peak_bytes,
        host_bytes=seen.host_bytes,
        seconds=seen.seconds,
        repeats=seen.repeats,
        predicted_bytes=predicted,
        quality=record.quality,
    )


def _need(cell: Cell) -> tuple[bool, int]:
    """The smallest predicted need first; what has no prediction last."""
    if cell.predicted is None:
        return True, 0
    return False, cell.predicted.reserved_bytes


def _hopeless(cell: Cell, failed: Sequence[tuple[Cell, OutcomeKind]]) -> Reason | None:
    """Why a cell cannot do better than one that failed on the same card: it is predicted to need as much."""
    for other, kind in failed:
        if cell.predicted is None or other.predicted is None or other.card != cell.card:
            continue
        what = _OVER[kind]
        mine, its = getattr(cell.predicted, what), getattr(other.predicted, what)
        if mine is not None and its is not None and mine >= its:
            return Reason.of(f"sweep-hopeless-{what.partition('_')[0]}")
    return None


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Hold the sweep's lock, which the system lets go whatever becomes of this process."""
    try:
        from filelock import FileLock, Timeout
    except ModuleNotFoundError as missing:
        raise MissingExtra("run-needs-torch", package=missing.name or "filelock") from missing
    path = files.data_folder() / "sweeps" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BadRequest("sweep-runs-already", name=name) from None
    try:
        yield
    finally:
        lock.release()
