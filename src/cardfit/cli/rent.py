"""The command `rent`: quotes and a use in, bills, break-evens and a verdict out.

In: flags, one for each field of `RentQuestion`, as people write them ("500Mbit", "3mo", "400GB"). Out: an exit code.
The docstring is the help that a person reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cardfit.cli.flags import outputs_per_month
from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say
from cardfit.offers.market import CURRENCIES
from cardfit.plan.rent_question import FLAGS, RentQuestion, question_of
from cardfit.units import parse_bytes, parse_months, parse_rate

_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}
_CHARTS = (".png", ".svg", ".html")


def _flags() -> type:
    """A dataclass with an open text for every field of the question; the words are read by `question_from`."""
    fields: list[tuple[str, Any, Any]] = []
    for name, flag in FLAGS.items():
        inner = bool if name == "private" else str
        parameter = Parameter(
            name=flag,
            help=say(f"help-rent-{name}"),
            show_default=False,
            negative=(),
            allow_leading_hyphen=inner is str,  # a price below zero is refused in words
        )
        annotation = Annotated[inner | None, parameter]  # type: ignore[valid-type]
        fields.append((name, annotation, dataclasses.field(default=None)))
    own = {"__module__": __name__}
    return dataclasses.make_dataclass("RentFlags", fields, frozen=True, kw_only=True, namespace=own)


if TYPE_CHECKING:

    class RentFlags:
        """Flags of the question."""

else:
    RentFlags = _flags()

_NONE = RentFlags()


def rent(
    *,
    question: Annotated[RentFlags, Parameter(name="*")] = _NONE,
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    chart: Annotated[Path | None, Parameter(help=say("help-rent-chart"))] = None,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """By the month, by the hour, from an API or not at all: the bills, the break-even in hours and the reason.

    Try:

    cardfit rent --monthly 286 --hourly 0.45 --disk 0.07 --library 400GB --down 500Mbit --hours-per-week 20

    cardfit rent --card rtx-4090 --outputs 40/month --seconds 900 --api-price 0.40

    cardfit rent --monthly 286 --own-price 1800 --own-power 350W --own-life 3y --energy-price 0.30 --hours-per-week 40
    """
    from cardfit import api
    from cardfit.report import dump, out
    from cardfit.report import rent as page

    if chart is not None:
        _check_chart(chart, force)
    found = api.rent(question_from(question), cards_file=cards_file, offers_file=offers_file)
    style = out.style_of()
    if chart is not None:
        from cardfit.report import rent_chart

        rent_chart.write(found, chart)
        out.error(say("saved", {"file": chart}))
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, style))
        out.remarks(page.notes(found, style))
    return 0


def _check_chart(file: Path, force: bool) -> None:
    if file.suffix.lower() not in _CHARTS:
        raise BadRequest("rent-bad-chart", asked=file)
    if file.exists() and not force:
        raise BadFile("rent-chart-exists", file=file)


def question_from(flags: RentFlags) -> RentQuestion:
    """The question that the flags ask. Raises BadRequest naming the flag that cannot be read."""
    given = {name: text for name, text in vars(flags).items() if text is not None}
    fields: dict[str, object] = {}
    currencies: dict[str, str] = {}
    for name, text in given.items():
        if name in _READ:
            fields[name] = _READ[name](FLAGS[name], text)
        elif name in _AMOUNTS:
            fields[name], currency = money(FLAGS[name], text)
            if currency is not None:
                currencies.setdefault(currency, f"{FLAGS[name]} {text}")
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
    return question_of(fields)


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
                "rent-bad-number", flag=flag, asked=text, example=f"{flag} {example}"
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
        *("api_price", "own_price", "energy_price_per_kwh"),
    }
)
