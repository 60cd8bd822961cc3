"""The command `calibrate`: learn from records.

In: a store. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from cardfit.messages import say


def calibrate(
    *,
    dry: Annotated[
        bool, Parameter(help=say("help-calibrate-dry"), negative=(), show_default=False)
    ] = False,
    store: Annotated[str | None, Parameter(help=say("help-store"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Learn from records: what runs took on this card against what was predicted; plan uses it at once.

    Try:

    cardfit calibrate

    cardfit calibrate --dry --json
    """
    from cardfit import verbs
    from cardfit.report import calibrate as page
    from cardfit.report import dump, out

    found = verbs.calibrate(store=store, keep=not dry)
    out.write(dump.one(found) if json else page.lines(found, out.style_of()))
    return 0
