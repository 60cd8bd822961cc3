"""Records as files: whole or not at all, refused by name when they are newer."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from cardfit.errors import BadFile
from cardfit.records import files

_spec = importlib.util.spec_from_file_location(
    "make_record", Path(__file__).with_name("make_record.py")
)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    record = make_record.record()
    path = files.write(record, tmp_path)
    assert path == tmp_path / record.id / "record.json"
    assert files.read(path) == record == files.read(tmp_path / record.id)
    assert list(files.each(tmp_path)) == [record]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["record.json"]


def test_the_json_is_plain_and_says_its_version() -> None:
    found = json.loads(files.text_of(make_record.record()))
    assert (found["schema"], found["version"]) == ("cardfit.record", 3)
    assert found["repetitions"][0]["stages"][0]["reserved_peak_bytes"] == 1000


def test_an_export_holds_neither_prompt_nor_latents_nor_log() -> None:
    found = make_record.record().without_inputs()
    assert (found.inputs.prompt, found.latents, found.outcome.log) == (None, (), None)
    assert found.inputs.prompt_sha256 == "0" * 64


def test_a_newer_record_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = files.write(make_record.record(), tmp_path)
    newer = json.loads(path.read_text()) | {"version": 99, "new_field": 1}
    path.write_text(json.dumps(newer))
    before = path.read_bytes()
    with pytest.raises(BadFile, match="version 99; this cardfit knows up to 3"):
        files.read(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [1, 2])
def test_a_record_of_an_earlier_version_is_read(version: int) -> None:
    old = json.loads(files.text_of(make_record.record())) | {"version": version}
    old.pop("origin")
    assert files.parse(json.dumps(old), "here").version == 3


def test_an_older_record_is_brought_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "VERSION", 5)
    monkeypatch.setitem(files.UPGRADES, 3, lambda data: {"device": data.pop("on"), **data})
    monkeypatch.setitem(files.UPGRADES, 4, lambda data: data)
    old = json.loads(files.text_of(make_record.record()))
    old["on"], old["version"] = old.pop("device"), 1
    found = files.parse(json.dumps(old), "here")
    assert (found.device, found.version) == ("cpu", 5)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON"),
        (b"[]", "is not a record"),
        (b'{"schema": "cardfit.record"}', "is not a record"),
        (b'{"schema": "cardfit.record", "version": true}', "is not a record"),
        (b'{"schema": "cardfit.record", "version": 1}', "the field id is not as a record has it"),
        (b"[" * 200_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
    ],
)
def test_what_is_no_record_is_said(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=words):
        files.read(path)


def test_a_record_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.write(make_record.record(), tmp_path)
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    with pytest.raises(BadFile, match="larger than"):
        files.read(path)


@pytest.mark.skipif(
    os.geteuid() == 0 and sys.platform != "linux", reason="needs a limit on file sizes"
)
def test_a_full_disk_leaves_the_earlier_record(tmp_path: Path) -> None:
    """The system's own limit on the size of a file stands for a full disk: a write ends in an error half way."""
    record = make_record.record()
    path = files.write(record, tmp_path)
    before = path.read_bytes()
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from cardfit.errors import BadFile; from cardfit.records import files\n"
        "record = files.read(Path(sys.argv[1]))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))\n"
        "try: files.write(record, Path(sys.argv[1]).parents[1])\n"
        "except BadFile as error: raise SystemExit(str(error))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ},
    )
    assert ran.returncode == 1
    assert "could not be written: File too large" in ran.stderr
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["record.json"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 512


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(BadFile, match="could not be written: Not a directory"):
        files.write(make_record.record(), tmp_path / "taken")


def test_ids_sort_by_time_and_differ() -> None:
    assert len({files.new_id() for _ in range(100)}) == 100
