"""A team's store on a PostgreSQL server: who may do what, and what is said when it cannot be reached."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cardfit.cli.main import run
from cardfit.errors import BadFile, BadRequest, MissingExtra
from cardfit.measure.keep import Keeper
from cardfit.records import files, store
from cardfit.records.opening import opened
from cardfit.records.store import Store

_here = Path(__file__)
_made = {}
for _name in ("make_record", "postgres"):
    _spec = importlib.util.spec_from_file_location(_name, _here.with_name(f"{_name}.py"))
    assert _spec is not None and _spec.loader is not None
    _made[_name] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_made[_name])
make_record: Any = _made["make_record"]
postgres: Any = _made["postgres"]


@pytest.fixture
def team(server: Any, database: str) -> Iterator[str]:
    """A store with one record in it."""
    url = server.url(database)
    with opened(url) as base:
        base.put(make_record.record())
    yield url


@pytest.fixture
def reader(server: Any, database: str, team: str) -> Iterator[str]:
    """The store as a role sees it that may only read it."""
    role = f"web_{database}"
    server.run(f"CREATE ROLE {role} LOGIN")
    assert run(["records", "grant-read", role, "--store", team]) == 0
    yield server.url(database, role)
    server.run(f"DROP OWNED BY {role}", database=database)
    server.run(f"DROP ROLE {role}")


# --- a role that may only read


def test_a_reader_reads_and_writes_nothing(reader: str, server: Any, database: str) -> None:
    with opened(reader) as base:
        (record,) = base.list()
        assert base.get(record.id) == record and base.hashes() and base.id
        for change in (lambda: base.put(record), lambda: base.remove([record.id])):
            with pytest.raises(BadFile, match="permission denied for table records"):
                change()
    role = f"web_{database}"
    seen = "SELECT has_schema_privilege('{0}', 'public', 'CREATE'), has_table_privilege('{0}', 'records', 'INSERT')"
    assert server.run(seen.format(role), database=database) == [(False, False)]


def test_the_pages_and_the_api_are_served_to_a_reader(reader: str) -> None:
    import httpx

    from cardfit.web.app import application
    from cardfit.web.options import Options

    with opened(reader) as base:
        (record,) = base.list()

    async def asked() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=application(Options(per_second=0, store=reader)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            paths = ("/records", f"/records/{record.id}", "/api/v1/records?last=5")
            return [await client.get(path) for path in paths]

    page, one, listed = asyncio.run(asked())
    assert [each.status_code for each in (page, one, listed)] == [200, 200, 200]
    assert record.id in page.text and record.id in one.text
    assert [each["id"] for each in listed.json()["records"]] == [record.id]


def test_an_older_layout_is_left_to_its_owner(
    reader: str, team: str, monkeypatch: pytest.MonkeyPatch, server: Any, database: str
) -> None:
    """The reader tries nothing: the server's log holds no statement that it refused."""

    def third(connection: Any) -> None:
        connection.exec_driver_sql("ALTER TABLE records ADD COLUMN stars INTEGER")

    monkeypatch.setattr(store, "MIGRATIONS", (*store.MIGRATIONS, third))
    before = (server.folder / "log").read_text().count("permission denied")
    with pytest.raises(BadFile, match=r"has layout 2 .* needs 3, and this role may not change it"):
        Store(reader)
    assert (server.folder / "log").read_text().count("permission denied") == before
    Store(team).close()
    with opened(reader) as base:
        assert len(base.list()) == 1
    monkeypatch.undo()
    with pytest.raises(BadFile, match="has layout 3; this cardfit knows up to 2"):
        Store(team)


def test_a_reader_of_an_empty_database_is_told(server: Any, database: str) -> None:
    role = f"new_{database}"
    server.run(f"CREATE ROLE {role} LOGIN")
    try:
        with pytest.raises(BadFile, match="has layout 0"):
            Store(server.url(database, role))
    finally:
        server.run(f"DROP ROLE {role}")


