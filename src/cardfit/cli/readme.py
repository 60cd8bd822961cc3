"""The command `readme`: a model in, three honest rows for its README out; or a page in, whether its rows still hold.

In: flags. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.cli.flags import RequestFlags, SettingsFlags, asked
from cardfit.cli.sequence import refuse
from cardfit.errors import BadRequest
from cardfit.messages import say

_NO_REQUEST = RequestFlags()
_KEPT, _MOVED = 0, 1


def readme(
    model: Annotated[str | None, Parameter(help=say("help-model"))] = None,
    /,
    *,
    verify: Annotated[Path | None, Parameter(help=say("help-verify"))] = None,
    request: Annotated[RequestFlags, Parameter(name="*")] = _NO_REQUEST,
    card: Annotated[str | None, Parameter(help=say("help-readme-card"))] = None,
    machine: Annotated[Path | None, Parameter(help=say("help-machine"))] = None,
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Three rows for a model's README: full precision, less, the least possible; --verify computes them again.

    Try:

    cardfit readme sdxl-base --card rtx-4090

    cardfit readme --verify README.md
    """
    if (model is None) == (verify is None):
        raise BadRequest("readme-needs-one")
    from cardfit import verbs
    from cardfit.report import dump, out
    from cardfit.report import readme as page

    files = {"machine": machine, "cards_file": cards_file, "offers_file": offers_file}
    if model is not None:
        wanted, _ = asked(model, request, SettingsFlags())
        with out.progress(quiet=json) as progress:
            found = verbs.readme(wanted, card=card, progress=progress, **files)
        out.write(dump.one(found) if json else page.lines(found))
        return _KEPT
    assert verify is not None
    given = {f"--{name.replace('_', '-')}": value for name, value in vars(request).items()}
    refuse({**given, "--card": card}, "--verify")
    with out.progress(quiet=json) as progress:
        held = verbs.verify_readme(verify, progress=progress, **files)
    if json:
        out.write(dump.one(held))
    else:
        out.write(page.verified(held))
        out.remarks(f"{say('note')}  {note.text}" for note in held.notes)
    return _KEPT if held.kept else _MOVED
