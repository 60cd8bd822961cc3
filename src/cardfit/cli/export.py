"""The command `export`: frames or a video in, checked files out.

In: flags. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.messages import say


def export(
    source: Annotated[Path, Parameter(help=say("help-export-in"))],
    /,
    *outputs: Annotated[str, Parameter(help=say("help-export-out"))],
    fps: Annotated[float | None, Parameter(help=say("help-export-fps"))] = None,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Write frames or a video to one or more files in one pass, then read every file back.

    Try:

    cardfit export frames/ out.mp4 --fps 16

    cardfit export clip.mp4 full.mp4 small.mp4,height=480,crf=26 web.webm

    cardfit export frames/ out.mp4,codec=hevc,engine=nvenc --fps 24
    """
    from cardfit import verbs
    from cardfit.errors import BadRequest
    from cardfit.report import dump, out
    from cardfit.report import export as page

    if not outputs:
        raise BadRequest("export-no-output", path=source)
    with out.progress(quiet=json) as progress:
        found = verbs.export(source, outputs, fps=fps, force=force, progress=progress)
    style = out.style_of()
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, style))
        out.remarks(page.notes(found, style))
    return 0
