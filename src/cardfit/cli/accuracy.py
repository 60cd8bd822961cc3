"""The command `accuracy`: published rows in, errors out.

In: a CSV file. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.messages import say


def accuracy(
    file: Annotated[Path, Parameter(help=say("help-measured"))],
    /,
    *,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Published measurements against predictions: errors by figure, source and family, beside simpler rules.

    Try:

    cardfit accuracy benchmarks/data/measured.csv
    """
    from cardfit import api
    from cardfit.report import accuracy as page
    from cardfit.report import dump, out

    with out.progress(quiet=json) as progress:
        found = api.accuracy(file, progress=progress)
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, out.style_of()))
        out.remarks(page.remarks(found))
    return 0
