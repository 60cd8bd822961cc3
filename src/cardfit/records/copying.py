"""Records from one store into another, or from files: each once, and none that cannot be true.

In: two open stores, or a path. Out: what became of every record. A copy holds no prompts, paths or names of machines,
and names the stores that it came through. What is there already is told by its content hash and not sent again; one
record that is refused stops no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadFile
from cardfit.records import files
from cardfit.records.models import Origin, Reason, Record
from cardfit.records.opening import AnyStore
from cardfit.records.store import AT_ONCE, Added
from cardfit.records.wanted import ALL, Wanted
from cardfit.units import human_bytes

SCHEMA = "cardfit.copied/1"
EXPORT = "cardfit.records/1"
MAX_EXPORT_BYTES = 2**30
Doubt = Callable[[Record], Reason | None]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Refused(_Frozen):
    """A record that was not taken, and why."""

    id: Annotated[str | None, Field(description="None: so little could be read of it")]
    why: Reason


class Copy(_Frozen):
    """What became of the records that went from one place into a store."""

    source: str
    target: str
    new: int
    updated: Annotated[int, Field(description="the target had an earlier state of the run")]
    same: Annotated[int, Field(description="the target had it, or a later state")]
    refused: tuple[Refused, ...]


class Copied(_Frozen):
    """What `push`, `pull`, `merge` and `import` did: one copy, or one each way."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    copies: tuple[Copy, ...]

    @property
    def refused(self) -> tuple[Refused, ...]:
        """What was not taken, either way."""
        return tuple(refused for copy in self.copies for refused in copy.refused)


def copy(
    source: AnyStore,
    target: AnyStore,
    doubt: Doubt,
    wanted: Wanted = ALL,
    now: datetime | None = None,
) -> Copy:
    """Everything that is ``wanted`` of ``source`` into ``target``. Raises BadFile where either cannot be used."""
    there = target.hashes()
    here = source.hashes(wanted)
    missing = [name for name, digest in here.items() if digest is None or there.get(name) != digest]
    step = Origin(store=source.id, at=now or datetime.now(UTC))

    def shared(record: Record) -> Record:
        return record.without_inputs().model_copy(update={"origin": (*record.origin, step)})

    added, refused = _add(source.some(sorted(missing)), target, doubt, shared)
    return _told(source.shown, target, added, refused, len(here) - len(missing))


def bring_in(path: Path, target: AnyStore, doubt: Doubt, now: datetime | None = None) -> Copy:
    """The records in ``path`` (a record.json, a folder of them, an export) into ``target``, as they are.

    Those of this machine's own folder were measured here; others name that they came from a file. Raises BadFile for
    what cannot be read or holds no record.
    """
    step = Origin(store=None, at=now or datetime.now(UTC))
    own = path.resolve().is_relative_to(files.records_folder().resolve())

    def come(record: Record) -> Record:
        return record if own else record.model_copy(update={"origin": (*record.origin, step)})

    added, refused = _add(_in_files(path), target, doubt, come)
    found = _told(str(path), target, added, refused, 0)
    if not (found.new or found.updated or found.same or found.refused):
        raise BadFile("records-import-nothing", path=str(path))
    return found


def export(records: Iterable[Record]) -> str:
    """One JSON text of ``records`` without prompts, latents, logs, paths and names of machines."""
    body = [record.without_inputs().model_dump(mode="json", by_alias=True) for record in records]
    return json.dumps({"schema": EXPORT, "records": body}, indent=1, ensure_ascii=False)


def _add(
    found: Iterator[Record | BadFile],
    target: AnyStore,
    doubt: Doubt,
    made: Callable[[Record], Record],
) -> tuple[Added, list[Refused]]:
    """A few at a time: all of ``found`` is never in memory at once."""
    added, refused = Added(), []
    while batch := list(islice(found, AT_ONCE)):
        good: dict[str, Record] = {}
        for each in batch:
            if isinstance(each, BadFile):
                refused.append(Refused(id=None, why=Reason.of(each.code, **each.args_)))
            elif (why := doubt(each)) is not None:
                refused.append(Refused(id=each.id, why=why))
            elif each.id in good:
                added.count(target.add_all([made(each)]))  # twice in one file
            else:
                good[each.id] = made(each)
        more = target.add_all(list(good.values()))
        added.count(more)
    refused += [Refused(id=name, why=Reason.of("record-of-another-run")) for name in added.others]
    return added, refused


def _told(source: str, target: AnyStore, added: Added, refused: list[Refused], same: int) -> Copy:
    return Copy(
        source=source,
        target=target.shown,
        new=added.new,
        updated=added.updated,
        same=added.same + same,
        refused=tuple(refused),
    )


def _in_files(path: Path) -> Iterator[Record | BadFile]:
    """What ``path`` holds. Raises BadFile where it is a single file that is none."""
    if path.is_dir() and not (path / files.NAME).is_file():
        yield from files.each(path)
        return
    if path.is_dir():
        yield files.read(path)
        return
    content = _content(path)
    whole = _export(content, path)
    if whole is None:
        yield files.parse(content, str(path))
        return
    for each in whole:
        try:
            yield files.parse(json.dumps(each), str(path))
        except BadFile as error:
            yield error


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_EXPORT_BYTES + 1)
    except OSError as error:
        raise BadFile(
            "record-not-read", path=str(path), why=error.strerror or str(error)
        ) from error
    if len(content) > MAX_EXPORT_BYTES:
        raise BadFile("record-too-large", path=str(path), limit=human_bytes(MAX_EXPORT_BYTES))
    return content


def _export(content: bytes, path: Path) -> list[Any] | None:
    """The records of an export; None for what is no export."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadFile(
            "record-not-json", path=str(path), why=str(error).partition(":")[0]
        ) from error
    if not isinstance(whole, dict) or whole.get("schema") != EXPORT:
        return None
    found = whole.get("records")
    return found if isinstance(found, list) else None
