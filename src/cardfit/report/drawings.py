"""The charts of a page as pictures that stand alone: SVG with its own style, and PNG made of it.

In: an `Answer`, a `Sweep` or a `Comparison`. Out: drawings by name, light on white. What a page draws with the colours
of its style sheet has them written into it here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from cardfit.errors import MissingExtra
from cardfit.measure.sweep import Sweep
from cardfit.messages import number, say
from cardfit.plan.answer import Answer
from cardfit.quality.result import Comparison
from cardfit.report import bars, html, pareto, sweep
from cardfit.report import plan as page

_SCALE = 2  # pixels of a PNG for one unit of a drawing


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: what files are called after, what it shows, and the SVG."""

    name: str
    caption: str
    svg: str


def of_plan(answer: Answer) -> tuple[Drawing, ...]:
    """Memory stage by stage, and time against cost where cards have both."""
    stages = bars.stages(answer, page.against(answer))
    title = answer.model.title
    found = [_drawn("stages", say("view-stages"), title, stages=stages)]
    chart = pareto.chart(answer.cards)
    if chart is not None:
        found.append(_drawn("time-cost", say("view-pareto"), title, chart=chart))
    return tuple(found)


def of_comparison(found: Comparison) -> tuple[Drawing, ...]:
    """SSIM over the frames; nothing for a single picture."""
    values = [each.ssim for each in found.per_frame]
    if len(values) < 2:
        return ()
    low, high = min(values), max(values)
    room, across = max(1 - low, 1e-4), 1000 / (len(values) - 1)
    points = [
        (round(at * across, 1), round(10 + 180 * (1 - v) / room, 1)) for at, v in enumerate(values)
    ]
    edges = [round(edge * across, 1) for edge in (found.edges.frames if found.edges else ())]
    span = number(f"{low:.4f} - {high:.4f}")
    caption = f"{say('quality-html-lowest')} ({span})"
    line = " ".join(f"{x},{y}" for x, y in points)
    return (_drawn("ssim", caption, found.candidate.path, line=line, edges=edges),)


def of_sweep(found: Sweep) -> tuple[Drawing, ...]:
    """Peak against seconds of the cells that ran well; nothing where none did."""
    if not sweep.points(found):
        return ()
    spec = _with_extra(lambda: sweep.chart(found).to_json(validate=False))
    svg = _convert("vegalite_to_svg", spec)
    return (Drawing("peak-time", say("sweep-axis-seconds"), svg),)


def png(drawing: Drawing) -> bytes:
    """The drawing as a PNG. Raises MissingExtra without the extra `web`."""
    made: bytes = _convert("svg_to_png", drawing.svg, scale=_SCALE)
    return made


def _convert(name: str, text: str, **more: Any) -> Any:
    return _with_extra(lambda: getattr(import_module("vl_convert"), name)(text, **more))


def _with_extra(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except ModuleNotFoundError as missing:
        raise MissingExtra("web-extra", package=str(missing.name)) from missing


def _drawn(name: str, caption: str, title: str, **values: Any) -> Drawing:
    template = html.environment().get_template("drawing.svg")
    svg = template.render(name=name, caption=caption, title=title, **values)
    return Drawing(name, caption, svg.strip() + "\n")
