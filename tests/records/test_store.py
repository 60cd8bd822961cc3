"""Stores: SQLite, PostgreSQL and a shared folder give the same answers; what concerns SQLite's file alone."""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cardfit.errors import BadFile, BadRequest
from cardfit.measure import sharing
from cardfit.records import copying, files, store, verbs
from cardfit.records.identity import content_hash
from cardfit.records.models import Machine, Outcome
from cardfit.records.opening import open_store, opened
from cardfit.records.store import Store
from cardfit.records.wanted import Wanted

_spec = importlib.util.spec_from_file_location(
    "make_record", Path(__file__).with_name("make_record.py")
)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)


def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'records.sqlite'}"


@pytest.fixture(params=["sqlite", "postgresql", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind, as it is named."""
    if request.param == "sqlite":
        return url(tmp_path)
    if request.param == "folder":
        return str(tmp_path / "shared")
    name = request.getfixturevalue("database")
    return str(request.getfixturevalue("server").url(name))


# --- every kind of store


def test_records_come_back_by_what_they_were(place: str) -> None:
    base = open_store(place)
    one = make_record.record(machine=Machine(os="linux", card="l4"))
    two = make_record.record(outcome=Outcome(kind="oom"), model="svd", sweep="s")
    base.put_all((one, two))
    base.put(two)  # again: replaced
    assert {each.id for each in base.list()} == {one.id, two.id}
    assert base.list(card="l4") == (one,)
    assert base.list(outcome="oom") == base.list(model="svd") == base.list(sweep="s") == (two,)
    assert base.list(asked={"width": 64, "seed": 7}, card="l4") == (one,)
    assert base.list(asked={"width": 65}) == ()
    assert base.list(since=datetime.now(UTC) + timedelta(hours=1)) == ()
    assert base.get(one.id) == base.get(one.id[:24]) == one
    assert base.hashes() == {one.id: content_hash(one), two.id: content_hash(two)}
    assert base.hashes(Wanted(card="l4")) == {one.id: content_hash(one)}
    base.remove([one.id, "nothing"])
    assert base.list() == (two,)
    base.close()
    with opened(place) as again:
        assert again.list() == (two,) and again.id is not None


def test_the_latest_come_in_their_order(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "AT_ONCE", 2)  # pages of two
    begin = datetime(2026, 12, 1, tzinfo=UTC)
    given = [begin + timedelta(hours=hours) for hours in range(5)]
    records = [make_record.record(id=files.new_id(at), created=at) for at in given]
    with opened(place) as base:
        base.put_all(records[::-1])
        assert base.list() == tuple(records)
        assert base.list(last=3) == tuple(records[2:])
        assert base.list(last=9, since=given[3]) == tuple(records[3:])
        assert base.list(last=2, model="svd") == ()
        names = [records[4].id, records[0].id, records[2].id]
        assert list(base.some(names)) == [records[0], records[2], records[4]]


def test_an_id_must_name_one_record(place: str) -> None:
    with opened(place) as base:
        base.put_all((make_record.record(), make_record.record()))
        with pytest.raises(BadRequest, match="may be any of"):
            base.get("2")
        for asked in ("nothing", "%", "_"):
            with pytest.raises(BadRequest, match="no record begins so"):
                base.get(asked)


def test_of_two_states_of_a_run_the_further_one_stays(place: str) -> None:
    begun = make_record.record(finished=False, repetitions=())
    ended = begun.model_copy(
        update={"finished": True, "repetitions": (make_record.repetition(1.0),)}
    )
    taken = make_record.record(id=begun.id, model="svd")
    with opened(place) as base:
        assert base.add_all([begun]).new == 1
        assert base.add_all([ended]).updated == 1
        assert base.add_all([begun]).same == base.add_all([ended]).same == 1
        assert base.add_all([taken]).others == (begun.id,)
        assert base.list() == (ended,)
        base.put(begun)  # the run itself says what it is, not how far others think it has come
        assert base.list() == (begun,)


def test_a_short_record_has_what_a_table_shows(place: str) -> None:
    from cardfit.measure.compared import rows
    from cardfit.measure.samples import headline

    record = make_record.record(machine=Machine(os="linux", card="l4"))
    with opened(place) as base:
        base.put(record)
        (short,) = base.list(short=True)
    assert headline(short) == headline(record) and rows(short) == rows(record)
    assert short.outcome.log is None or "shared" in place


_WRITER = """
import sys
from cardfit.records import files
from cardfit.records.opening import opened
record = files.parse(sys.stdin.read(), "stdin")
with opened(sys.argv[1]) as store:
    for number in range(int(sys.argv[2])):
        store.put(record.model_copy(update={"id": files.new_id()}))
        store.add_all([record.model_copy(update={"id": f"20261203t120000-{number:08x}"})])
"""


@pytest.mark.parametrize(
    ("kind", "writers", "count"), [("sqlite", 2, 25), ("folder", 3, 25), ("postgresql", 8, 50)]
)
def test_many_writers_lose_nothing_and_double_nothing(
    kind: str, writers: int, count: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each keeps ``count`` records of its own, and adds ``count`` that all of them have; the store is not there yet."""
    where = {"sqlite": url(tmp_path), "folder": str(tmp_path / "shared")}.get(kind)
    if where is None:
        where = request.getfixturevalue("server").url(request.getfixturevalue("database"))
    text = files.text_of(make_record.record())
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, where, str(count)],
            stdin=subprocess.PIPE,
            text=True,
            env={**os.environ},
        )
        for _ in range(writers)
    ]
    for writer in running:
        assert writer.stdin is not None
        writer.stdin.write(text)
        writer.stdin.close()
    assert [writer.wait(100) for writer in running] == [0] * writers
    with opened(where) as base:
        found = base.list()
    assert len(found) == len({each.id for each in found}) == (writers + 1) * count


