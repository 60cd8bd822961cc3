"""The command `report`: a saved answer in, a file to pass on out.

In: a file of ``plan --json``. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say


def report(
    file: Annotated[Path, Parameter(help=say("help-report-file"))],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help=say("help-report-output"))],
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
) -> int:
    """An answer as one HTML page that opens offline, with its charts, or as Markdown for an issue or a chat.

    Try:

    cardfit plan flux.1-dev --json > plan.json

    cardfit report plan.json -o plan.html

    cardfit report plan.json -o plan.md
    """
    from cardfit import api
    from cardfit.plan.diff import read_answer
    from cardfit.report import out
    from cardfit.report.shared import MAKERS
    from cardfit.request.read import write_whole

    make = MAKERS.get(output.suffix.lower())
    if make is None:
        raise BadRequest("report-bad-ending", asked=output, allowed=", ".join(MAKERS))
    if output.exists() and not force:
        raise BadFile("planfile-exists", path=str(output))
    answer = read_answer(file)
    parts = api.model(answer.model.id).components
    dtypes = {name: part.recommended_dtype for name, part in parts.items() if part.counted}
    write_whole(output, make(answer, dtypes), force=force)
    out.error(say("saved", {"file": output}))
    return 0
