"""How a server is set: who may ask, how much at once, from which files it answers.

In: what `cardfit serve` was told. Out: one frozen value that every part of the server is handed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cardfit.units import MIB

MAX_UPLOAD_BYTES = 16 * MIB
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Embed:
    """What a host's page shows in its frame: for which origins, where a choice leads, whose colours and sign.

    ``link`` has ``{card}`` and may have ``{model}``, which are filled with ids. ``colours`` are names of the style
    sheet with ``#rrggbb``; ``logo`` is a picture with its media type.
    """

    origins: tuple[str, ...]
    link: str | None = None
    colours: tuple[tuple[str, str], ...] = ()
    logo: tuple[bytes, str] | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What one server keeps to.

    ``token`` is asked of everyone where it is set; ``names`` are the host names it answers to, empty for any. ``warm``
    begins with what the first visitor will ask for. ``within_s`` is how long an answer is waited for, ``workers`` how
    many are made at once, ``waiting`` how many more may be asked for, ``kept`` how many are remembered. ``per_second``
    and ``burst`` limit one client; 0 is no limit.
    """

    token: str | None = None
    names: tuple[str, ...] = LOOPBACK
    cards_file: Path | None = None
    offers_file: Path | None = None
    store: str | None = None
    embed: Embed | None = None
    dry_runs: bool = False
    warm: bool = False
    workers: int = 2
    waiting: int = 64
    kept: int = 512
    within_s: float = 20.0
    per_second: float = 20.0
    burst: int = 60
    body_bytes: int = MIB
    upload_bytes: int = MAX_UPLOAD_BYTES
    body_s: float = 10.0
    query_bytes: int = 8_000
