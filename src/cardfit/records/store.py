"""The store: records in one database, SQLite in the user's data folder unless a URL names another.

In: records, a SQLAlchemy URL. Out: records back, by what they were. The database holds each record's JSON with the
columns that are asked for; the JSON files are readable without it. Its layout carries a version and is migrated when
it is opened; a newer one is refused. Two writers may share it: SQLite waits for the other's transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cardfit.errors import BadFile, BadRequest, MissingExtra
from cardfit.records import files
from cardfit.records.models import Record

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

WAIT_S = 30  # for another writer's transaction
_NAME = "records.sqlite"
_CREATE = """
CREATE TABLE records (
    id VARCHAR(40) PRIMARY KEY, created VARCHAR(40) NOT NULL, model VARCHAR(200), card VARCHAR(200), device VARCHAR(40),
    outcome VARCHAR(20) NOT NULL, sweep VARCHAR(80), cell VARCHAR(80), body TEXT NOT NULL
)
"""
Migration = Callable[["Connection"], None]


def _first(connection: Connection) -> None:
    for statement in (
        _CREATE,
        "CREATE INDEX records_created ON records (created)",
        "CREATE INDEX records_sweep ON records (sweep, cell)",
    ):
        connection.exec_driver_sql(statement)


MIGRATIONS: tuple[Migration, ...] = (_first,)
"""What brings the layout from version n to n + 1, in order; the database says how many it has seen."""


def default_url() -> str:
    """The URL of the store in the user's data folder."""
    return f"sqlite:///{(files.data_folder() / _NAME).as_posix()}"


def _sqlalchemy() -> ModuleType:
    try:
        import sqlalchemy
    except ModuleNotFoundError as missing:
        raise MissingExtra("records-need-store", package=missing.name or "sqlalchemy") from missing
    return sqlalchemy


