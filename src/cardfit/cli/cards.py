"""`cardfit cards`: the list with what a unit of each card's price buys, and which of it matters.

In: the cards and where prices come from. Out: an exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cardfit.cards import Card
from cardfit.messages import say


def list_cards(
    listed: Sequence[Card],
    model: str | None,
    cards_file: Path | None,
    offers_file: Path | None,
    json: bool,
) -> int:
    """Print the list; with ``model`` a dry run says what its denoising is bound by on each card."""
    from datetime import date

    from cardfit import api
    from cardfit.plan import cost
    from cardfit.report import dump, out, tables
    from cardfit.report.grid import hanging

    market = api.offers(cards_file=cards_file, offers_file=offers_file)
    worths = cost.worths(listed, market, date.today())
    intensity = None
    if model is not None:
        with out.progress(quiet=json) as progress:
            flop, size_bytes = cost.denoise_work(api.trace(model, progress=progress))
        intensity = flop / size_bytes if size_bytes else None
    said = cost.matters(worths, intensity)
    if json:
        out.write(dump.cards(listed, worths, said, intensity))
        return 0
    style = out.style_of()
    out.write(tables.cards(listed, style, worths, intensity=intensity))
    out.remarks(hanging(say("note"), said.text, style.width))
    return 0
