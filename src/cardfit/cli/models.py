"""The command `models`: the library, one entry of it, or a new entry from a folder or a repo.

In: flags. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.cli.sequence import refuse
from cardfit.errors import BadRequest
from cardfit.messages import say
from cardfit.request import Task

_ADD = "add"
_ANSWERED = 0


def models(
    name: Annotated[str | None, Parameter(help=say("help-model-id"))] = None,
    source: Annotated[str | None, Parameter(help=say("help-models-source"))] = None,
    /,
    *,
    task: Annotated[Task | None, Parameter(help=say("help-task"))] = None,
    id: Annotated[str | None, Parameter(name="--id", help=say("help-models-new-id"))] = None,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help=say("help-models-output"))
    ] = None,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """The models of the library and your own, every fact of one with its sources, or a new entry with `add`.

    Try:

    cardfit models --task text-to-video

    cardfit models wan2.1-t2v-14b

    cardfit models add ./my-pipeline --id my-model
    """
    from cardfit import api
    from cardfit.report import dump, out, tables

    if name == _ADD:
        refuse({"--task": task}, _ADD)
        return _add(source, id, output, force, json)
    if source is not None:
        raise BadRequest("models-two-names", asked=source)
    refuse({"--id": id, "--output": output, "--force": force}, "models")
    style = out.style_of()
    if name is not None:
        found = api.model(name)
        out.write(dump.one(found) if json else tables.model(found, style))
        return _ANSWERED
    listed = api.models(task=task)
    out.write(dump.many("models", listed) if json else tables.models(listed, style))
    return _ANSWERED


def _add(source: str | None, id: str | None, output: Path | None, force: bool, json: bool) -> int:
    from cardfit import verbs
    from cardfit.report import added, dump, out

    if source is None:
        raise BadRequest("models-add-what")
    with out.progress(quiet=json) as progress:
        found = verbs.add_model(source, id=id, output=output, force=force, progress=progress)
    if json:
        out.write(dump.one(found))
    else:
        out.write(added.lines(found, out.style_of()))
        out.remarks(f"{say('note')}  {note.text}" for note in found.notes)
    out.error(say("saved", {"file": found.file}))
    return _ANSWERED
