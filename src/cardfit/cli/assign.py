"""The command `assign`: shots and machines in; where each shot runs, when it is done and what has no place out.

In: two YAML files. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say

_ANSWERED, _BROKEN = 0, 1


def assign(
    shots: Annotated[Path, Parameter(help=say("help-shots"))],
    /,
    *,
    machines: Annotated[Path, Parameter(help=say("help-farm"))],
    start: Annotated[str | None, Parameter(help=say("help-start"))] = None,
    allow_tight: Annotated[
        bool, Parameter(help=say("help-allow-tight"), negative=(), show_default=False)
    ] = False,
    lossless: Annotated[
        bool, Parameter(help=say("help-lossless"), negative=(), show_default=False)
    ] = False,
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    chart: Annotated[Path | None, Parameter(help=say("help-assign-chart"))] = None,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
    check: Annotated[
        bool, Parameter(help=say("help-assign-check"), negative=(), show_default=False)
    ] = False,
    csv: Annotated[bool, Parameter(help=say("help-csv"), negative=(), show_default=False)] = False,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Which shot runs on which machine of a farm, in which settings, when each is done, what has no place.

    Try:

    cardfit assign shots.yaml --machines farm.yaml

    cardfit assign shots.yaml --machines farm.yaml --start 2026-12-07T18:00 --chart plan.html

    cardfit assign shots.yaml --machines farm.yaml --csv > queue.csv
    """
    from cardfit import verbs
    from cardfit.fleet.times import parse_start
    from cardfit.report import assign as page
    from cardfit.report import assign_chart, drawn, dump, out

    if json and csv:
        raise BadRequest("bad-together", one="--json", other="--csv")
    if chart is not None and chart.suffix.lower() not in drawn.ENDINGS:
        raise BadRequest("rent-bad-chart", asked=chart)
    if chart is not None and chart.exists() and not force:
        raise BadFile("rent-chart-exists", file=chart)
    try:
        begin = None if start is None else parse_start(start)
    except ValueError:
        raise BadRequest("assign-bad-start", asked=start) from None
    with out.progress(quiet=json or csv) as progress:
        found = verbs.assign(
            shots,
            machines,
            start=begin,
            allow_tight=allow_tight,
            lossless=lossless,
            cards_file=cards_file,
            offers_file=offers_file,
            progress=progress,
        )
    if chart is not None:
        assign_chart.write(found, chart)
        out.error(say("saved", {"file": chart}))
    if json:
        out.write(dump.one(found))
    elif csv:
        out.write(page.table(found))
    else:
        out.write(page.lines(found, out.style_of()))
        out.remarks(f"{say('note')}  {note.text}" for note in found.notes)
    return _BROKEN if check and not found.kept else _ANSWERED
