"""The front: of all settings on all cards those that nothing beats in price, seconds and quality at once.

In: the question that a plan answers. Out: a `Front` (schema ``cardfit.front/1``). Quality is the order in which the
planner gives things up: reference weights first, then tiles and chunks, then fewer bits. Left out are settings that
hold only by freeing the cache, and cards without rates; without a price cards are compared by seconds and memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from cardfit.cards.card import Card
from cardfit.errors import Note
from cardfit.messages import say
from cardfit.plan import attention
from cardfit.plan.answer import ModelRow, Money, OfferRow, Price, Said, Seconds, Verdict
from cardfit.plan.bill import Use
from cardfit.plan.grid import FITS, TIGHT, UNSURE, on_targets, verdict_of
from cardfit.plan.knobs import Candidate, Knobs, settings_text
from cardfit.plan.make import NO_CARDS, NOTHING_AFTER, Facts, Progress, question_of
from cardfit.plan.post import After
from cardfit.plan.rows import Question, Timer, host_of, offered, seconds_of
from cardfit.plan.search import Estimates, judge_on
from cardfit.plan.target import Target
from cardfit.plan.verdict import ORDER, Host
from cardfit.predict.estimate import MemoryEstimate
from cardfit.request import ExactRequest, Settings

SCHEMA: Literal["cardfit.front/1"] = "cardfit.front/1"
Quality = Literal["full", "tiled", "fewer_bits"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FrontRow(_Frozen):
    """One card with one setting; ``quality_rank`` is 0 for the reference and rises with what is given up."""

    card: str
    name: str
    memory_bytes: int
    settings: Settings
    settings_text: str
    verdict: Verdict
    price_of_it: tuple[Price, ...]
    quality: Quality
    quality_rank: int
    seconds: Seconds
    cost_per_output: Money | None
    offer: OfferRow | None
    peak_reserved_bytes: int
    headroom_bytes: int
    host_bytes: int


class Front(_Frozen):
    """The whole answer: the rows that nothing beats, fastest first, and how many were compared."""

    schema_: Annotated[Literal["cardfit.front/1"], Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    model: ModelRow
    request: ExactRequest
    settings: Settings
    currency: str | None
    cards: int
    candidates: int
    holding: int
    rows: tuple[FrontRow, ...]
    notes: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A card and a setting that holds on it."""

    target: Target
    candidate: Candidate
    estimate: MemoryEstimate
    verdict: Verdict


def make_front(
    request: ExactRequest,
    given: Settings,
    targets: Sequence[Target],
    host: Host,
    knobs: Knobs,
    estimates: Estimates,
    facts: Facts,
    *,
    currency: str | None = None,
    use: Use | None = None,
    timer: Timer | None = None,
    after: After = NOTHING_AFTER,
    catalog: Mapping[str, Card] = NO_CARDS,
    progress: Progress | None = None,
) -> Front:
    """The front over ``targets``; the arguments are those of `cardfit.plan.make.make`."""
    question, left_out = question_of(
        given,
        targets,
        host,
        knobs,
        estimates,
        facts,
        currency=currency,
        use=use or Use(),
        timer=timer,
        after=after.over,
    )
    able = [each for each in targets if _able(each, question)]
    pairs = _holding(able, question, progress)
    ranks = {rank: at for at, rank in enumerate(sorted({_lost(pair.candidate) for pair in pairs}))}
    rows = [row for pair in pairs if (row := _row(pair, question, ranks)) is not None]
    notes = [*facts.notes, *left_out]
    if len(rows) < len(pairs):
        untimed = sorted({p.target.card for p in pairs} - {row.card for row in rows})
        if untimed:
            notes.append(Note("front-untimed", {"cards": ", ".join(untimed)}))
    priced = [row for row in rows if _comparable(row, question.currency)]
    if len(priced) < len(rows):
        without = Counter(row.card for row in rows if row not in priced)
        notes.append(Note("front-unpriced", {"cards": ", ".join(sorted(without))}))
    kept = front_of(priced or rows)
    return Front(
        versions=facts.versions,
        model=facts.model,
        request=request,
        settings=given,
        currency=question.currency,
        cards=len(able),
        candidates=len(question.candidates),
        holding=len(pairs),
        rows=tuple(kept),
        notes=tuple(Said.of(note.code, **note.args) for note in notes),
    )


def front_of(rows: Sequence[FrontRow]) -> list[FrontRow]:
    """Those of ``rows`` that no other is at least as good as in all three and better in one, fastest first."""
    if not rows:
        return []
    table = np.array(
        [(_amount(row), row.seconds.likely, float(row.quality_rank)) for row in rows],
        dtype=np.float64,
    )
    kept = [row for row, beaten in zip(rows, dominated(table), strict=True) if not beaten]
    same = dict[tuple[float, ...], FrontRow]()  # of equal figures the one with most to spare
    for row in sorted(kept, key=lambda each: -each.headroom_bytes):
        same.setdefault((_amount(row), row.seconds.likely, row.quality_rank), row)
    return sorted(same.values(), key=lambda row: (row.seconds.likely, _amount(row)))


