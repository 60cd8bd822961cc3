"""One card as a page shows it: memory over the stages in the settings that it takes, what stands beside it, its offers.

In: the answer for one card, the answer in the settings of its row, facts and offers. Out: a `CardView` of texts and
places. Also what one knob changes, as a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from cardfit.cards import Card
from cardfit.cards.codecs import ENGINES, CodecFact, facts_for
from cardfit.messages import say
from cardfit.offers import Offer, age_days
from cardfit.plan.answer import Answer, CardRow, Money
from cardfit.report import bars, words
from cardfit.report import plan as page
from cardfit.report.bars import Stages
from cardfit.report.plan_view import CardLine, card_line
from cardfit.request import Dtype
from cardfit.units import gib_text, human_seconds, signed_bytes

_OFFERS = 12


@dataclass(frozen=True, slots=True)
class OfferLine:
    """One offer in words."""

    provider: str
    price: str
    spot: bool
    ram: str
    age: str
    source: str


@dataclass(frozen=True, slots=True)
class CardView:
    """The whole page of one card."""

    title: str
    asked: tuple[str, ...]
    line: CardLine
    full_name: str
    facts: tuple[tuple[str, str], ...]
    stages: Stages
    caption: str
    host: str
    disk: str
    headroom: str
    offers: tuple[OfferLine, ...]
    more_offers: int
    codecs: tuple[tuple[str, str], ...]
    steps: tuple[tuple[str, str], ...]
    code: str
    notes: tuple[str, ...]


def view(
    answer: Answer,
    as_set: Answer | None,
    fact: Card,
    offers: Iterable[Offer],
    *,
    today: date,
    code: str = "",
    recommended: Mapping[str, Dtype] | None = None,
) -> CardView:
    """The page of the one card of ``answer``; ``as_set`` is the answer in the settings of its row."""
    row = answer.cards[0]
    shown = as_set or answer
    title, *what = page.title(answer, recommended)
    found = sorted(offers, key=lambda offer: (offer.period, offer.currency, offer.price_per_gpu))
    line = card_line(row)
    return CardView(
        title=title,
        asked=tuple(what),
        line=line,
        full_name=row.name,
        facts=tuple(_facts(fact)),
        stages=bars.stages(shown, row),
        caption=say("view-stages-set", {"settings": line.settings})
        if as_set is not None
        else say("view-stages-resident"),
        host="" if row.host_bytes is None else gib_text(row.host_bytes),
        disk="" if row.disk_bytes is None else gib_text(row.disk_bytes),
        headroom=line.headroom,
        offers=tuple(_offer(each, today) for each in found[:_OFFERS]),
        more_offers=max(0, len(found) - _OFFERS),
        codecs=tuple(_codecs(fact)),
        steps=tuple(_steps(answer, row)),
        code=code,
        notes=tuple(page.remarks(answer)),
    )


def _facts(fact: Card) -> Iterable[tuple[str, str]]:
    yield say("col-architecture"), fact.architecture
    if fact.memory_bytes is not None:
        yield say("col-memory"), gib_text(fact.memory_bytes)
    if fact.bandwidth_bytes_per_s is not None:
        yield say("col-bandwidth"), f"{fact.bandwidth_bytes_per_s / 1e9:.0f} GB/s"
    if (rate := fact.flop_per_s.get("bf16")) is not None:
        yield say("col-bf16"), f"{rate / 1e12:.0f} TFLOP/s"
    if fact.tdp_w is not None:
        yield say("view-power"), f"{fact.tdp_w} W"
    yield say("col-source"), fact.source


def _offer(offer: Offer, today: date) -> OfferLine:
    money = words.money(Money(amount=offer.price_per_gpu, currency=offer.currency))
    code = "price-hour" if offer.period == "hour" else "price-month"
    return OfferLine(
        provider=offer.provider,
        price=say(code, {"money": money}),
        spot=offer.spot,
        ram="" if offer.ram_bytes is None else gib_text(offer.ram_bytes, 0),
        age=say("age-days", {"days": age_days(offer, today)}),
        source=offer.source,
    )


def _codecs(fact: Card) -> Iterable[tuple[str, str]]:
    """What the video engines handle, by engine; what no row names is not said."""
    for engine in ENGINES:
        found = [each for each in facts_for(fact, engine) if each.supported]
        if found:
            yield say(f"view-{engine}"), ", ".join(dict.fromkeys(map(_codec, found)))
        elif (fact.nvenc_count if engine == "nvenc" else fact.nvdec_count) == 0:
            yield say(f"view-{engine}"), say("view-no-engine")


def _codec(fact: CodecFact) -> str:
    depth = "" if fact.bit_depth in (None, 8) else f" {fact.bit_depth} bit"
    chroma = "" if fact.chroma in (None, 420) else f" {fact.chroma}"
    return f"{fact.codec}{chroma}{depth}"


def _steps(answer: Answer, row: CardRow) -> Iterable[tuple[str, str]]:
    """The commands that go on from here."""
    settings = row.settings or answer.settings
    asked = [*words.command(answer.request, settings), "--card", row.card]
    for more, code in ((["--as", "code"], "do-code"), (["--save", "plan.yaml"], "do-save")):
        yield " ".join(words.command_lines([*asked, *more], 10_000)), say(code)
    yield "cardfit run plan.yaml --weights random", say("view-do-run")
    yield f"cardfit rent --card {row.card} --hours-per-week 20", say("view-do-rent")


@dataclass(frozen=True, slots=True)
class KnobLine:
    """What one change would do: the verdict, the difference in memory and in time, or why it cannot be."""

    label: str
    line: CardLine | None
    memory: str
    time: str
    why_not: str
    query: str


def knob(label: str, query: str, before: CardRow, after: CardRow) -> KnobLine:
    """The line of a change that was planned."""
    memory = time = ""
    if before.peak_reserved_bytes is not None and after.peak_reserved_bytes is not None:
        memory = signed_bytes(after.peak_reserved_bytes - before.peak_reserved_bytes)
    if before.seconds is not None and after.seconds is not None:
        more = after.seconds.likely - before.seconds.likely
        sign = "+" if more >= 0 else "-"
        time = f"{sign}{human_seconds(abs(more))}"
    return KnobLine(label, card_line(after), memory, time, "", query)
