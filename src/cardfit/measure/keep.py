"""Keep a record while it grows: the file after every repetition, the store where it can be reached.

In: a record. Out: its JSON file, and a row of the store. The file comes first and is the truth; a store that cannot be
written costs a note, never the run.
"""

from __future__ import annotations

from pathlib import Path

from cardfit.errors import BadFile, CardfitError
from cardfit.records import files
from cardfit.records.models import Reason, Record
from cardfit.records.opening import AnyStore, open_store


class Keeper:
    """Where one run's record goes. Opening it proves that the folder can be written, before anything runs.

    Raises BadFile for a folder that cannot be written and, where a store was named, as `open_store` does.
    """

    def __init__(
        self, record_id: str, store: str | None = None, folder: Path | None = None
    ) -> None:
        self.folder = (folder or files.records_folder()) / record_id
        self.base = self.folder.parent
        probe = self.folder / ".writable"
        files.put(probe, b"")
        probe.unlink()
        self.notes: tuple[Reason, ...] = ()
        self.store: AnyStore | None = None
        try:
            self.store = open_store(store)
        except CardfitError as error:
            if store is not None:
                raise
            self._left(error)

    def save(self, record: Record) -> Record:
        """Keep ``record``; returns it with a note where the store did not take it. Raises BadFile for the file."""
        record = self._noted(record)
        files.write(record, self.base)
        if self.store is not None:
            try:
                self.store.put(record)
            except BadFile as error:
                self.store = None
                self._left(error)
                record = self._noted(record)
                files.write(record, self.base)
        return record

    def drop(self, record_id: str) -> None:
        """Remove what was kept of a run that never began."""
        files.remove(record_id, self.base)
        if self.store is not None:
            self.store.remove((record_id,))

    def close(self) -> None:
        """Let the store go."""
        if self.store is not None:
            self.store.close()

    def _left(self, error: CardfitError) -> None:
        self.notes = (*self.notes, Reason.of("run-store-left", why=str(error)))

    def _noted(self, record: Record) -> Record:
        new = tuple(note for note in self.notes if note not in record.notes)
        return record.model_copy(update={"notes": (*record.notes, *new)}) if new else record
