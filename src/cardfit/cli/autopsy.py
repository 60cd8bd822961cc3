"""The command `autopsy`: an error text in, its cause and cures out.

In: a file or stdin, and what ran as flags. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.cli.flags import Os, RequestFlags, SettingsFlags, asked, ram_bytes
from cardfit.errors import BadRequest, Note
from cardfit.messages import say
from cardfit.request import Request

_SPREAD = Parameter(name="*")  # the fields of the class are the flags
_NONE_REQUEST, _NONE_SETTINGS = RequestFlags(), SettingsFlags()
_STDIN = "-"


def autopsy(
    file: Annotated[
        str, Parameter(help=say("help-autopsy-file"), allow_leading_hyphen=True)
    ] = _STDIN,
    /,
    *,
    model: Annotated[str | None, Parameter(help=say("help-autopsy-model"))] = None,
    request: Annotated[RequestFlags, _SPREAD] = _NONE_REQUEST,
    settings: Annotated[SettingsFlags, _SPREAD] = _NONE_SETTINGS,
    card: Annotated[str | None, Parameter(help=say("help-autopsy-card"))] = None,
    ram: Annotated[str | None, Parameter(help=say("help-ram-had"))] = None,
    os: Annotated[Os, Parameter(help=say("help-os"))] = "linux",
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Why a run ended: stage, cause and cures from an error message, a log or a traceback.

    Try:

    cardfit autopsy error.txt

    cardfit autopsy error.txt --model wan2.1-t2v-14b --width 832 --height 480 --num-frames 81
    """
    from cardfit import api
    from cardfit.report import autopsy as page
    from cardfit.report import dump, out

    text, notes = _text(file)
    wanted, knobs = asked(model or _STDIN, request, settings)
    fields = wanted.model_dump(exclude_unset=True)
    if model is None:
        del fields["model"]
    with out.progress(quiet=json) as progress:
        found = api.autopsy(
            text,
            _given(wanted, fields),
            knobs if knobs.model_fields_set else None,
            card=card,
            ram_bytes=ram_bytes(ram),
            os=os,
            cards_file=cards_file,
            notes=notes,
            progress=progress,
        )
    style = out.style_of()
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, style))
        out.remarks(page.notes(found, style))
    return 0


def _given(wanted: Request, fields: dict[str, object]) -> Request | dict[str, object] | None:
    """The whole request where the model was named, else the fields that go on top of what the text states."""
    return wanted if "model" in fields else fields or None


def _text(file: str) -> tuple[str, tuple[Note, ...]]:
    """The text of the file or of stdin; raises BadRequest where nobody pipes anything in."""
    from cardfit.autopsy import text_of, text_of_file

    if file.startswith("--"):  # a dash alone is stdin, so the parser lets words with one through
        raise BadRequest("autopsy-no-option", asked=file)
    if file != _STDIN:
        return text_of_file(file)
    if sys.stdin is None or sys.stdin.isatty():
        raise BadRequest("autopsy-terminal")
    return text_of(sys.stdin.buffer, _STDIN)
