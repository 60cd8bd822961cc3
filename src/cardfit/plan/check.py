"""The verdict on a budget: each request against its limits, and what it takes too much.

In: the row that a plan gave for a request, and the limits. Out: a `Check` (schema ``cardfit.check/1``). A limit that
cannot be checked (seconds that nobody can tell) is not kept: a check never passes for want of a figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.plan.answer import Answer, CardRow, Money, Said, Seconds, Verdict
from cardfit.plan.offers import money_text
from cardfit.request import ExactRequest, Settings
from cardfit.request.budget import BudgetedRequest
from cardfit.units import human_bytes, human_seconds

SCHEMA: Literal["cardfit.check/1"] = "cardfit.check/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CheckRow(_Frozen):
    """One request of the budget: what it takes beside what it may, and every limit that it breaks."""

    number: int
    name: str
    request: ExactRequest
    card: str | None
    verdict: Verdict
    settings: Settings | None
    settings_text: str
    limiting_stage: str | None
    device_bytes: int | None
    max_peak_bytes: int | None
    seconds: Seconds | None
    max_seconds: float | None
    cost_per_output: Money | None
    max_cost: Money | None
    kept: bool
    violations: tuple[Said, ...]


class Check(_Frozen):
    """The whole verdict; ``kept`` when every request keeps every limit."""

    schema_: Annotated[Literal["cardfit.check/1"], Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    kept: bool
    rows: tuple[CheckRow, ...]
    notes: tuple[Said, ...]


def make_check(rows: Sequence[CheckRow], versions: dict[str, str], notes: Sequence[Said]) -> Check:
    """The verdict over all ``rows``."""
    return Check(
        versions=versions, kept=all(row.kept for row in rows), rows=tuple(rows), notes=tuple(notes)
    )


def check_row(number: int, each: BudgetedRequest, answer: Answer) -> CheckRow:
    """One request against its limits; the first card of ``answer`` has ``max_peak`` as its size where that is given."""
    row = answer.cards[0]
    violations = [
        *_memory(each, row),
        *_seconds(each, row),
        *_cost(each, row),
    ]
    cost = each.max_cost
    return CheckRow(
        number=number,
        name=each.name or _name(answer.request),
        request=answer.request,
        card=None if each.card is None else row.card,
        verdict=row.verdict,
        settings=row.settings,
        settings_text=row.settings_text,
        limiting_stage=row.limiting_stage,
        device_bytes=row.device_bytes,
        max_peak_bytes=each.max_peak_bytes,
        seconds=row.seconds,
        max_seconds=each.max_seconds,
        cost_per_output=row.cost_per_output,
        max_cost=None if cost is None else Money(amount=cost.amount, currency=cost.currency),
        kept=not violations,
        violations=tuple(violations),
    )


def _name(request: ExactRequest) -> str:
    frames = f" {request.num_frames}" if request.num_frames > 1 else ""
    return f"{request.model} {request.width}x{request.height}{frames}"


def _memory(each: BudgetedRequest, row: CardRow) -> list[Said]:
    if row.verdict == "fits" or (row.verdict == "tight" and each.allow_tight):
        return []
    if row.device_bytes is None:
        return [row.why]
    size = each.max_peak_bytes
    within = human_bytes(size) if size is not None and each.card is None else row.name
    args = {"limit": within, "settings": row.settings_text, "why": row.why.text}
    if row.verdict == "tight":
        return [Said.of("check-tight", **args)]
    return [Said.of("check-memory", **args)]


def _seconds(each: BudgetedRequest, row: CardRow) -> list[Said]:
    if each.max_seconds is None:
        return []
    limit = human_seconds(each.max_seconds)
    if row.seconds is None:
        return [Said.of("check-no-seconds", limit=limit)]
    if row.seconds.likely <= each.max_seconds:
        return []
    return [Said.of("check-seconds", seconds=human_seconds(row.seconds.likely), limit=limit)]


def _cost(each: BudgetedRequest, row: CardRow) -> list[Said]:
    most = each.max_cost
    if most is None:
        return []
    limit, cost = money_text(most.amount, most.currency), row.cost_per_output
    if cost is None:
        return [Said.of("check-no-cost", limit=limit)]
    found = money_text(cost.amount, cost.currency)
    if cost.currency != most.currency:
        return [Said.of("check-currency", cost=found, limit=limit)]
    return [] if cost.amount <= most.amount else [Said.of("check-cost", cost=found, limit=limit)]
