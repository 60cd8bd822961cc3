"""The command `rent`: quotes and a use in, bills, break-evens and a verdict out.

In: flags, one for each field of `RentQuestion`, as people write them ("500Mbit", "3mo", "400GB"). Out: an exit code.
The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cardfit.cli import quotes
from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say
from cardfit.plan.rent_question import FLAGS, RentQuestion, question_of

_CHARTS = (".png", ".svg", ".html")


if TYPE_CHECKING:

    class RentFlags:
        """Flags of the question."""

else:
    RentFlags = quotes.flags_of("RentFlags", FLAGS, __name__)

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
    from cardfit import verbs
    from cardfit.report import dump, out
    from cardfit.report import rent as page

    if chart is not None:
        _check_chart(chart, force)
    found = verbs.rent(question_from(question), cards_file=cards_file, offers_file=offers_file)
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
    return question_of(quotes.fields_of(flags, FLAGS))
