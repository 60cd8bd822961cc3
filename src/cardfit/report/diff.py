"""The difference of two answers as a page, the figures first.

In: a `Diff` and a `Style`. Out: lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from cardfit.messages import say
from cardfit.plan.diff import Diff, FieldDiff
from cardfit.report.grid import hanging
from cardfit.report.style import Style

_LABEL = 10


def lines(found: Diff, style: Style) -> list[str]:
    """The page; one line when nothing differs."""
    if found.same:
        return [say("diff-same")]
    stages = [each.text.text for each in (*found.stages, *([found.peak] if found.peak else []))]
    parts = [
        (say("diff-stages"), stages),
        (say("diff-cards"), [each.text.text for each in found.cards]),
        (say("diff-request"), _fields(found.request)),
        (say("diff-settings"), _fields(found.settings)),
        (say("diff-versions"), _fields(found.versions)),
    ]
    page: list[str] = []
    for label, texts in parts:
        for at, text in enumerate(texts):
            page += hanging(label if at == 0 else "", text, style.width, _LABEL)
    return page


def _fields(found: Sequence[FieldDiff]) -> list[str]:
    return [
        say(
            "diff-field",
            {"name": each.name, "before": _value(each.before), "after": _value(each.after)},
        )
        for each in found
    ]


def _value(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items()) or "-"
    return str(value)
