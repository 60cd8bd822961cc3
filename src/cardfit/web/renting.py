"""By the hour or by the month, on the page of one card: the few figures that a visitor may change.

In: the row of the card, and what was written into the fields. Out: a `RentQuestion`, and the fields as the page shows
them. What the row knows (seconds, bytes on disk, its offer) is taken from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cardfit.errors import BadRequest, CardfitError
from cardfit.plan.answer import CardRow
from cardfit.plan.offers import hourly
from cardfit.plan.rent_question import RentQuestion, question_of

PREFIX = "rent_"
_USUAL_HOURS = 20.0
NAMES = ("hours_per_week", "hourly", "monthly", "outputs_per_month", "own_price")
_FLAGS = {"hourly": "--hourly", "monthly": "--monthly"}


@dataclass(frozen=True, slots=True)
class Field:
    """One figure with what was written, or what is known, and what is wrong with it."""

    name: str
    value: str
    error: str = ""


def split(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The fields of this form, and the query of the page around it."""
    mine, others = {}, []
    for name, value in pairs:
        if name.removeprefix(PREFIX) in NAMES and name.startswith(PREFIX):
            mine[name.removeprefix(PREFIX)] = value.strip()[:40]
        else:
            others.append((name, value))
    return mine, others


def question(row: CardRow, mine: Mapping[str, str]) -> RentQuestion:
    """What is compared. Raises BadRequest naming the field."""
    known: dict[str, object] = {
        "card": row.card,
        **{name: _number(name, text) for name, text in _known(row, mine).items()},
    }
    if row.offer is not None:
        known["currency"] = row.offer.price.currency
    if row.seconds is not None:
        known["seconds"] = row.seconds.likely
    if row.disk_bytes is not None:
        known["library_bytes"] = row.disk_bytes
    if "own_price" in known:
        known["own_life_months"] = 36.0
    return question_of(known)


def fields(row: CardRow, mine: Mapping[str, str], error: CardfitError | None) -> list[Field]:
    """The form."""
    wrong = "" if error is None else str(error.args_.get("field") or error.args_.get("flag") or "")
    known = _known(row, mine)
    return [
        Field(name, known.get(name, ""), str(error) if _meant(name, wrong) else "")
        for name in NAMES
    ]


def _meant(name: str, wrong: str) -> bool:
    return bool(wrong) and name == wrong.removeprefix("--").replace("-", "_")


def _known(row: CardRow, mine: Mapping[str, str]) -> dict[str, str]:
    """What was written, else what the row knows; a field that was emptied is left out."""
    usual = {"hours_per_week": f"{_USUAL_HOURS:g}"}
    if row.offer is not None:
        name = "hourly" if row.offer.period == "hour" else "monthly"
        amount = hourly(row.offer) if name == "hourly" else row.offer.price.amount
        usual[name] = f"{amount:.4g}"
    return {name: text for name, text in {**usual, **mine}.items() if text}


def _number(field: str, text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise BadRequest("field-number", where="", field=field, found=repr(text)) from None
