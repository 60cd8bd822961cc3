"""`RentQuestion`: the quotes and the use that `cardfit rent` compares, checked field by field.

In: fields as flags, Python or a web form give them. Out: a frozen question in base units, or a BadRequest that names
the flag, what was given and what is allowed. Prices are in one currency and exclude VAT, except what a card of one's
own costs. Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from cardfit.errors import BadRequest
from cardfit.plan.figures import check_figures, read_fields
from cardfit.plan.offers import HOURS_PER_MONTH


class RentQuestion(BaseModel):
    """Quotes in ``currency``, the use of the machine, and what lies on its disk; None is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: str = "USD"
    card: str | None = None
    provider: str | None = None
    monthly: float | None = None
    hourly: float | None = None
    disk_per_gb_month: float | None = None
    disk_stopped_per_gb_month: float | None = None
    down_bytes_per_s: float | None = None
    library_bytes: int | None = None
    boot_s: float | None = None
    hours_per_week: float | None = None
    sessions_per_week: float | None = None
    outputs_per_month: float | None = None
    seconds: float | None = None
    keep_rate: float = 1.0
    term_months: float = 1.0
    vat_percent: float = 0.0
    api_price: float | None = None
    own_price: float | None = None
    own_power_w: float | None = None
    own_life_months: float | None = None
    energy_price_per_kwh: float | None = None
    private: bool = False


FLAGS: dict[str, str] = {
    "currency": "--currency",
    "card": "--card",
    "provider": "--provider",
    "monthly": "--monthly",
    "hourly": "--hourly",
    "disk_per_gb_month": "--disk",
    "disk_stopped_per_gb_month": "--disk-stopped",
    "down_bytes_per_s": "--down",
    "library_bytes": "--library",
    "boot_s": "--boot",
    "hours_per_week": "--hours-per-week",
    "sessions_per_week": "--sessions-per-week",
    "outputs_per_month": "--outputs",
    "seconds": "--seconds",
    "keep_rate": "--keep",
    "term_months": "--term",
    "vat_percent": "--vat",
    "api_price": "--api-price",
    "own_price": "--own-price",
    "own_power_w": "--own-power",
    "own_life_months": "--own-life",
    "energy_price_per_kwh": "--energy-price",
    "private": "--private",
}


def question_of(fields: Mapping[str, object]) -> RentQuestion:
    """The question with ``fields``. Raises BadRequest naming the first that is unknown, wrong or absurd."""
    question = read_fields(RentQuestion, fields)
    check(question)
    return question


def check(question: RentQuestion) -> None:
    """Raise BadRequest for the first figure that cannot be meant."""
    check_figures(question, FLAGS)
    _check_together(question)


def _check_together(question: RentQuestion) -> None:
    monthly, hourly = question.monthly, question.hourly
    if monthly is not None and hourly is not None and monthly <= hourly:
        raise BadRequest("rent-swapped", monthly=f"{monthly:g}", hourly=f"{hourly:g}")
    given = (monthly, hourly, question.api_price, question.own_price, question.card)
    if all(each is None for each in given) and not question.private:
        raise BadRequest("rent-no-price")
    runs = (question.outputs_per_month or 0) / question.keep_rate
    hours = runs * (question.seconds or 0) / 3600
    if hours > HOURS_PER_MONTH:
        raise BadRequest("rent-too-much", hours=f"{hours:.0f}", most=HOURS_PER_MONTH)
