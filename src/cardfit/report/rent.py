"""The page of `cardfit rent`: the verdict first, then the bills, the break-evens and what a day costs.

In: a `Rent` and a `Style`. Out: lines; the notes go to stderr.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardfit.messages import number, say
from cardfit.plan.answer import Money
from cardfit.plan.rent_answer import Option, Rent, way_words
from cardfit.report import words
from cardfit.report.grid import Cell, Column, Row, Table, grid, hanging
from cardfit.report.style import Style

_LABEL = 12


def lines(found: Rent, style: Style) -> list[str]:
    """The page."""
    verdict, colour = found.verdict, {True: "green", False: "amber", None: "dim"}
    page = [style.paint(verdict.text.text, colour[verdict.rent])]
    page += hanging(say("rent-why"), verdict.why.text, style.width, _LABEL)
    use = found.use
    if use.hours_per_month is not None:
        args = {
            "hours": f"{use.hours_per_month:.0f}",
            "outputs": _count(use.outputs_per_month),
            "sessions": _count(use.sessions_per_month),
        }
        page += ["", say("rent-use", args).replace(" · ", style.dot)]
    if found.options:
        page += ["", *_table(found, style)]
    if found.break_even:
        page.append("")
    for at, pair in enumerate(found.break_even):
        label = say("rent-break-even") if at == 0 else ""
        page += hanging(label, pair.text.text, style.width, _LABEL)
    if found.daily is not None:
        page += ["", *hanging(say("rent-daily"), found.daily.text, style.width, _LABEL)]
    return page


def notes(found: Rent, style: Style) -> list[str]:
    """What should be said beside it, one line each."""
    return [
        line
        for note in found.notes
        for line in hanging(say("note"), note.text, style.width, _LABEL)
    ]


@dataclass(frozen=True, slots=True)
class Told:
    """The comparison as a page shows it."""

    verdict: str
    why: str
    table: Table
    break_even: tuple[str, ...]
    notes: tuple[str, ...]


def told(found: Rent) -> Told:
    """``found`` in words."""
    return Told(
        verdict=found.verdict.text.text,
        why=found.verdict.why.text,
        table=_listed(found),
        break_even=tuple(pair.text.text for pair in found.break_even),
        notes=tuple(note.text for note in found.notes),
    )


def _table(found: Rent, style: Style) -> list[str]:
    shown = _listed(found)
    return grid(shown.columns, shown.rows, style, indent=0)


def _listed(found: Rent) -> Table:
    columns = [
        Column(say("rent-col-way"), least=18),
        Column(say("rent-col-month"), right=True),
        Column(say("rent-col-term", {"months": f"{found.question.term_months:g}"}), right=True),
        Column(say("rent-col-output"), right=True),
        Column(say("rent-col-lost"), right=True),
        Column(say("rent-col-made-of"), least=20),
    ]
    return Table(columns, [_row(option, found) for option in found.options])


def _row(option: Option, found: Rent) -> Row:
    name = way_words(option.way)
    if option.why_not is not None:
        return [Cell(name), "-", "-", "-", "-", Cell(option.why_not.text, "dim")]
    lost = option.hours_lost_per_month
    chosen = "green" if option.way == found.verdict.choice else ""
    return [
        Cell(name, chosen),
        _money(option.per_month),
        _money(option.over_term),
        "-" if option.per_output is None else _small(option.per_output),
        "-" if lost is None else number(f"{lost:.1f}"),
        Cell(_made_of(option), "dim"),
    ]


def _made_of(option: Option) -> str:
    parts = [say(f"rent-line-{line.name}", {"money": _money(line.amount)}) for line in option.lines]
    if option.upfront is not None:
        parts.append(say("rent-upfront", {"money": _money(option.upfront)}))
    return ", ".join(parts)


def _money(amount: Money | None) -> str:
    if amount is None:
        return say("rent-not-known")
    return words.money(amount)


def _small(amount: Money) -> str:
    """An amount below a tenth with four digits: an output may cost a fraction of a cent."""
    if amount.amount >= 0.1:
        return _money(amount)
    return say(
        "rent-small", {"amount": number(f"{amount.amount:.4f}"), "currency": amount.currency}
    )


def _count(number: float | None) -> str:
    return "?" if number is None else f"{number:.0f}"
