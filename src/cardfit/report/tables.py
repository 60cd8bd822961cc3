"""The lists of models, cards and offers, and the page of a single one.

In: library entries, cards, offers. Out: lines. Everything that a data file does not state prints as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from math import prod

from cardfit.cards.card import Card
from cardfit.library.models import Model
from cardfit.messages import number, say
from cardfit.offers.market import OLD_DAYS, age_days
from cardfit.offers.offer import Offer
from cardfit.plan.answer import Money
from cardfit.plan.cost import Worth
from cardfit.report import words
from cardfit.report.grid import Cell, Column, Row, grid
from cardfit.report.style import Style
from cardfit.units import gib_text, human_bytes


def models(entries: Iterable[Model], style: Style) -> list[str]:
    """One line a model."""
    columns = [
        Column(say("col-id")),
        Column(say("col-tasks"), least=16),
        Column(say("col-size")),
        Column(say("col-weights"), right=True),
        Column(say("col-license"), least=14),
        Column(say("col-verified")),
    ]
    rows = [
        [
            model.id,
            ", ".join(model.tasks),
            _size(model),
            gib_text(_weights_bytes(model)),
            model.license,
            ", ".join([_yes(model.verified), *([say("own-mark")] if model.is_own else [])]),
        ]
        for model in entries
    ]
    return _table(columns, rows, style)


def model(entry: Model, style: Style) -> list[str]:
    """Everything the library knows that a reader may want to check, with its sources."""
    defaults = entry.defaults
    facts: list[tuple[str, str]] = [
        ("id", entry.id),
        ("title", entry.title),
        ("pipeline", entry.pipeline),
        ("repo_id", entry.repo_id),
        ("tasks", ", ".join(entry.tasks)),
        ("license", entry.license),
        ("released", entry.released),
        ("verified", _yes(entry.verified)),
        ("from", say("own-mark") if entry.is_own else ""),
        ("unverified_parts", ", ".join(entry.unverified_parts)),
        ("width x height", _size(entry)),
        ("num_inference_steps", str(defaults.num_inference_steps)),
        (defaults.guidance_argument, f"{defaults.guidance_scale:g}"),
        ("fps", "" if defaults.fps is None else f"{defaults.fps:g}"),
        ("size rule", entry.rules.size.why),
        ("frame rule", entry.rules.frames.kind),
        ("guidance", entry.cfg.how),
        ("VAE", entry.vae.chunking or ""),
        ("latent", _latent(entry)),
        *(("note", note) for note in entry.notes),
        *(("source", source) for source in entry.sources),
    ]
    columns = [
        Column(say("col-component")),
        Column(say("col-weights"), right=True),
        Column(say("col-settings-dtype")),
        Column(say("col-title"), least=20),
    ]
    rows = [
        [
            name,
            gib_text(part.params * words.DTYPE_BYTES[part.recommended_dtype]),
            words.DTYPE_WORDS[part.recommended_dtype],
            part.class_path,
        ]
        for name, part in entry.components.items()
    ]
    known = [(name, value) for name, value in facts if value]
    return [*_facts(known, style), "", *_table(columns, rows, style)]


def _latent(entry: Model) -> str:
    """The latent of the default size: its shape, elements, and bytes in a half-precision dtype."""
    defaults = entry.defaults
    shape = entry.latent_shape(defaults.width, defaults.height, defaults.num_frames)
    count = prod(shape)
    sides = " x ".join(map(str, shape))
    return f"{sides} = {number(format(count, ','))} elements, {human_bytes(2 * count)} in half precision"


def cards(
    found: Iterable[Card],
    style: Style,
    worths: Sequence[Worth] = (),
    *,
    intensity: float | None = None,
) -> list[str]:
    """One line a card; with ``worths`` also what a unit of its price buys, and what limits work of ``intensity``."""
    bought = {worth.card: worth for worth in worths}
    columns = [
        Column(say("col-id")),
        *([] if bought else [Column(say("col-card"), least=14)]),
        Column(say("col-memory"), right=True),
        *([] if bought else [Column(say("col-architecture"), least=10)]),
        Column(say("col-bandwidth-unit" if bought else "col-bandwidth"), right=True),
        Column(say("col-bf16-unit" if bought else "col-bf16"), right=True),
    ]
    if bought:
        columns += [
            Column(say("col-price"), right=True),
            Column(say("col-bytes-per-price"), right=True),
            Column(say("col-flop-per-price"), right=True),
            Column(say("col-bound" if intensity else "col-balance"), right=True),
        ]
    rows = [
        [
            card.id,
            *([] if bought else [words.card_name(card.name)]),
            _memory(card),
            *([] if bought else [card.architecture]),
            _short(card.bandwidth_bytes_per_s, 1e9) if bought else _bandwidth(card),
            _short(card.flop_per_s.get("bf16"), 1e12) if bought else _rate(card, "bf16"),
            *(_worth(bought[card.id], intensity) if card.id in bought else ()),
        ]
        for card in found
    ]
    return _table(columns, rows, style)


def _worth(worth: Worth, intensity: float | None) -> list[str]:
    """The price, what a unit of it buys, and what is the limit, or where the two limits meet."""
    price = "-" if worth.offer is None else words.money(worth.offer.price)
    if worth.offer is not None and worth.offer.period == "month":
        price = say("price-month", {"money": price})
    balance = worth.balance_flop_per_byte
    if balance is None:
        last = "?"
    elif intensity is None:
        last = f"{balance:.0f}"
    else:
        last = say("bound-tensor" if intensity >= balance else "bound-bandwidth")
    return [
        price,
        "-" if worth.bytes_per_s_per_price is None else _short(worth.bytes_per_s_per_price, 1e9),
        "-" if worth.flop_per_s_per_price is None else _short(worth.flop_per_s_per_price, 1e12),
        last,
    ]


def _short(rate: float | None, factor: float) -> str:
    return "?" if rate is None else f"{rate / factor:.0f}"


def card(found: Card, style: Style) -> list[str]:
    """Every figure of one card, with where it comes from."""
    facts = [
        ("id", found.id),
        ("name", found.name),
        ("vendor", found.vendor),
        ("architecture", found.architecture),
        ("compute capability", found.compute_capability or ""),
        ("release year", _text(found.release_year)),
        ("memory (driver)", "" if found.memory_bytes is None else human_bytes(found.memory_bytes)),
        ("bandwidth", _bandwidth(found)),
        *((f"dense {kind}", _rate(found, kind)) for kind in found.flop_per_s),
        ("PCIe", _pcie(found)),
        ("board power", "" if found.tdp_w is None else f"{found.tdp_w} W"),
        ("NVENC engines", _text(found.nvenc_count)),
        ("NVDEC engines", _text(found.nvdec_count)),
        ("unified memory", _yes(found.unified_memory)),
        ("aliases", ", ".join(found.aliases)),
        ("source", found.source),
        ("notes", found.notes),
    ]
    return _facts(facts, style)


def offers(found: Iterable[Offer], style: Style, today: date) -> list[str]:
    """One line an offer, the cheapest per card and GPU first."""
    columns = [
        Column(say("col-card")),
        Column(say("col-price"), right=True),
        Column(say("col-per-gpu"), right=True),
        Column(say("col-provider")),
        Column(say("col-ram"), right=True),
        Column(say("col-age"), right=True),
        Column(say("col-source"), least=20),
    ]
    order = sorted(found, key=lambda offer: (offer.card, offer.period, offer.price_per_gpu))
    rows: list[Row] = [
        [
            offer.card if offer.gpus == 1 else f"{offer.gpus} x {offer.card}",
            _price(offer),
            "" if offer.gpus == 1 else words.money(_per_gpu(offer)),
            offer.provider,
            "" if offer.ram_bytes is None else gib_text(offer.ram_bytes, 0),
            _age(offer, today),
            Cell(offer.source, "dim"),
        ]
        for offer in order
    ]
    return _table(columns, rows, style)


def _table(columns: list[Column], rows: Sequence[Row], style: Style) -> list[str]:
    if not rows:
        return [say("nothing-listed")]
    return grid(columns, rows, style, indent=0)


def _facts(facts: list[tuple[str, str]], style: Style) -> list[str]:
    columns = [Column(say("col-fact")), Column(say("col-value"), least=20)]
    rows: list[Row] = [[Cell(name, "dim"), value or say("unknown-value")] for name, value in facts]
    return grid(columns, rows, style, indent=0)


def _weights_bytes(entry: Model) -> int:
    return sum(
        part.params * words.DTYPE_BYTES[part.recommended_dtype]
        for part in entry.components.values()
        if part.counted
    )


def _size(entry: Model) -> str:
    size = f"{entry.defaults.width}x{entry.defaults.height}"
    return f"{size}x{entry.defaults.num_frames}" if entry.is_video else size


def _per_gpu(offer: Offer) -> Money:
    return Money(amount=offer.price_per_gpu, currency=offer.currency)


def _age(offer: Offer, today: date) -> Cell:
    """Days since the price was published; one that is too old to trust says so."""
    days = age_days(offer, today)
    if days <= OLD_DAYS:
        return Cell(say("age-days", {"days": days}))
    return Cell(say("age-old", {"days": days}), "amber")


def _price(offer: Offer) -> str:
    amount = Money(amount=offer.price, currency=offer.currency)
    code = "price-hour" if offer.period == "hour" else "price-month"
    text = say(code, {"money": words.money(amount)})
    return say("price-spot", {"price": text}) if offer.spot else text


def _memory(card: Card) -> str:
    return say("unknown-value") if card.memory_bytes is None else gib_text(card.memory_bytes, 0)


def _bandwidth(card: Card) -> str:
    rate = card.bandwidth_bytes_per_s
    return say("unknown-value") if rate is None else f"{rate / 1e9:.0f} GB/s"


def _rate(card: Card, kind: str) -> str:
    rate = card.flop_per_s.get(kind)
    return say("unknown-value") if rate is None else f"{rate / 1e12:.0f} TFLOP/s"


def _pcie(card: Card) -> str:
    if card.pcie_gen is None:
        return ""
    return f"{card.pcie_gen}" if card.pcie_lanes is None else f"{card.pcie_gen} x{card.pcie_lanes}"


def _text(value: object | None) -> str:
    return "" if value is None else str(value)


def _yes(value: bool) -> str:
    return say("yes") if value else say("no")
