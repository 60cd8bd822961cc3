"""The command `accuracy`: published rows or field cases in, errors or verdicts out.

In: a CSV file. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.errors import BadRequest
from cardfit.messages import say


def accuracy(
    file: Annotated[Path | None, Parameter(help=say("help-measured"))] = None,
    /,
    *,
    field: Annotated[
        Path | None, Parameter(name="--field", help=say("help-accuracy-field"))
    ] = None,
    times: Annotated[
        Path | None, Parameter(name="--times", help=say("help-accuracy-times"))
    ] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Published measurements against predictions: errors by figure, source and family, beside simpler rules.

    With --field, what people ran on which card against the verdict that they would have got; with --times, published
    seconds against predicted ones.

    Try:

    cardfit accuracy benchmarks/data/measured.csv

    cardfit accuracy --field benchmarks/data/field_oom.csv

    cardfit accuracy --times benchmarks/data/times.csv
    """
    given = sum(each is not None for each in (file, field, times))
    if given != 1:
        raise BadRequest("accuracy-one-file", given=given)
    if field is not None:
        return _field(field, json)
    if times is not None:
        return _times(times, json)
    assert file is not None
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


def _field(file: Path, json: bool) -> int:
    from cardfit import api
    from cardfit.report import accuracy_field as page
    from cardfit.report import dump, out

    with out.progress(quiet=json) as progress:
        found = api.accuracy(field=file, progress=progress)
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, out.style_of()))
        out.remarks(page.remarks(found))
    return 0


def _times(file: Path, json: bool) -> int:
    from cardfit import api
    from cardfit.report import accuracy_times as page
    from cardfit.report import dump, out

    with out.progress(quiet=json) as progress:
        found = api.accuracy(times=file, progress=progress)
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, out.style_of()))
        out.remarks(page.remarks(found))
    return 0
