"""What people do with records: find, list, prune.

In: a store's URL, a path, an id, filters. Out: records.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cardfit.errors import BadFile, BadRequest, MissingExtra
from cardfit.records import files
from cardfit.records.models import Quality, Record
from cardfit.records.opening import opened
from cardfit.records.wanted import time_of


def listed(
    store: str | None = None,
    *,
    unread: list[BadFile] | None = None,
    short: bool = False,
    **filters: Any,
) -> tuple[Record, ...]:
    """The records that match `Wanted` of ``filters``, oldest first. Raises BadRequest, BadFile as `open_store` does.

    Where ``unread`` is given, records that cannot be read go there as their errors instead. ``short`` leaves out single
    calls, steps and sentences where the store keeps records without them too.
    """
    with opened(store) as base:
        return base.list(unread=unread, short=short, **filters)


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
            for record in base.list(outcome=outcome, unread=[])
            if before is None or time_of(record) < before
        )
        if not dry:
            for record in found:
                files.remove(record.id)
            base.remove(record.id for record in found)
    return found
