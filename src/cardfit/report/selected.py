"""The cards that a short table shows: one for each distinct answer, the picks and the nearest misses.

In: an `Answer`, its cards in the plan's order (what holds it first, cheapest first). Out: rows, each with the
number of dearer cards that say the same. The printed answer may leave cards out; the JSON never does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cardfit.plan.answer import Answer, CardRow
from cardfit.units import gib

HOLDS = ("fits", "tight", "spills", "pages")
SHOWN_WHOLE = 10  # so many cards are shown as they are
SHOWN_HOLDING, SHOWN_OTHERS = 10, 4


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the table; ``alike`` counts the dearer cards with the same memory, verdict and settings."""

    row: CardRow
    alike: int = 0


def selected(answer: Answer, *, every: bool = False) -> list[Shown]:
    """The rows to print, in the order of the answer; all of them with ``every`` or when there are few."""
    if every or len(answer.cards) <= SHOWN_WHOLE:
        return [Shown(row) for row in answer.cards]
    picks = answer.recommended
    chosen = (picks.cheapest, picks.fastest, picks.safest)
    picked = {pick.card for pick in chosen if pick is not None}
    groups = _groups(answer.cards, picked)
    holding = [each for each in groups if each.row.verdict in HOLDS]
    others = [each for each in groups if each.row.verdict not in HOLDS]
    kept = [each for each in holding if each.row.card in picked]
    kept += _varied(each for each in holding if each.row.card not in picked)
    kept = kept[:SHOWN_HOLDING] + sorted(others, key=_nearness)[:SHOWN_OTHERS]
    order = {row.card: at for at, row in enumerate(answer.cards)}
    return sorted(kept, key=lambda each: order[each.row.card])


def _groups(rows: Iterable[CardRow], picked: set[str]) -> list[Shown]:
    """The first of each kind, a pick always on its own."""
    found: dict[tuple[object, ...], list[CardRow]] = {}
    for row in rows:
        own = row.card if row.card in picked else ""
        found.setdefault((*_kind(row), own), []).append(row)
    for kind in [kind for kind in found if kind[-1]]:  # what is like a pick counts with it
        found[kind] += found.pop((*kind[:-1], ""), [])
    return [Shown(group[0], len(group) - 1) for group in found.values()]


def _kind(row: CardRow) -> tuple[object, ...]:
    memory = gib(row.memory_bytes, 0) if row.memory_bytes is not None else None
    if row.verdict in HOLDS:
        return (row.verdict, memory, row.settings_text)
    return (row.verdict, memory if row.verdict != "unknown" else None, row.why.code)


def _varied(groups: Iterable[Shown]) -> list[Shown]:
    """Other settings first, then other sizes: the cheapest of each settings before a second of any."""
    seen = set[tuple[str, str]]()
    first: list[Shown] = []
    rest: list[Shown] = []
    for each in groups:
        kind = (each.row.verdict, each.row.settings_text)
        (rest if kind in seen else first).append(each)
        seen.add(kind)
    return first + rest


def _nearness(each: Shown) -> tuple[object, ...]:
    """The nearest miss first: known figures by how little is missing, then by memory; unknown cards last."""
    row = each.row
    missing = -row.headroom_bytes if row.headroom_bytes is not None else None
    return (row.verdict == "unknown", missing is None, missing or 0, -(row.memory_bytes or 0))
