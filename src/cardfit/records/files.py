"""Records as JSON files: one folder a record, written whole or not at all, readable without any store.

In: a `Record`, a folder. Out: ``<folder>/<id>/record.json``; latents and the run's log lie beside it. A file of a newer
schema is refused by name and left alone; older ones are brought up when they are read.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cardfit.errors import BadFile
from cardfit.records.models import SCHEMA, VERSION, Record
from cardfit.units import MIB, human_bytes

MAX_BYTES = 64 * MIB  # a run of a thousand steps takes about one
NAME = "record.json"
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
UPGRADES: dict[int, Upgrade] = {1: dict, 2: dict}
"""How a record of version n becomes one of version n + 1. Version 2 may hold outputs, quality, seconds by kernel;
version 3 the way that it took through stores."""


def data_folder() -> Path:
    """Where records live: ``CARDFIT_DATA``, else the user's data folder."""
    if given := os.environ.get("CARDFIT_DATA"):
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share"))
    return base / "cardfit"


def records_folder() -> Path:
    """The folder of the records' folders."""
    return data_folder() / "records"


def cardfit_version() -> str:
    """The version of this cardfit: the package is loaded before any room of it."""
    return str(vars(sys.modules["cardfit"])["__version__"])


def new_id(now: datetime | None = None) -> str:
    """An id that sorts by time and that two writers never share.

    >>> len(new_id())
    24
    """
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dt%H%M%S")
    return f"{stamp}-{secrets.token_hex(4)}"


def put(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``, whole or not at all. Raises BadFile with the system's reason."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError as error:
        raise BadFile(
            "record-not-written", path=str(path), why=error.strerror or str(error)
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()


def text_of(record: Record) -> str:
    """The JSON of ``record``."""
    return json.dumps(record.model_dump(mode="json", by_alias=True), ensure_ascii=False)


def write(record: Record, folder: Path | None = None) -> Path:
    """Keep ``record`` as a file below ``folder``; raises BadFile when it cannot be written."""
    path = (folder or records_folder()) / record.id / NAME
    put(path, (text_of(record) + "\n").encode())
    return path


def read(path: Path) -> Record:
    """The record in the file, or the folder, at ``path``; raises BadFile."""
    path = path / NAME if path.is_dir() else path
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadFile(
            "record-not-read", path=str(path), why=error.strerror or str(error)
        ) from error
    return parse(content, str(path))


def parse(content: bytes | str, where: str) -> Record:
    """The record in ``content``, brought up to this version; raises BadFile naming ``where``."""
    if len(content) > MAX_BYTES:
        raise BadFile("record-too-large", path=where, limit=human_bytes(MAX_BYTES))
    try:
        current = Record.model_validate_json(content)  # in one go: most are of this version
    except ValidationError:
        return _older(content, where)
    said = {"schema_", "version"} <= current.model_fields_set
    if said and (current.schema_, current.version) == (SCHEMA, VERSION):
        return current
    return _older(content, where)


def _older(content: bytes | str, where: str) -> Record:
    """What is no record of this version as it stands: brought up, or said what is wrong with it."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadFile("record-not-json", path=where, why=str(error).partition(":")[0]) from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise BadFile("record-not-a-record", path=where)
    version = found.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise BadFile("record-not-a-record", path=where)
    if version > VERSION:
        raise BadFile("record-newer", path=where, found=version, known=VERSION)
    for step in range(version, VERSION):
        found = {**UPGRADES[step](found), "version": step + 1}
    try:
        return Record.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise BadFile("record-bad-field", path=where, field=field, why=first["msg"]) from error


def each(folder: Path | None = None) -> Iterator[Record | BadFile]:
    """Every record below ``folder`` in the order of time; one that cannot be read comes as its error."""
    base = folder or records_folder()
    try:
        names = sorted(entry.name for entry in base.iterdir() if not entry.name.startswith("."))
    except OSError:
        return
    for name in names:
        if not (base / name / NAME).is_file():
            continue  # a run that was cut off before its first save
        try:
            yield read(base / name)
        except BadFile as error:
            yield error


def remove(record_id: str, folder: Path | None = None) -> None:
    """Remove a record's folder with what lies beside it; nothing when there is none. Raises BadFile."""
    path = (folder or records_folder()) / record_id
    if not path.is_dir():
        return
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise BadFile(
            "record-not-removed", path=str(path), why=error.strerror or str(error)
        ) from error
