"""CSV tables that people write: read with limits, every fault named by file, row and column.

In: a path, the known columns and the ones that must be there. Out: rows of stripped text with their
row numbers, and small parsers for cells. Row 1 is the header, as a spreadsheet counts. Nothing here
knows what a card or an offer is.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from pathlib import Path

from cardfit.errors import BadFile
from cardfit.messages import say

MAX_FILE_BYTES = 8_000_000
MAX_ROWS = 50_000


def did_you_mean(asked: str, names: Collection[str], *, cutoff: float = 0.6) -> str:
    """The words "did you mean a, b? " for the names near ``asked``, or an empty text."""
    near = get_close_matches(asked.lower(), list(names), n=3, cutoff=cutoff)
    return say("did-you-mean", {"names": ", ".join(near)}) if near else ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: its cells by column, and where it stands."""

    file: str
    number: int
    cells: dict[str, str]

    def bad(self, column: str, allowed: str) -> BadFile:
        """The error for the cell in ``column``: where it is, what it holds, what is allowed."""
        return BadFile(
            "table-bad-cell",
            file=self.file,
            row=self.number,
            column=column,
            found=self.cells.get(column, ""),
            allowed=allowed,
        )

    def text(self, column: str) -> str:
        """The cell, which must not be empty."""
        value = self.cells.get(column, "")
        if not value:
            raise self.bad(column, say("allowed-text"))
        return value

    def number_above_zero(self, column: str) -> float | None:
        """The cell as a finite number above zero; ``None`` when it is empty."""
        value = self.cells.get(column, "")
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            raise self.bad(column, say("allowed-above-zero")) from None
        if not math.isfinite(number) or number <= 0:
            raise self.bad(column, say("allowed-above-zero"))
        return number

    def count(self, column: str, *, lowest: int = 0) -> int | None:
        """The cell as a whole number from ``lowest`` up; ``None`` when it is empty."""
        value = self.cells.get(column, "")
        if not value:
            return None
        try:
            number = int(value)
        except ValueError:
            raise self.bad(column, say("allowed-count", {"lowest": lowest})) from None
        if not lowest <= number < 10**12:
            raise self.bad(column, say("allowed-count", {"lowest": lowest}))
        return number

    def choice(self, column: str, allowed: Sequence[str]) -> str:
        """The cell, which must be one of ``allowed``."""
        value = self.cells.get(column, "")
        if value not in allowed:
            raise self.bad(column, say("allowed-one-of", {"names": ", ".join(allowed)}))
        return value

    def day(self, column: str, *, latest: date) -> date:
        """The cell as a date ``YYYY-MM-DD``, not after ``latest``."""
        try:
            value = date.fromisoformat(self.cells.get(column, ""))
        except ValueError:
            raise self.bad(column, say("allowed-date", {"latest": latest})) from None
        if value > latest:
            raise self.bad(column, say("allowed-date", {"latest": latest}))
        return value


def read(path: Path, *, columns: Sequence[str], required: Iterable[str]) -> list[Row]:
    """The rows of the CSV file at ``path``; empty lines are left out.

    Raises BadFile when the file is missing, too large, not UTF-8 text, lacks a required column, has
    a column twice or one that is not known, or has a row longer than its header.
    """
    file = str(path)
    reader = csv.reader(io.StringIO(_load(path), newline=""), strict=True)
    rows: list[Row] = []
    header: list[str] | None = None
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip().lower() for cell in cells]
                _check_header(file, header, columns, list(required))
                continue
            # A quoted cell may span lines, so rows are counted, not lines.
            number = len(rows) + 2
            if len(cells) > len(header) or number > MAX_ROWS:
                raise BadFile(
                    "table-long-row", file=file, row=number, columns=len(header), rows=MAX_ROWS
                )
            stripped = [cell.strip() for cell in cells]
            padded = stripped + [""] * (len(header) - len(cells))
            rows.append(Row(file, number, dict(zip(header, padded, strict=True))))
    except csv.Error as error:
        raise BadFile("table-not-csv", file=file, row=len(rows) + 2, why=str(error)) from None
    if header is None:
        raise BadFile("table-empty", file=file, columns=", ".join(required))
    return rows


def _load(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadFile("table-unreadable", file=str(path), why=error.strerror or "?") from None
    if len(raw) > MAX_FILE_BYTES:
        raise BadFile("table-too-large", file=str(path), limit_mb=MAX_FILE_BYTES // 10**6)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadFile("table-not-text", file=str(path)) from None
    if "\0" in text:
        raise BadFile("table-not-text", file=str(path))
    return text


def _check_header(
    file: str, header: list[str], columns: Sequence[str], required: list[str]
) -> None:
    for name in required:
        if name not in header:
            raise BadFile(
                "table-missing-column", file=file, column=name, required=", ".join(required)
            )
    for position, name in enumerate(header):
        if name in header[:position]:
            raise BadFile("table-double-column", file=file, column=name)
        if name not in columns:
            raise BadFile(
                "table-unknown-column",
                file=file,
                column=name,
                suggestion=did_you_mean(name, columns),
                columns=", ".join(columns),
            )
