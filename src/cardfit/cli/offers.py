"""`cardfit offers update`: keep newer prices than the shipped ones.

In: the source as typed. Out: an exit code.
"""

from __future__ import annotations

from cardfit.errors import BadRequest
from cardfit.messages import say


def update_offers(source: str | None, json: bool) -> int:
    """Fetch, keep, and say what was kept and what was left out."""
    from datetime import date

    from cardfit.cards import load
    from cardfit.offers.update import update
    from cardfit.report import dump, out

    if source is None:
        raise BadRequest("offers-update-needs")
    found = update(source, load(), today=date.today())
    if json:
        out.write(dump.one(found))
        return 0
    args = {"offers": found.offers, "cards": found.cards, "file": found.file}
    out.write([say("offers-updated", args)])
    out.remarks(
        say(f"offers-left-out-{reason}", {"count": count})
        for reason, count in found.left_out.items()
    )
    return 0
