"""The versions that a lock or requirements file names, against those that a trace was made with.

In: ``requirements.txt`` or ``pip freeze`` lines (``diffusers==0.36.0``), ``uv.lock``, ``poetry.lock`` or
``pylock.toml``. Out: the versions of the packages that shape a trace, and which of them differ. Nothing is installed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from cardfit.errors import BadFile
from cardfit.units import MIB

MAX_FILE_BYTES = 32 * MIB
PACKAGES = ("torch", "diffusers", "transformers")
_PINNED = re.compile(r"^\s*([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*===?\s*([A-Za-z0-9.!+_-]+)")


def read_lock(path: Path) -> dict[str, str]:
    """Package to version. Raises BadFile for a file that cannot be read or pins none of the packages."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadFile("lock-unreadable", path=str(path), why="too large")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile("lock-unreadable", path=str(path), why=_reason(error)) from error
    try:
        found = _toml(text) if path.suffix in (".lock", ".toml") else _lines(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFile("lock-unreadable", path=str(path), why=str(error)) from error
    kept = {name: found[name] for name in PACKAGES if name in found}
    if not kept:
        raise BadFile("lock-pins-nothing", path=str(path), packages=", ".join(PACKAGES))
    return kept


def differing(locked: Mapping[str, str], made_with: Mapping[str, str]) -> tuple[str, ...]:
    """The packages whose locked version is not the one a trace was made with.

    >>> differing({"torch": "2.13.0+cu130", "diffusers": "0.36.0"}, {"torch": "2.13.0", "diffusers": "0.42.1"})
    ('diffusers',)
    """
    return tuple(
        name
        for name, version in locked.items()
        if name in made_with and plain(version) != plain(made_with[name])
    )


def plain(version: str) -> str:
    """A version without the build it came from: ``2.13.0+cpu`` shapes a trace as ``2.13.0`` does."""
    return version.partition("+")[0]


def _lines(text: str) -> dict[str, str]:
    pins = (_PINNED.match(line) for line in text.splitlines())
    return {pin[1].lower().replace("_", "-"): pin[2] for pin in pins if pin}


def _toml(text: str) -> dict[str, str]:
    data = tomllib.loads(text)
    rows = data.get("package", data.get("packages", []))
    return {
        str(row["name"]).lower(): str(row["version"])
        for row in rows
        if isinstance(row, dict) and "name" in row and "version" in row
    }


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
