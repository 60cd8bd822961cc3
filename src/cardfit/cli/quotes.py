"""Flags for prices, rates and sizes as people write them: "500Mbit", "3mo", "286EUR".

In: the fields of a model of such figures (`RentQuestion`, `Session`) with their flags. Out: a class of flags, all open
texts, and the way back to fields in base units. What a figure may be at most is the model's business.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from cardfit.cli.flags import outputs_per_month
from cardfit.errors import BadRequest
from cardfit.messages import say
from cardfit.offers.market import CURRENCIES
from cardfit.units import parse_bytes, parse_months, parse_rate

_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}


def flags_of(name: str, flags: Mapping[str, str], module: str) -> type:
    """A dataclass with an open text for every field of ``flags``; the words are read by `fields_of`."""
    fields: list[tuple[str, Any, Any]] = []
    for field, flag in flags.items():
        inner = bool if field == "private" else str
        parameter = Parameter(
            name=flag,
            help=say(f"help-rent-{field}"),
            show_default=False,
            negative=(),
            allow_leading_hyphen=inner is str,  # a price below zero is refused in words
        )
        annotation = Annotated[inner | None, parameter]  # type: ignore[valid-type]
        fields.append((field, annotation, dataclasses.field(default=None)))
    own = {"__module__": module}
    return dataclasses.make_dataclass(name, fields, frozen=True, kw_only=True, namespace=own)


def fields_of(flags: object, names: Mapping[str, str]) -> dict[str, object]:
    """The fields that were given, in base units. Raises BadRequest naming the flag that cannot be read."""
    given = {name: text for name, text in vars(flags).items() if text is not None}
    fields: dict[str, object] = {}
    currencies: dict[str, str] = {}
    for name, text in given.items():
        if name in _READ:
            fields[name] = _READ[name](names[name], text)
        elif name in _AMOUNTS:
            fields[name], currency = money(names[name], text)
            if currency is not None:
                currencies.setdefault(currency, f"{names[name]} {text}")
        else:
            fields[name] = text
    asked = fields.get("currency")
    if isinstance(asked, str):
        fields["currency"] = asked = asked.upper()
        currencies.setdefault(asked, f"--currency {asked}")
    if len(currencies) > 1:
        one, other, *_ = currencies.values()
        raise BadRequest("rent-two-currencies", one=one, other=other)
    if currencies:
        fields["currency"] = next(iter(currencies))
    return fields


def money(flag: str, text: str) -> tuple[float, str | None]:
    """The amount, and its currency where it is written beside it. Raises BadRequest.

    >>> money("--monthly", "286"), money("--monthly", "286 EUR"), money("--hourly", "$0.45")
    ((286.0, None), (286.0, 'EUR'), (0.45, 'USD'))
    """
    plain, currency = text.strip(), None
    if plain[:1] in _SIGNS:
        plain, currency = plain[1:].strip(), _SIGNS[plain[0]]
    elif plain[-3:].isalpha() and plain[:1].isdigit():
        plain, currency = plain[:-3].strip(), plain[-3:].upper()
        if currency not in CURRENCIES:
            raise BadRequest(
                "rent-bad-currency", flag=flag, asked=text, allowed=", ".join(CURRENCIES)
            )
    return _number(flag, plain, f"{flag} 286, {flag} 286EUR"), currency


def _number(flag: str, text: str, example: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadRequest("rent-bad-number", flag=flag, asked=text, example=example) from None


def _sized(parse: Callable[[str], float], example: str) -> Callable[[str, str], float]:
    """A reader of a number with a unit."""

    def read(flag: str, text: str) -> float:
        try:
            return parse(text)
        except ValueError:
            raise BadRequest(
                "rent-bad-unit", flag=flag, asked=text, example=f"{flag} {example}"
            ) from None

    return read


def _suffixed(endings: tuple[str, ...], example: str) -> Callable[[str, str], float]:
    """A reader of a number that may have one of ``endings``."""

    def read(flag: str, text: str) -> float:
        plain = text.strip()
        for ending in endings:
            plain = plain.removesuffix(ending)
        return _number(flag, plain.strip(), f"{flag} {example}")

    return read


def _outputs(flag: str, text: str) -> float:
    number = outputs_per_month(text)
    assert number is not None
    return number


def _library(flag: str, text: str) -> float:
    """A size, or that of the models folder in a file that ``cardfit comfy inventory --json`` wrote."""
    if text.endswith(".json"):
        from cardfit.comfy.inventory import library_bytes

        return library_bytes(Path(text))
    return _sized(parse_bytes, "400GB")(flag, text)


_READ: dict[str, Callable[[str, str], object]] = {
    "down_bytes_per_s": _sized(parse_rate, "500Mbit"),
    "library_bytes": _library,
    "term_months": _sized(parse_months, "3mo"),
    "own_life_months": _sized(parse_months, "3y"),
    "own_power_w": _suffixed(("W", "w"), "350W"),
    "power_w": _suffixed(("W", "w"), "350W"),
    "output_bytes": _sized(parse_bytes, "30MB"),
    "idle_hours": _suffixed(("h",), "2"),
    "stopped_hours": _suffixed(("h",), "700"),
    "vat_percent": _suffixed(("%",), "21"),
    "boot_s": _suffixed(("s",), "120"),
    "seconds": _suffixed(("s",), "900"),
    "hours_per_week": _suffixed(("h",), "20"),
    "sessions_per_week": _suffixed((), "5"),
    "keep_rate": _suffixed((), "0.8"),
    "outputs_per_month": _outputs,
}
_AMOUNTS = frozenset(
    {
        *("monthly", "hourly", "disk_per_gb_month", "disk_stopped_per_gb_month"),
        *("api_price", "own_price", "energy_price_per_kwh", "egress_per_gb"),
    }
)
