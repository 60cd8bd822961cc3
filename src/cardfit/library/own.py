"""Entries of the reader's own: files like the library's, in a folder of the reader's.

In: an id. Out: the entry in ``models`` of the data folder (``CARDFIT_DATA``), marked as the reader's; or an entry
written there, whole or not at all. Raises BadFile naming the file and what is wrong with it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from cardfit.errors import BadFile, BadRequest, Note
from cardfit.library.count import counted
from cardfit.library.folder import MAX_BYTES
from cardfit.library.load import is_known
from cardfit.library.models import Model
from cardfit.library.sourced import Sourced
from cardfit.records.files import data_folder
from cardfit.request.read import read_text, write_whole

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


def folder() -> Path:
    """Where the reader's own entries lie."""
    return data_folder() / "models"


def entry(name: str) -> Sourced | None:
    """The reader's entry of this id, any case; None for none."""
    wanted = name.lower()
    if not _ID.fullmatch(wanted):
        return None
    path = file_of(wanted)
    return _read(path) if path.is_file() else None


def entries() -> tuple[Sourced, ...]:
    """All entries of the reader's, sorted by id. Raises BadFile for one that is none."""
    if not folder().is_dir():
        return ()
    return tuple(_read(path) for path in sorted(folder().glob("*.json")))


def _read(path: Path) -> Sourced:
    text = read_text(path, MAX_BYTES)
    try:
        found = Model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadFile("own-bad", file=path, field=where, why=first["msg"]) from error
    if found.id != path.stem:
        raise BadFile("own-other-id", file=path, found=found.id)
    said = (Note("own-entry", {"model": found.id, "file": str(path)}),)
    return Sourced.made(found, source=str(path), kind="own", said=said)


def _id_for(word: str) -> str:
    """An id from the name of a folder or a repo.

    >>> _id_for("somebody/My Tiny_SD")
    'my-tiny_sd'
    """
    plain = re.sub(r"[^a-z0-9._-]+", "-", Path(word).name.lower()).strip("-._")
    return plain[:80] or "model"


def file_of(id: str) -> Path:
    """Where the reader's entry of this id lies."""
    return folder() / f"{id}.json"


def made(found: Model, id: str | None) -> tuple[Model, tuple[Note, ...]]:
    """The entry that a folder's or repo's model becomes, called ``id``, every part of it built and counted; with notes.

    Raises BadRequest for a name that cannot be had and for what is no folder or repo, MissingExtra without torch.
    """
    if not isinstance(found, Sourced) or found.kind not in ("folder", "repo"):
        raise BadRequest("own-not-a-folder", source=found.id)
    name = _id_for(found.source) if id is None else id
    if not _ID.fullmatch(name):
        raise BadRequest("own-bad-id", asked=name)
    if is_known(name):
        raise BadRequest("own-taken-id", asked=name)
    parts = {
        label: counted(part, label, found.source) if part.counted else part
        for label, part in found.components.items()
    }
    fields = {label: getattr(found, label) for label in Model.model_fields if label != "schema_"}
    more = {"schema": found.schema_, "id": name, "components": parts}
    return Model.model_validate({**fields, **more}), found.said


def published(entry: Model) -> dict[str, str]:
    """Component to the dtype of its files."""
    return {name: part.published_dtype for name, part in entry.components.items()}


def check_free(file: Path, *, force: bool) -> None:
    """Raise BadFile where ``file`` is there already and may not be replaced."""
    if file.exists() and not force:
        raise BadFile("planfile-exists", path=file)


def write(entry: Model, file: Path, *, force: bool) -> None:
    """Keep ``entry`` in ``file``, as a file of the library holds it. Raises BadFile as `check_free` does."""
    data = entry.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    with suppress(OSError):  # which writing then says
        file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(data, indent=1, ensure_ascii=False) + "\n", force=force)
