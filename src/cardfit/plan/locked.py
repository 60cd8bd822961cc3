"""What a lock file says against the versions that were traced: a wider band, and a note to trace again.

In: the file, the trace, the memo of estimates. Out: notes; the memo's bands reach further from then on.
"""

from __future__ import annotations

from pathlib import Path

from cardfit.errors import Note
from cardfit.plan.search import Estimates
from cardfit.predict.estimate import OTHER_VERSIONS
from cardfit.trace.lock import differing, read_lock
from cardfit.trace.stream import Trace


def hold_against(lock: Path | None, traced: Trace, estimates: Estimates) -> list[Note]:
    """Widen the bands where ``lock`` names other versions than ``traced`` was made with, and say so."""
    if lock is None:
        return []
    found = read_lock(lock)
    other = differing(found, traced.versions)
    if not other:
        return []
    estimates.wider_by = OTHER_VERSIONS
    args: dict[str, object] = {
        "path": str(lock),
        "locked": ", ".join(f"{name} {found[name]}" for name in other),
        "made": ", ".join(f"{name} {traced.versions[name]}" for name in other),
        "more": f"{100 * OTHER_VERSIONS:g}",
    }
    return [Note("lock-differs", args)]
