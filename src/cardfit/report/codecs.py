"""The page of `cardfit codecs`: a line for every encoder and decoder, then what to use.

In: `Codecs` and a `Style`. Out: lines; the notes go to stderr.
"""

from __future__ import annotations

from cardfit.media.codecs import CodecRow, Codecs
from cardfit.messages import say
from cardfit.report.grid import Cell, Column, Row, grid, hanging
from cardfit.report.style import Style


def lines(found: Codecs, style: Style) -> list[str]:
    """The page."""
    args = {"card": found.card or "?", "driver": found.driver or "?", **found.versions}
    head = say("codecs-head" if found.card else "codecs-head-none", args)
    columns = [
        Column(say("codecs-col-name")),
        Column(say("codecs-col-role")),
        Column(say("codecs-col-codec")),
        Column(say("codecs-col-speed"), right=True),
        Column(say("codecs-col-found"), least=30),
    ]
    page = [head.replace(" · ", style.dot), ""]
    page += grid(columns, [_row(row) for row in found.rows], style)
    page.append("")
    for codec, name in found.use.items():
        code = "codecs-use" if name else "codecs-use-none"
        page.append(say(code, {"codec": codec, "name": name}))
    return page


def notes(found: Codecs, style: Style) -> list[str]:
    """What should be said beside it."""
    return [line for each in found.notes for line in hanging(say("note"), each.text, style.width)]


def _row(row: CodecRow) -> Row:
    speed = "-" if row.frames_per_s is None else f"{row.frames_per_s:.0f}"
    why = Cell(say("codecs-works"), "green") if row.why is None else Cell(row.why.text, "amber")
    return [row.name, say(f"codecs-role-{row.role}"), row.codec, speed, why]
