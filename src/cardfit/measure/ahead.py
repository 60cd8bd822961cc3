"""What is still to come of a run: when denoising ends, what the decode needs, what it costs at most.

In: where the run is, its record so far, what the card can reserve, a price. Out: `Ahead`, for the line that somebody
reads before walking away. Nothing is said before two steps have been seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardfit.measure.run import Moment
from cardfit.records.models import Record


@dataclass(frozen=True, slots=True)
class Ahead:
    """Seconds from now until denoising ends, bytes of the decode beside what is there, and money."""

    denoise_left_s: float
    decode_bytes: int | None
    usable_bytes: int | None
    latents_kept: bool
    cost: float | None
    at_most: bool


def ahead(
    moment: Moment,
    record: Record,
    step_s: float,
    *,
    usable_bytes: int | None = None,
    price_per_hour: float | None = None,
    timeout_s: float | None = None,
) -> Ahead:
    """What is ahead at ``moment``, with ``step_s`` seconds a step as seen so far."""
    left = max(0, moment.steps - moment.step) * step_s
    decode = None
    if record.predicted is not None:
        sizes = [s.reserved_bytes for s in record.predicted.stages if s.name == "decode"]
        decode = max(sizes, default=None) if usable_bytes is not None else None
    cost = None
    if price_per_hour is not None:
        whole = timeout_s if timeout_s is not None else moment.elapsed_s + left
        cost = price_per_hour * whole / 3600
    kept = all(note.code != "run-latents-not-kept" for note in record.notes)
    return Ahead(left, decode, usable_bytes, kept, cost, timeout_s is not None)
