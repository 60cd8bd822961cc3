"""The answer to ``plan`` as a page shows it: texts and places, nothing left to work out.

In: an `Answer`, the facts of the cards and what a reader filters by. Out: a `PlanView` that a template lays out, on the
server or in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cardfit.cards import Card
from cardfit.cards.codecs import supports
from cardfit.messages import say
from cardfit.plan.answer import Answer, CardRow, Pick
from cardfit.plan.offers import hourly
from cardfit.report import bars, pareto, words
from cardfit.report import plan as page
from cardfit.report.bars import CardBar, Stages
from cardfit.report.pareto import Chart
from cardfit.report.selected import HOLDS, selected
from cardfit.request import Dtype
from cardfit.units import gib, gib_text, human_seconds

SORTS = ("plan", "time", "cost", "price", "memory")
ENCODES = ("h264", "hevc", "av1")


@dataclass(frozen=True, slots=True)
class Filter:
    """What of the table is shown, and in which order; ``per_hour`` is the highest price."""

    per_hour: float | None = None
    vendor: str | None = None
    encodes: str | None = None
    every: bool = False
    sort: str = "plan"


@dataclass(frozen=True, slots=True)
class CardLine:
    """One card of the table in words."""

    id: str
    name: str
    memory: str
    shape: str
    grade: str
    verdict: str
    settings: str
    holds: bool
    why: str
    near_miss: str
    time: str
    band: str
    cost: str
    price: str
    age: str
    provider: str
    offer_note: str
    peak: str
    usable: str
    headroom: str
    host: str
    bar: CardBar | None


@dataclass(frozen=True, slots=True)
class PickView:
    """One recommendation in words."""

    label: str
    kind: str
    card: str | None
    name: str
    settings: str
    why: str
    time: str
    price: str
    shape: str


@dataclass(frozen=True, slots=True)
class PlanView:
    """The whole page."""

    title: str
    asked: tuple[str, ...]
    below: tuple[str, ...]
    verified: bool
    stages: Stages
    sums: tuple[str, ...]
    rules: tuple[str, ...]
    picks: tuple[PickView, ...]
    cards: tuple[CardLine, ...]
    shown: int
    holding: int
    matching: int
    total: int
    timed: bool
    costed: bool
    chart: Chart | None
    catch: str
    notes: tuple[str, ...]
    steps: tuple[tuple[str, str], ...] = field(default=())


def view(
    answer: Answer,
    *,
    recommended: Mapping[str, Dtype] | None = None,
    facts: Mapping[str, Card] | None = None,
    only: Filter | None = None,
) -> PlanView:
    """The page of ``answer``; ``facts`` are the cards by id, which filters by vendor and codec look at."""
    asked = only or Filter()
    rows = filtered(answer.cards, facts or {}, asked)
    shown = selected(answer.model_copy(update={"cards": rows}), every=asked.every)
    ordered = _ordered([(each.row, each.alike) for each in shown], asked.sort)
    against = page.against(answer)
    title, *what = page.title(answer, recommended)
    parts, rules = page.sums(answer)
    hidden = len(shown) < len(rows)
    command = words.command(answer.request, answer.settings)
    steps = page.steps(answer, hidden, command)
    return PlanView(
        title=title,
        asked=tuple(what),
        below=tuple(page.below(answer)),
        verified=answer.model.verified,
        stages=bars.stages(answer, against),
        sums=tuple(parts),
        rules=tuple(rules),
        picks=tuple(_picks(answer)),
        cards=tuple(card_line(row, alike) for row, alike in ordered),
        shown=len(ordered),
        holding=sum(row.verdict in HOLDS for row in rows),
        matching=len(rows),
        total=len(answer.cards),
        timed=any(row.seconds is not None for row, _ in ordered),
        costed=any(row.cost_per_output is not None for row, _ in ordered),
        chart=pareto.chart(rows),
        catch=page.catch(answer),
        notes=tuple(page.remarks(answer)),
        steps=tuple(
            (" ".join(words.command_lines(each, 10_000)), say(code)) for each, code in steps
        ),
    )


def filtered(
    rows: Sequence[CardRow], facts: Mapping[str, Card], only: Filter
) -> tuple[CardRow, ...]:
    """The rows that ``only`` lets through. A price that nobody states is not below any limit."""
    found = []
    for row in rows:
        fact = facts.get(row.card)
        if only.vendor and (fact is None or fact.vendor.lower() != only.vendor.lower()):
            continue
        if only.encodes and (fact is None or not supports(fact, "nvenc", only.encodes)):
            continue
        dear = row.offer is None or (
            only.per_hour is not None and hourly(row.offer) > only.per_hour
        )
        if only.per_hour is not None and dear:
            continue
        found.append(row)
    return tuple(found)


def _ordered(rows: list[tuple[CardRow, int]], sort: str) -> list[tuple[CardRow, int]]:
    """What holds comes first in any order; what has no figure to sort by comes last."""
    keys: dict[str, Callable[[CardRow], float | None]] = {
        "time": lambda row: None if row.seconds is None else row.seconds.likely,
        "cost": lambda row: None if row.cost_per_output is None else row.cost_per_output.amount,
        "price": lambda row: None if row.offer is None else hourly(row.offer),
        "memory": lambda row: row.memory_bytes,
    }
    if sort not in keys:
        return rows
    of = keys[sort]

    def key(each: tuple[CardRow, int]) -> tuple[bool, bool, float]:
        value = of(each[0])
        return (each[0].verdict not in HOLDS, value is None, value or 0.0)

    return sorted(rows, key=key)


def card_line(row: CardRow, alike: int = 0) -> CardLine:
    """One row in words."""
    holds = row.verdict in HOLDS
    offer, seconds = row.offer, row.seconds
    return CardLine(
        id=row.card,
        name=words.card_name(row.name),
        memory=_memory(row, alike),
        shape=words.shape_name(row.verdict, row.price_of_it),
        grade=row.grade or "",
        verdict=words.verdict_words(row),
        settings=words.short_settings(row) if holds else words.short_why(row),
        holds=holds,
        why=row.why.text,
        near_miss="" if row.near_miss is None else row.near_miss.text,
        time="" if seconds is None else human_seconds(seconds.likely),
        band="" if seconds is None else _seconds_band(seconds.low, seconds.high),
        cost="" if row.cost_per_output is None else words.money(row.cost_per_output),
        price="" if offer is None else words.price_of(offer),
        age="" if offer is None else say("age-days", {"days": offer.age_days}),
        provider="" if offer is None else offer.provider,
        offer_note="" if row.offer_note is None else row.offer_note.text,
        peak="" if row.peak_reserved_bytes is None else gib(row.peak_reserved_bytes),
        usable="" if row.usable_bytes is None else gib_text(row.usable_bytes),
        headroom="" if row.headroom_bytes is None else gib_text(row.headroom_bytes),
        host="" if row.host_bytes is None else gib_text(row.host_bytes),
        bar=bars.card_bar(row),
    )


def _memory(row: CardRow, alike: int) -> str:
    found = [] if row.memory_bytes is None else [gib_text(row.memory_bytes, 0)]
    if alike:
        found.append(say("view-alike", {"count": alike}))
    return " · ".join(found)


def _seconds_band(low: float, high: float) -> str:
    return say("view-band", {"low": human_seconds(low), "high": human_seconds(high)})


def _picks(answer: Answer) -> list[PickView]:
    picks = answer.recommended
    named = (("cheapest", picks.cheapest), ("fastest", picks.fastest), ("safest", picks.safest))
    return [_pick(answer, kind, pick) for kind, pick in named]


def _pick(answer: Answer, kind: str, pick: Pick | None) -> PickView:
    label = say(f"pick-{kind}")
    row = None if pick is None else next((r for r in answer.cards if r.card == pick.card), None)
    if pick is None or row is None:
        return PickView(label, kind, None, say("pick-none"), "", "", "", "", "unknown")
    line = card_line(row)
    same = row.settings == pick.settings
    return PickView(
        label=label,
        kind=kind,
        card=row.card,
        name=line.name,
        settings=words.short_settings(row) if same else words.settings_words(pick.settings),
        why=pick.why.text,
        time=line.time,
        price=line.price,
        shape=line.shape,
    )
