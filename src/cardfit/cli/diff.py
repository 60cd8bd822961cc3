"""The command `diff`: two answers in, what differs out.

In: two files. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.messages import say


def diff(
    before: Annotated[Path, Parameter(help=say("help-answer"))],
    after: Annotated[Path, Parameter(help=say("help-answer"))],
    /,
    *,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """What differs between two answers: stages and cards in words, versions, request and settings.

    Try:

    cardfit plan sdxl-base --json > before.json

    cardfit diff before.json after.json

    cardfit diff before.json plan.yaml --json
    """
    from cardfit import verbs
    from cardfit.report import diff as page
    from cardfit.report import dump, out

    with out.progress(quiet=json) as progress:
        found = verbs.diff(before, after, progress=progress)
    out.write(dump.one(found) if json else page.lines(found, out.style_of()))
    return 0
