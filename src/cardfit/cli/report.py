"""The command `report`: a saved answer in, a file to pass on out.

In: a file of ``--json``. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say

if TYPE_CHECKING:
    from cardfit.plan.answer import Answer
    from cardfit.request import Dtype


def report(
    file: Annotated[Path, Parameter(help=say("help-report-file"))],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help=say("help-report-output"))],
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
) -> int:
    """An answer, a sweep or a comparison as one HTML page that opens offline, as Markdown, or its charts as pictures.

    Try:

    cardfit plan flux.1-dev --json > plan.json

    cardfit report plan.json -o plan.html

    cardfit report plan.json -o plan.md

    cardfit report sweep.json -o sweep.png
    """
    from cardfit.plan.diff import read_saved
    from cardfit.report import drawings, drawn, papers

    ending = output.suffix.lower()
    allowed = (*papers.TEXTS, *papers.PICTURES)
    if ending not in allowed:
        raise BadRequest("report-bad-ending", asked=output, allowed=", ".join(allowed))
    found = read_saved(file, papers.KINDS, "report-other-schema")
    if ending in papers.TEXTS:
        _write({output: papers.text(found, ending, _dtypes).encode()}, force)
        return 0
    charts = papers.charts(found)
    if not charts:
        raise BadRequest("report-no-chart", path=file)
    made = {
        output.with_stem(f"{output.stem}-{chart.name}"): drawings.png(chart)
        if ending == ".png"
        else chart.svg.encode()
        for chart in charts
    }
    _write(made, force)
    if ending == ".png":
        drawn.warn()
    return 0


def _dtypes(answer: Answer) -> dict[str, Dtype]:
    """The dtype of every component as the model recommends it."""
    from cardfit import api

    parts = api.model(answer.model.id).components
    return {name: part.recommended_dtype for name, part in parts.items() if part.counted}


def _write(files: Mapping[Path, bytes], force: bool) -> None:
    """Write each file whole, none where one is there and may not be written over. Raises BadFile."""
    from cardfit.media.pixels import write_whole
    from cardfit.report import out

    for path in files:
        if path.exists() and not force:
            raise BadFile("planfile-exists", path=str(path))
    for path, content in files.items():
        write_whole(path, content)
        out.error(say("saved", {"file": path}))
