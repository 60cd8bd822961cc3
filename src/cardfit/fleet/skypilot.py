"""A task for SkyPilot: the cards of an answer by SkyPilot's names, a disk that holds the model, a sample to measure.

In: an `Answer`. Out: a `Task`: the mapping that SkyPilot reads from YAML, what each card is expected to cost, and the
cards that were left out, each with a reason. Nothing is launched. SkyPilot takes the cheapest hour of what it is
offered, which may be the dearest output: a card whose output costs more than `DEAREST` times the least is left out.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cardfit.cards import table
from cardfit.errors import BadRequest
from cardfit.fleet.sample import run_lines, setup_lines
from cardfit.messages.said import Said
from cardfit.plan.answer import Answer, CardRow
from cardfit.plan.offers import hourly, money_text
from cardfit.plan.target import short_name
from cardfit.units import GIB, human_seconds

COLUMNS = ("card_id", "accelerator", "source", "as_of")
SHIPPED = Path(__file__).with_name("data") / "skypilot.csv"
DEAREST = 2.0
IDLE_MINUTES = 10  # then the machine is taken down
DISK_SHARE = 1.25  # of the model's files and outputs: a second revision, caches
DISK_REST_BYTES = 40 * 10**9  # system, CUDA libraries and the environment of the sample
RAM_SHARE = 1.1  # of the host RAM that the settings likely take
RUNS = 2  # of the sample: a first and a steady one


@dataclass(frozen=True, slots=True)
class Task:
    """``config`` as `sky.Task.from_yaml_config` takes it; what stands above it as comments."""

    config: dict[str, Any]
    cards: tuple[Said, ...]
    left_out: tuple[Said, ...]


@cache
def names() -> dict[str, tuple[str, ...]]:
    """SkyPilot's names of each card, by card id."""
    found: dict[str, tuple[str, ...]] = {}
    for row in table.read(SHIPPED, columns=COLUMNS, required=COLUMNS):
        card = row.text("card_id")
        found[card] = (*found.get(card, ()), row.text("accelerator"))
    return found


def task_of(answer: Answer) -> Task:
    """The task for ``answer``. Raises BadRequest where no card that fits has a name that SkyPilot knows."""
    kept, left_out = _chosen(answer)
    if not kept:
        raise BadRequest("skypilot-no-card", model=answer.model.id)
    seen, any_of = set[str](), []
    for row in kept:
        for name in names()[row.card]:
            if name not in seen:
                seen.add(name)
                any_of.append({"accelerators": {name: 1}, **_memory(row)})
    config = {
        "name": "cardfit-" + re.sub(r"[^a-z0-9]+", "-", answer.model.id.lower()).strip("-"),
        "resources": {
            "disk_size": disk_gb(kept),
            "autostop": {"idle_minutes": IDLE_MINUTES, "down": True},
            "any_of": any_of,
        },
        "setup": "\n".join(setup_lines(answer)) + "\n",
        "run": "\n".join(run_lines(answer)) + "\n",
    }
    return Task(config, tuple(expected(row) for row in kept), left_out)


def _chosen(answer: Answer) -> tuple[list[CardRow], tuple[Said, ...]]:
    """The rows to offer, least cost of an output first, and why the other cards that fit are left out."""
    fitting = [row for row in answer.cards if row.verdict == "fits"]
    named = [row for row in fitting if row.card in names()]
    out = {"skypilot-no-name": [row.name for row in fitting if row.card not in names()]}
    costs = [row.cost_per_output for row in named if row.cost_per_output is not None]
    kept = [(0.0, row) for row in named]
    if costs:
        money = costs[0].currency
        least = min(each.amount for each in costs if each.currency == money)
        known = [
            (row.cost_per_output.amount, row)
            for row in named
            if row.cost_per_output is not None and row.cost_per_output.currency == money
        ]
        kept = [(amount, row) for amount, row in known if amount <= DEAREST * least]
        out["skypilot-dear"] = [row.name for amount, row in known if amount > DEAREST * least]
        out["skypilot-no-cost"] = [
            row.name for row in named if row.card not in {each.card for _, each in known}
        ]
    said = [
        Said.of(code, cards=", ".join(dict.fromkeys(map(short_name, cards))), times=DEAREST)
        for code, cards in out.items()
        if cards
    ]
    return [row for _, row in sorted(kept, key=lambda each: (each[0], each[1].card))], tuple(said)


def _memory(row: CardRow) -> dict[str, str]:
    """The least host RAM, as SkyPilot writes it."""
    if not row.host_bytes:
        return {}
    return {"memory": f"{math.ceil(RAM_SHARE * row.host_bytes / GIB)}+"}


def disk_gb(rows: list[CardRow]) -> int:
    """The disk in GB that holds the model, what a run leaves and the environment.

    >>> disk_gb([])
    40
    """
    most = max((row.disk_bytes or 0 for row in rows), default=0)
    return math.ceil((DISK_SHARE * most + DISK_REST_BYTES) / 1e9)


def expected(row: CardRow) -> Said:
    """What one card is expected to take and cost."""
    args: dict[str, object] = {"card": short_name(row.name), "settings": row.settings_text}
    if row.seconds is None or row.offer is None or row.cost_per_output is None:
        return Said.of("skypilot-card", **args)
    per_hour = hourly(row.offer)
    sample = RUNS * row.seconds.likely / 3600 * per_hour
    currency = row.offer.price.currency
    return Said.of(
        "skypilot-card-cost",
        **args,
        seconds=human_seconds(row.seconds.likely),
        price=money_text(per_hour, currency),
        provider=row.offer.provider,
        as_of=row.offer.as_of,
        cost=money_text(row.cost_per_output.amount, row.cost_per_output.currency),
        sample=money_text(sample, currency),
    )
