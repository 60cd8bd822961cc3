"""The verb `probe`, wired: this machine, and what an offer or a card's page says of it.

In: what is held against it, a folder. Out: a `Probe`.
"""

from __future__ import annotations

from pathlib import Path

from cardfit.cards import find
from cardfit.cards import load as load_cards
from cardfit.errors import BadRequest
from cardfit.measure.probe import Listed, Probe
from cardfit.measure.probe import probe as look
from cardfit.offers import load as load_offers


def probe(
    against: str | None = None,
    *,
    folder: Path = Path(),
    lanes: int | None = None,
    ram_bytes: int | None = None,
    disk_bytes: int | None = None,
    offers_file: Path | None = None,
) -> Probe:
    """This machine as it is, and what of it is less than listed.

    ``against`` is a card, or ``provider/card`` for the cheapest offer of it; ``lanes``, ``ram_bytes`` and
    ``disk_bytes`` are what the listing said beside that. Raises UnknownCard, BadRequest for an offer that is not there,
    BadFile where ``folder`` cannot be written.
    """
    given = {"lanes": lanes, "ram_bytes": ram_bytes, "disk_bytes": disk_bytes}
    if against is None:
        named = any(value is not None for value in given.values())
        return look(folder, listed=Listed.of(None, None, **given) if named else None)
    catalog = load_cards()
    provider, slash, name = against.rpartition("/")
    card = find(catalog, name)
    offer = None
    if slash:
        market = load_offers(offers_file, cards=catalog)
        own = [
            each
            for each in market
            if each.card == card.id and each.provider.lower() == provider.lower()
        ]
        if not own:
            names = sorted({each.provider for each in market if each.card == card.id})
            raise BadRequest(
                "probe-no-offer", provider=provider, card=card.id, names=", ".join(names) or "-"
            )
        offer = min(own, key=lambda each: each.price_per_gpu)
    return look(folder, listed=Listed.of(offer, card, **given))
