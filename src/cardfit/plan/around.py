"""What the machine around a card says: a container's limit, the disk, and whether its cards have streams.

In: the machine that was read, cards and byte counts. Out: notes, or BadRequest for settings no named card can take.
"""

from __future__ import annotations

from collections.abc import Iterable

from cardfit.cards.card import Card
from cardfit.errors import BadRequest, Note
from cardfit.request import Settings
from cardfit.units import human_bytes

HOURS_PER_WEEK = 168
STREAMS_OF = "NVIDIA"  # the vendor whose copy streams are modelled


def container_limit(ram_bytes: int | None, limit_bytes: int | None) -> tuple[Note, ...]:
    """That the container's limit (cgroup) holds, where it is below the machine's RAM; else nothing."""
    if limit_bytes is None or (ram_bytes is not None and ram_bytes <= limit_bytes):
        return ()
    known = "?" if ram_bytes is None else human_bytes(ram_bytes)
    return (Note("plan-container-limit", {"limit": human_bytes(limit_bytes), "ram": known}),)


def disk_notes(need_bytes: int, free_bytes: int | None, more_bytes: int) -> tuple[Note, ...]:
    """What should be said of the disk: too little free here, and copies that a later download adds."""
    notes = []
    if free_bytes is not None and need_bytes > free_bytes:
        args: dict[str, object] = {"need": human_bytes(need_bytes), "free": human_bytes(free_bytes)}
        notes.append(Note("plan-here-disk", args))
    if more_bytes:
        notes.append(Note("plan-second-copy", {"more": human_bytes(more_bytes)}))
    return tuple(notes)


def check_streams(settings: Settings, cards: Iterable[Card]) -> None:
    """Raise BadRequest where a stream was asked for and one of ``cards`` has no CUDA streams."""
    if not settings.use_stream:
        return
    for card in cards:
        if card.vendor != STREAMS_OF:
            raise BadRequest("plan-no-streams", card=card.name)


def check_figures(
    ram_bytes: int | None,
    outputs_per_month: float | None = None,
    disk_bytes: int | None = None,
    hours_per_week: float | None = None,
) -> None:
    """Raise BadRequest for a size or a use that cannot be meant."""
    if ram_bytes is not None and ram_bytes <= 0:
        raise BadRequest("plan-bad-ram", ram=ram_bytes)
    if disk_bytes is not None and disk_bytes <= 0:
        raise BadRequest("plan-bad-disk", disk=disk_bytes)
    if outputs_per_month is not None and outputs_per_month <= 0:
        raise BadRequest("plan-bad-outputs", outputs=outputs_per_month)
    if hours_per_week is not None and not 0 < hours_per_week <= HOURS_PER_WEEK:
        raise BadRequest("plan-bad-hours", hours=hours_per_week, most=HOURS_PER_WEEK)
