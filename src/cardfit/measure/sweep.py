"""Many runs of one request over settings, each in its own child, to be gone on with after any end.

In: cells, what was recorded before, how to run one. Out: a `Sweep` with a row a cell. The smallest predicted need runs
first; what needs at least as much as a cell that ran out of memory is left out, said so. A cell with a finished record
never runs again; one that was cut off does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadRequest, CardfitError, MissingExtra
from cardfit.measure.samples import headline
from cardfit.records import files
from cardfit.records.models import OutcomeKind, Predicted, Quality, Reason, Record
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


@dataclass(frozen=True, slots=True)
class Cell:
    """A combination: what is asked for, its key, and what was predicted."""

    request: Request
    exact: ExactRequest
    settings: Settings
    values: dict[str, Any]
    key: str
    predicted: Predicted | None


Run = Callable[[Cell], Record]
Judge = Callable[[Cell, Record], Record]


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
    first: str | None = None,
    judge: Judge = lambda _cell, record: record,
    said: Callable[[Sweep], None] = lambda _state: None,
) -> Sweep:
    """Run every cell that has no finished record yet. Raises BadRequest where the sweep runs already.

    ``first`` is the key of a cell that runs before the others, as their reference does; ``judge`` is handed every
    record that ended well and returns it with its quality. ``said`` is called after every cell.
    What a cell refuses (a setting that cannot be turned here) is its reason.
    """
    with _alone(name):
        before = finished(name)
        rows: dict[str, SweepRow] = {}
        failed: list[tuple[Predicted, OutcomeKind]] = []
        ran = kept = 0
        for cell in sorted(cells, key=lambda each: (each.key != first, _need(each))):
            record = before.get(cell.key)
            if record is not None:
                kept += 1
            elif (why := _hopeless(cell, failed)) is not None:
                rows[cell.key] = _row(cell, None, why)
                continue
            else:
                try:
                    record = run(cell)
                except CardfitError as error:
                    if not isinstance(error, BadRequest):
                        raise
                    rows[cell.key] = _row(cell, None, Reason.of("sweep-refused", why=str(error)))
                    continue
                ran += 1
            if record.ok:
                record = judge(cell, record)
            if cell.predicted is not None and record.outcome.kind in _OVER:
                failed.append((cell.predicted, record.outcome.kind))
            rows[cell.key] = _row(cell, record, None)
            said(_state(name, model, cells, rows, ran, kept))
        return _state(name, model, cells, rows, ran, kept)


def finished(name: str) -> dict[str, Record]:
    """The finished records of the sweep called ``name``, by cell; those that were cut off do not count."""
    return {
        record.cell: record
        for record in files.each()
        if isinstance(record, Record)
        and record.sweep == name
        and record.cell is not None
        and record.finished
        and record.outcome.kind != "interrupted"
    }


def _state(
    name: str,
    model: str,
    cells: Sequence[Cell],
    rows: Mapping[str, SweepRow],
    ran: int,
    kept: int,
) -> Sweep:
    listed = tuple(rows[cell.key] for cell in cells if cell.key in rows)
    return Sweep(id=name, model=model, rows=listed, ran=ran, kept=kept)


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


def _hopeless(cell: Cell, failed: Sequence[tuple[Predicted, OutcomeKind]]) -> Reason | None:
    """Why a cell cannot do better than one that failed: it is predicted to need as much of what that lacked."""
    if cell.predicted is None:
        return None
    for other, kind in failed:
        what = _OVER[kind]
        mine, its = getattr(cell.predicted, what), getattr(other, what)
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
