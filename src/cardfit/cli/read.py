"""The command `read`: a script or a workflow in, the request that it makes out; and `plan SCRIPT.py`.

In: a file and answers to what it does not say. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cardfit.cli.comfy_plan import answers_from, is_workflow, plan_file, show_plans
from cardfit.cli.sequence import refuse, refuse_flags
from cardfit.errors import BadRequest
from cardfit.messages import say
from cardfit.script.source import looks_like_script

if TYPE_CHECKING:
    from cardfit.cli.flags import RequestFlags, SettingsFlags
    from cardfit.script.result import ScriptReading

_ANSWERED, _OPEN = 0, 2
# flags of a request that answer for a script; the others are no field of a reading
_ANSWERS = frozenset(
    {"width", "height", "num_frames", "fps", "batch", "num_inference_steps", "guidance_scale"}
)


def _switch(code: str, *names: str) -> Any:
    return Parameter(name=names or None, help=say(code), negative=(), show_default=False)


def read(
    file: Annotated[Path, Parameter(help=say("help-read-file"))],
    /,
    *,
    set_: Annotated[list[str] | None, _switch("help-read-set", "--set")] = None,
    image: Annotated[Path | None, Parameter(help=say("help-read-image"))] = None,
    models: Annotated[Path | None, Parameter(help=say("help-comfy-models-at-hand"))] = None,
    output: Annotated[
        Path | None, Parameter(name=("--output", "-o"), help=say("help-read-output"))
    ] = None,
    request: Annotated[int | None, Parameter(help=say("help-read-request"))] = None,
    force: Annotated[bool, _switch("help-force")] = False,
    json: Annotated[bool, _switch("help-json", "--json")] = False,
) -> int:
    """Read what a diffusers script or a ComfyUI workflow makes, without running it: request, settings, open questions.

    Try:

    cardfit read make.py

    cardfit read make.py --set height=720 --set width=1280 -o request.yaml

    cardfit read edit.py --image photo.png --json
    """
    answers = set_ or ()
    if not looks_like_script(file.name):
        refuse({"-o": output, "--request": request}, str(file))
        source = {"image": image, "models": models}
        return plan_file(file, None, answers=answers, source=source, requests_only=True, json=json)
    from cardfit.report import dump, out
    from cardfit.report import script as page

    reading = _read(file, _answers(answers), image, models)
    if output is not None:
        _write(reading, output, request, force)
    out.write(dump.one(reading) if json else page.lines(reading, out.style_of()))
    return _ANSWERED


def is_file_to_read(word: str) -> bool:
    """Whether the argument of `plan` names a script or a workflow, by its ending."""
    return looks_like_script(word) or is_workflow(word)


def plan_read_file(
    word: str,
    cards: Sequence[str] | None,
    flags: tuple[RequestFlags, SettingsFlags],
    **more: Any,
) -> int:
    """Plan the script or the workflow that ``word`` names."""
    if looks_like_script(word):
        return plan_script_file(Path(word), cards, flags, **more)
    refuse_flags(word, *flags)
    return plan_file(Path(word), cards, **more)


def plan_script_file(
    file: Path,
    cards: Sequence[str] | None,
    flags: tuple[RequestFlags, SettingsFlags],
    *,
    check: bool = False,
    every: bool = False,
    json: bool = False,
    **more: Any,
) -> int:
    """Read the script, plan what it makes and show it; flags of a request answer what the script leaves open."""
    from cardfit import verbs
    from cardfit.report import out
    from cardfit.report import script as page

    given, settings = flags
    refuse_flags(str(file), settings)
    answers = {name: value for name, value in vars(given).items() if value is not None}
    refuse(
        {f"--{name.replace('_', '-')}": True for name in answers if name not in _ANSWERS}, str(file)
    )
    reading = _read(file, answers, None, None)
    style = out.style_of()
    if not reading.requests or any(not each.complete for each in reading.requests):
        out.write(page.lines(reading, style), sys.stderr)
        return _OPEN
    with out.progress(quiet=json) as progress:
        found = verbs.script_plan(
            reading, cards=tuple(cards) if cards else None, progress=progress, **more
        )
    return show_plans(found, page, json=json, every=every, check=check)


def _read(
    file: Path, answers: Mapping[str, object], image: Path | None, models: Path | None
) -> ScriptReading:
    from cardfit import verbs
    from cardfit.script.result import ScriptReading

    found = verbs.read(file, answers, image=image, models=models)
    assert isinstance(found, ScriptReading)
    return found


def _answers(words: Sequence[str]) -> dict[str, object]:
    for word in words:
        if "=" not in word.strip("="):
            raise BadRequest("script-answer-form", answer=word)
    return answers_from(words)


def _write(reading: ScriptReading, output: Path, request: int | None, force: bool) -> None:
    """The plan file of the one request, or of that with the number ``request``, from 1."""
    from cardfit.report import out
    from cardfit.request.read import write_plan_file
    from cardfit.script.planning import plan_file_of

    count = len(reading.requests)
    if request is None and count == 1:
        request = 1
    if request is None or not 1 <= request <= count:
        raise BadRequest("script-which", path=reading.file, count=count)
    write_plan_file(output, plan_file_of(reading.requests[request - 1]), force=force)
    out.error(say("saved", {"file": output}))
