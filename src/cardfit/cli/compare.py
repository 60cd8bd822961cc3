"""The command `compare`: two pieces of footage in, what differs and where out.

In: flags. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.errors import BadRequest
from cardfit.messages import say


def compare(
    reference: Annotated[Path, Parameter(help=say("help-compare-reference"))],
    candidate: Annotated[Path, Parameter(help=say("help-compare-candidate"))],
    /,
    *,
    tile: Annotated[int | None, Parameter(help=say("help-compare-tile"))] = None,
    overlap: Annotated[int | None, Parameter(help=say("help-compare-overlap"))] = None,
    lines_x: Annotated[str | None, Parameter(help=say("help-compare-lines-x"))] = None,
    lines_y: Annotated[str | None, Parameter(help=say("help-compare-lines-y"))] = None,
    chunk: Annotated[int | None, Parameter(help=say("help-compare-chunk"))] = None,
    first_chunk: Annotated[int | None, Parameter(help=say("help-compare-first-chunk"))] = None,
    edges: Annotated[str | None, Parameter(help=say("help-compare-edges"))] = None,
    align: Annotated[
        bool, Parameter(help=say("help-compare-align"), negative=(), show_default=False)
    ] = False,
    metric: Annotated[
        list[str] | None, Parameter(help=say("help-compare-metric"), negative=())
    ] = None,
    report: Annotated[
        Path | None, Parameter(name=("--report", "-o"), help=say("help-compare-report"))
    ] = None,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """What a setting cost the picture: PSNR, SSIM, seams on the tile grid, chunk edges, flicker, drift, lost detail.

    Try:

    cardfit compare untiled.png tiled.png --tile 512 --overlap 128

    cardfit compare reference.mp4 chunked.mp4 --chunk 8 --report report/

    cardfit compare frames-bf16/ frames-fp8/ --metric flip --json
    """
    from cardfit import verbs
    from cardfit.quality.where import Where
    from cardfit.report import compare as page
    from cardfit.report import compare_page, dump, out

    where = Where(
        tile=tile,
        overlap=overlap,
        lines_x=_numbers("--lines-x", lines_x, "quality-bad-lines"),
        lines_y=_numbers("--lines-y", lines_y, "quality-bad-lines"),
        chunk=chunk,
        first_chunk=first_chunk,
        edges=_numbers("--edges", edges, "quality-bad-edges"),
    )
    if report is not None:
        compare_page.check(report, force)
    with out.progress(quiet=json) as progress:
        found = verbs.compare(
            reference, candidate, where=where, align=align, also=metric or (), progress=progress
        )
    style = out.style_of()
    if report is not None:
        out.error(say("quality-report-at", {"file": compare_page.write(found, report)}))
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, style))
        out.remarks(page.notes(found, style))
    return 0


def _numbers(flag: str, text: str | None, code: str) -> tuple[int, ...]:
    """Whole numbers with commas. Raises BadRequest."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts):
        raise BadRequest(code, flag=flag, asked=text)
    return tuple(int(part) for part in parts)