def test_rights_are_for_roles_that_are_there(
    team: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["records", "grant-read", 'no"body; DROP TABLE records', "--store", team]) == 2
    assert 'role "no"body; DROP TABLE records" does not exist' in capsys.readouterr().err
    assert run(["records", "grant-read", "anna", "--store", str(tmp_path / "shared")]) == 2
    assert "has no roles" in capsys.readouterr().err
    assert run(["records", "grant-read"]) == 2
    with opened(team) as base:
        assert len(base.list()) == 1


# --- a store that cannot be reached


def _said(asked: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["records", "list", "--json", "--store", asked]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    return str(caught.err)


def test_a_wrong_password_is_said_and_not_shown(
    server: Any, team: str, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.run("GRANT CREATE ON SCHEMA public TO secret", database=database)
    wrong = _said(server.url(database, "secret:wr0ng-word"), capsys)
    assert 'password authentication failed for user "secret"' in wrong
    query = _said(f"{server.url(database, 'secret')}&password=wr0ng-word", capsys)
    for text in (wrong, query):
        assert "wr0ng" not in text and "cannot be used" in text
    right = server.url(database, f"secret:{postgres.QUOTED}")
    assert "permission denied for table cardfit_layout" in _said(right, capsys)


@pytest.mark.parametrize(
    "asked",
    [
        "postgresql+psycopg://anna:pa55word@127.0.0.1:1/cardfit",
        "postgres://anna:pa55word@127.0.0.1:1/cardfit?connect_timeout=2",
        "postgresql://anna:pa55word@no-such-host.invalid/cardfit",
    ],
)
def test_a_server_that_is_away_is_said(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = _said(asked, capsys)
    assert "the store postgresql+psycopg://anna:***@" in text and "pa55word" not in text


def test_a_run_goes_on_when_the_teams_store_is_away(
    monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    monkeypatch.setenv("CARDFIT_STORE", "postgresql://anna:pa55word@127.0.0.1:1/cardfit")
    record = make_record.record()
    keeper = Keeper(record.id)
    kept = keeper.save(record)
    keeper.close()
    assert files.read(data / "records" / record.id) == kept
    (note,) = kept.notes
    assert "kept as a file only" in note.text and "pa55word" not in files.text_of(kept)
    assert "127.0.0.1" not in files.text_of(kept.without_inputs())


def test_a_store_that_goes_away_in_a_run_costs_a_note(server: Any, database: str) -> None:
    record = make_record.record()
    keeper = Keeper(record.id, server.url(database))
    keeper.save(record)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'"
    server.run(ended.format(database))
    again = keeper.save(record)  # the server closed the connection, and is there
    assert again.notes == ()
    server.run(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false", ended.format(database))
    assert [note.code for note in keeper.save(record).notes] == ["run-store-left"]
    keeper.close()


def test_a_missing_driver_is_said_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"needs psycopg.*pip install 'cardfit\[postgres\]'"):
        Store("postgresql://db/cardfit")


# --- the command


def test_a_page_of_records_shows_the_latest(
    team: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cardfit.cli import records as command

    with opened(team) as base:
        base.put_all(make_record.record() for _ in range(5))
        ids = [each.id for each in base.list()]
    monkeypatch.setattr(command, "_PAGE", 4)
    assert run(["records", "list", "--store", team]) == 0
    caught = capsys.readouterr()
    assert [name for name in ids if name in caught.out] == ids[2:]
    assert "The latest 4 are shown" in caught.err
    assert run(["records", "list", "--store", team, "--limit", "6"]) == 0
    caught = capsys.readouterr()
    assert all(name in caught.out for name in ids) and caught.err == ""
    assert run(["records", "list", "--store", team, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["records"]) == 6
    assert run(["records", "list", "--limit", "0"]) == 2
    with pytest.raises(BadRequest):
        Store("nonsense")
