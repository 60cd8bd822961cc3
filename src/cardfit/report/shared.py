"""An answer as a file to pass on: one HTML page that opens without a network, or Markdown for issues and chats.

In: an `Answer`. Out: the text of the file. The page holds its style, runs no script and loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from cardfit import __version__
from cardfit.messages import say
from cardfit.plan.answer import Answer
from cardfit.report import html
from cardfit.report.plan_view import Filter, PlanView, view
from cardfit.report.style import SHAPES
from cardfit.request import Dtype


def page(answer: Answer, recommended: Mapping[str, Dtype] | None = None) -> str:
    """The HTML page, every card in it. Raises MissingExtra without the extra `web`."""
    shown = view(answer, recommended=recommended, only=Filter(every=True))
    template = html.environment().get_template("report.html")
    return template.render(view=shown, style=html.style(), version=__version__) + "\n"


def markdown(answer: Answer, recommended: Mapping[str, Dtype] | None = None) -> str:
    """The Markdown text: what was asked, the picks, stages and the cards of a short table."""
    shown = view(answer, recommended=recommended)
    parts = [
        f"## {plain(shown.title)}",
        plain(" · ".join(shown.asked)),
        plain(" · ".join(shown.below)),
        "\n".join(_picks(shown)),
        *([f"**{say('the-catch')}** {plain(shown.catch)}"] if shown.catch else []),
        _stages(shown),
        _cards(shown),
        "```sh\n" + "\n".join(command for command, _ in shown.steps) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


MAKERS: dict[str, Callable[..., str]] = {".html": page, ".md": markdown}
"""How a file is made, by its ending."""


def _picks(shown: PlanView) -> Iterable[str]:
    for pick in shown.picks:
        said = ", ".join(filter(None, (pick.name, pick.settings, pick.time, pick.price)))
        yield f"- **{pick.label}**: {plain(said)}"


def _stages(shown: PlanView) -> str:
    codes = ("stage", "weights", "working", "allocator", "peak", "band")
    rows = [
        [bar.name, bar.weights, bar.working, bar.allocator, bar.peak, bar.band]
        for bar in shown.stages.bars
    ]
    return table([say(f"col-{code}") for code in codes], rows)


def _cards(shown: PlanView) -> str:
    codes = ("card", "memory", "verdict", "settings", "time", "price")
    rows = [
        [
            line.name,
            line.memory,
            f"{SHAPES[line.shape]} {line.verdict}",
            line.settings,
            line.time,
            " ".join(filter(None, (line.price, line.provider, line.age))),
        ]
        for line in shown.cards
    ]
    return table([say(f"col-{code}") for code in codes], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(plain(cell) for cell in line) + " |" for line in lines)


def plain(text: str) -> str:
    """``text`` as Markdown shows it, without a sign of its own."""
    for sign in "\\`*_{}[]<>|#":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
