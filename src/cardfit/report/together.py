"""What follows the lines of `plan --requests`: which card runs all of them, and the cheapest of these.

In: a `Together` and a `Style`. Out: lines.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.plan.together import Together
from cardfit.report.grid import hanging
from cardfit.report.style import Style

_LABEL = 26


def lines(found: Together, style: Style) -> list[str]:
    """The sentences."""
    text = " ".join(each.text for each in found.said)
    return ["", *hanging(say("together-title"), text, style.width, _LABEL)]
