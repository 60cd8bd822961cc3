"""A ComfyUI workflow as a page of text: its requests, what it loads, what it leaves open, and the plans.

In: a `Reading` or a `WorkflowPlan`, and a `Style`. Out: lines. Titles come from a stranger's file: they are one line of
plain signs by the time they are here.
"""

from __future__ import annotations

from cardfit.comfy.planning import WorkflowPlan
from cardfit.comfy.result import Reading, WorkflowRequest
from cardfit.library import load
from cardfit.messages import say
from cardfit.plan.answer import Answer
from cardfit.report import plan as page
from cardfit.report.grid import hanging
from cardfit.report.style import Style
from cardfit.request import Dtype

_INDENT = "  "


def lines(reading: Reading, style: Style) -> list[str]:
    """The whole reading: requests, files, what is not known, questions."""
    found = [
        line for place in range(len(reading.requests)) for line in _request(reading, place, style)
    ]
    found += _files(reading, style)
    for note in reading.notes:
        found += hanging(say("note"), note.text, style.width)
    return [*found, *_unknown(reading, style), *questions(reading, style)] or [say("comfy-nothing")]


def questions(reading: Reading, style: Style) -> list[str]:
    """What the file does not say, and how to say it."""
    if not reading.missing:
        return []
    found = [say("comfy-questions")]
    for each in reading.missing:
        args = {"node": each.node, "input": each.input, "id": each.id, "why": each.why}
        found += hanging("", say("comfy-missing", args), style.width, len(_INDENT))
    return [*found, *hanging("", say("comfy-how-to-answer"), style.width, len(_INDENT))]


def plan_lines(found: WorkflowPlan, style: Style, *, every: bool = False) -> list[str]:
    """A page for each request, one below the other."""
    shown: list[str] = []
    for each in found.plans:
        if shown:
            shown.append("")
        shown += _request(found.reading, each.request, style)
        if each.answer is not None:
            dtypes = _recommended(each.answer)
            shown += ["", *page.lines(each.answer, style, every=every, recommended=dtypes)]
        elif each.why is not None:
            shown += hanging("", each.why.text, style.width, len(_INDENT))
    for note in found.reading.notes:
        shown += hanging(say("note"), note.text, style.width)
    return [*shown, *_unknown(found.reading, style)] or [say("comfy-nothing")]


def notes(found: WorkflowPlan, style: Style) -> list[str]:
    """The cautions of all plans, each once, for the error stream."""
    shown: dict[str, None] = {}
    for each in found.plans:
        for text in (note.text for note in each.notes):
            shown[text] = None
        for note in each.answer.notes if each.answer is not None else ():
            if not note.code.startswith(page.CATCH):
                shown[note.text] = None
    return [line for text in shown for line in hanging(say("note"), text, style.width)]


def _recommended(answer: Answer) -> dict[str, Dtype]:
    parts = load(answer.model.id).components
    return {name: part.recommended_dtype for name, part in parts.items() if part.counted}


def _request(reading: Reading, place: int, style: Style) -> list[str]:
    found = reading.requests[place]
    named = found.model or ", ".join(found.seen) or "?"
    head = say("comfy-request", {"at": place + 1, "of": len(reading.requests), "model": named})
    shown = [style.dot.join([head, *what(found)])]
    for each in found.passes:
        size = _size(each.width, each.height, each.num_frames)
        args = {
            "node": each.node,
            "size": size,
            "steps": _or_open(each.steps),
            "cfg": "?" if each.cfg is None else f"{each.cfg:g}",
            "file": each.file or "?",
        }
        shown += hanging("", say("comfy-pass", args), style.width, len(_INDENT))
    if found.decode is not None:
        how = found.decode
        code = "comfy-decode-tiled" if how.tiled else "comfy-decode"
        args = {
            "node": how.node,
            "tile": _or_open(how.tile),
            "overlap": _or_open(how.overlap),
            "temporal": _or_open(how.temporal),
            "temporal_overlap": _or_open(how.temporal_overlap),
        }
        shown += hanging("", say(code, args), style.width, len(_INDENT))
    for text in origins(found):
        shown += hanging("", text, style.width, len(_INDENT))
    return shown


def origins(found: WorkflowRequest) -> list[str]:
    """Where each value of a request comes from."""
    return [
        say(
            "comfy-origin",
            {"name": name, "value": getattr(found, name, None), "origins": ", ".join(widgets)},
        )
        for name, widgets in found.origins.items()
    ]


def what(found: WorkflowRequest) -> list[str]:
    """Size, frames, batch, rate and steps of a request; ``?`` for what is open."""
    words = [_size(found.width, found.height, found.num_frames)]
    if found.batch > 1:
        words.append(say("comfy-batch", {"count": found.batch}))
    if found.fps is not None:
        words.append(say("comfy-fps", {"fps": f"{found.fps:g}"}))
    words.append(say("comfy-steps", {"count": _or_open(found.num_inference_steps)}))
    return words


def _size(width: int | None, height: int | None, frames: int | None) -> str:
    size = f"{_or_open(width)}x{_or_open(height)}"
    return size if frames == 1 else f"{size}x{_or_open(frames)}"


def _or_open(value: int | None) -> str:
    return "?" if value is None else str(value)


def _files(reading: Reading, style: Style) -> list[str]:
    if not reading.files:
        return []
    found = [say("comfy-files")]
    for each in reading.files:
        text = f"models/{each.folder}/{each.name}{style.dot}{each.used_by}{style.dot}{each.node}"
        found += hanging("", text, style.width, len(_INDENT))
    return found


def _unknown(reading: Reading, style: Style) -> list[str]:
    if not reading.unknown_nodes:
        return []
    names = ", ".join(reading.unknown_nodes)
    return hanging(say("note"), say("comfy-unknown-nodes", {"names": names}), style.width)
