"""A script as a page of text: its requests with where each field comes from, what it leaves open, and the plans.

In: a `ScriptReading` or a `ScriptPlan`, and a `Style`. Out: lines. Texts come from a stranger's file: what steers a
terminal is taken out here.
"""

from __future__ import annotations

from cardfit.library.load import load
from cardfit.messages import say
from cardfit.report import plan as page
from cardfit.report.grid import hanging
from cardfit.report.style import Style
from cardfit.report.words import settings_words
from cardfit.script.planning import ScriptPlan
from cardfit.script.result import Origin, ScriptReading, ScriptRequest

_INDENT = 2


def lines(reading: ScriptReading, style: Style) -> list[str]:
    """The whole reading: requests, remarks, questions."""
    found: list[str] = []
    for place in range(len(reading.requests)):
        found += _request(reading, place, style)
    for note in reading.notes:
        found += _text(note.text, style, say("note"))
    return [*found, *questions(reading, style)]


def questions(reading: ScriptReading, style: Style) -> list[str]:
    """What the script does not say, and how to say it."""
    if not reading.missing:
        return []
    found = [say("script-questions")]
    for each in reading.missing:
        args = {"line": each.line, "input": each.input, "why": each.why}
        found += _text(say("script-missing", args), style)
    return [*found, *_text(say("script-how-to-answer"), style)]


def plan_lines(found: ScriptPlan, style: Style, *, every: bool = False) -> list[str]:
    """A page for each request, one below the other."""
    shown: list[str] = []
    for each in found.plans:
        if shown:
            shown.append("")
        shown += _request(found.reading, each.request, style)
        if each.answer is not None:
            parts = load(each.answer.model.id).components
            dtypes = {n: part.recommended_dtype for n, part in parts.items() if part.counted}
            shown += ["", *page.lines(each.answer, style, every=every, recommended=dtypes)]
        elif each.why is not None:
            shown += _text(each.why.text, style)
    return [*shown, *questions(found.reading, style)]


def notes(found: ScriptPlan, style: Style) -> list[str]:
    """The cautions of the reading and of all plans, each once, for the error stream."""
    shown: dict[str, None] = {note.text: None for note in found.reading.notes}
    for each in found.plans:
        for note in each.answer.notes if each.answer is not None else ():
            if not note.code.startswith(page.CATCH):
                shown[note.text] = None
    return [line for text in shown for line in _text(text, style, say("note"))]


def _request(reading: ScriptReading, place: int, style: Style) -> list[str]:
    found = reading.requests[place]
    args = {
        "at": place + 1,
        "of": len(reading.requests),
        "pipeline": found.pipeline,
        "repo": found.model or found.repo or "?",
        "line": found.line,
    }
    shown = [_plain(style.dot.join([say("script-request", args), *_what(found)]))]
    settings = settings_words(found.settings)
    shown += _text(settings, style)
    for origin in found.origins:
        shown += _text(_origin(origin), style)
    for note in (*found.not_modelled, *found.notes):
        shown += _text(note.text, style, say("note"))
    return shown


def _what(found: ScriptRequest) -> list[str]:
    sides = (found.width, found.height)
    size = "x".join("?" if side is None else str(side) for side in sides)
    if found.num_frames != 1:
        size += f"x{found.num_frames or '?'}"
    words = [size]
    if found.calls is None:
        words.append(say("script-times-open"))
    elif found.calls > 1:
        words.append(say("script-times", {"count": found.calls}))
    return words


def _origin(origin: Origin) -> str:
    numbers = ", ".join(map(str, origin.lines))
    where = say(f"script-where-{origin.basis}", {"lines": numbers})
    args = {"name": origin.field, "value": origin.value, "where": where}
    return say("script-origin", args)


def _text(text: str, style: Style, label: str = "") -> list[str]:
    return hanging(label, _plain(text), style.width, 0 if label else _INDENT)


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)
