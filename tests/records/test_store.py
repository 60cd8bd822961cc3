"""The store: records by what they were, migrated, refused when newer, shared by two writers."""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cardfit.errors import BadFile, BadRequest
from cardfit.records import files, store, verbs
from cardfit.records.models import Machine, Outcome
from cardfit.records.store import Store

_spec = importlib.util.spec_from_file_location(
    "make_record", Path(__file__).with_name("make_record.py")
)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)


def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'records.sqlite'}"


def test_records_come_back_by_what_they_were(tmp_path: Path) -> None:
    base = Store(url(tmp_path))
    one = make_record.record(machine=Machine(os="linux", card="l4"))
    two = make_record.record(outcome=Outcome(kind="oom"), model="svd", sweep="s")
    base.put_all((one, two))
    base.put(two)  # again: replaced
    assert {each.id for each in base.list()} == {one.id, two.id}
    assert base.list(card="l4") == (one,)
    assert base.list(outcome="oom") == base.list(model="svd") == base.list(sweep="s") == (two,)
    assert len(base.list(last=1)) == 1
    assert base.list(since=datetime.now(UTC) + timedelta(hours=1)) == ()
    assert base.get(one.id[:20]) == one
    base.remove([one.id])
    assert base.list() == (two,)


def test_an_id_must_name_one_record(tmp_path: Path) -> None:
    base = Store(url(tmp_path))
    base.put_all((make_record.record(), make_record.record()))
    with pytest.raises(BadRequest, match="may be any of"):
        base.get("2")
    for asked in ("nothing", "%", "_"):
        with pytest.raises(BadRequest, match="no record begins so"):
            base.get(asked)


def test_a_store_is_migrated_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = make_record.record()
    Store(url(tmp_path)).put(record)

    def second(connection: object) -> None:
        connection.exec_driver_sql("ALTER TABLE records ADD COLUMN stars INTEGER")  # type: ignore[attr-defined]

    monkeypatch.setattr(store, "MIGRATIONS", (*store.MIGRATIONS, second))
    assert Store(url(tmp_path)).list() == (record,)
    with sqlite3.connect(tmp_path / "records.sqlite") as raw:
        assert raw.execute("SELECT version FROM cardfit_layout").fetchall() == [(1,), (2,)]
        assert raw.execute("SELECT stars FROM records").fetchall() == [(None,)]
    monkeypatch.undo()
    with pytest.raises(BadFile, match="has layout 2; this cardfit knows up to 1"):
        Store(url(tmp_path))


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(url(tmp_path)).put(make_record.record())

    def broken(connection: object) -> None:
        connection.exec_driver_sql("ALTER TABLE records ADD COLUMN stars INTEGER")  # type: ignore[attr-defined]
        connection.exec_driver_sql("ALTER TABLE nowhere ADD COLUMN stars INTEGER")  # type: ignore[attr-defined]

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


_WRITER = """
import sys
from cardfit.records import files
from cardfit.records.store import Store
record = files.parse(sys.stdin.read(), "stdin")
store = Store(sys.argv[1])
for _ in range(int(sys.argv[2])):
    store.put(record.model_copy(update={"id": files.new_id()}))
"""


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    text, count = files.text_of(make_record.record()), 25
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, url(tmp_path), str(count)],
            stdin=subprocess.PIPE,
            text=True,
            env={**os.environ},
        )
        for _ in range(2)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(text)
        writer.stdin.close()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(Store(url(tmp_path)).list()) == 2 * count


@pytest.mark.parametrize("asked", ["nonsense", "nothing://x", "sqlite+nothing:///x"])
def test_a_url_that_is_none_is_said(asked: str) -> None:
    with pytest.raises(BadRequest, match="not a database that can be opened"):
        Store(asked)


def test_a_store_that_cannot_be_used_is_said_without_its_password(tmp_path: Path) -> None:
    (tmp_path / "records.sqlite").write_text("no database, but long enough to be looked at" * 50)
    with pytest.raises(BadFile, match="file is not a database"):
        Store(url(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="cannot be used"):
        Store(f"sqlite:///{tmp_path / 'file' / 'deeper' / 'r.sqlite'}")


def test_export_and_import_carry_all_but_the_inputs(tmp_path: Path, data: Path) -> None:
    records = (make_record.record(), make_record.record())
    with verbs.opened(None) as base:
        base.put_all(records)
    assert verbs.listed() == records
    file = tmp_path / "export.json"
    file.write_text(verbs.export(verbs.listed()))
    other = url(tmp_path)
    assert len(verbs.bring_in(file, other)) == 2
    assert verbs.listed(other) == tuple(record.without_inputs() for record in records)
    assert '"cat"' not in file.read_text()


def test_what_cannot_be_imported_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    files.write(make_record.record(), folder)
    bad = files.write(make_record.record(), folder)
    bad.write_text("{")
    with pytest.raises(BadFile, match="is not JSON"):
        verbs.bring_in(folder)
    assert verbs.listed() == ()
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadFile, match="holds no record"):
        verbs.bring_in(tmp_path / "empty")


def test_a_record_is_found_without_the_store(data: Path) -> None:
    record = make_record.record()
    path = files.write(record)
    assert verbs.find(path) == verbs.find(path.parent) == verbs.find(record.id[:20]) == record
    assert not (data / "records.sqlite").exists()


def test_pruning_says_first_and_removes_what_lies_beside(data: Path) -> None:
    old = make_record.record(created=datetime.now(UTC) - timedelta(days=40))
    new = make_record.record()
    with verbs.opened(None) as base:
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
