"""`plan --requests FILE`: each request of a file planned by itself, or all in one process with --sequence.

In: what the command `plan` was given. Out: an exit code. A settings flag goes on top of the settings of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardfit.cli.flags import RequestFlags, SettingsFlags, asked
from cardfit.errors import BadRequest
from cardfit.messages import say
from cardfit.request.mix import RequestsFile, read_requests_file
from cardfit.request.read import validate_settings

_ANSWERED, _DOES_NOT_FIT = 0, 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed: the file, the flags, and ``other`` flags by name that only some of these questions take."""

    file: Path
    sequence: bool
    settings: SettingsFlags
    cards: Sequence[str] | None
    cards_file: Path | None
    check: bool
    json: bool
    other: Mapping[str, object]


def one_question(model: str | None, file: Path | None, sequence: bool) -> str | None:
    """The model to plan, None for a file of requests. Raises BadRequest for both, neither, or --sequence alone."""
    if model is not None and file is not None:
        raise BadRequest("bad-together", one="MODEL", other="--requests")
    if sequence and file is None:
        raise BadRequest("sequence-needs-file")
    if model is None and file is None:
        raise BadRequest("plan-needs-model")
    return model


def refuse(given: Mapping[str, object], beside: str) -> None:
    """Raise BadRequest for the first flag that was given and means nothing beside another."""
    for name, value in given.items():
        if value not in (None, False):
            raise BadRequest("bad-together", one=beside, other=name)


def refuse_flags(beside: str, *flags: object) -> None:
    """Raise BadRequest for the first flag of request or settings that was given beside ``beside``."""
    for each in flags:
        refuse({f"--{name.replace('_', '-')}": value for name, value in vars(each).items()}, beside)


def run(what: Asked, request: RequestFlags, **more: Any) -> int:
    """Answer it and print it; ``more`` goes to every single plan."""
    refuse_flags("--requests", request)
    found = _merged(read_requests_file(what.file), what.settings)
    if not what.sequence:
        return _each(found, what, more)
    refuse(what.other, "--sequence")
    from cardfit import api
    from cardfit.report import dump, out
    from cardfit.report import sequence as page

    with out.progress(quiet=what.json) as progress:
        answer = api.sequence(
            found, cards=what.cards or (), cards_file=what.cards_file, progress=progress
        )
    if what.json:
        out.write(dump.one(answer))
    else:
        out.write(page.lines(answer, out.style_of()))
        out.remarks(f"{say('note')}  {note.text}" for note in answer.notes)
    fits = any(card.verdict == "fits" for card in answer.cards)
    return _DOES_NOT_FIT if what.check and not fits else _ANSWERED


def _merged(found: RequestsFile, flags: SettingsFlags) -> RequestsFile:
    _, given = asked("-", RequestFlags(), flags)
    both = found.settings.model_dump(exclude_unset=True) | given.model_dump(exclude_unset=True)
    return found.model_copy(update={"settings": validate_settings(both)})


def _each(found: RequestsFile, what: Asked, more: Mapping[str, Any]) -> int:
    """One line for each request, in the order of the file, then the card that runs all of them."""
    from cardfit import verbs
    from cardfit.report import dump, line, out
    from cardfit.report import together as page

    with out.progress(quiet=what.json) as progress:
        answer = verbs.together(
            found, cards=what.cards, cards_file=what.cards_file, progress=progress, **more
        )
    if what.json:
        out.write(dump.one(answer))
    else:
        style = out.style_of()
        out.write([line.line(each, style) for each in answer.plans])
        out.write(page.lines(answer, style))
    fit = all(any(row.verdict == "fits" for row in each.cards) for each in answer.plans)
    return _DOES_NOT_FIT if what.check and not fit else _ANSWERED