# --- layouts


def test_a_store_is_migrated_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = make_record.record()
    Store(url(tmp_path)).put(record)

    def third(connection: Any) -> None:
        connection.exec_driver_sql("ALTER TABLE records ADD COLUMN stars INTEGER")

    monkeypatch.setattr(store, "MIGRATIONS", (*store.MIGRATIONS, third))
    assert Store(url(tmp_path)).list() == (record,)
    with sqlite3.connect(tmp_path / "records.sqlite") as raw:
        assert raw.execute("SELECT version FROM cardfit_layout").fetchall() == [(1,), (2,), (3,)]
        assert raw.execute("SELECT stars FROM records").fetchall() == [(None,)]
    monkeypatch.undo()
    with pytest.raises(BadFile, match="has layout 3; this cardfit knows up to 2"):
        Store(url(tmp_path))


def first_layout(tmp_path: Path, *bodies: tuple[str, str]) -> None:
    """A store as the first layout had it."""
    with sqlite3.connect(tmp_path / "records.sqlite") as raw:
        raw.execute("CREATE TABLE cardfit_layout (version INTEGER NOT NULL)")
        raw.execute("INSERT INTO cardfit_layout VALUES (1)")
        raw.execute(
            "CREATE TABLE records (id VARCHAR(40) PRIMARY KEY, created VARCHAR(40) NOT NULL, model VARCHAR(200), "
            "card VARCHAR(200), device VARCHAR(40), outcome VARCHAR(20) NOT NULL, sweep VARCHAR(80), "
            "cell VARCHAR(80), body TEXT NOT NULL)"
        )
        raw.execute("CREATE INDEX records_created ON records (created)")
        raw.execute("CREATE INDEX records_sweep ON records (sweep, cell)")
        for name, body in bodies:
            given = (name, "2026-12-01T10:00:00+00:00", "flux.1-dev", "cpu", "ok", body)
            raw.execute(
                "INSERT INTO records (id, created, model, device, outcome, body) VALUES (?, ?, ?, ?, ?, ?)",
                given,
            )


def test_records_of_the_first_layout_get_their_columns(tmp_path: Path) -> None:
    record = make_record.record()
    old = json.loads(files.text_of(record)) | {"version": 2}
    old.pop("origin")
    newer = json.dumps(old | {"version": 99})
    first_layout(tmp_path, (record.id, json.dumps(old)), ("20991203t120000-00000000", newer))
    base, unread = Store(url(tmp_path)), []
    assert base.list(asked={"width": 64}) == (record,)
    assert base.hashes() == {record.id: content_hash(record), "20991203t120000-00000000": None}
    assert base.list(unread=unread) == (record,) and "version 99" in str(unread[0])


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(url(tmp_path)).put(make_record.record())

    def broken(connection: Any) -> None:
        connection.exec_driver_sql("ALTER TABLE records ADD COLUMN stars INTEGER")
        connection.exec_driver_sql("ALTER TABLE nowhere ADD COLUMN stars INTEGER")

    monkeypatch.setattr(store, "MIGRATIONS", (*store.MIGRATIONS, broken))
    with pytest.raises(BadFile, match="cannot be used"):
        Store(url(tmp_path))
    monkeypatch.undo()
    assert len(Store(url(tmp_path)).list()) == 1


