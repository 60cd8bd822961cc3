"""What records say against predictions, kept by `cardfit calibrate` and used from the next question on.

In: ``calibration.json`` in the user's data folder. Out: a `Correction` of times for a card, the context that was seen
on it, or ``None`` where nothing was measured. A file that cannot be read counts as none; `load` says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, TypedDict

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cardfit.errors import BadFile, Note
from cardfit.predict.efficiency import Spread, spread
from cardfit.predict.timing import Correction
from cardfit.records.files import data_folder
from cardfit.units import MIB

SCHEMA = "cardfit.calibration/1"
NAME = "calibration.json"
MAX_BYTES = 4 * MIB
ENOUGH = 5  # runs from which their own spread stands for the band


class ContextBytes(TypedDict, total=False):
    """The context of a card, as `cards.usable` takes it."""

    context_bytes_low: int
    context_bytes_likely: int
    context_bytes_high: int


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Factor(_Frozen):
    """Measured over predicted: the median of ``n`` runs, and the lowest and highest of what is left after it."""

    factor: Annotated[float, Field(gt=0)]
    low: Annotated[float, Field(gt=0, description="least measured over corrected prediction")]
    high: Annotated[float, Field(gt=0, description="most measured over corrected prediction")]
    n: Annotated[int, Field(ge=1)]


class CardFactors(_Frozen):
    """One card: time in all, by stage and by kind of kernel, allocated bytes, and the context in bytes."""

    time: Factor | None = None
    stages: dict[str, Factor] = {}
    kinds: dict[str, Factor] = {}
    allocated: Factor | None = None
    reserved: Factor | None = None
    context_low_bytes: int | None = None
    context_likely_bytes: int | None = None
    context_high_bytes: int | None = None


class Calibration(_Frozen):
    """Factors by card, and the latest of the records behind them."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    created: str
    records: tuple[str, ...]
    cards: dict[str, CardFactors]
    left_out: dict[str, int] = {}


def path() -> Path:
    """Where the calibration lies."""
    return data_folder() / NAME


def load(file: Path | None = None) -> Calibration | None:
    """The calibration; ``None`` where there is none. Raises BadFile for a file that is none."""
    where = file or path()
    try:
        with where.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadFile(
            "calibration-bad", path=str(where), why=error.strerror or str(error)
        ) from error
    try:
        return Calibration.model_validate_json(content)
    except ValidationError as error:
        why = error.errors(include_url=False)[0]["msg"]
        raise BadFile("calibration-bad", path=str(where), why=why) from error


def correction(card: str) -> Correction | None:
    """What the user's own runs on ``card`` say of further times there; ``None`` where there are none."""
    found = _card(card)
    if found is None or found.time is None:
        return None
    time = found.time
    shipped = spread()
    # a few runs of one kind say little about others: the shipped band stays until there are enough
    within = Spread(time.low, time.high, time.n) if time.n >= ENOUGH else shipped
    return Correction(
        time.factor, within, {name: each.factor for name, each in found.kinds.items()}
    )


def context(card: str) -> ContextBytes:
    """The context that was seen on ``card``, as arguments of `cards.usable`; empty where it was not."""
    found = _card(card)
    if found is None or found.context_likely_bytes is None:
        return {}
    return {
        "context_bytes_low": found.context_low_bytes or found.context_likely_bytes,
        "context_bytes_likely": found.context_likely_bytes,
        "context_bytes_high": found.context_high_bytes or found.context_likely_bytes,
    }


def notes(cards: Iterable[str]) -> tuple[Note, ...]:
    """What is to be said of times that rest on the user's own runs."""
    found = []
    for card in cards:
        own = _card(card)
        if own is not None and own.time is not None:
            args: dict[str, object] = {"card": card, "n": own.time.n, "factor": own.time.factor}
            found.append(Note("plan-calibrated", args))
    return tuple(found)


def _card(card: str) -> CardFactors | None:
    where = path()
    try:
        stamp = where.stat()
    except OSError:
        return None
    found = _read(where, stamp.st_mtime_ns, stamp.st_size)
    return None if found is None else found.cards.get(card)


@cache
def _read(where: Path, _changed: int, _size: int) -> Calibration | None:
    try:
        return load(where)
    except BadFile:
        return None
