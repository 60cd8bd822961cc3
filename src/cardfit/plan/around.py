"""What the machine around a card says: a container's limit, the disk, and whether its cards have streams.

In: the machine that was read, cards and byte counts. Out: notes, or BadRequest for settings no named card can take.
"""

from __future__ import annotations

from collections.abc import Iterable

from cardfit.cards.card import Card
from cardfit.errors import BadRequest, Note
from cardfit.request import Settings
from cardfit.units import human_bytes

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
