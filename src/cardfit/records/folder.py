"""A store in a shared folder: one JSON file a record, named by its id and its content hash.

In: records, a folder. Out: records back. Several machines may write at once: a file is written beside and moved into
place, two writers of one state write the same file, and a writer removes only states that it saw before it wrote its
own. Records that lie there as `cardfit run` leaves them (``<id>/record.json``) are read too.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from cardfit.errors import BadFile, BadRequest
from cardfit.records import files
from cardfit.records.identity import HASH_LENGTH, content_hash, further, same_run
from cardfit.records.models import Record
from cardfit.records.store import Added, readable
from cardfit.records.wanted import ALL, Wanted

_NAME = re.compile(rf"([0-9]{{8}}t[0-9]{{6}}-[0-9a-f]{{8}})(?:-([0-9a-f]{{{HASH_LENGTH}}})\.json)?")
_Names = list[str]  # the class has a method of that name
_MARK, _ID_BYTES = ".store-", 6
_SCHEME = re.compile(r"([a-z][a-z0-9+]+):")  # one letter is a drive


class FolderStore:
    """An open store. Raises BadFile where the folder cannot be used; the folder it lies in must be there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(exist_ok=True)
            self._names()
        except OSError as error:
            raise self._refused(error) from error

    def close(self) -> None:
        """Nothing is held."""

    @property
    def shown(self) -> str:
        """The folder's path."""
        return str(self.folder)

    @property
    def id(self) -> str | None:
        """The store's own id, made where there is none yet; ``None`` where it has none and cannot be written."""
        try:
            if not (marks := sorted(self.folder.glob(f"{_MARK}*"))):
                (self.folder / f"{_MARK}{secrets.token_hex(_ID_BYTES)}").touch()
                marks = sorted(self.folder.glob(f"{_MARK}*"))
        except OSError:
            return None
        return marks[0].name.removeprefix(_MARK)  # of two that were made at once the first counts

    def put(self, record: Record) -> None:
        """Keep ``record``; one with its id is replaced. Raises BadFile when it cannot be written."""
        self.put_all((record,))

    def put_all(self, records: Iterable[Record]) -> None:
        """Keep ``records``; those with their ids are replaced."""
        there = self._by_id()
        for record in records:
            self._write(record, there.get(record.id, ()))

    def add_all(self, records: Sequence[Record]) -> Added:
        """Add ``records``: of two states of one run the further one stays."""
        there, found = self._by_id(), Added()
        for record in records:
            states = there.get(record.id, ())
            before = self._furthest(states)
            if not states:
                self._write(record, ())
                found.count(Added(new=1))
            elif isinstance(before, BadFile) or not same_run(before, record):
                found.count(Added(others=(record.id,)))
            elif further(record, before):
                self._write(record, states)
                found.count(Added(updated=1))
            else:
                found.count(Added(same=1))
        return found

    def get(self, record_id: str) -> Record:
        """The record whose id begins with ``record_id``; raises BadRequest when none or several do."""
        near = {
            name: states for name, states in self._by_id().items() if name.startswith(record_id)
        }
        if len(near) != 1:
            code = "record-unknown" if not near else "record-ambiguous"
            raise BadRequest(code, asked=record_id, found=", ".join(sorted(near)[:5]))
        found = self._furthest(*near.values())
        if isinstance(found, BadFile):
            raise found
        return found

    def list(
        self, *, unread: list[BadFile] | None = None, short: bool = False, **filters: Any
    ) -> tuple[Record, ...]:
        """The records that match `Wanted` of ``filters``, oldest first; else as a database does."""
        return tuple(readable(self.each(Wanted(**filters), short=short), unread))

    def each(self, wanted: Wanted = ALL, *, short: bool = False) -> Iterator[Record | BadFile]:
        """The records that match, oldest first; one that cannot be read comes as its error.

        ``short`` is for a database: here every record is read in full.
        """
        there = self._by_id()
        if wanted.last is None:
            yield from self._matching(sorted(there), there, wanted)
            return
        latest: deque[Record | BadFile] = deque()
        for found in self._matching(sorted(there, reverse=True), there, wanted):
            if len(latest) >= wanted.last:
                break
            latest.appendleft(found)
        yield from latest

    def some(self, ids: Sequence[str]) -> Iterator[Record | BadFile]:
        """The records called ``ids``, in the order of their ids."""
        there = self._by_id()
        yield from self._matching([name for name in sorted(ids) if name in there], there, ALL)

    def hashes(self, wanted: Wanted = ALL) -> dict[str, str | None]:
        """Content hash by id, of the records that match; ``None`` where the record cannot be read.

        Without filters the names of the files say it.
        """
        if not wanted.everything:
            each = (found for found in self.each(wanted) if isinstance(found, Record))
            return {record.id: content_hash(record) for record in each}
        return {name: self._hash(states) for name, states in self._by_id().items()}

    def _hash(self, states: Sequence[str]) -> str | None:
        told = _NAME.fullmatch(states[0])
        if len(states) == 1 and told and told[2]:
            return told[2]
        record = self._furthest(states)
        return content_hash(record) if isinstance(record, Record) else None

    def remove(self, ids: Iterable[str]) -> None:
        """Forget the records called ``ids``. Raises BadFile."""
        there = self._by_id()
        for name in ids:
            for state in there.get(name, ()):
                self._unlink(state)

    def grant_read(self, role: str) -> None:
        """A folder has no roles. Raises BadRequest."""
        raise BadRequest("store-grant-needs-server", store=self.shown, role=role)

    # -- files ----------------------------------------------------------------------------------------------------

    def _names(self) -> Iterator[str]:
        return iter(sorted(entry.name for entry in self.folder.iterdir()))

    def _by_id(self) -> dict[str, _Names]:
        """The names of the files, or folders, of every record: more than one where two wrote states at once."""
        found: dict[str, _Names] = {}
        try:
            for name in self._names():
                if told := _NAME.fullmatch(name):
                    found.setdefault(told[1], []).append(name)
        except OSError as error:
            raise self._refused(error) from error
        return found

    def _matching(
        self, names: Sequence[str], there: dict[str, _Names], wanted: Wanted
    ) -> Iterator[Record | BadFile]:
        for name in names:
            found = self._furthest(there[name])
            if isinstance(found, BadFile) or wanted.matches(found):
                yield found

    def _furthest(self, states: Sequence[str]) -> Record | BadFile:
        """The state of a run that is furthest on; an error where none can be read."""
        best: Record | None = None
        trouble = BadFile("record-not-read", path=self.shown, why="")
        for state in states:
            path = self.folder / state
            if not (path.is_file() or path.is_dir()):
                continue  # moved on meanwhile, or a pipe that would hold whoever reads it
            try:
                found = files.read(path)
            except BadFile as error:
                trouble = error
                continue
            if best is None or further(found, best):
                best = found
        return trouble if best is None else best

    def _write(self, record: Record, before: Sequence[str]) -> None:
        name = f"{record.id}-{content_hash(record)}.json"
        files.put(self.folder / name, (files.text_of(record) + "\n").encode())
        for state in before:
            if state != name:
                self._unlink(state)

    def _unlink(self, state: str) -> None:
        path = self.folder / state
        if path.is_dir():
            files.remove(state, self.folder)
            return
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise BadFile(
                "record-not-removed", path=str(path), why=error.strerror or str(error)
            ) from error

    def _refused(self, error: OSError) -> BadFile:
        return BadFile("store-unusable", store=self.shown, why=error.strerror or str(error))


def folder_named(text: str) -> Path | None:
    """The folder that ``text`` names as a store: a file: URL, a path with a separator in it, or a folder that is there.

    A single word that is none is not taken for one: it may be a slip of the pen.
    """
    scheme = _SCHEME.match(text)
    if scheme and scheme[1] == "file":
        parts = urlsplit(text)
        return None if parts.netloc not in ("", "localhost") else Path(url2pathname(parts.path))
    if scheme:
        return None
    path = Path(text).expanduser()
    return path if len(path.parts) > 1 or path.is_dir() else None
