"""Rows for a README as Markdown between their markers, and the verdict on rows that a page has.

In: a `Readme` or a `ReadmeCheck`. Out: lines.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.plan.readme import COLUMNS, END, Readme, ReadmeCheck, marker
from cardfit.report.check import markdown_table


def lines(found: Readme) -> list[str]:
    """The block to paste."""
    titles = [say(f"readme-col-{column}") for column in COLUMNS]
    table = markdown_table(titles, [list(row.cells) for row in found.rows])
    remarks = [note.text for note in found.notes]
    return [marker(found.question), "", *table, "", *remarks, "", END]


def verified(found: ReadmeCheck) -> list[str]:
    """Every cell that moved, or that none has."""
    if found.kept:
        return [say("readme-kept", {"blocks": found.blocks})]
    return [each.text.text for each in found.moved]
