"""The command `codecs`: what the encoders and decoders of this machine really do.

In: flags. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from cardfit.messages import say


def codecs(
    *,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Open every video encoder and decoder of this machine and use it: what works, how fast, and why others fail.

    Try:

    cardfit codecs

    cardfit codecs --json
    """
    from cardfit import verbs
    from cardfit.report import codecs as page
    from cardfit.report import dump, out

    with out.progress(quiet=json) as progress:
        found = verbs.codecs(progress=progress)
    style = out.style_of()
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, style))
        out.remarks(page.notes(found, style))
    return 0