def test_a_newer_record_in_the_store_hides_no_other(tmp_path: Path) -> None:
    base = Store(url(tmp_path))
    old, new = make_record.record(), make_record.record()
    base.put_all((old, new))
    body = json.dumps(json.loads(files.text_of(new)) | {"version": 7})
    with sqlite3.connect(tmp_path / "records.sqlite") as raw:
        raw.execute("UPDATE records SET body = ? WHERE id = ?", (body, new.id))
    with pytest.raises(BadFile, match="version 7"):
        base.list()
    unread: list[BadFile] = []
    assert base.list(unread=unread) == (old,)
    assert len(unread) == 1
    other = f"sqlite:///{tmp_path / 'other.sqlite'}"
    (copy,) = sharing.push(other, store=url(tmp_path)).copies
    assert copy.new == 1 and [each.why.code for each in copy.refused] == ["record-newer"]
    assert verbs.prune(url(tmp_path), outcome="ok") == (old,)


# --- what cannot be opened


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("nonsense", "neither a folder nor a URL"),
        ("nothing://x", "not a database that can be opened"),
        ("sqlite+nothing:///x", "not a database that can be opened"),
        ("file://elsewhere/share", "not a database that can be opened"),
        ("postgresql:/anna:pa55word@db/x", "neither a folder nor a URL"),
        ("postgresql://anna:pa55word/5@db:port/x", "neither a folder nor a URL"),
    ],
)
def test_a_url_that_is_none_is_said_without_its_password(asked: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words) as caught:
        open_store(asked)
    assert "pa55word" not in str(caught.value) and "pa55word" not in str(caught.value.args_)


def test_a_store_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "records.sqlite").write_text("no database, but long enough to be looked at" * 50)
    with pytest.raises(BadFile, match="file is not a database"):
        Store(url(tmp_path))
    with pytest.raises(BadFile, match=r"A database in a file is named sqlite:///"):
        open_store(str(tmp_path / "records.sqlite"))
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="cannot be used"):
        Store(f"sqlite:///{tmp_path / 'file' / 'deeper' / 'r.sqlite'}")
    with pytest.raises(BadFile, match="cannot be used: No such file"):
        open_store(str(tmp_path / "not-mounted" / "records"))


def test_the_store_that_is_meant_can_stand_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARDFIT_STORE", f"file://{tmp_path}/shared")
    record = make_record.record()
    with opened() as base:
        base.put(record)
    assert verbs.listed() == verbs.listed(str(tmp_path / "shared")) == (record,)
    assert [path.suffix for path in (tmp_path / "shared").glob("2*")] == [".json"]


# --- files in and out


def test_export_and_import_carry_all_but_the_inputs(tmp_path: Path, data: Path) -> None:
    records = (make_record.record(), make_record.record())
    with opened(None) as base:
        base.put_all(records)
    assert verbs.listed() == records
    file = tmp_path / "export.json"
    file.write_text(copying.export(verbs.listed()))
    other = url(tmp_path)
    (copy,) = sharing.bring_in(file, other).copies
    assert (copy.new, copy.same, copy.refused) == (2, 0, ())
    (copy,) = sharing.bring_in(file, other).copies
    assert (copy.new, copy.same) == (0, 2)
    found = verbs.listed(other)
    assert [each.without_inputs().model_copy(update={"origin": ()}) for each in found] == [
        record.without_inputs() for record in records
    ]
    assert [step.store for each in found for step in each.origin] == [None, None]
    assert '"cat"' not in file.read_text()


def test_what_cannot_be_imported_stops_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    good = make_record.record()
    files.write(good, folder)
    bad = files.write(make_record.record(), folder)
    bad.write_text("{")
    (copy,) = sharing.bring_in(folder).copies
    assert copy.new == 1 and "is not JSON" in copy.refused[0].why.text
    assert [each.id for each in verbs.listed()] == [good.id]
    with pytest.raises(BadFile, match="is not JSON"):
        sharing.bring_in(bad)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadFile, match="holds no record"):
        sharing.bring_in(tmp_path / "empty")


def test_this_machines_own_files_come_in_as_they_are(data: Path) -> None:
    record = make_record.record()
    files.write(record)
    sharing.bring_in(files.records_folder())
    assert verbs.listed() == (record,)


def test_a_record_is_found_without_the_store(data: Path) -> None:
    record = make_record.record()
    path = files.write(record)
    assert verbs.find(path) == verbs.find(path.parent) == verbs.find(record.id[:20]) == record
    assert not (data / "records.sqlite").exists()


def test_pruning_says_first_and_removes_what_lies_beside(data: Path) -> None:
    old = make_record.record(created=datetime.now(UTC) - timedelta(days=40))
    new = make_record.record()
    with opened(None) as base:
        base.put_all((old, new))
    files.write(old)
    (data / "records" / old.id / "latents-000.safetensors").write_bytes(b"x")
    with pytest.raises(BadRequest, match="say what to remove"):
        verbs.prune()
    assert verbs.prune(older_than_days=30, dry=True) == (old,)
    assert len(verbs.listed()) == 2
    assert verbs.prune(older_than_days=30) == (old,)
    assert verbs.listed() == (new,)
    assert not (data / "records" / old.id).exists()
