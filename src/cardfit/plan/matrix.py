"""The matrix: models x cards, the best precision each card holds, exact and by the 15 % rule.

In: per model its memo of estimates, and the cards. Out: a frozen `Matrix`, cheapest card first.
Each model stands at its default size without VAE tiling; a precision is tried with everything
resident, then with model offload. It leaves out what else would help a small card: `plan` tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.messages import say
from cardfit.plan.answer import Grade, ModelRow, OfferRow, Price, Said, Verdict
from cardfit.plan.knobs import Candidate, Knobs, closed, price_of
from cardfit.plan.offers import best_offer, hourly, main_currency
from cardfit.plan.search import Choice, Estimates, choose
from cardfit.plan.target import Target
from cardfit.plan.verdict import Host, deciding_stage, grade
from cardfit.request import ExactRequest, Offload, Quantization, Settings
from cardfit.units import gib_text

Precision = Literal["full", "8-bit", "4-bit"]
MATRIX_SCHEMA = "cardfit.matrix/1"
# Best first: the scheme that stands for it, and what a rental guide's arithmetic divides the
# weights by.
PRECISIONS: dict[Precision, tuple[Quantization, int]] = {
    "full": ("none", 1),
    "8-bit": ("bnb-int8", 2),
    "4-bit": ("bnb-nf4", 4),
}
_OFFLOADS: tuple[Offload, ...] = ("none", "model")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class MatrixCard(_Frozen):
    """A column: the card, its memory and its cheapest offer."""

    card: str
    name: str
    memory_bytes: int | None
    offer: OfferRow | None


class MatrixCell(_Frozen):
    """One model on one card.

    ``precision`` is the best that holds (``None``: not even 4 bits, or unknown), ``offload``
    whether it takes model offload; ``rule_precision`` the best of which weights x 1.15 are within
    the card's memory.
    """

    card: str
    verdict: Verdict
    grade: Grade | None
    price_of_it: tuple[Price, ...]
    precision: Precision | None
    offload: Offload | None
    peak_reserved_bytes: int | None
    usable_bytes: int | None
    headroom_bytes: int | None
    rule_precision: Precision | None
    why: Said


class MatrixRow(_Frozen):
    """One model at its default size, a cell per card in the order of `Matrix.cards`."""

    model: ModelRow
    request: ExactRequest
    rule_bytes: int
    cells: tuple[MatrixCell, ...]


class Matrix(_Frozen):
    """The whole table; ``versions`` are those of the traces."""

    schema_: Annotated[str, Field(alias="schema")] = MATRIX_SCHEMA
    versions: dict[str, str]
    cards: tuple[MatrixCard, ...]
    rows: tuple[MatrixRow, ...]
    notes: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One model, ready to be laid over the cards."""

    model: ModelRow
    request: ExactRequest
    knobs: Knobs
    estimates: Estimates
    rule_bytes: int
    bfloat16: bool
    settings: Settings


def cheapest_first(
    targets: Sequence[Target], currency: str | None = None
) -> tuple[tuple[Target, ...], tuple[MatrixCard, ...]]:
    """The cards by their lowest hourly price, those without one last by memory."""
    money = currency or main_currency(targets)
    offers = {each.card: best_offer(each.offers, money, 0) for each in targets}

    def key(target: Target) -> tuple[bool, float, int, str]:
        offer = offers[target.card]
        comparable = offer is not None and offer.price.currency == money
        price = hourly(offer) if offer is not None and comparable else 0.0
        return (not comparable, price, target.memory_bytes or 0, target.card)

    ordered = tuple(sorted(targets, key=key))
    columns = tuple(
        MatrixCard(
            card=each.card, name=each.name, memory_bytes=each.memory_bytes, offer=offers[each.card]
        )
        for each in ordered
    )
    return ordered, columns


def row(entry: Entry, targets: Sequence[Target], host: Host) -> MatrixRow:
    """The row of one model over ``targets``."""
    options = _options(entry)
    return MatrixRow(
        model=entry.model,
        request=entry.request,
        rule_bytes=entry.rule_bytes,
        cells=tuple(_cell(entry, options, target, host) for target in targets),
    )


def rule_precision(rule_bytes: int, memory_bytes: int | None) -> Precision | None:
    """The best precision of which weights x 1.15 are within the card's memory, as a guide reckons.

    >>> rule_precision(40, 24), rule_precision(40, 8), rule_precision(40, None)
    ('8-bit', None, None)
    """
    if memory_bytes is None:
        return None
    for precision, (_, divisor) in PRECISIONS.items():
        if rule_bytes / divisor <= memory_bytes:
            return precision
    return None


def _options(entry: Entry) -> tuple[Candidate, ...]:
    found = []
    for at, (scheme, _) in enumerate(PRECISIONS.values()):
        for offload in _OFFLOADS:
            settings = closed(entry.settings).model_copy(
                update={"offload": offload, "quantization": entry.knobs.quantized(scheme)}
            )
            cost = (at, _OFFLOADS.index(offload))
            found.append(Candidate(settings, price_of(settings, entry.knobs), cost))
    return tuple(found)


def _cell(entry: Entry, options: tuple[Candidate, ...], target: Target, host: Host) -> MatrixCell:
    by_rule = rule_precision(entry.rule_bytes, target.memory_bytes)
    usable = target.usable
    if target.unverified is not None or usable is None:
        note = target.unverified
        why = Said.of(note.code, **note.args) if note else Said.of("plan-no-facts")
        return _empty(target, "unknown", by_rule, why)
    if entry.bfloat16 and not target.has_bfloat16:
        why = Said.of("plan-no-bfloat16", card=target.name)
        return _empty(target, "does_not_fit", by_rule, why)
    choice = choose(options, target, usable, host, entry.estimates)
    judgement, candidate = choice.judgement, choice.candidate
    holds = judgement.verdict != "does_not_fit"
    prices = candidate.price if holds else ()
    return MatrixCell(
        card=target.card,
        verdict=judgement.verdict,
        grade=grade(judgement.verdict, prices),
        price_of_it=prices,
        precision=_precision(candidate) if holds else None,
        offload=candidate.settings.offload if holds else None,
        peak_reserved_bytes=judgement.estimate.reserved_bytes,
        usable_bytes=usable.likely,
        headroom_bytes=judgement.headroom_bytes,
        rule_precision=by_rule,
        why=_why(choice),
    )


def _empty(target: Target, verdict: Verdict, by_rule: Precision | None, why: Said) -> MatrixCell:
    return MatrixCell(
        card=target.card,
        verdict=verdict,
        grade=grade(verdict, ()),
        price_of_it=(),
        precision=None,
        offload=None,
        peak_reserved_bytes=None,
        usable_bytes=target.usable.likely if target.usable else None,
        headroom_bytes=None,
        rule_precision=by_rule,
        why=why,
    )


def _precision(candidate: Candidate) -> Precision:
    return tuple(PRECISIONS)[candidate.cost[0]]


def _why(choice: Choice) -> Said:
    judgement, candidate = choice.judgement, choice.candidate
    code = {"fits": "plan-cell-holds", "tight": "plan-cell-tight"}.get(judgement.verdict)
    return Said.of(
        code or "plan-cell-over",
        precision=say(f"plan-precision-{_precision(candidate)}"),
        offload=say("plan-with-offload") if candidate.settings.offload == "model" else "",
        headroom=gib_text(judgement.headroom_bytes),
        over=gib_text(judgement.over_bytes),
        stage=deciding_stage(judgement.estimate),
    )
