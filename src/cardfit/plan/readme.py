"""Three honest rows for a README: full precision, less, the least possible; and whether rows in a file still hold.

In: plan rows with what was asked. Out: a `Readme` (schema ``cardfit.readme/1``) whose rows carry their cells, and the
blocks of a Markdown file between markers. A marker holds the question as JSON, so that a block can be computed again.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cardfit.errors import BadFile
from cardfit.messages import say
from cardfit.plan.again import command
from cardfit.plan.answer import Answer, CardRow, Said, Seconds
from cardfit.plan.target import short_name
from cardfit.request import ExactRequest, Request, Settings
from cardfit.request.read import read_text
from cardfit.units import MIB, gib_text

SCHEMA: Literal["cardfit.readme/1"] = "cardfit.readme/1"
Kind = Literal["full", "less", "least"]
COLUMNS = ("what", "size", "frames", "device", "host", "slowdown", "versions", "command")
VERSIONED = COLUMNS.index("versions")
LESS_SHARE = 0.75  # of the full peak: what the middle row may take at most
MAX_PAGE_BYTES = 4 * MIB
END = "<!-- /cardfit readme -->"
_START = re.compile(r"^<!-- cardfit readme (\{.*\}) -->$")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Question(_Frozen):
    """What a block of rows answers: it stands in the marker above them."""

    request: Request
    card: str | None = None


class ReadmeRow(_Frozen):
    """One row: likely device memory with the context, host RAM, and seconds against the first row on one card.

    ``cells`` are its texts in the order of `COLUMNS`; ``slowdown`` is None where no time can be told.
    """

    kind: Kind
    settings: Settings
    settings_text: str
    device_bytes: int
    host_bytes: int
    seconds: Seconds | None
    slowdown: float | None
    cells: tuple[str, ...]


class Readme(_Frozen):
    """The rows, the card that times them, and what should be said."""

    schema_: Annotated[Literal["cardfit.readme/1"], Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    question: Question
    request: ExactRequest
    card: str | None
    rows: tuple[ReadmeRow, ...]
    notes: tuple[Said, ...]


class Moved(_Frozen):
    """One cell of a file that is computed otherwise now; None where a row is new or gone."""

    line: int
    row: str
    column: str
    before: str | None
    after: str | None
    text: Said


class ReadmeCheck(_Frozen):
    """Whether the rows between the markers of a file still hold; other versions alone move nothing."""

    schema_: Annotated[Literal["cardfit.readme-check/1"], Field(alias="schema")] = (
        "cardfit.readme-check/1"
    )
    file: str
    blocks: int
    kept: bool
    moved: tuple[Moved, ...]
    notes: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of a file below one marker, with the line that each stands in; lines count from 1."""

    line: int
    question: Question
    rows: tuple[tuple[int, tuple[str, ...]], ...]


def make_readme(
    question: Question,
    answer: Answer,
    found: Sequence[tuple[Kind, CardRow, Seconds | None]],
    card: str | None,
    notes: Sequence[Said],
) -> Readme:
    """The rows of ``found``, the full one first; ``answer`` is the plan of that one."""
    full = found[0][2]
    rows = tuple(_row(answer, kind, row, seconds, full) for kind, row, seconds in found)
    return Readme(
        versions=answer.versions,
        question=question,
        request=answer.request,
        card=card,
        rows=rows,
        notes=tuple(notes),
    )


def _row(
    answer: Answer, kind: Kind, row: CardRow, seconds: Seconds | None, full: Seconds | None
) -> ReadmeRow:
    assert row.settings is not None and row.device_bytes is not None
    slowdown = None if seconds is None or full is None else seconds.likely / full.likely
    request, versions = answer.request, answer.versions
    named = [name for name in ("diffusers", "torch") if name in versions]
    host = row.host_bytes or 0
    cells = (
        say(f"readme-{kind}", {"settings": row.settings_text}),
        f"{request.width}x{request.height}",
        str(request.num_frames),
        gib_text(row.device_bytes),
        gib_text(host),
        say("readme-unknown") if slowdown is None else f"{slowdown:.1f}x",
        ", ".join(f"{name} {versions[name]}" for name in named),
        f"`{shlex.join(command(request, row.settings))}`",
    )
    return ReadmeRow(
        kind=kind,
        settings=row.settings,
        settings_text=row.settings_text,
        device_bytes=row.device_bytes,
        host_bytes=host,
        seconds=seconds,
        slowdown=slowdown,
        cells=cells,
    )


def marker(question: Question) -> str:
    """The line above a block of rows."""
    fields = json.dumps(question.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
    return f"<!-- cardfit readme {fields} -->"


def blocks(path: Path) -> tuple[Block, ...]:
    """The blocks of a Markdown file. Raises BadFile where there is none, or a marker that cannot be read."""
    found = tuple(_blocks(path, read_text(path, MAX_PAGE_BYTES).splitlines()))
    if not found:
        raise BadFile("readme-no-markers", path=path)
    return found


def _blocks(path: Path, lines: Sequence[str]) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        start = _START.match(lines[at].strip())
        at += 1
        if start is None:
            continue
        first, rows = at, list[tuple[int, tuple[str, ...]]]()
        try:
            question = Question.model_validate_json(start[1])
        except ValidationError as error:
            raise BadFile("readme-bad-marker", path=path, line=first) from error
        while at < len(lines) and lines[at].strip() != END:
            if lines[at].startswith("|"):
                cells = tuple(cell.strip() for cell in lines[at].strip().strip("|").split("|"))
                rows.append((at + 1, cells))
            at += 1
        if at == len(lines):
            raise BadFile("readme-no-end", path=path, line=first, end=END)
        yield Block(first, question, tuple(rows[2:]))  # without the head and the rule below it


def moved(block: Block, now: Readme) -> tuple[Moved, ...]:
    """The cells of ``block`` that ``now`` has otherwise, versions left out."""
    found = []
    for at in range(max(len(block.rows), len(now.rows))):
        line, before = block.rows[at] if at < len(block.rows) else (block.line, ())
        after = now.rows[at].cells if at < len(now.rows) else ()
        name = (before or after)[0]
        for column, title in enumerate(COLUMNS):
            old = before[column] if column < len(before) else None
            new = after[column] if column < len(after) else None
            if old != new and column != VERSIONED:
                found.append(_moved(line, name, title, old, new))
    return tuple(found)


def other_versions(block: Block, now: Readme) -> bool:
    """Whether the rows of ``block`` were computed with other versions."""
    return any(
        len(cells) > VERSIONED and cells[VERSIONED] != now.rows[0].cells[VERSIONED]
        for _, cells in block.rows
    )


def _moved(line: int, row: str, column: str, before: str | None, after: str | None) -> Moved:
    args = {"line": line, "row": row, "column": say(f"readme-col-{column}")}
    text = Said.of("readme-moved", before=before or "-", after=after or "-", **args)
    return Moved(line=line, row=row, column=column, before=before, after=after, text=text)


def reference_card(answer: Answer, named: str | None) -> str | None:
    """The card that times the rows: the one that was named, else the cheapest that holds the full row as it is."""
    if named is not None:
        return named
    whole = (row for row in answer.cards if row.verdict == "fits" and not row.price_of_it)
    return next((row.card for row in whole if row.seconds is not None), None)


def timed_note(answer: Answer, card: str | None) -> Said:
    """What the slowdown is measured on."""
    if card is None:
        return Said.of("readme-no-card")
    names = [row.name for row in answer.cards if row.card == card]
    return Said.of("readme-timed-on", card=short_name(names[0]) if names else card)
