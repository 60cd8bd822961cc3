"""`cardfit offers update`: newer prices than the shipped ones, kept in a file that every later question reads.

In: the word gpuhunt, or a CSV file (an offers table, or a provider's catalog as gpuhunt writes it). Out: the kept file,
written whole or not at all, and an `OffersUpdate`. Nothing is downloaded but by gpuhunt, and only when it is named.
"""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from cardfit.cards import Card, table
from cardfit.errors import BadFile
from cardfit.offers import gpuhunt, market

SCHEMA = "cardfit.offers-update/1"


@dataclass(frozen=True, slots=True)
class OffersUpdate:
    """Where the offers lie now, how many there are, for how many cards, and what was left out by reason."""

    schema: str
    file: str
    source: str
    offers: int
    cards: int
    left_out: dict[str, int]


def update(
    source: str, cards: Mapping[str, Card], *, today: date, to: Path | None = None
) -> OffersUpdate:
    """Keep the offers of ``source`` ("gpuhunt" or the path of a CSV file) in ``to``, else where `market` looks.

    Raises MissingExtra, InputError and BadFile as the readers do, BadFile where nothing usable was found (what was
    kept before stays) or the file cannot be written.
    """
    if source == "gpuhunt":
        found = gpuhunt.query(cards, today)
    elif _is_catalog(Path(source)):
        found = gpuhunt.read(Path(source), cards, today)
    else:
        market.read_file(Path(source), cards, today)  # refuses what a table of offers may not hold
        rows = table.read(Path(source), columns=market.ACCEPTED, required=market.REQUIRED)
        found = gpuhunt.Found(tuple(row.cells for row in rows), {})
    if not found.rows:
        raise BadFile("offers-none-found", source=source)
    file = to or market.kept_file()
    _write(file, found.rows)
    return OffersUpdate(
        schema=SCHEMA,
        file=str(file),
        source=source,
        offers=len(found.rows),
        cards=len({row["card_id"] for row in found.rows}),
        left_out=found.left_out,
    )


def _is_catalog(file: Path) -> bool:
    """Whether the first line names the columns of a gpuhunt catalog."""
    try:
        with file.open(encoding="utf-8-sig") as stream:
            return "instance_name" in stream.readline(4096)
    except (OSError, UnicodeDecodeError):
        return False  # the reader of tables words it


def _write(file: Path, rows: tuple[dict[str, str], ...]) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(
        text, market.COLUMNS, restval="", extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    part = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=file.parent, prefix=".offers-")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text.getvalue())
        Path(part).replace(file)
    except OSError as error:
        if part is not None:
            with suppress(OSError):
                Path(part).unlink()
        raise BadFile("offers-not-written", file=str(file), why=error.strerror or "?") from None
