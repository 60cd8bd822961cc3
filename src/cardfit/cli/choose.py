"""The command `choose`: the smallest measured configuration that passed.

In: a sweep or a request, and what it must hold. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cardfit.cli.flags import RequestFlags, SettingsFlags, asked
from cardfit.messages import say

_SPREAD = Parameter(name="*")  # the fields of the class are the flags
_NONE_REQUEST = RequestFlags()


def choose(
    model: Annotated[str | None, Parameter(help=say("help-model"))] = None,
    /,
    *,
    sweep: Annotated[str | None, Parameter(help=say("help-records-sweep"))] = None,
    request: Annotated[RequestFlags, _SPREAD] = _NONE_REQUEST,
    by: Annotated[
        Literal["memory", "price", "seconds"], Parameter(help=say("help-choose-by"))
    ] = "memory",
    headroom: Annotated[float, Parameter(help=say("help-choose-headroom"))] = 5.0,
    demand: Annotated[float | None, Parameter(help=say("help-choose-demand"))] = None,
    price: Annotated[float | None, Parameter(help=say("help-choose-price"))] = None,
    min_ssim: Annotated[float | None, Parameter(help=say("help-choose-min-ssim"))] = None,
    max_seam: Annotated[float | None, Parameter(help=say("help-choose-max-seam"))] = None,
    offers_file: Annotated[
        Path | None, Parameter(name="--offers-file", help=say("help-offers-file"))
    ] = None,
    store: Annotated[str | None, Parameter(help=say("help-store"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """The smallest measured configuration that passed, with headroom; and how many cards a demand takes.

    Try:

    cardfit choose --sweep sweep-0123456789ab

    cardfit choose --sweep sweep-0123456789ab --min-ssim 0.97 --max-seam 6

    cardfit choose flux.1-dev --width 1024 --by price --demand 300
    """
    from cardfit import verbs
    from cardfit.report import choose as page
    from cardfit.report import dump, out

    wanted = None if model is None else asked(model, request, SettingsFlags())[0]
    found = verbs.choose(
        wanted,
        sweep=sweep,
        by=by,
        headroom=headroom / 100,
        demand_per_hour=demand,
        price_per_hour=price,
        min_ssim=min_ssim,
        max_seam=max_seam,
        store=store,
        offers_file=offers_file,
    )
    out.write(dump.one(found) if json else page.lines(found, out.style_of()))
    return 0 if found.chosen is not None else 1
