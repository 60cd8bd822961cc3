"""The card that a person names, as the plan sees it.

In: what was written ("RTX 4090 Laptop", "A100-class", "24 GB class") and its memory. Out: a `FieldCard` with a band of
usable bytes, or a `NotScored` with a reason. Several cards that answer to the words share one band: the smallest and
the largest of theirs. A memory that the catalog's card does not have (modified and laptop cards) is taken as stated.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from cardfit.accuracy.field_why import FieldWhy, NotScored
from cardfit.cards import Card, find, unverified_reason, usable
from cardfit.cards import load as load_cards
from cardfit.cards.catalog import answers_to
from cardfit.errors import UnknownCard
from cardfit.plan.target import Band
from cardfit.units import GIB

_SEVERAL = re.compile(r"^\s*[2-9]\d*\s*x\b", re.I)
_UNSTATED = re.compile(r"^$|not stated|unknown|\bcpu\b", re.I)
# words that say nothing of which card it is
_FILLER = re.compile(r"[\s-]*\b(class|laptop|mobile|max-q|modified|shared|display|\+)\b", re.I)
# makers whose cards follow other rules
_UNCHECKED = re.compile(r"\b(amd|radeon|rx|mi\d{2,3}x?|apple|m[1-4]|intel|arc|gb10|spark)\b", re.I)
_SIZE = re.compile(r"\b\d+(\.\d+)?\s*gi?b\b", re.I)
# A stated size this near a card's own is the same card: containers and clouds show a little less.
SAME_BYTES = round(1.5 * GIB)


@dataclass(frozen=True, slots=True)
class FieldCard:
    """A card with what its allocator can reserve; ``architecture`` is None where the words fit several."""

    name: str
    architecture: str | None
    usable: Band


def card_of(gpu: str, vram_bytes: int | None) -> FieldCard:
    """The card called ``gpu`` with ``vram_bytes`` of memory as sold.

    Raises NotScored: several cards, none stated, one that the catalog does not hold, or one whose memory rules nobody
    has checked.
    """
    if _SEVERAL.search(gpu):
        raise NotScored(FieldWhy.MULTI_GPU, gpu)
    if _UNSTATED.search(gpu):
        raise NotScored(FieldWhy.NO_CARD)
    words = _SIZE.sub("", _FILLER.sub(" ", gpu)).strip(" -+,")
    if vram_bytes is None and (stated := _SIZE.search(gpu)):
        vram_bytes = round(float(re.split(r"[gG\s]", stated[0])[0]) * GIB)
    if _UNCHECKED.search(words):
        raise NotScored(FieldWhy.CARD_UNKNOWN, gpu)
    named = _named(words) if words else []
    if not named:
        return _by_size(gpu, vram_bytes)
    return _band(gpu, _sized(gpu, named, vram_bytes))


def _by_size(gpu: str, vram_bytes: int | None) -> FieldCard:
    """Any card of that size: for a class ("24 GB class") and for a card that the catalog does not hold.

    Where none has that size, the cards next to it with their memory as stated; what is kept back grows with the size.
    """
    if vram_bytes is None:
        raise NotScored(FieldWhy.NO_CARD, gpu)
    apart = {card.id: abs((_sold(card) or 0) - vram_bytes) for card in _catalog()}
    near = [card for card in _catalog() if apart[card.id] == min(apart.values())]
    return _band(gpu, near if min(apart.values()) == 0 else [_resized(c, vram_bytes) for c in near])


@cache
def _catalog() -> tuple[Card, ...]:
    """The cards whose memory rules are checked."""
    return tuple(card for card in load_cards(None).values() if unverified_reason(card) is None)


def _named(words: str) -> list[Card]:
    """The cards that answer to ``words``, else those that have all of them in their name."""
    exact = [card for card in _catalog() if answers_to(card, words)]
    if exact:
        return exact
    wanted = set(re.findall(r"[a-z0-9]+", words.lower())) - {"nvidia", "geforce", "rtx", "gtx"}
    return [
        card
        for card in _catalog()
        if wanted and wanted <= set(re.findall(r"[a-z0-9]+", f"{card.id} {card.name}".lower()))
    ]


def _sold(card: Card) -> int | None:
    return None if card.memory_marketing_gb is None else card.memory_marketing_gb * GIB


def _sized(gpu: str, named: Sequence[Card], vram_bytes: int | None) -> list[Card]:
    """Those of ``named`` with the stated memory; one that has another is taken with what was stated."""
    if vram_bytes is None:
        if len({card.memory_marketing_gb for card in named}) == 1:
            return list(named)
        try:
            return [find({card.id: card for card in named}, gpu)]
        except UnknownCard as several:
            raise NotScored(FieldWhy.NO_CARD, gpu) from several
    same = [card for card in named if abs((_sold(card) or 0) - vram_bytes) <= SAME_BYTES]
    if same:
        nearest = min(abs((_sold(card) or 0) - vram_bytes) for card in same)
        return [card for card in same if abs((_sold(card) or 0) - vram_bytes) == nearest]
    return [_resized(card, vram_bytes) for card in named]


def _resized(card: Card, vram_bytes: int) -> Card:
    """``card`` with other memory; what the driver keeps from what is sold keeps its share."""
    sold = _sold(card)
    share = 1.0 if sold is None or card.memory_bytes is None else card.memory_bytes / sold
    return replace(
        card,
        memory_bytes=round(vram_bytes * min(1.0, share)),
        memory_ecc_bytes=None,
        memory_marketing_gb=round(vram_bytes / GIB),
    )


def _band(gpu: str, cards: Sequence[Card]) -> FieldCard:
    rooms = [usable(card).usable for card in cards]
    likely = round(statistics.median(room.likely for room in rooms))
    kinds = {card.architecture for card in cards}
    return FieldCard(
        name=cards[0].id if len(cards) == 1 else gpu,
        architecture=kinds.pop() if len(kinds) == 1 else None,
        usable=Band(min(room.low for room in rooms), likely, max(room.high for room in rooms)),
    )
