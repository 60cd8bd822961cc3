"""Files that may be made again at any time, kept so that a second question answers at once.

In: a name and plain values. Out: a compressed file in the cache folder, written beside its name and moved into place,
so an interrupted write leaves nothing behind. A folder that cannot be written or a file that cannot be read costs time,
never the answer.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from cardfit.errors import Note
from cardfit.units import MIB

MAX_FILE_BYTES = 256 * MIB
MAX_CONTENT_BYTES = 4 * MAX_FILE_BYTES  # once unpacked


def folder() -> Path:
    """Where cached files live: ``CARDFIT_CACHE``, else the user's cache folder."""
    if given := os.environ.get("CARDFIT_CACHE"):
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "cardfit"


def read(name: str) -> Any | None:
    """The content of a cached file, or None when there is none that can be read."""
    path = folder() / name
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return None
        unpacked = zlib.decompressobj()
        content = unpacked.decompress(path.read_bytes(), MAX_CONTENT_BYTES)
        return json.loads(content) if unpacked.eof else None
    except (OSError, zlib.error, ValueError, RecursionError):
        return None


def write(name: str, content: Any) -> Note | None:
    """Keep ``content``; a Note says why it could not be kept."""
    part: Path | None = None
    try:
        folder().mkdir(parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=folder(), prefix=".part-")
        part = Path(made)
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 3))
        part.replace(folder() / name)
    except OSError as error:
        return Note(
            "cache-unwritable", {"folder": str(folder()), "reason": error.strerror or str(error)}
        )
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
    return None
