"""The catalog of cards: the shipped table, a person's own file on top, and cards by name.

In: CSV files. Out: `Card` values by id. An own file names a card by ``id`` and only the columns it
changes; a new id adds a card. Names are compared without case, spaces, hyphens and maker's words
("4090", "RTX A6000", "Tesla T4").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from cardfit.cards import table
from cardfit.cards.card import Card
from cardfit.errors import BadFile, UnknownCard
from cardfit.messages import say
from cardfit.units import MIB

COLUMNS: tuple[str, ...] = (
    "id",
    "name",
    "aliases",
    "vendor",
    "architecture",
    "compute_capability",
    "release_year",
    "vram_gb_marketing",
    "vram_mib_reported",
    "vram_mib_ecc",
    "unified_memory",
    "mem_type",
    "mem_bandwidth_gb_s",
    "sm_count",
    "boost_mhz",
    "fp32_tflops",
    "fp16_tensor_tflops_dense",
    "fp16_tensor_accumulate",
    "fp16_tensor_fp32acc_dense",
    "bf16_tensor_tflops_dense",
    "tf32_tflops_dense",
    "int8_tops_dense",
    "fp8_tflops_dense",
    "fp4_tflops_dense",
    "l2_mb",
    "pcie_gen",
    "pcie_lanes",
    "nvlink",
    "tdp_w",
    "form",
    "nvenc_count",
    "nvdec_count",
    "source",
    "notes",
)
RATE_COLUMNS: dict[str, str] = {
    "fp32": "fp32_tflops",
    "fp16_fp32acc": "fp16_tensor_fp32acc_dense",
    "bf16": "bf16_tensor_tflops_dense",
    "tf32": "tf32_tflops_dense",
    "int8": "int8_tops_dense",
    "fp8": "fp8_tflops_dense",
    "fp4": "fp4_tflops_dense",
}
MOST_NAMED = 8
SHIPPED = Path(__file__).with_name("data") / "cards.csv"

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CAPABILITY = re.compile(r"[0-9]{1,2}\.[0-9]")
_MAKER = re.compile(r"\b(nvidia|geforce|tesla|amd|radeon|instinct|quadro|generation|edition)\b")
_SERIES = re.compile(r"^(rtx|gtx|rx)(?=[a-z0-9])")


def load(cards_file: Path | None = None) -> dict[str, Card]:
    """The catalog by id, in the order of the table; ``cards_file`` overrides cells or adds cards.

    Raises BadFile, naming file, row and column, for what is wrong in ``cards_file``.
    """
    catalog = {name: dict(cells) for name, cells in _shipped().items()}
    cards = dict(_shipped_cards())
    if cards_file is None:
        return cards
    seen: set[str] = set()
    for row in table.read(cards_file, columns=COLUMNS, required=("id",)):
        name = row.text("id")
        if not _ID.fullmatch(name):
            raise row.bad("id", say("allowed-id"))
        if name in seen:
            raise BadFile("table-double-row", file=row.file, row=row.number, id=name)
        seen.add(name)
        given = {column: cell for column, cell in row.cells.items() if cell}
        old = catalog.get(name)
        if old is None:
            given = {"name": name, "source": row.file, **given}
        else:
            given["notes"] = given.get("notes", "") or old["notes"]
            given.setdefault("source", f"{row.file}; {old['source']}")
        cells = {**(old or dict.fromkeys(COLUMNS, "")), **given}
        if "vram_mib_reported" in given and "vram_mib_ecc" not in given:
            cells["vram_mib_ecc"] = ""  # the old figure belongs to the old memory
        cards[name] = _card(table.Row(row.file, row.number, cells))
    return cards


def find(cards: Mapping[str, Card], name: str) -> Card:
    """The card called ``name``: an id, a marketing name, an alias, or what people shorten them to.

    Raises UnknownCard with suggestions when no card or more than one answers to the name.
    """
    exact = cards.get(name.strip().lower())
    if exact is not None:
        return exact
    asked = _plain(name)
    hits: list[Card] = []
    for keys in (_names, _loose_names):
        hits = [card for card in cards.values() if asked in keys(card)]
        if len(hits) == 1:
            return hits[0]
        if hits:
            break
    # Words that several cards share ("H100", "A100 80GB") name none of them; one that only part of
    # a single card's name holds ("5060" of a 5060 Ti) may be another card.
    hits = hits or [card for card in cards.values() if _words(name) <= _words(*_called(card))]
    if not 1 < len(hits) <= MOST_NAMED:
        near = say("did-you-mean", {"names": hits[0].id}) if len(hits) == 1 else ""
        raise UnknownCard("unknown-card", asked=name, suggestion=near or suggestion(cards, name))
    raise UnknownCard("ambiguous-card", asked=name, names=", ".join(card.id for card in hits))


def suggestion(cards: Mapping[str, Card], name: str) -> str:
    """The words "did you mean ...? " for ids near ``name``, or an empty text."""
    near = table.did_you_mean(name.strip().replace(" ", "-"), list(cards))
    if near:
        return near
    plain = {_plain(card.id): card.id for card in cards.values()}
    words = get_close_matches(_plain(name), list(plain), n=3, cutoff=0.6)
    return say("did-you-mean", {"names": ", ".join(plain[word] for word in words)}) if words else ""


def answers_to(card: Card, name: str) -> bool:
    """Whether ``name`` is one of the names of ``card``, its memory size aside."""
    return _unsized(card, _plain(name)) in _loose_names(card)


def _plain(name: str) -> str:
    """``name`` without case, maker's words, punctuation and series prefix.

    >>> _plain("NVIDIA GeForce RTX 4090"), _plain("rtx-a6000"), _plain("Tesla T4")
    ('4090', 'a6000', 't4')
    """
    lower = _MAKER.sub(" ", re.sub(r"[^a-z0-9]+", " ", name.lower()))
    return _SERIES.sub("", lower.replace(" ", ""))


def _words(*names: str) -> frozenset[str]:
    """The telling words in ``names``.

    >>> sorted(_words("NVIDIA H100 PCIe 80 GB"))
    ['80gb', 'h100', 'pcie']
    """
    text = re.sub(r"(?<=[0-9])\s*(gb|g)\b", "gb", " ".join(names).lower())
    return frozenset(re.findall(r"[a-z0-9]+", _MAKER.sub(" ", text))) - {"rtx", "gtx", "rx"}


def _called(card: Card) -> tuple[str, ...]:
    size = () if card.memory_marketing_gb is None else (_size(card),)
    return (card.id, card.name, *card.aliases, *size)


def _names(card: Card) -> frozenset[str]:
    names = {_plain(name) for name in (card.id, card.name, *card.aliases)}
    if card.memory_marketing_gb is not None:
        names |= {name + _size(card) for name in names if not name.endswith("gb")}
    return frozenset(names)


def _unsized(card: Card, name: str) -> str:
    """``name`` without the memory size of ``card`` at its end."""
    return name if card.memory_marketing_gb is None else name.removesuffix(_size(card))


def _size(card: Card) -> str:
    return f"{card.memory_marketing_gb}gb"


def _loose_names(card: Card) -> frozenset[str]:
    return frozenset(_unsized(card, name) for name in _names(card)) - {""}


@cache
def _shipped() -> dict[str, dict[str, str]]:
    rows = table.read(SHIPPED, columns=COLUMNS, required=COLUMNS)
    return {row.text("id"): row.cells for row in rows}


@cache
def _shipped_cards() -> dict[str, Card]:
    rows = table.read(SHIPPED, columns=COLUMNS, required=COLUMNS)
    return {card.id: card for card in map(_card, rows)}


def _card(row: table.Row) -> Card:
    """The card in ``row``. Raises BadFile naming the column that does not hold what it should."""
    capability = row.cells["compute_capability"] or None
    if capability is not None and not _CAPABILITY.fullmatch(capability):
        raise row.bad("compute_capability", say("allowed-capability"))
    memory_mib = row.count("vram_mib_reported", lowest=1)
    ecc_mib = row.count("vram_mib_ecc", lowest=1)
    bandwidth_gb = row.number_above_zero("mem_bandwidth_gb_s")
    boost_mhz = row.number_above_zero("boost_mhz")
    pcie_gen = row.number_above_zero("pcie_gen")
    rates = {kind: row.number_above_zero(column) for kind, column in RATE_COLUMNS.items()}
    unified = row.choice("unified_memory", ("", "no", "yes"))
    return Card(
        id=row.text("id"),
        name=row.text("name"),
        vendor=row.cells["vendor"] or "NVIDIA",
        architecture=row.cells["architecture"],
        compute_capability=capability,
        release_year=row.count("release_year", lowest=2000),
        memory_bytes=None if memory_mib is None else memory_mib * MIB,
        memory_ecc_bytes=None if ecc_mib is None else ecc_mib * MIB,
        memory_marketing_gb=row.count("vram_gb_marketing", lowest=1),
        bandwidth_bytes_per_s=None if bandwidth_gb is None else bandwidth_gb * 1e9,
        flop_per_s={kind: rate * 1e12 for kind, rate in rates.items() if rate is not None},
        pcie_gen=None if pcie_gen is None else int(pcie_gen),
        pcie_lanes=row.count("pcie_lanes", lowest=1),
        tdp_w=row.count("tdp_w", lowest=1),
        nvenc_count=row.count("nvenc_count"),
        nvdec_count=row.count("nvdec_count"),
        unified_memory=unified == "yes",
        source=row.text("source"),
        notes=row.cells["notes"],
        aliases=tuple(filter(None, map(str.strip, row.cells["aliases"].split(";")))),
        sm_count=row.count("sm_count", lowest=1),
        boost_hz=None if boost_mhz is None else boost_mhz * 1e6,
    )
