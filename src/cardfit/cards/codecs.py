"""What a card's video engines encode and decode, as queried on hardware or published by the maker.

In: `data/codecs.csv`, rows by card or by generation. Out: `CodecFact` values for a card. A pair that
no row names is unknown, not unsupported. Limits of B-frames vary by driver: query it before use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

from cardfit.cards import table
from cardfit.cards.card import Card

Engine = Literal["nvenc", "nvdec"]

ENGINES: tuple[Engine, ...] = ("nvenc", "nvdec")
SHIPPED = Path(__file__).with_name("data") / "codecs.csv"
COLUMNS: tuple[str, ...] = (
    "scope",
    "engine",
    "codec",
    "chroma",
    "bit_depth",
    "supported",
    "max_width",
    "max_height",
    "b_frames",
    "notes",
    "source",
)
# Compute capability -> the generation that the table names.
GENERATIONS: dict[str, str] = {
    "7.0": "volta",
    "7.5": "turing",
    "8.0": "ampere-ga100",
    "8.6": "ampere-ga10x",
    "8.9": "ada",
    "9.0": "hopper",
    "10.0": "blackwell-gb100",
    "12.0": "blackwell-gb20x",
}


@dataclass(frozen=True, slots=True)
class CodecFact:
    """Whether an engine handles a codec in one pixel format; ``scope`` is a card or generation.

    ``chroma`` is 420, 422 or 444; sizes are pixels; ``None`` is unknown.
    """

    scope: str
    engine: Engine
    codec: str
    chroma: int | None
    bit_depth: int | None
    supported: bool
    max_width: int | None
    max_height: int | None
    b_frames: int | None
    notes: str
    source: str


@cache
def facts() -> tuple[CodecFact, ...]:
    """All rows of the shipped table."""
    return tuple(map(_fact, table.read(SHIPPED, columns=COLUMNS, required=COLUMNS)))


def facts_for(card: Card, engine: Engine | None = None) -> tuple[CodecFact, ...]:
    """The rows for ``card``: its own for an engine where it has any, else its generation's."""
    found: list[CodecFact] = []
    generation = GENERATIONS.get(card.compute_capability or "")
    for wanted in ENGINES if engine is None else (engine,):
        own = [fact for fact in facts() if (fact.scope, fact.engine) == (card.id, wanted)]
        found += own or [
            fact for fact in facts() if (fact.scope, fact.engine) == (generation, wanted)
        ]
    return tuple(found)


def supports(
    card: Card, engine: Engine, codec: str, *, chroma: int = 420, bit_depth: int = 8
) -> bool | None:
    """Whether ``engine`` of ``card`` handles ``codec`` in that pixel format; ``None`` is unknown."""
    for fact in facts_for(card, engine):
        if (fact.codec, fact.chroma, fact.bit_depth) == (codec, chroma, bit_depth):
            return fact.supported
    if (card.nvenc_count if engine == "nvenc" else card.nvdec_count) == 0:
        return False
    return None


def _fact(row: table.Row) -> CodecFact:
    return CodecFact(
        scope=row.text("scope"),
        engine=cast(Engine, row.choice("engine", ENGINES)),
        codec=row.text("codec"),
        chroma=row.count("chroma", lowest=400),
        bit_depth=row.count("bit_depth", lowest=8),
        supported=row.choice("supported", ("yes", "no")) == "yes",
        max_width=row.count("max_width", lowest=1),
        max_height=row.count("max_height", lowest=1),
        b_frames=row.count("b_frames"),
        notes=row.cells["notes"],
        source=row.text("source"),
    )
