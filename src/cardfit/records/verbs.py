"""What people do with records: find, list, export, import, prune.

In: a store's URL, a path, an id, filters. Out: records. An export is one JSON file without prompts, latents or logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cardfit.errors import BadFile, BadRequest, MissingExtra
from cardfit.records import files
from cardfit.records.models import Quality, Record
from cardfit.records.store import Store
from cardfit.units import human_bytes

EXPORT = "cardfit.records/1"
MAX_EXPORT_BYTES = 2**30


@contextmanager
def opened(url: str | None) -> Iterator[Store]:
    """The store at ``url``, closed afterwards."""
    store = Store(url)
    try:
        yield store
    finally:
        store.close()


def listed(
    store: str | None = None,
    *,
    model: str | None = None,
    card: str | None = None,
    outcome: str | None = None,
    sweep: str | None = None,
    last: int | None = None,
    unread: list[BadFile] | None = None,
) -> tuple[Record, ...]:
    """The records that match, oldest first. Raises BadRequest, BadFile as `Store` does.

    Where ``unread`` is given, records that cannot be read go there as their errors instead.
    """
    with opened(store) as base:
        return base.list(
            model=model, card=card, outcome=outcome, sweep=sweep, last=last, unread=unread
        )


def find(asked: Path | str, store: str | None = None) -> Record:
    """The record in a file or folder, or the one whose id begins so: among the files, then in the store.

    Raises BadFile, BadRequest.
    """
    path = Path(asked)
    if path.exists() and (path.is_file() or (path / files.NAME).is_file()):
        return files.read(path)
    name = str(asked)
    folder = files.records_folder()
    if name and folder.is_dir():
        near = [each for each in folder.iterdir() if each.name.startswith(name)]
        if len(near) == 1 and (near[0] / files.NAME).is_file():
            return files.read(near[0])
    with opened(store) as base:
        return base.get(name)


def judged(record: Record, quality: Quality, store: str | None = None) -> Record:
    """``record`` with what its output lost, kept in its file and, where there is a store, there. Raises BadFile."""
    found = record.model_copy(update={"quality": quality})
    files.write(found)
    with suppress(MissingExtra), opened(store) as base:
        base.put(found)
    return found


def export(records: Sequence[Record]) -> str:
    """One JSON text of ``records`` without prompts, latents and logs."""
    body = [record.without_inputs().model_dump(mode="json", by_alias=True) for record in records]
    return json.dumps({"schema": EXPORT, "records": body}, indent=1, ensure_ascii=False)


def bring_in(path: Path, store: str | None = None) -> tuple[Record, ...]:
    """Add the records in ``path`` (a record.json, a folder of them, an export) to the store: all or none.

    Raises BadFile for what cannot be read or holds no record.
    """
    found = tuple(_read(path))
    if not found:
        raise BadFile("records-import-nothing", path=str(path))
    with opened(store) as base:
        base.put_all(found)
    return found


def _read(path: Path) -> Iterator[Record]:
    if path.is_dir() and not (path / files.NAME).is_file():
        for each in files.each(path):
            if isinstance(each, BadFile):
                raise each
            yield each
        return
    if path.is_dir():
        yield files.read(path)
        return
    try:
        if path.stat().st_size > MAX_EXPORT_BYTES:
            raise BadFile("record-too-large", path=str(path), limit=human_bytes(MAX_EXPORT_BYTES))
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(
            "record-not-read", path=str(path), why=error.strerror or str(error)
        ) from error
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadFile(
            "record-not-json", path=str(path), why=str(error).partition(":")[0]
        ) from error
    if (
        isinstance(whole, dict)
        and whole.get("schema") == EXPORT
        and isinstance(whole.get("records"), list)
    ):
        for each in whole["records"]:
            yield files.parse(json.dumps(each), str(path))
        return
    yield files.parse(content, str(path))


def prune(
    store: str | None = None,
    *,
    older_than_days: float | None = None,
    outcome: str | None = None,
    dry: bool = False,
    now: datetime | None = None,
) -> tuple[Record, ...]:
    """Remove the records that match, with their latents; with ``dry`` only say which. Raises BadRequest for neither."""
    if older_than_days is None and outcome is None:
        raise BadRequest("records-prune-what")
    before = None
    if older_than_days is not None:
        before = (now or datetime.now(UTC)) - timedelta(days=older_than_days)
    with opened(store) as base:
        found = tuple(
            record
            for record in base.list(outcome=outcome)
            if before is None or record.created < before
        )
        if not dry:
            for record in found:
                files.remove(record.id)
            base.remove(record.id for record in found)
    return found
