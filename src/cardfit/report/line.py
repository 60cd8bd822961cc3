"""One line to share: what was asked, what it needs, the cheapest card and by what it was computed.

In: an `Answer` and a `Style`. Out: one line.
"""

from __future__ import annotations

from collections.abc import Mapping

from cardfit.messages import say
from cardfit.plan.answer import Answer
from cardfit.report import words
from cardfit.report.style import Style
from cardfit.request import Dtype
from cardfit.units import gib_text


def line(answer: Answer, style: Style, recommended: Mapping[str, Dtype] | None = None) -> str:
    """The line; it names the versions, since they move the figures."""
    what = ", ".join(
        [
            answer.model.title,
            *words.what(answer.request),
            words.dtypes(answer.settings, recommended),
        ]
    )
    args: dict[str, object] = {"what": what, "peak": gib_text(answer.peak.reserved_bytes)}
    pick = words.best(answer)
    versions = ", ".join(f"{name} {answer.versions[name]}" for name in sorted(answer.versions))
    if pick is None:
        return say("line-none", args) + style.dot + versions
    row = next((row for row in answer.cards if row.card == pick.card), None)
    args["stage"] = answer.peak.stage
    args["card"] = words.card_name(row.name) if row else pick.card
    args["settings"] = words.settings_words(pick.settings)
    args["price"] = "" if row is None or row.offer is None else f", {words.price(row.offer, ', ')}"
    return say("line-pick", args) + style.dot + versions
