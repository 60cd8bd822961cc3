"""The page of `cardfit export`: frames, fps and seconds together, then a line for every file.

In: an `Exported` and a `Style`. Out: lines; the notes and warnings go to stderr.
"""

from __future__ import annotations

from cardfit.media.export import Exported
from cardfit.media.verify import Written
from cardfit.messages import say
from cardfit.report.grid import Column, Row, grid, hanging
from cardfit.report.style import Style
from cardfit.units import human_bytes


def lines(found: Exported, style: Style) -> list[str]:
    """The page."""
    args = {"frames": found.frames, "fps": found.fps, "seconds": found.seconds}
    columns = [
        Column(say("export-col-file"), least=16),
        Column(say("export-col-size"), right=True),
        Column(say("export-col-codec")),
        Column(say("export-col-pixels")),
        Column(say("export-col-checked"), least=20),
    ]
    head = say("export-head", {**args, "source": found.source})
    return [head, "", *grid(columns, [_row(each) for each in found.files], style)]


def notes(found: Exported, style: Style) -> list[str]:
    """What should be said beside it: of the export, then of each file."""
    said = [*found.notes, *(warning for each in found.files for warning in each.warnings)]
    return [line for each in said for line in hanging(say("note"), each.text, style.width)]


def _row(written: Written) -> Row:
    sound = say("export-sound", {"codec": written.audio}) if written.audio else ""
    args = {"frames": written.frames, "pixel_format": written.pixel_format, "audio": sound}
    return [
        written.path,
        human_bytes(written.size_bytes),
        f"{written.codec} {written.encoder}",
        f"{written.width}x{written.height}",
        say("export-checked", {**args, "profile": written.profile or "?"}),
    ]
