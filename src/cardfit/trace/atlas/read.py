"""The files of the atlas: one a model, checked before a number of it is used.

In: a model. Out: the JSON values of its file. A file that is damaged, truncated or of another layout is an error that
names it and the command that makes it anew.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from functools import lru_cache
from pathlib import Path
from typing import Any

from cardfit.errors import BadFile
from cardfit.library.models import Model
from cardfit.trace.atlas.layout import LAYOUT
from cardfit.units import MIB

FOLDER = Path(__file__).parent.parent / "data" / "atlas"
MAX_FILE_BYTES = 4 * MIB
MAX_CONTENT_BYTES = 256 * MIB
_KEYS = {
    "layout", "model", "entry", "versions", "sites", "formulas", "components", "streams", "calls", "timelines",
    "variants",
}  # fmt: skip


_TILES_KEYS = {"layout", "model", "entry", "versions", "variants", "formulas", "streams", "calls"}


def entry_hash(model: Model) -> str:
    """What a file was made from: the library entry."""
    text = json.dumps(model.model_dump(by_alias=True, mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_file(path: Path, keys: set[str] = _KEYS) -> dict[str, Any]:
    """The content of one file, which has these keys. Raises BadFile."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadFile("atlas-damaged", file=path.name, why="too large")
        unpacked = lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
        content = unpacked.decompress(path.read_bytes(), MAX_CONTENT_BYTES)
        book = json.loads(content) if unpacked.eof else None
    except (OSError, lzma.LZMAError, EOFError, ValueError, RecursionError) as error:
        raise BadFile("atlas-damaged", file=path.name, why=type(error).__name__) from error
    if not isinstance(book, dict) or book.keys() != keys or book["layout"] != LAYOUT:
        raise BadFile("atlas-damaged", file=path.name, why="not what this version reads")
    return book


@lru_cache(maxsize=8)
def book_of(model: str) -> dict[str, Any] | None:
    """The file of the library entry ``model``; None where the atlas has none. Raises BadFile."""
    path = FOLDER / f"{model}.xz"
    return read_file(path) if path.exists() else None


@lru_cache(maxsize=8)
def tiles_of(model: str, size: str) -> dict[str, Any] | None:
    """Decoding in tiles at ``size`` (``1280x720x81``: width, height, frames); None where it is not held.

    Raises BadFile, also where the file was made with another one of the model.
    """
    path = FOLDER / model / f"{size}.xz"
    book = book_of(model)
    if book is None or not path.exists():
        return None
    found = read_file(path, _TILES_KEYS)
    if any(found[key] != book[key] for key in ("model", "entry", "versions")):
        raise BadFile("atlas-damaged", file=f"{model}/{path.name}", why="made with another file")
    return found
