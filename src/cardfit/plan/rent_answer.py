"""The answer to `cardfit rent`: the saved schema, field by field.

Money is amount and currency, hours and months are plain numbers with the unit in the key, unknown is None with a
sentence that says why. Nothing here computes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.messages import say
from cardfit.plan.answer import CostLine, LineName, Money, Said
from cardfit.plan.rent_question import RentQuestion

SCHEMA = "cardfit.rent/1"
Way = Literal["monthly", "hourly_stop", "hourly_destroy", "api", "own"]


def way_words(way: Way) -> str:
    """A way as a sentence names it."""
    return say(f"rent-way-{way}")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Use(_Frozen):
    """How the machine is used in a month: hours it exists, hours it generates, sessions, accepted outputs."""

    hours_per_month: float | None
    generating_hours_per_month: float | None
    sessions_per_month: float | None
    outputs_per_month: float | None


class Option(_Frozen):
    """One way to get the work done. ``why_not`` says why it has no cost; ``not_counted`` names unknown lines.

    ``hours_lost_per_month`` is what downloading again takes; ``upfront`` is what must be paid before the first output.
    """

    way: Way
    lines: tuple[CostLine, ...]
    per_month: Money | None
    over_term: Money | None
    per_output: Money | None
    upfront: Money | None
    hours_exists_per_month: float | None
    hours_lost_per_month: float | None
    not_counted: tuple[LineName, ...]
    why_not: Said | None


class BreakEven(_Frozen):
    """Where ``one`` begins to be cheaper than ``other``: in hours the machine exists, in outputs, or in months.

    All three None: it never does, or always does; ``text`` says which.
    """

    one: Way
    other: Way
    hours_per_month: float | None
    outputs_per_month: float | None
    months: float | None
    text: Said


class Curve(_Frozen):
    """Cost of a month as a straight line over the hours that the machine exists in it: ``at_zero`` and ``at_full``."""

    way: Way
    at_zero: float
    at_full: float


class RentVerdict(_Frozen):
    """What to do. ``rent`` is False for "don't rent", None where the figures do not decide it."""

    choice: Way | None
    rent: bool | None
    text: Said
    why: Said
    saves_per_month: Money | None
    runner_up: Way | None


class Rent(_Frozen):
    """The whole comparison. ``full_hours`` is the length of a month, the end of the curves."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    question: RentQuestion
    use: Use
    options: tuple[Option, ...]
    break_even: tuple[BreakEven, ...]
    verdict: RentVerdict
    curves: tuple[Curve, ...]
    full_hours: float
    daily: Said | None
    notes: tuple[Said, ...]
