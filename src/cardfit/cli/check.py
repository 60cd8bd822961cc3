"""The command `check`: a budget file in, an exit code for CI out, with JUnit and Markdown files where asked for.

In: a YAML file. Out: 0 when every limit is kept, 1 when one is broken. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.cli.flags import Os, disk_bytes, ram_bytes
from cardfit.errors import BadFile
from cardfit.messages import say

_KEPT, _BROKEN = 0, 1


def check(
    budget: Annotated[Path, Parameter(help=say("help-budget"))],
    /,
    *,
    junit: Annotated[Path | None, Parameter(help=say("help-junit"))] = None,
    markdown: Annotated[Path | None, Parameter(help=say("help-markdown"))] = None,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
    ram: Annotated[str | None, Parameter(help=say("help-ram"))] = None,
    disk: Annotated[str | None, Parameter(help=say("help-disk"))] = None,
    os: Annotated[Os, Parameter(help=say("help-os"))] = "linux",
    machine: Annotated[Path | None, Parameter(help=say("help-machine"))] = None,
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Hold requests to limits in memory, seconds and money: 0 when all are kept, 1 when one is broken, for CI.

    Try:

    cardfit check budget.yaml

    cardfit check budget.yaml --junit report.xml --markdown report.md --force
    """
    from cardfit import verbs
    from cardfit.report import check as page
    from cardfit.report import dump, out
    from cardfit.request.read import write_whole

    for file in (junit, markdown):
        if file is not None and file.exists() and not force:
            raise BadFile("planfile-exists", path=file)
    with out.progress(quiet=json) as progress:
        found = verbs.check(
            budget,
            progress=progress,
            ram_bytes=ram_bytes(ram),
            disk_bytes=disk_bytes(disk),
            os=os,
            machine=machine,
            cards_file=cards_file,
            offers_file=offers_file,
        )
    if junit is not None:
        write_whole(junit, page.junit(found), force=force)
    if markdown is not None:
        write_whole(markdown, page.markdown(found), force=force)
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, out.style_of()))
        out.remarks(f"{say('note')}  {note.text}" for note in found.notes)
    return _KEPT if found.kept else _BROKEN
