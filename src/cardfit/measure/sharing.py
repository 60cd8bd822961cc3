"""The verbs by which stores share records, wired: what a card holds is the catalog's word, not the record's.

In: two stores, or a file and a store. Out: `records.copying.Copied`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cardfit.cards import load
from cardfit.records import copying
from cardfit.records.copying import Copied, Doubt
from cardfit.records.doubts import doubt
from cardfit.records.models import Reason, Record
from cardfit.records.opening import opened
from cardfit.records.wanted import Wanted


def push(target: str, *, store: str | None = None, **filters: Any) -> Copied:
    """The records of ``store`` (this machine's own unless named) that match `Wanted` of ``filters``, to ``target``.

    Asked again it sends only what is new. Raises BadRequest, BadFile for a store that cannot be used.
    """
    with opened(store) as own, opened(target) as team:
        return Copied(copies=(copying.copy(own, team, _doubt(), Wanted(**filters)),))


def pull(source: str, *, store: str | None = None, **filters: Any) -> Copied:
    """As `push`, the other way: the records of ``source`` into ``store``."""
    with opened(store) as own, opened(source) as team:
        return Copied(copies=(copying.copy(team, own, _doubt(), Wanted(**filters)),))


def merge(other: str, *, store: str | None = None, **filters: Any) -> Copied:
    """Both ways: afterwards each of the two stores holds what either had."""
    with opened(store) as own, opened(other) as team:
        wanted, doubts = Wanted(**filters), _doubt()
        out = copying.copy(own, team, doubts, wanted)
        return Copied(copies=(out, copying.copy(team, own, doubts, wanted)))


def bring_in(path: Path, store: str | None = None) -> Copied:
    """The records in ``path`` (a record.json, a folder of them, an export) into the store.

    Raises BadFile for what cannot be read or holds no record.
    """
    with opened(store) as own:
        return Copied(copies=(copying.bring_in(path, own, _doubt()),))


def grant_read(role: str, *, store: str | None = None) -> str:
    """Let a role of the server read the store, as `serve` needs it; returns the store as it is shown.

    Raises BadRequest for a store that has no roles, BadFile for a role that the server does not know.
    """
    with opened(store) as own:
        own.grant_read(role)
        return own.shown


def _doubt() -> Doubt:
    cards = load()

    def memory_bytes(card: str) -> int | None:
        known = cards.get(card)
        return None if known is None else known.memory_bytes

    def found(record: Record) -> Reason | None:
        return doubt(record, memory_bytes)

    return found
