"""What an answer says of the model beside the memory, and what the model offers to turn.

In: a library entry and its trace. Out: the header's figures and the knobs.
"""

from __future__ import annotations

from cardfit.cards.usable import CONTEXT_LIKELY_BYTES
from cardfit.errors import Note
from cardfit.library.models import Model
from cardfit.plan.answer import ModelRow
from cardfit.plan.knobs import Knobs, knobs_of
from cardfit.plan.make import Facts
from cardfit.request import Settings
from cardfit.trace.stream import Trace


def turned(entry: Model, traced: Trace, given: Settings) -> Knobs:
    """What ``entry`` offers to turn; ``given`` may name another tile."""
    side = given.vae_tile or entry.vae.tile_side
    return knobs_of(
        traced,
        tile=side if entry.vae.tiling else None,
        slicing=entry.vae.slicing,
        chunked=entry.vae.decode_chunk_size,
        always_tiled=entry.vae.tiling_required,
    )


def model_row(entry: Model) -> ModelRow:
    """The model as an answer names it."""
    return ModelRow(
        id=entry.id,
        title=entry.title,
        license=entry.license,
        verified=entry.verified,
        pipeline=entry.pipeline,
    )


def facts_of(
    entry: Model, traced: Trace, notes: tuple[Note, ...], files_bytes: int, *, version: str
) -> Facts:
    """The header's figures, in bytes; ``notes`` go before those of the trace, ``version`` is cardfit's own."""
    from cardfit.predict.rule import denoiser_rule_bytes, rule_of_thumb_bytes

    return Facts(
        model=model_row(entry),
        versions={"cardfit": version, **traced.versions},
        rule_bytes=rule_of_thumb_bytes(traced),
        denoiser_rule_bytes=denoiser_rule_bytes(traced),
        disk_bytes=files_bytes,
        context_bytes=CONTEXT_LIKELY_BYTES,
        notes=(*notes, *(Note(code, args) for code, args in traced.notes)),
    )
