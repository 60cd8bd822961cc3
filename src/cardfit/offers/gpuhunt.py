"""Prices as the package gpuhunt collects them, turned into rows of an offers table.

In: items of a gpuhunt query, or the CSV of one provider's catalog. Out: rows with `market.COLUMNS`, the cheapest for
each provider, card, number of GPUs and kind, and what was left out by reason. Prices are USD an hour for the whole
instance. A name that several cards share counts as the slowest of them, as in the shipped table.
"""

from __future__ import annotations

import importlib
import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from cardfit.cards import Card, find, table
from cardfit.errors import InputError, MissingExtra, UnknownCard
from cardfit.messages import say

# The columns of a catalog file of gpuhunt 0.1.34; the file's name is the provider's.
COLUMNS: tuple[str, ...] = (
    *("provider", "instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name"),
    *("gpu_memory", "spot", "disk_size", "gpu_vendor", "flags", "cpu_arch", "provider_data"),
)
REQUIRED = ("instance_name", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
# Names that say no form factor or edition, with the memory in GB: the slowest card of that name.
_SLOWEST: dict[tuple[str, int], str] = {
    ("a100", 40): "a100-pcie-40gb",
    ("a100", 80): "a100-pcie-80gb",
    ("h100", 80): "h100-pcie",
    ("h200", 141): "h200-sxm",
    ("v100", 16): "v100-pcie-16gb",
    ("v100", 32): "v100-pcie-32gb",
    ("rtxpro6000", 96): "rtx-pro-6000-blackwell-server",
}
# Names of the shipped table for the same firms.
_PROVIDERS = {"lambdalabs": "lambda", "verda": "datacrunch"}
_MEMORY_SHARE = 0.1  # how far the listed memory may lie from the card's before it is another card


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of an offers table and how many items were left out, by reason (no_gpu, card, price)."""

    rows: tuple[dict[str, str], ...]
    left_out: dict[str, int]


def query(cards: Mapping[str, Card], today: date) -> Found:
    """What gpuhunt finds now. Raises MissingExtra without the package, InputError where it cannot collect."""
    try:
        package: Any = importlib.import_module("gpuhunt")
    except ModuleNotFoundError as missing:
        raise MissingExtra("offers-need-gpuhunt", package=missing.name or "gpuhunt") from missing
    # it logs tracebacks of providers that fail; the error below says it in one sentence
    logging.getLogger("gpuhunt").addHandler(logging.NullHandler())
    try:
        items = package.query()
    except Exception as failed:  # its collectors raise whatever their providers' clients do
        raise InputError(
            "offers-gpuhunt-failed", why=str(failed) or type(failed).__name__
        ) from None
    return convert((_plain(item) for item in items), cards, today)


def read(file: Path, cards: Mapping[str, Card], today: date) -> Found:
    """The catalog file of one provider, whose name is the file's. Raises BadFile naming row and column."""
    rows = table.read(file, columns=COLUMNS, required=REQUIRED)
    return convert(({"provider": file.stem, **_filled(row.cells)} for row in rows), cards, today)


def _filled(cells: Mapping[str, str]) -> dict[str, str]:
    return {name: cell for name, cell in cells.items() if cell}


def _plain(item: object) -> dict[str, str]:
    """An item's fields as the catalog file writes them."""
    found = {}
    for name in COLUMNS:
        value = getattr(item, name, None)
        if value is not None:
            found[name] = str(getattr(value, "value", value))
    return found


def convert(items: Iterable[Mapping[str, str]], cards: Mapping[str, Card], today: date) -> Found:
    """Rows for the items whose card is known, the cheapest of each kind, ordered by card and price."""
    left_out: Counter[str] = Counter()
    best: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for item in items:
        row, reason = _row(item, cards, today)
        if row is None:
            left_out[reason] += 1
            continue
        key = (row["provider"], row["card_id"], row["gpus"], row["spot"])
        if key not in best or float(row["price"]) < float(best[key]["price"]):
            best[key] = row
    rows = sorted(best.values(), key=lambda row: (row["card_id"], float(row["price"])))
    return Found(tuple(rows), dict(sorted(left_out.items())))


def _row(
    item: Mapping[str, str], cards: Mapping[str, Card], today: date
) -> tuple[dict[str, str] | None, str]:
    """The row for one item, or why there is none."""
    gpus, memory = _number(item.get("gpu_count")), _number(item.get("gpu_memory"))
    price, name = _number(item.get("price")), item.get("gpu_name", "")
    if not gpus or not name:
        return None, "no_gpu"
    if price is None or price <= 0:
        return None, "price"
    card = card_of(name, memory, cards)
    if card is None:
        return None, "card"
    provider = item.get("provider", "unnamed").lower()
    ram, disk = _number(item.get("memory")), _number(item.get("disk_size"))
    vcpus = _number(item.get("cpu"))
    return {
        "provider": _PROVIDERS.get(provider, provider),
        "card_id": card,
        "gpus": f"{gpus:.0f}",
        "price": f"{price:g}",
        "currency": "USD",
        "per": "hour",
        "spot": "yes" if item.get("spot", "").lower() == "true" else "no",
        "vcpus": f"{vcpus:.0f}" if vcpus and vcpus >= 1 else "",
        "ram_gib": f"{ram:g}" if ram else "",
        "disk_gb_included": f"{disk:g}" if disk else "",
        "region": item.get("location", ""),
        "as_of": today.isoformat(),
        "source": say("offers-gpuhunt-source", {"day": today.isoformat()}),
        "notes": item.get("instance_name", ""),
    }, ""


def card_of(name: str, memory_gb: float | None, cards: Mapping[str, Card]) -> str | None:
    """The id of the card that gpuhunt calls ``name`` with so much memory; None where the catalog has none."""
    size = None if memory_gb is None else round(memory_gb)
    if size is not None and (known := _SLOWEST.get((name.lower(), size))) in cards:
        return known
    for asked in (f"{name} {size}GB", name):
        try:
            card = find(cards, asked)
        except UnknownCard:
            continue
        listed = card.memory_marketing_gb
        if memory_gb and listed and abs(listed - memory_gb) > _MEMORY_SHARE * listed:
            continue
        return card.id
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
