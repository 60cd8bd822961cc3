"""How much of a card's peak real kernels reach: fitted factors, by architecture and kind of kernel.

In: `data/efficiency.json`, written by `benchmarks/calibrate_published.py` from published times. Out: `Factors` for a
card, with how many times stand behind them. An architecture without published times takes the average of the others
and a wider band. Nothing here is tuned to a row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from cardfit.cards import Card

# compute capability -> whose limits of power and kernels it shares, where nothing of its own was published
RELATED = {"10.0": "9.0", "10.3": "9.0", "12.0": "8.9"}
UNFITTED_WIDER = 1.5  # on the band of an architecture without published times


@dataclass(frozen=True, slots=True)
class Factors:
    """Shares of dense peak and of bandwidth for one architecture; ``n`` published times of it stand behind them.

    Bandwidth may be passed by what a cache holds. ``flop_per_joule`` limits tensor rates by the board's power,
    ``flash_flop_per_sm_cycle`` FlashAttention 2 where the chip has faster instructions than it uses; None: no limit
    was seen. ``launch_s`` is the host's time per kernel, ``kernel_s`` the card's own floor.
    """

    matmul: float
    convolution: float
    convolution_3d: float
    attention: float
    attention_flash3: float
    bytes: float
    flop_per_joule: float | None
    flash_flop_per_sm_cycle: float | None
    head_dim_doubling: float
    launch_s: float
    kernel_s: float
    compiled_bytes: float
    compiled_launches: float
    n: int


@dataclass(frozen=True, slots=True)
class Scheme:
    """What a quantized linear layer costs in time: bytes moved per weight and call, eager and compiled.

    ``native`` names the rate its matrix products run at ("fp8", "int8"), None where they run in the compute dtype.
    ``eager`` or ``compiled`` is None where that way of running it has no rule.
    """

    eager: float | None
    compiled: float | None
    native: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Spread:
    """Measured over predicted: the shares between which nine in ten published times lie, predictions held out."""

    low: float
    high: float
    n: int


@cache
def _loaded() -> dict[str, Any]:
    text = files("cardfit.predict").joinpath("data/efficiency.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def family_of(card: Card) -> str:
    """The key under which factors of this card's generation are kept: its compute capability, "" when unknown."""
    return card.compute_capability or ""


@cache
def _factors(family: str) -> Factors:
    found = _loaded()["architectures"]
    values = dict(found["other"])
    values.update(found.get(family, {}))
    if family not in found and family in RELATED:
        near = found[RELATED[family]]
        values["flop_per_joule"] = near["flop_per_joule"]
        values["flash_flop_per_sm_cycle"] = near["flash_flop_per_sm_cycle"]
    return Factors(**{each.name: values[each.name] for each in fields(Factors)})


def factors(card: Card) -> Factors:
    """The factors of ``card``'s architecture."""
    return _factors(family_of(card))


@cache
def scheme(name: str) -> Scheme | None:
    """The rule of a quantization scheme; None where nobody published what it costs."""
    found = _loaded()["schemes"].get(name)
    if found is None:
        return None
    return Scheme(found["eager"], found["compiled"], found["native"], found["source"])


@cache
def spread() -> Spread:
    """The band around a predicted time."""
    return Spread(**_loaded()["spread"])


def held_out() -> dict[str, Any]:
    """Errors in percent on published times of model families that a fit had not seen: n, median, 90 %, worst."""
    found: dict[str, Any] = _loaded()["held_out"]
    return found
