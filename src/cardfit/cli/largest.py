"""The command `largest`: a request, one card and what to vary in; the largest value that it holds out.

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
    target_bytes,
)
from cardfit.messages import say
from cardfit.plan.vary import Vary

_SPREAD = Parameter(name="*")
_NO_REQUEST, _NO_SETTINGS = RequestFlags(), SettingsFlags()
_ANSWERED, _DOES_NOT_FIT = 0, 1


def largest(
    model: Annotated[str, Parameter(help=say("help-model"))],
    /,
    *,
    vary: Annotated[Vary, Parameter(help=say("help-vary"))],
    card: Annotated[str | None, Parameter(help=say("help-one-card"))] = None,
    target: Annotated[str | None, Parameter(help=say("help-target"))] = None,
    here: Annotated[
        bool, Parameter(help=say("help-here"), negative=(), show_default=False)
    ] = False,
    most: Annotated[int | None, Parameter(help=say("help-most"))] = None,
    request: Annotated[RequestFlags, _SPREAD] = _NO_REQUEST,
    settings: Annotated[SettingsFlags, _SPREAD] = _NO_SETTINGS,
    ram: Annotated[str | None, Parameter(help=say("help-ram"))] = None,
    disk: Annotated[str | None, Parameter(help=say("help-disk"))] = None,
    os: Annotated[Os, Parameter(help=say("help-os"))] = "linux",
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    check: Annotated[
        bool, Parameter(help=say("help-check"), negative=(), show_default=False)
    ] = False,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """The most frames, the largest size or batch that one card holds, in which settings, and what stops the next.

    Try:

    cardfit largest wan2.1-t2v-14b --card rtx-4090 --vary num_frames --width 832 --height 480

    cardfit largest sdxl-base --card rtx-3060 --vary size --offload none --vae-tiling

    cardfit largest flux.1-dev --target "24 GiB" --vary batch
    """
    from cardfit import verbs
    from cardfit.report import dump, out
    from cardfit.report import largest as page

    wanted, knobs = asked(model, request, settings)
    with out.progress(quiet=json) as progress:
        found = verbs.largest(
            wanted,
            knobs,
            vary=vary,
            card=card,
            target_bytes=target_bytes(target),
            most=most,
            progress=progress,
            here=here,
            ram_bytes=ram_bytes(ram),
            disk_bytes=disk_bytes(disk),
            os=os,
            cards_file=cards_file,
            offers_file=offers_file,
        )
    if json:
        out.write(dump.one(found))
    else:
        style = out.style_of()
        out.write(page.lines(found, style))
        out.remarks(f"{say('note')}  {note.text}" for note in found.notes)
    return _DOES_NOT_FIT if check and found.fits is None else _ANSWERED
