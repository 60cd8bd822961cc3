"""A store in a database: SQLite, or PostgreSQL for a team.

In: records, a SQLAlchemy URL. Out: records back, by what they were. The JSON files are readable without it. Its layout
carries a version and is migrated when it is opened; a newer one is refused, and a role that may only read changes
nothing. Many writers may share it: each record goes in whole, and of two states of one run the further one stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cardfit.errors import BadFile, BadRequest, CardfitError, MissingExtra
from cardfit.records import files
from cardfit.records.identity import further, same_run
from cardfit.records.layout import COLUMNS, MIGRATIONS, TABLES, row
from cardfit.records.models import Record
from cardfit.records.wanted import ALL, Wanted

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

WAIT_S = 30  # for another writer's transaction
CONNECT_S = 10  # for a server to answer
AT_ONCE = 200  # records in one statement, and in memory
_LOCK = 0x63617264666974  # "cardfit": who migrates a PostgreSQL database holds it
_Conditions = tuple[list[str], dict[str, Any]]  # the class has a method called list
_NAMES = ", ".join(COLUMNS)
_VALUES = ", ".join(f":{name}" for name in COLUMNS)
_SET = ", ".join(f"{name} = :{name}" for name in COLUMNS if name != "id")
_INSERT = f"INSERT INTO records ({_NAMES}) VALUES ({_VALUES}) ON CONFLICT (id) DO "
_REPLACE = _INSERT + "UPDATE SET " + ", ".join(f"{n} = excluded.{n}" for n in COLUMNS if n != "id")


@dataclass(slots=True)
class Added:
    """What became of records that were added: new, further on than what was there, there already, of another run."""

    new: int = 0
    updated: int = 0
    same: int = 0
    others: tuple[str, ...] = ()

    def count(self, more: Added) -> None:
        """Add ``more`` to these."""
        self.new, self.updated = self.new + more.new, self.updated + more.updated
        self.same, self.others = self.same + more.same, self.others + more.others


class Store:
    """An open store. Raises BadRequest for a URL that is none, BadFile where the database cannot be used."""

    def __init__(self, url: str) -> None:
        self.url = _url(url)
        self.engine = self._engine()
        try:
            self._brought_up()
        except CardfitError:
            self.close()
            raise

    def close(self) -> None:
        """Let the database go."""
        self.engine.dispose()

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return _shown(self.url)

    @property
    def id(self) -> str | None:
        """The store's own id: what its records name as where they came from."""
        with self._reading() as connection:
            found = connection.execute(self._text("SELECT id FROM cardfit_store")).scalar()
        return None if found is None else str(found)

    def put(self, record: Record) -> None:
        """Keep ``record``; one with its id is replaced. Raises BadFile when it cannot be written."""
        self.put_all((record,))

    def put_all(self, records: Iterable[Record]) -> None:
        """Keep all of ``records`` or none of them; those with their ids are replaced."""
        with self._writing() as connection:
            for record in records:
                connection.execute(self._text(_REPLACE), row(record))

    def add_all(self, records: Sequence[Record]) -> Added:
        """Add ``records``, all or none: of two states of one run the further one stays, whoever writes first."""
        waiting = {record.id: record for record in sorted(records, key=lambda each: each.id)}
        rows = {name: row(record) for name, record in waiting.items()}
        found = Added()
        with self._writing() as connection:
            while waiting:
                there = self._there(connection, list(waiting))
                new = [rows[name] for name in waiting if name not in there]
                if new:
                    connection.execute(self._text(_INSERT + "NOTHING"), new)
                    now = self._hashes(connection, [each["id"] for each in new])
                    made = {each["id"] for each in new if now.get(each["id"]) == each["hash"]}
                    found.new += len(made)
                    waiting = {n: each for n, each in waiting.items() if n not in made}
                for name, (digest, body) in there.items():
                    found.count(self._met(connection, waiting.pop(name), rows[name], digest, body))
        return found

    def get(self, record_id: str) -> Record:
        """The record whose id begins with ``record_id``; raises BadRequest when none or several do."""
        query = "SELECT id, body FROM records WHERE id LIKE :id ESCAPE '!' ORDER BY id LIMIT 6"
        pattern = record_id.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"
        with self._reading() as connection:
            found = connection.execute(self._text(query), {"id": pattern}).all()
        if len(found) != 1:
            code = "record-unknown" if not found else "record-ambiguous"
            near = ", ".join(each[0] for each in found[:5])
            raise BadRequest(code, asked=record_id, found=near)
        return files.parse(found[0][1], found[0][0])

    def list(
        self, *, unread: list[BadFile] | None = None, short: bool = False, **filters: Any
    ) -> tuple[Record, ...]:
        """The records that match `Wanted` of ``filters``, oldest first.

        One that cannot be read (of a newer cardfit, say) is put into ``unread`` as its error; without that it raises.
        """
        return tuple(readable(self.each(Wanted(**filters), short=short), unread))

    def each(self, wanted: Wanted = ALL, *, short: bool = False) -> Iterator[Record | BadFile]:
        """The records that match, oldest first, a few at a time; one that cannot be read comes as its error.

        ``short`` leaves out single calls, steps and sentences.
        """
        where, given = self._conditions(wanted)
        body, after = "COALESCE(short, body)" if short else "body", ""
        while True:
            query = f"SELECT id, created, {body} FROM records{_all_of(where, after)}"
            query += " ORDER BY created, id LIMIT :at_once"
            with self._reading() as connection:
                found = connection.execute(self._text(query), {**given, "at_once": AT_ONCE}).all()
            for name, _, text in found:
                yield _parsed(text, name)
            if len(found) < AT_ONCE:
                return
            after = "(created, id) > (:after_created, :after_id)"
            given |= {"after_created": found[-1][1], "after_id": found[-1][0]}

    def some(self, ids: Sequence[str]) -> Iterator[Record | BadFile]:
        """The records called ``ids``, in the order of their ids."""
        ids = sorted(ids)
        for begin in range(0, len(ids), AT_ONCE):
            names, given = _named(ids[begin : begin + AT_ONCE])
            query = f"SELECT id, body FROM records WHERE id IN ({names}) ORDER BY id"
            with self._reading() as connection:
                found = connection.execute(self._text(query), given).all()
            for name, text in found:
                yield _parsed(text, name)

    def hashes(self, wanted: Wanted = ALL) -> dict[str, str | None]:
        """Content hash by id, of the records that match; ``None`` where the record cannot be read."""
        where, given = self._conditions(wanted)
        query = f"SELECT id, hash FROM records{_all_of(where)}"
        with self._reading() as connection:
            return {each[0]: each[1] for each in connection.execute(self._text(query), given)}

    def remove(self, ids: Iterable[str]) -> None:
        """Forget the records called ``ids``."""
        with self._writing() as connection:
            for record_id in ids:
                connection.execute(
                    self._text("DELETE FROM records WHERE id = :id"), {"id": record_id}
                )

    def grant_read(self, role: str) -> None:
        """Let ``role``, which the server knows, read this store and nothing else. Raises BadRequest, BadFile."""
        if self.engine.dialect.name != "postgresql":
            raise BadRequest("store-grant-needs-server", store=self.shown, role=role)
        quote = self.engine.dialect.identifier_preparer.quote_identifier
        with self._writing() as connection:
            names = "SELECT current_database(), current_schema()"
            database, schema = connection.execute(self._text(names)).one()
            for what in (
                f"CONNECT ON DATABASE {quote(database)}",
                f"USAGE ON SCHEMA {quote(schema)}",
                f"SELECT ON {', '.join(TABLES)}",
            ):
                connection.exec_driver_sql(f"GRANT {what} TO {quote(role)}")

    # -- adding ---------------------------------------------------------------------------------------------------

    def _there(self, connection: Connection, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Hash and body of those of ``ids`` that are there, held until the end of the transaction."""
        found = {}
        lock = "" if self.engine.dialect.name == "sqlite" else " FOR UPDATE"
        for begin in range(0, len(ids), AT_ONCE):
            names, given = _named(ids[begin : begin + AT_ONCE])
            query = f"SELECT id, hash, body FROM records WHERE id IN ({names}) ORDER BY id{lock}"
            for name, digest, body in connection.execute(self._text(query), given):
                found[name] = (digest, body)
        return found

    def _hashes(self, connection: Connection, ids: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for begin in range(0, len(ids), AT_ONCE):
            names, given = _named(ids[begin : begin + AT_ONCE])
            query = f"SELECT id, hash FROM records WHERE id IN ({names})"
            found |= {each[0]: each[1] for each in connection.execute(self._text(query), given)}
        return found

    def _met(
        self, connection: Connection, record: Record, new: dict[str, Any], digest: str, body: str
    ) -> Added:
        """What becomes of ``record`` where one with its id is."""
        if digest == new["hash"]:
            return Added(same=1)
        before = _parsed(body, record.id)
        if isinstance(before, BadFile) or not same_run(before, record):
            return Added(others=(record.id,))
        if not further(record, before):
            return Added(same=1)
        connection.execute(self._text(f"UPDATE records SET {_SET} WHERE id = :id"), new)
        return Added(updated=1)

    def _conditions(self, wanted: Wanted) -> _Conditions:
        """The conditions of a query, and their values; those of ``last`` are where its records begin."""
        given = wanted.columns
        where = [f"{name} = :{name}" for name in given]
        if wanted.since is not None:
            where.append("created >= :since")
            given["since"] = wanted.since.astimezone(UTC).isoformat(timespec="microseconds")
        if wanted.last is None:
            return where, given
        query = f"SELECT created, id FROM records{_all_of(where)}"
        query += " ORDER BY created DESC, id DESC LIMIT 1 OFFSET :skip"
        with self._reading() as connection:
            found = connection.execute(
                self._text(query), {**given, "skip": max(0, wanted.last - 1)}
            ).all()
        if found:
            where.append("(created, id) >= (:edge_created, :edge_id)")
            given |= {"edge_created": found[0][0], "edge_id": found[0][1]}
        return where, given

    # -- the database ---------------------------------------------------------------------------------------------

    def _text(self, statement: str) -> Any:
        return _sqlalchemy().text(statement)

    def _engine(self) -> Engine:
        sqlalchemy = _sqlalchemy()
        given: dict[str, Any] = {"pool_pre_ping": True}
        if self.url.get_backend_name() == "sqlite":
            if self.url.database and self.url.database != ":memory:":
                self._folder(Path(self.url.database).parent)
            given = {"connect_args": {"timeout": WAIT_S}, "isolation_level": "AUTOCOMMIT"}
        elif (
            self.url.get_backend_name() == "postgresql" and "connect_timeout" not in self.url.query
        ):
            given["connect_args"] = {"connect_timeout": CONNECT_S}
        try:
            return sqlalchemy.create_engine(self.url, **given)  # type: ignore[no-any-return]
        except ModuleNotFoundError as missing:
            raise MissingExtra("store-needs-driver", package=missing.name or "psycopg") from missing
        except (sqlalchemy.exc.ArgumentError, sqlalchemy.exc.NoSuchModuleError) as error:
            raise BadRequest("store-bad-url", asked=self.shown, why=self._why(error)) from error

    def _folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._refused(error) from error

    def _why(self, error: Exception) -> str:
        """The reason in one line: the driver's own words where there are some, without the password."""
        inner = getattr(error, "orig", None) or error
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        said = " ".join(str(inner).split("\n\n")[0].split()) or type(inner).__name__
        for secret in (self.url.password, self.url.query.get("password")):
            said = said.replace(str(secret), "***") if secret else said
        return said

    def _refused(self, error: Exception) -> BadFile:
        return BadFile("store-unusable", store=self.shown, why=self._why(error))

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

    def _brought_up(self) -> None:
        """The layout as this cardfit has it: looked at first, so that opening a store needs no right to write."""
        with self._reading() as connection:
            seen = self._seen(connection)
        if seen != len(MIGRATIONS):
            with self._writing() as connection:
                self._migrate(connection)

    def _seen(self, connection: Connection) -> int:
        """The layout that is there, 0 for none. Raises BadFile for a newer one."""
        if not _sqlalchemy().inspect(connection).has_table("cardfit_layout"):
            return 0
        query = self._text("SELECT MAX(version) FROM cardfit_layout")
        seen = int(connection.execute(query).scalar() or 0)
        if seen > len(MIGRATIONS):
            raise BadFile("store-newer", store=self.shown, found=seen, known=len(MIGRATIONS))
        return seen

    def _migrate(self, connection: Connection) -> None:
        if self.engine.dialect.name == "postgresql":
            if not connection.execute(self._text(_MAY_CHANGE)).scalar():
                found = self._seen(connection)
                raise BadFile("store-older", store=self.shown, found=found, known=len(MIGRATIONS))
            connection.execute(self._text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        seen = self._seen(connection)  # again: another may have been quicker
        connection.exec_driver_sql(
            "CREATE TABLE IF NOT EXISTS cardfit_layout (version INTEGER NOT NULL)"
        )
        for number in range(seen, len(MIGRATIONS)):
            MIGRATIONS[number](connection)
            connection.execute(
                self._text("INSERT INTO cardfit_layout VALUES (:number)"), {"number": number + 1}
            )


# Whether this role may make tables here, and owns those that are there: asked, so that nothing is tried in vain.
_MAY_CHANGE = """
SELECT current_setting('transaction_read_only') = 'off' AND has_schema_privilege(current_schema(), 'CREATE')
    AND NOT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('records') AND NOT pg_has_role(relowner, 'USAGE'))
"""


def readable(
    found: Iterable[Record | BadFile], unread: list[BadFile] | None = None
) -> Iterator[Record]:
    """The records of ``found``; an error goes to ``unread``, or is raised where there is none."""
    for each in found:
        if isinstance(each, Record):
            yield each
        elif unread is None:
            raise each
        else:
            unread.append(each)


def _sqlalchemy() -> ModuleType:
    try:
        import sqlalchemy
    except ModuleNotFoundError as missing:
        raise MissingExtra("records-need-store", package=missing.name or "sqlalchemy") from missing
    return sqlalchemy


def _url(text: str) -> URL:
    """``text`` as a URL; PostgreSQL's through psycopg. Raises BadRequest, which repeats no part that may be secret."""
    sqlalchemy = _sqlalchemy()
    try:
        url = sqlalchemy.make_url(text)
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        scheme = text.partition(":")[0]
        raise BadRequest("store-not-a-url", asked=scheme[:40]) from error
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    return url  # type: ignore[no-any-return]


def _shown(url: URL) -> str:
    return str(url.set(query={}).render_as_string(hide_password=True))


def _all_of(where: Sequence[str], more: str = "") -> str:
    conditions = [*where, *([more] if more else [])]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _named(ids: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Parameters for ``ids``."""
    given = {f"id_{number}": name for number, name in enumerate(ids)}
    return ", ".join(f":{name}" for name in given), given


def _parsed(text: str, name: str) -> Record | BadFile:
    try:
        return files.parse(text, name)
    except BadFile as error:
        return error
