"""The autopsy as a page: what it was, what to do first, why, and what was seen.

In: an `Autopsy` and a `Style`. Out: lines, the cure first; words of ComfyUI for its users, diffusers' lines for the
others.
"""

from __future__ import annotations

from cardfit.autopsy.result import Autopsy, Cure, Numbers, Planned, Predicted
from cardfit.messages import say
from cardfit.plan.answer import Verdict
from cardfit.report import words
from cardfit.report.grid import hanging
from cardfit.report.style import Style
from cardfit.units import human_bytes

SHOWN = 5  # cures
_INDENT = 10
_COMFY = frozenset({"comfyui", "a1111"})
_ON_HOST = frozenset({"host_ram", "pinned_memory"})
_VERDICTS: dict[Verdict, str] = {
    "fits": "verdict-fits",
    "tight": "verdict-tight",
    "spills": "verdict-spills",
    "pages": "verdict-pages",
    "does_not_fit": "verdict-does-not-fit",
    "unknown": "verdict-unknown",
}
_NUMBERS = (
    ("tried_bytes", "autopsy-tried"),
    ("capacity_bytes", "autopsy-of"),
    ("free_bytes", "autopsy-free"),
    ("in_use_bytes", "autopsy-in-use"),
    ("allocated_bytes", "autopsy-allocated"),
    ("reserved_unallocated_bytes", "autopsy-apart"),
    ("other_bytes", "autopsy-others"),
)


def lines(found: Autopsy, style: Style) -> list[str]:
    """The whole page."""
    return [
        *hanging(style.paint(headline(found), "bold"), "", style.width),
        *_labelled("autopsy-why", found.why.text, style),
        "",
        *_cures(found, style),
        *_planner(found, style),
        *_seen(found, style),
        *_next(found, style),
    ]


def notes(found: Autopsy, style: Style) -> list[str]:
    """The cautions, for the error stream."""
    return [line for note in found.notes for line in hanging(say("note"), note.text, style.width)]


def _next(found: Autopsy, style: Style) -> list[str]:
    """The next step; a command is broken where a shell takes it."""
    text = found.next_step.text
    if found.next_step.code != "autopsy-next-plan":
        return _labelled("autopsy-next", text, style)
    broken = words.command_lines(text.split(), style.width - _INDENT)
    label = say("autopsy-next")
    return [f"{label if at == 0 else '':<{_INDENT}}{line}" for at, line in enumerate(broken)]


def _labelled(code: str, text: str, style: Style) -> list[str]:
    return hanging(say(code), text, style.width, _INDENT)


def _cures(found: Autopsy, style: Style) -> list[str]:
    shown = best_first(found.cures)[:SHOWN]
    comfy = for_comfyui(found)
    page = []
    first = "autopsy-do-first"
    if found.planned is not None:
        page += _labelled(first, planned_text(found.planned), style)
        same = [cure for cure in shown if cure.settings == found.planned.settings]
        for cure in same[:1]:
            page += [" " * _INDENT + style.paint(line, "dim") for line in _how(cure, comfy, style)]
        first = "autopsy-then"
        shown = [cure for cure in shown if cure not in same]
    for at, cure in enumerate(shown):
        label = first if at == 0 else "autopsy-then"
        page += _labelled(label, cure_text(found, cure), style)
        page += [" " * _INDENT + style.paint(line, "dim") for line in _how(cure, comfy, style)]
    return [*page, ""] if page else []


def cure_text(found: Autopsy, cure: Cure) -> str:
    """A cure with its price and what it leads to."""
    text = f"{cure.text} ({say(f'autopsy-price-{cure.price}')})"
    if cure.predicted is None:
        return text
    after = "autopsy-after-host" if found.cause in _ON_HOST else "autopsy-after"
    return f"{text}: {say(after, _of(cure.predicted))}"


def for_comfyui(found: Autopsy) -> bool:
    """Whether the reader uses ComfyUI's words."""
    return found.program in _COMFY


def headline(found: Autopsy) -> str:
    """The cause and how sure it is."""
    args = {
        "cause": say(f"autopsy-name-{found.cause}"),
        "confidence": say(f"autopsy-confidence-{found.confidence}"),
    }
    return say("autopsy-headline", args)


def best_first(cures: tuple[Cure, ...]) -> list[Cure]:
    """Those that surely cure before those that may, each in the order of price; those that do not come last."""
    said = [cure.predicted.verdict if cure.predicted else None for cure in cures]
    if not {"fits", "tight"} & set(said):
        return list(cures)
    order = {"fits": 0, "tight": 1, "spills": 3, "does_not_fit": 3}
    ranked = sorted(range(len(cures)), key=lambda at: order.get(said[at] or "", 2))
    return [cures[at] for at in ranked]


def _how(cure: Cure, comfy: bool, style: Style) -> list[str]:
    """The lines to write: ComfyUI's words or diffusers' lines, whichever the reader uses."""
    if comfy:
        return [] if cure.comfyui is None else hanging("", cure.comfyui, style.width - _INDENT, 2)
    return [f"  {line}" for line in cure.lines]


def _of(predicted: Predicted) -> dict[str, object]:
    return {
        "peak": human_bytes(predicted.reserved_bytes),
        "host": human_bytes(predicted.host_bytes),
        "stage": predicted.stage,
        "verdict": say(_VERDICTS[predicted.verdict]),
    }


def planned_text(planned: Planned) -> str:
    """The planner's choice for the card: the cheapest settings that hold."""
    after = say("autopsy-after", _of(planned.predicted))
    return say("autopsy-planned", {"settings": planned.settings_text, "after": after})


def _planner(found: Autopsy, style: Style) -> list[str]:
    if found.as_run is None:
        return []
    return _labelled("autopsy-as-run", say("autopsy-peak", _of(found.as_run)), style)


def _seen(found: Autopsy, style: Style) -> list[str]:
    stage = say("autopsy-stage-unknown") if found.stage is None else found.stage
    page = _labelled("autopsy-where", stage, style)
    if counted := numbers(found.numbers, style):
        page += _labelled("autopsy-numbers", counted, style)
    label = say("autopsy-seen")
    for each in found.evidence:
        page += hanging(label, each.tells.text, style.width, _INDENT)
        label = ""
        if each.line is not None:
            text = say("autopsy-line", {"line": each.line, "text": each.text})
            page += [
                style.paint(line, "dim") for line in hanging("", text, style.width, _INDENT + 2)
            ]
    return page


def numbers(counted: Numbers, style: Style) -> str:
    """What the message counts, in one line."""
    sizes = [(code, getattr(counted, name)) for name, code in _NUMBERS]
    little = (counted.capacity_bytes or 0) // 100
    known = [
        (code, size)
        for code, size in sizes
        if size is not None and not (code == "autopsy-others" and size < little)
    ]
    return style.dot.join(say(code, {"size": human_bytes(size)}) for code, size in known)
