"""The page of a new library entry: its facts, its components, and its dry run stage by stage.

In: an `Added`. Out: lines.
"""

from __future__ import annotations

from cardfit.plan.added import Added
from cardfit.report import plan, tables
from cardfit.report.style import Style


def lines(found: Added, style: Style) -> list[str]:
    """The entry as `cardfit models` shows it, and below it what each stage takes with everything on the card."""
    return [*tables.model(found.model, style), "", *plan.stages(found.stages, None, style)]
