"""What became of records that went from one store to another.

In: a `Copied`. Out: a line for each way, and what was refused with the reason.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.records.copying import Copied

_SHOWN = 20  # refused records; --json has them all


def lines(found: Copied) -> list[str]:
    """One line for each way."""
    return [
        say(
            "records-copied",
            {
                "source": copy.source,
                "target": copy.target,
                "new": copy.new,
                "updated": copy.updated,
                "same": copy.same,
                "refused": len(copy.refused),
            },
        )
        for copy in found.copies
    ]


def refused(found: Copied) -> list[str]:
    """What was not taken, for the error stream."""
    each = [
        refused.why.text
        if refused.id is None
        else say("records-refused", {"id": refused.id, "why": refused.why.text})
        for refused in found.refused
    ]
    more = len(each) - _SHOWN
    return each if more <= 0 else [*each[:_SHOWN], say("records-refused-more", {"count": more})]