class Store:
    """An open store. Raises BadRequest for a URL that is none, BadFile where the database cannot be used."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or default_url()
        self.engine = self._engine()
        with self._writing() as connection:
            self._migrate(connection)

    def close(self) -> None:
        """Let the database go."""
        self.engine.dispose()

    def put(self, record: Record) -> None:
        """Keep ``record``; one with its id is replaced. Raises BadFile when it cannot be written."""
        self.put_all((record,))

    def put_all(self, records: Iterable[Record]) -> None:
        """Keep all of ``records`` or none of them."""
        text = _sqlalchemy().text
        insert = text(
            "INSERT INTO records (id, created, model, card, device, outcome, sweep, cell, body) "
            "VALUES (:id, :created, :model, :card, :device, :outcome, :sweep, :cell, :body)"
        )
        with self._writing() as connection:
            for record in records:
                connection.execute(text("DELETE FROM records WHERE id = :id"), {"id": record.id})
                connection.execute(insert, _row(record))

    def get(self, record_id: str) -> Record:
        """The record whose id begins with ``record_id``; raises BadRequest when none or several do."""
        text = _sqlalchemy().text
        query = text("SELECT id, body FROM records WHERE id LIKE :id ESCAPE '!' ORDER BY id")
        pattern = record_id.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"
        with self._reading() as connection:
            found = connection.execute(query, {"id": pattern}).all()
        if len(found) != 1:
            code = "record-unknown" if not found else "record-ambiguous"
            near = ", ".join(row[0] for row in found[:5])
            raise BadRequest(code, asked=record_id, found=near)
        return files.parse(found[0][1], found[0][0])

    def list(
        self,
        *,
        model: str | None = None,
        card: str | None = None,
        outcome: str | None = None,
        sweep: str | None = None,
        since: datetime | None = None,
        last: int | None = None,
        unread: list[BadFile] | None = None,
    ) -> tuple[Record, ...]:
        """The records that match, oldest first; only the ``last`` so many where that is given.

        One that cannot be read (of a newer cardfit, say) is put into ``unread`` as its error; without that it raises.
        """
        wanted: dict[str, Any] = {"model": model, "card": card, "outcome": outcome, "sweep": sweep}
        given = {name: value for name, value in wanted.items() if value is not None}
        where = [f"{name} = :{name}" for name in given]
        if since is not None:
            where.append("created >= :since")
            given["since"] = since.isoformat()
        query = "SELECT id, body FROM records"
        query += f" WHERE {' AND '.join(where)}" if where else ""
        query += " ORDER BY created DESC, id DESC"
        with self._reading() as connection:
            rows = connection.execute(_sqlalchemy().text(query), given).fetchmany(last or 1_000_000)
        found = []
        for name, body in reversed(rows):
            try:
                found.append(files.parse(body, name))
            except BadFile as error:
                if unread is None:
                    raise
                unread.append(error)
        return tuple(found)

    def remove(self, ids: Iterable[str]) -> None:
        """Forget the records called ``ids``."""
        text = _sqlalchemy().text
        with self._writing() as connection:
            for record_id in ids:
                connection.execute(text("DELETE FROM records WHERE id = :id"), {"id": record_id})

    # -- the database ---------------------------------------------------------------------------------------------

    def _engine(self) -> Engine:
        sqlalchemy = _sqlalchemy()
        try:
            url = sqlalchemy.make_url(self.url)
            if url.get_backend_name() == "sqlite":
                if url.database and url.database != ":memory:":
                    self._folder(Path(url.database).parent)
                engine = sqlalchemy.create_engine(
                    url, connect_args={"timeout": WAIT_S}, isolation_level="AUTOCOMMIT"
                )
            else:
                engine = sqlalchemy.create_engine(url)
        except (
            sqlalchemy.exc.ArgumentError,
            sqlalchemy.exc.NoSuchModuleError,
            ModuleNotFoundError,
        ) as error:
            raise BadRequest("store-bad-url", asked=self._shown(), why=_short(error)) from error
        return engine  # type: ignore[no-any-return]

    def _folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._refused(error) from error

    def _shown(self) -> str:
        """The URL without its password."""
        sqlalchemy = _sqlalchemy()
        try:
            return str(sqlalchemy.make_url(self.url).render_as_string(hide_password=True))
        except sqlalchemy.exc.ArgumentError:
            return self.url.partition(":")[0]

    def _refused(self, error: Exception) -> BadFile:
        return BadFile("store-unusable", store=self._shown(), why=_short(error))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction: all of it or none. SQLite takes the lock at once, so that two writers wait in turn."""
        sqlalchemy = _sqlalchemy()
        try:
            with self.engine.connect() as connection:
                if self.engine.dialect.name != "sqlite":
                    with connection.begin():
                        yield connection
                    return
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.exec_driver_sql("ROLLBACK")
                    raise
                connection.exec_driver_sql("COMMIT")
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise self._refused(error) from error

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        sqlalchemy = _sqlalchemy()
        try:
            with self.engine.connect() as connection:
                yield connection
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise self._refused(error) from error

    def _migrate(self, connection: Connection) -> None:
        text = _sqlalchemy().text
        connection.exec_driver_sql(
            "CREATE TABLE IF NOT EXISTS cardfit_layout (version INTEGER NOT NULL)"
        )
        seen = connection.execute(text("SELECT MAX(version) FROM cardfit_layout")).scalar() or 0
        if seen > len(MIGRATIONS):
            raise BadFile("store-newer", store=self._shown(), found=seen, known=len(MIGRATIONS))
        for number in range(seen, len(MIGRATIONS)):
            MIGRATIONS[number](connection)
            connection.execute(
                text("INSERT INTO cardfit_layout VALUES (:number)"), {"number": number + 1}
            )


def _row(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "created": record.created.isoformat(),
        "model": record.model,
        "card": record.machine.card,
        "device": record.device,
        "outcome": record.outcome.kind,
        "sweep": record.sweep,
        "cell": record.cell,
        "body": files.text_of(record),
    }


def _short(error: Exception) -> str:
    """The reason in one line: the driver's own words where there are some."""
    inner = getattr(error, "orig", None) or error
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return str(inner).splitlines()[0] if str(inner) else type(inner).__name__
