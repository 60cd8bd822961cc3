"""The files of the atlas: one a model, checked before a number of it is used.

In: a model. Out: the JSON values of its file, and of its file of tiles those of one size. A file that is damaged,
truncated or of another layout is an error that names it and the command that makes it anew.
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
TILES = "tiles"  # the folder in it of what decodes in tiles
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


def read_file(path: Path) -> dict[str, Any]:
    """The content of a model's file. Raises BadFile."""
    book = _json(_unpacked(path), path.name)
    if not isinstance(book, dict) or book.keys() != _KEYS or book["layout"] != LAYOUT:
        raise BadFile("atlas-damaged", file=path.name, why="not what this version reads")
    return book


def _unpacked(path: Path) -> bytes:
    """What a file holds once it is decompressed. Raises BadFile."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadFile("atlas-damaged", file=path.name, why="too large")
        unpacked = lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
        content = unpacked.decompress(path.read_bytes(), MAX_CONTENT_BYTES)
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise BadFile("atlas-damaged", file=path.name, why=type(error).__name__) from error
    if not unpacked.eof:
        raise BadFile("atlas-damaged", file=path.name, why="cut short")
    return content


def _json(text: bytes, file: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFile("atlas-damaged", file=file, why=type(error).__name__) from error


@lru_cache(maxsize=8)
def book_of(model: str) -> dict[str, Any] | None:
    """The file of the library entry ``model``; None where the atlas has none. Raises BadFile."""
    path = FOLDER / f"{model}.xz"
    return read_file(path) if path.exists() else None


@lru_cache(maxsize=2)
def tiles_in(model: str) -> dict[str, bytes]:
    """Decoding in tiles of ``model``: for each size its book, unread. Raises BadFile.

    The sizes of a model are much alike, so one file holds them, a line each, the first of which names them.
    """
    path = FOLDER / TILES / f"{model}.xz"
    if not path.exists():
        return {}
    first, *lines = _unpacked(path).split(b"\n")
    sizes = _json(first, f"{TILES}/{path.name}")
    if not isinstance(sizes, list) or len(sizes) != len(lines):
        raise BadFile("atlas-damaged", file=f"{TILES}/{path.name}", why="not what it names")
    return dict(zip(sizes, lines, strict=True))


@lru_cache(maxsize=8)
def tiles_of(model: str, size: str) -> dict[str, Any] | None:
    """Decoding in tiles at ``size`` (``1280x720x81``: width, height, frames); None where it is not held.

    Raises BadFile, also where the file was made with another one of the model.
    """
    book = book_of(model)
    text = tiles_in(model).get(size)
    if book is None or text is None:
        return None
    file = f"{TILES}/{model}.xz"
    found = _json(text, file)
    if not isinstance(found, dict) or found.keys() != _TILES_KEYS:
        raise BadFile("atlas-damaged", file=file, why="not what this version reads")
    if any(found[key] != book[key] for key in ("layout", "model", "entry", "versions")):
        raise BadFile("atlas-damaged", file=file, why="made with another file")
    return found
