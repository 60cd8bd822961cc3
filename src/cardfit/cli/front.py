"""The command `front`: a request and perhaps cards in; the settings and cards that nothing beats out.

In: flags. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.cli.flags import (
    Os,
    RequestFlags,
    SettingsFlags,
    asked,
    disk_bytes,
    ram_bytes,
)
from cardfit.errors import BadRequest
from cardfit.messages import say

_SPREAD = Parameter(name="*")
_NO_REQUEST, _NO_SETTINGS = RequestFlags(), SettingsFlags()
_ANSWERED, _DOES_NOT_FIT = 0, 1


def front(
    model: Annotated[str, Parameter(help=say("help-model"))],
    /,
    *,
    request: Annotated[RequestFlags, _SPREAD] = _NO_REQUEST,
    settings: Annotated[SettingsFlags, _SPREAD] = _NO_SETTINGS,
    cards: Annotated[
        list[str] | None, Parameter(name="--card", help=say("help-card"), negative=())
    ] = None,
    ram: Annotated[str | None, Parameter(help=say("help-ram"))] = None,
    disk: Annotated[str | None, Parameter(help=say("help-disk"))] = None,
    os: Annotated[Os, Parameter(help=say("help-os"))] = "linux",
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    chart: Annotated[Path | None, Parameter(help=say("help-front-chart"))] = None,
    check: Annotated[
        bool, Parameter(help=say("help-check"), negative=(), show_default=False)
    ] = False,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """All settings on all cards, and of these the ones that nothing beats in price, seconds and quality at once.

    Try:

    cardfit front flux.1-dev

    cardfit front wan2.1-t2v-14b --width 832 --height 480 --chart front.html
    """
    from cardfit import api
    from cardfit.report import drawn, dump, front_chart, out
    from cardfit.report import front as page

    if chart is not None and chart.suffix.lower() not in drawn.ENDINGS:
        raise BadRequest("rent-bad-chart", asked=chart)
    wanted, knobs = asked(model, request, settings)
    with out.progress(quiet=json) as progress:
        found = api.front(
            wanted,
            knobs,
            cards=cards,
            ram_bytes=ram_bytes(ram),
            disk_bytes=disk_bytes(disk),
            os=os,
            cards_file=cards_file,
            offers_file=offers_file,
            progress=progress,
        )
    if chart is not None:
        front_chart.write(found, chart)
        out.remarks([say("saved", {"file": chart})])
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, out.style_of()))
        out.remarks(f"{say('note')}  {note.text}" for note in found.notes)
    return _DOES_NOT_FIT if check and not found.rows else _ANSWERED