def dominated(table: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows of ``table`` (smaller is better in every column) some other row beats."""
    no_worse = np.all(table[None, :, :] <= table[:, None, :], axis=2)
    better = np.any(table[None, :, :] < table[:, None, :], axis=2)
    beaten: NDArray[np.bool_] = np.any(no_worse & better, axis=1)
    return beaten


def _amount(row: FrontRow) -> float:
    return row.memory_bytes if row.cost_per_output is None else row.cost_per_output.amount


def _comparable(row: FrontRow, currency: str | None) -> bool:
    return row.cost_per_output is not None and row.cost_per_output.currency == currency


def _able(target: Target, question: Question) -> bool:
    """Whether a verdict can be given and the card computes what the model takes."""
    usable = target.usable
    if target.unverified is not None or usable is None or question.after(usable) is not None:
        return False
    computes = target.has_bfloat16 or not question.bfloat16
    return computes and not attention.refuses_flash(question.given, target)


def _holding(
    targets: Sequence[Target], question: Question, progress: Progress | None
) -> list[_Pair]:
    """Every pair that fits or is tight; a setting is replayed where its floor leaves a card open."""
    estimates, found = question.estimates, list[_Pair]()
    groups: dict[tuple[tuple[str, ...], Host], list[Target]] = {}
    lists: dict[tuple[str, ...], tuple[Candidate, ...]] = {}
    for target in targets:
        options = attention.as_run(question.candidates, target, estimates)
        if options:
            names = tuple(each.name for each in options)
            lists[names] = options
            groups.setdefault((names, host_of(target, question.host)), []).append(target)
    for (names, host), members in groups.items():
        options = lists[names]
        most = max(each.usable.likely for each in members if each.usable is not None)
        floors = estimates.floors(options)
        open_ = [each for each, floor in zip(options, floors, strict=True) if floor <= most]
        replayed = []
        for done, candidate in enumerate(open_):
            if progress is not None:
                text = settings_text(candidate.settings, question.knobs)
                progress(say("front-progress", {"settings": text}), done / len(open_))
            replayed.append(estimates.of(candidate.settings))
        if not replayed:
            continue
        codes = on_targets(replayed, members, host)
        for row, column in np.argwhere(np.isin(codes, (FITS, TIGHT, UNSURE))):
            found += _pair(open_[row], members[column], int(codes[row, column]), host, question)
    return found


def _pair(
    candidate: Candidate, target: Target, code: int, host: Host, question: Question
) -> list[_Pair]:
    estimate = question.estimates.of(candidate.settings)
    verdict = verdict_of(code)
    if code == UNSURE:
        judged = judge_on(candidate, target, host, question.estimates)
        estimate, verdict = judged.estimate, judged.verdict
    holds = ORDER.index(verdict) in (FITS, TIGHT)
    return [_Pair(target, candidate, estimate, verdict)] if holds else []


def _lost(candidate: Candidate) -> tuple[int, ...]:
    """What is given up of the picture; `always_tiled` models decode in tiles as their reference."""
    return candidate.cost[:2] if "lossy" in candidate.price else (0, 0)


def _quality(candidate: Candidate) -> Quality:
    if "lossy" not in candidate.price:
        return "full"
    return "fewer_bits" if candidate.cost[0] else "tiled"


def _row(pair: _Pair, question: Question, ranks: dict[tuple[int, ...], int]) -> FrontRow | None:
    target, estimate = pair.target, pair.estimate
    settings = attention.as_given(pair.candidate.settings, question.given)
    timed = question.timer(target.card, settings) if question.timer else None
    seconds = None if timed is None else seconds_of(timed)
    usable = target.usable
    if timed is None or seconds is None or usable is None or target.memory_bytes is None:
        return None
    offer, costs = offered(target, timed, question.disk_bytes, estimate, question)
    return FrontRow(
        card=target.card,
        name=target.name,
        memory_bytes=target.memory_bytes,
        settings=settings,
        settings_text=settings_text(settings, question.knobs),
        verdict=pair.verdict,
        price_of_it=pair.candidate.price,
        quality=_quality(pair.candidate),
        quality_rank=ranks[_lost(pair.candidate)],
        seconds=seconds,
        cost_per_output=None if costs is None else costs.per_output,
        offer=offer,
        peak_reserved_bytes=estimate.reserved_bytes,
        headroom_bytes=usable.likely - estimate.reserved_bytes,
        host_bytes=estimate.host_bytes,
    )
