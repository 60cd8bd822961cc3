"""A Python file or a ComfyUI workflow as requests: the whole way from a path to a reading.

In: a path, and answers to what the file does not say. Out: a `ScriptReading` for a script, comfy's `Reading` for a
workflow. Nothing is guessed: a value that the file does not have is a question in ``missing``, a setting that nothing
here follows stands in ``not_modelled``. Raises BadFile, and BadRequest for an answer that nothing asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardfit.comfy.files import picture_size
from cardfit.errors import BadRequest
from cardfit.messages import say
from cardfit.messages.said import Said
from cardfit.script.books import Run
from cardfit.script.known import Known, known
from cardfit.script.ledger import Ledger
from cardfit.script.requests import request_of
from cardfit.script.result import Missing, ScriptReading, ScriptRequest
from cardfit.script.source import looks_like_script, tree_of
from cardfit.script.source import parsed as tree_in
from cardfit.script.things import Answers
from cardfit.script.walk import Walk, walked

if TYPE_CHECKING:
    from cardfit.comfy.result import Reading

_MOST_REQUESTS = 64
_NUMBERS = (
    "width",
    "height",
    "num_frames",
    "num_inference_steps",
    "batch",
    "guidance_scale",
    "fps",
    "lora_rank",
)


def read(
    file: str | Path,
    answers: Mapping[str, object] | None = None,
    *,
    image: Path | None = None,
    models: Path | None = None,
) -> ScriptReading | Reading:
    """The requests in a Python script that uses diffusers, or in a ComfyUI workflow.

    A script is read, never run or imported. ``answers`` gives what the file does not say, under the name that
    ``missing`` has for it (``node.input`` in a workflow); ``image`` is a picture of the size that is loaded, ``models``
    ComfyUI's models folder. Raises BadFile, and BadRequest for an answer that nothing asks for.
    """
    path = Path(file)
    if not looks_like_script(path.name):
        from cardfit.comfy.reader import read_workflow

        return read_workflow(path, answers, image=image, models=models)
    if models is not None:
        raise BadRequest("script-no-models", path=path)
    return read_script(path, answers, image=image)


def read_script(
    file: str | Path, answers: Mapping[str, object] | None = None, *, image: Path | None = None
) -> ScriptReading:
    """As `read`, for a Python script."""
    path = Path(file)
    return _read(walked_file(path, tree_in(path), answers, image), str(path))


def read_text(
    text: str,
    answers: Mapping[str, object] | None = None,
    *,
    image: Path | None = None,
    name: str = "script.py",
) -> ScriptReading:
    """As `read`, for the text of a script."""
    return _read(walked_file(Path(name), tree_of(text, name), answers, image), name)


def walked_file(
    path: Path, tree: Any, answers: Mapping[str, object] | None, image: Path | None
) -> Walk:
    """The walk through a parsed script with answers."""
    given = {name: _answer(name, value) for name, value in (answers or {}).items()}
    if image is not None:
        sides = zip(("image.width", "image.height"), picture_size(image), strict=True)
        given = dict(sides) | given
    found = walked(tree, known(), Answers(given), str(path))
    if image is not None:
        found.answers.used |= {"image.width", "image.height"}
    found.answers.of_script = frozenset(found.answers.used)
    return found


def _answer(name: str, value: object) -> object:
    """An answer as a value that a script could have. Raises BadRequest."""
    if not isinstance(value, (bool, int, float, str)):
        raise BadRequest("script-answer-bad", answer=name, found=value)
    if name in _NUMBERS and (isinstance(value, (bool, str)) or not 0 <= value < 2**63):
        raise BadRequest("script-answer-number", answer=name, found=value)
    return value


def _read(walk: Walk, file: str) -> ScriptReading:
    data = walk.known
    ledger = Ledger(data).take(walk.events)
    runs, notes = _main(ledger.runs, data)
    requests, missing = list[ScriptRequest](), list[Missing]()
    for run in runs[:_MOST_REQUESTS]:
        made, questions = request_of(run, data, walk.answers, walk.events)
        missing += [each for each in questions if each not in missing]
        _add(requests, made)
    missing += [each for each in _branches(walk) if each not in missing]
    if len(runs) > _MOST_REQUESTS:
        notes.append(Said.of("script-many", limit=_MOST_REQUESTS, found=len(runs)))
    for name, line in walk.assumed.items():
        notes.append(Said.of("script-assumed", line=line, what=name))
    if not requests and not missing:
        notes.append(Said.of("script-no-call"))
    unused = sorted(set(walk.answers.given) - walk.answers.used)
    if unused:
        asked = ", ".join(dict.fromkeys(each.input for each in missing)) or "-"
        raise BadRequest("script-answer-unused", answer=unused[0], asked=asked)
    return ScriptReading(
        file=file, requests=tuple(requests), missing=tuple(missing), notes=tuple(notes)
    )


def _main(runs: Sequence[Run], data: Known) -> tuple[list[Run], list[Said]]:
    """The calls that make something: without warm-ups and pipelines that only help; and what was left out."""
    found, notes = [], list[Said]()
    for place, run in enumerate(runs):
        if run.pipe.kind in data.helpers:
            args = {"line": run.event.line, "what": run.pipe.kind}
            notes.append(Said.of("script-helper", **args))
        elif not run.event.used and _again(run, runs[place + 1 :]):
            notes.append(Said.of("script-warm-up", line=run.event.line))
        else:
            found.append(run)
    return found, notes


def _again(run: Run, later: Sequence[Run]) -> bool:
    """Whether the same pipeline is called again for an output that is used."""
    return any(each.event.receiver is run.event.receiver and each.event.used for each in later)


def _add(requests: list[ScriptRequest], made: ScriptRequest) -> None:
    """Add a request; the same call again, in a loop, is counted."""
    for place, each in enumerate(requests):
        alike = each.model_copy(
            update={"calls": made.calls, "seed": made.seed, "origins": made.origins}
        )
        if alike == made:
            calls = None if each.calls is None or made.calls is None else each.calls + made.calls
            requests[place] = each.model_copy(update={"calls": calls})
            return
    requests.append(made)


def _branches(walk: Walk) -> list[Missing]:
    """The questions of branches that decide over a setting and that nobody can choose."""
    found = []
    for line, what, questions in walk.open_branches:
        for each in questions:
            name = each.name or f"line{line}"
            why = say(
                "script-ask-decides",
                {"what": what, "why": say(each.code, {"what": each.what, "name": name})},
            )
            found.append(Missing(line=each.line, input=name, why=why))
    return found
