"""The layout of the database: its tables, and what brings an older layout up.

In: a connection inside one transaction. Out: the same database with this layout. The statements are those that SQLite
and PostgreSQL both know. A record lies there as its JSON, beside a short form and the columns that are asked for.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cardfit.errors import BadFile
from cardfit.records import files
from cardfit.records.identity import content_hash, short
from cardfit.records.models import Record
from cardfit.records.wanted import ASKED, time_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

TABLES = ("records", "cardfit_layout", "cardfit_store")
COLUMNS = (
    "id", "created", "model", "card", "device", "outcome", "sweep", "cell", "hash", *ASKED, "short", "body",
)  # fmt: skip
_ID_BYTES, _AT_ONCE = 6, 200
_LONGEST = {"model": 200, "card": 200, "device": 40, "sweep": 80, "cell": 80}
Migration = Callable[["Connection"], None]


def first(connection: Connection) -> None:
    """The table of records."""
    connection.exec_driver_sql(
        "CREATE TABLE records (id VARCHAR(40) PRIMARY KEY, created VARCHAR(40) NOT NULL, model VARCHAR(200), "
        "card VARCHAR(200), device VARCHAR(40), outcome VARCHAR(20) NOT NULL, sweep VARCHAR(80), cell VARCHAR(80), "
        "body TEXT NOT NULL)"
    )
    connection.exec_driver_sql("CREATE INDEX records_created ON records (created)")
    connection.exec_driver_sql("CREATE INDEX records_sweep ON records (sweep, cell)")


def second(connection: Connection) -> None:
    """Hashes, the fields of the request, the short form, indexes by what is asked for; the store's own id."""
    kinds = {"hash": "VARCHAR(64)", "short": "TEXT", **dict.fromkeys(ASKED, "INTEGER")}
    for name, kind in kinds.items():
        connection.exec_driver_sql(f"ALTER TABLE records ADD COLUMN {name} {kind}")
    connection.exec_driver_sql("CREATE TABLE cardfit_store (id VARCHAR(40) NOT NULL)")
    connection.exec_driver_sql(
        f"INSERT INTO cardfit_store VALUES ('{secrets.token_hex(_ID_BYTES)}')"
    )
    _fill(connection)
    connection.exec_driver_sql("DROP INDEX records_created")
    for name, columns in {
        "records_in_time": "created, id",
        "records_by_model": "model, created, id",
        "records_by_card": "card, created, id",
        "records_by_outcome": "outcome, created, id",
        "records_by_size": "model, width, height, num_frames",
        "records_by_hash": "id, hash",
    }.items():
        connection.exec_driver_sql(f"CREATE INDEX {name} ON records ({columns})")


MIGRATIONS: tuple[Migration, ...] = (first, second)
"""What brings the layout from version n to n + 1, in order; the database says how many it has seen."""


def row(record: Record) -> dict[str, Any]:
    """The columns of ``record``. ``created`` sorts as text; a name longer than its column is cut there."""
    request = record.request
    found: dict[str, Any] = {
        "id": record.id,
        "created": time_of(record).isoformat(timespec="microseconds"),
        "model": record.model,
        "card": record.machine.card,
        "device": record.device,
        "outcome": record.outcome.kind,
        "sweep": record.sweep,
        "cell": record.cell,
        "hash": content_hash(record),
        **{name: None if request is None else _whole(getattr(request, name)) for name in ASKED},
        "short": short(record),
        "body": files.text_of(record),
    }
    for name, most in _LONGEST.items():
        if found[name] is not None:
            found[name] = found[name].replace("\0", "")[:most]
    return found


def _whole(value: int) -> int | None:
    """``value`` where the column can hold it: what is larger is no size of a picture."""
    return value if abs(value) < 2**31 else None


def _fill(connection: Connection) -> None:
    """The new columns of the rows there are. One that cannot be read keeps them empty and is said when it is asked."""
    from sqlalchemy import text

    names = ("created", "hash", *ASKED, "short")
    update = text(f"UPDATE records SET {', '.join(f'{n} = :{n}' for n in names)} WHERE id = :id")
    query = text("SELECT id, body FROM records WHERE id > :last ORDER BY id LIMIT :most")
    last = ""
    while found := connection.execute(query, {"last": last, "most": _AT_ONCE}).all():
        rows = []
        for name, body in found:
            try:
                rows.append(row(files.parse(body, name)))
            except BadFile:
                continue
        if rows:
            kept = [{key: each[key] for key in (*names, "id")} for each in rows]
            connection.execute(update, kept)
        last = found[-1][0]
