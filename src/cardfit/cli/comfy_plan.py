"""The command `comfy plan`: a workflow file in, its requests and their plans out.

In: a file and answers to what it does not say. Out: an exit code. At a terminal open questions are asked; elsewhere
they are listed and the exit code is 2. The docstring is the help that a person reads.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cardfit.cli.flags import Os, disk_bytes, outputs_per_month, ram_bytes, target_bytes
from cardfit.errors import BadRequest
from cardfit.messages import say

if TYPE_CHECKING:
    from cardfit.comfy.result import Reading

_ANSWERED, _DOES_NOT_FIT, _OPEN = 0, 1, 2
_MOST_ROUNDS = 10
_NO_SOURCE: Mapping[str, Path | None] = {}


def _switch(code: str, *names: str) -> Any:
    return Parameter(name=names or None, help=say(code), negative=(), show_default=False)


def plan(
    workflow: Annotated[Path, Parameter(help=say("help-comfy-workflow"))],
    /,
    *,
    set_: Annotated[list[str] | None, _switch("help-comfy-set", "--set")] = None,
    image: Annotated[Path | None, Parameter(help=say("help-comfy-image-size"))] = None,
    models: Annotated[Path | None, Parameter(help=say("help-comfy-models-at-hand"))] = None,
    requests_only: Annotated[bool, _switch("help-comfy-requests-only")] = False,
    card: Annotated[list[str] | None, _switch("help-card", "--card")] = None,
    ram: Annotated[str | None, Parameter(help=say("help-ram"))] = None,
    disk: Annotated[str | None, Parameter(help=say("help-disk"))] = None,
    os: Annotated[Os, Parameter(help=say("help-os"))] = "linux",
    here: Annotated[bool, _switch("help-here")] = False,
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    target: Annotated[str | None, Parameter(help=say("help-target"))] = None,
    outputs: Annotated[str | None, Parameter(help=say("help-outputs"))] = None,
    hours_per_week: Annotated[float | None, Parameter(help=say("help-hours"))] = None,
    check: Annotated[bool, _switch("help-check")] = False,
    all_: Annotated[bool, _switch("help-all", "--all")] = False,
    json: Annotated[bool, _switch("help-json", "--json")] = False,
) -> int:
    """Read a ComfyUI workflow and lay what it makes over every card, as ComfyUI places it.

    Try:

    cardfit comfy plan wan.json --card rtx-4090

    cardfit comfy plan edit.json --image photo.png --card l4

    cardfit comfy plan edit.json --set "Load Image.width=1024" --set "Load Image.height=1024"

    cardfit comfy plan output.png --requests-only --json
    """
    return plan_file(
        workflow,
        card,
        answers=set_ or (),
        source={"image": image, "models": models},
        requests_only=requests_only,
        check=check,
        every=all_,
        json=json,
        cards_file=cards_file,
        ram_bytes=ram_bytes(ram),
        disk_bytes=disk_bytes(disk),
        os=os,
        here=here,
        offers_file=offers_file,
        target_bytes=target_bytes(target),
        outputs_per_month=outputs_per_month(outputs),
        hours_per_week=hours_per_week,
    )


def is_workflow(word: str) -> bool:
    """Whether the argument of `plan` names a workflow file, by its ending."""
    from cardfit.comfy.files import looks_like_workflow

    return looks_like_workflow(word)


def plan_file(
    workflow: Path,
    cards: Sequence[str] | None,
    *,
    answers: Sequence[str] = (),
    source: Mapping[str, Path | None] = _NO_SOURCE,
    requests_only: bool = False,
    check: bool = False,
    every: bool = False,
    json: bool = False,
    **more: Any,
) -> int:
    """Read the workflow, settle its questions, plan and show it; ``source`` goes to the reader, ``more`` to `plan`."""
    from cardfit import verbs
    from cardfit.report import comfy as page
    from cardfit.report import dump, out

    given = answers_from(answers)
    reading = verbs.comfy_read(workflow, given, **source)
    if not json and reading.missing and sys.stdin.isatty() and sys.stderr.isatty():
        reading = _asked(workflow, given, source, reading)
    style = out.style_of()
    if requests_only:
        out.write(dump.one(reading) if json else page.lines(reading, style))
        return _ANSWERED
    if any(not each.complete for each in reading.requests):
        out.write(page.questions(reading, style), sys.stderr)
        return _OPEN
    with out.progress(quiet=json) as progress:
        found = verbs.comfy_plan(
            reading, cards=tuple(cards) if cards else None, progress=progress, **more
        )
    return show_plans(found, page, json=json, every=every, check=check)


def show_plans(found: Any, page: Any, *, json: bool, every: bool, check: bool) -> int:
    """Show the plans of a file's requests with the lines of ``page``; the exit code."""
    from cardfit.report import dump, out

    style = out.style_of()
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.plan_lines(found, style, every=every))
        out.remarks(page.notes(found, style))
    rows = [each.answer.cards if each.answer else () for each in found.plans]
    fit = bool(rows) and all(any(row.verdict == "fits" for row in each) for each in rows)
    return _DOES_NOT_FIT if check and not fit else _ANSWERED


def answers_from(words: Sequence[str]) -> dict[str, object]:
    """``node.input=value`` words as answers. Raises BadRequest.

    >>> answers_from(["Load Image.width=1024", "3.text=a=b"])
    {'Load Image.width': 1024, '3.text': 'a=b'}
    """
    from cardfit.comfy.reader import value_of

    found: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise BadRequest("comfy-answer-form", answer=word)
        found[name.strip()] = value_of(value.strip())
    return found


def _asked(
    workflow: Path, given: dict[str, object], source: Mapping[str, Path | None], reading: Reading
) -> Reading:
    """``reading`` after its questions were put to the person at the terminal, each once."""
    from cardfit import verbs
    from cardfit.comfy.reader import default_for, value_of
    from cardfit.report import out

    asked = set[str]()
    for _ in range(_MOST_ROUNDS):
        left = [each for each in reading.missing if f"{each.id}.{each.input}" not in asked]
        if not left:
            break
        for each in left:
            key = f"{each.id}.{each.input}"
            asked.add(key)
            default = default_for(reading, each)
            args = {"node": each.node, "input": each.input, "why": each.why}
            typed = out.ask(say("comfy-question", args), None if default is None else str(default))
            if typed:
                given[key] = value_of(typed)
        reading = verbs.comfy_read(workflow, given, **source)
    return reading
