"""The command `probe`: what this machine really is.

In: a listing to hold against it. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.cli.flags import disk_bytes, ram_bytes
from cardfit.messages import say


def probe(
    *,
    against: Annotated[str | None, Parameter(help=say("help-probe-against"))] = None,
    folder: Annotated[Path, Parameter(help=say("help-probe-folder"))] = Path(),
    lanes: Annotated[int | None, Parameter(help=say("help-probe-lanes"))] = None,
    ram: Annotated[str | None, Parameter(help=say("help-probe-ram"))] = None,
    disk: Annotated[str | None, Parameter(help=say("help-probe-disk"))] = None,
    offers_file: Annotated[
        Path | None, Parameter(name="--offers-file", help=say("help-offers-file"))
    ] = None,
    codecs: Annotated[bool, Parameter(help=say("help-probe-codecs"), negative=())] = False,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """What this machine really is: card, link as trained and as fast, disk, limits, other tenants, container.

    Try:

    cardfit probe --against rtx-4090 --ram 64GB

    cardfit probe --codecs --json
    """
    from cardfit import verbs
    from cardfit.report import codecs as codecs_page
    from cardfit.report import dump, out
    from cardfit.report import probe as page

    found = verbs.probe(
        against,
        folder=folder,
        lanes=lanes,
        ram_bytes=ram_bytes(ram),
        disk_bytes=disk_bytes(disk),
        offers_file=offers_file,
    )
    if codecs:
        with out.progress(quiet=json) as progress:
            found = found.model_copy(update={"codecs": verbs.codecs(progress=progress)})
    style = out.style_of()
    out.write(dump.one(found) if json else page.lines(found, style))
    if found.codecs is not None and not json:
        out.write(["", *codecs_page.lines(found.codecs, style)])
        out.remarks(codecs_page.notes(found.codecs, style))
    return 1 if found.less else 0
