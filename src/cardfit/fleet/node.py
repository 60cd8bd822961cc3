"""What runs on a node: one cell of a sweep, in its own child as everywhere, with nothing left behind.

In: a cell. Out: plain values: the record's JSON and the files beside it, or why it was not run. The record is written
into a folder of the moment, so that a node's own data stay as they are; the driver keeps it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from cardfit.errors import CardfitError
from cardfit.fleet import board
from cardfit.measure.run import Moment
from cardfit.measure.sweep import Cell
from cardfit.measure.sweeping import Each
from cardfit.records import files
from cardfit.records.models import Reason, Record
from cardfit.units import MIB, human_bytes

MAX_BESIDE_BYTES = 256 * MIB  # of latents, outputs and log that come back with a record
_TELL_S = 1.0


@dataclass(frozen=True, slots=True)
class OnNode:
    """Runs a cell as ``each`` says and packs what came of it; ``board`` is where it tells how far it is."""

    each: Each
    board: str | None = None

    def __call__(self, cell: Cell) -> dict[str, Any]:
        """``record`` and ``beside``, or ``reason``."""
        watcher = None if self.board is None else _Teller(self.board)
        with suppress(OSError):  # Ray's workers give way to others, and a measured run is not to
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        with _own_data():
            try:
                record = replace(self.each, store=None, watcher=watcher)(cell)
            except CardfitError as error:
                return {"reason": Reason.of("sweep-refused", why=str(error)).model_dump()}
            return _packed(record, cell)


def _packed(record: Record, cell: Cell) -> dict[str, Any]:
    folder = files.records_folder() / record.id
    beside = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != files.NAME and path.stat().st_size
    }
    notes: tuple[Reason, ...] = ()
    if cell.card is not None and record.machine.card not in (None, cell.card):
        notes += (Reason.of("fleet-other-card", asked=cell.card, found=record.machine.card),)
    size = sum(path.stat().st_size for path in beside.values())
    if size > MAX_BESIDE_BYTES:
        args = {"size": human_bytes(size), "limit": human_bytes(MAX_BESIDE_BYTES)}
        notes += (Reason.of("fleet-files-left", **args),)
        beside = {}
        record = record.model_copy(update={"latents": (), "outputs": ()})
    record = record.model_copy(update={"notes": (*record.notes, *notes)})
    return {
        "record": files.text_of(record),
        "beside": {name: path.read_bytes() for name, path in beside.items()},
    }


@contextmanager
def _own_data() -> Iterator[None]:
    """A data folder for one run. A GPU's run is not held to the one processor thread that Ray gives its task."""
    before = dict(os.environ)
    if os.environ.get("CUDA_VISIBLE_DEVICES"):
        os.environ.pop("OMP_NUM_THREADS", None)
    with tempfile.TemporaryDirectory(prefix="cardfit-node-") as folder:
        os.environ["CARDFIT_DATA"] = str(Path(folder))
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


class _Teller:
    """A watcher that tells the board, once a second at most."""

    def __init__(self, name: str) -> None:
        self.name, self.told = name, float("-inf")

    def __call__(self, moment: Moment, _record: Record) -> None:
        """Tell where the run is; a board that is gone is no loss."""
        now = time.monotonic()
        if now - self.told < _TELL_S:
            return
        self.told = now
        with suppress(Exception):
            board.tell(self.name, astuple(moment))
