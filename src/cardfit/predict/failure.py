"""Where a run under a limit ends, in words, and whether expandable segments can cure it.

In: a `Failure`. Out: notes. The sentence has the figures of torch's own out-of-memory message, before it happens.
"""

from __future__ import annotations

from cardfit.errors import Note
from cardfit.predict.alloc_conf import parse_alloc_conf
from cardfit.predict.estimate import Failure
from cardfit.request import Settings
from cardfit.units import human_bytes

EXPANDABLE = "expandable_segments:True"


def fragmented(failure: Failure) -> bool:
    """Whether the request would fit if everything reserved but unused could be given back."""
    return failure.allocated_bytes + failure.tried_bytes <= failure.limit_bytes


def failure_note(failure: Failure) -> Note:
    """The error before it happens."""
    return Note(
        "predict-out-of-memory",
        {
            "stage": failure.stage,
            "site": failure.site,
            "tried": human_bytes(failure.tried_bytes),
            "allocated": human_bytes(failure.allocated_bytes),
            "unused": human_bytes(failure.reserved_bytes - failure.allocated_bytes),
            "limit": human_bytes(failure.limit_bytes),
        },
    )


def fragmented_note(failure: Failure) -> Note | None:
    """The suggestion that belongs to the error where what is unused is in the way; None elsewhere."""
    if not fragmented(failure):
        return None
    unused = failure.reserved_bytes - failure.allocated_bytes
    return Note("predict-fragmented", {"unused": human_bytes(unused)})


def expandable(settings: Settings) -> Settings | None:
    """``settings`` with expandable segments on top; None where they are on already."""
    conf = settings.alloc_conf or ""
    if parse_alloc_conf(settings.alloc_conf).expandable_segments:
        return None
    kept = [part for part in conf.split(",") if part and "expandable_segments" not in part]
    return settings.model_copy(update={"alloc_conf": ",".join([EXPANDABLE, *kept])})
