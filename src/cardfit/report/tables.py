"""The lists of models, cards and offers, and the page of a single one.

In: library entries, cards, offers. Out: lines. Everything that a data file does not state prints as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from math import prod

from cardfit.cards.card import Card
from cardfit.library.models import Model
from cardfit.messages import say
from cardfit.offers.offer import Offer
from cardfit.plan.answer import Money
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
            _yes(model.verified),
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
    return f"{sides} = {count:,} elements, {human_bytes(2 * count)} in half precision"


def cards(found: Iterable[Card], style: Style) -> list[str]:
    """One line a card."""
    columns = [
        Column(say("col-id")),
        Column(say("col-card"), least=14),
        Column(say("col-memory"), right=True),
        Column(say("col-architecture"), least=10),
        Column(say("col-bandwidth"), right=True),
        Column(say("col-bf16"), right=True),
    ]
    rows = [
        [
            card.id,
            words.card_name(card.name),
            _memory(card),
            card.architecture,
            _bandwidth(card),
            _rate(card, "bf16"),
        ]
        for card in found
    ]
    return _table(columns, rows, style)


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
            offer.provider,
            "" if offer.ram_bytes is None else gib_text(offer.ram_bytes, 0),
            say("age-days", {"days": max(0, (today - offer.as_of).days)}),
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
