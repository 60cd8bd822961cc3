"""`sweep --auto`: the settings whose predicted need lies near what the card has.

In: a model, an exact request, the given settings, the card's usable bytes. Out: axes of settings worth measuring, the
nearest first on either side of the edge, and the smallest of all. What is far inside surely runs, what is far outside
surely fails: neither needs a measurement.
"""

from __future__ import annotations

from collections.abc import Callable

from cardfit.library.models import Model
from cardfit.records.models import Predicted
from cardfit.request import OFFLOADS, Settings

BELOW, ABOVE = 0.75, 1.15  # of usable bytes
MOST = 8

Need = Callable[[Settings], Predicted | None]


def near_the_edge(
    model: Model, given: Settings, usable_bytes: int, need: Need
) -> tuple[Settings, ...]:
    """Settings near the edge, each a change of ``given``; knobs that are set in it stay as they are."""
    offloads = [given.offload] if given.offload is not None else list(OFFLOADS)
    tilings = [given.vae_tiling] if given.vae_tiling is not None else [False]
    if given.vae_tiling is None and model.vae.tiling:
        tilings.append(True)
    sized: list[tuple[int, Settings]] = []
    for offload in offloads:
        for tiling in tilings:
            settings = given.model_copy(update={"offload": offload, "vae_tiling": tiling})
            found = need(settings)
            if found is not None:
                sized.append((found.reserved_bytes, settings))
    near = [each for each in sized if BELOW * usable_bytes <= each[0] <= ABOVE * usable_bytes]
    near.sort(key=lambda each: abs(each[0] - usable_bytes))
    smallest = sorted(sized, key=lambda each: each[0])[:1]
    chosen = [settings for _, settings in near[:MOST]]
    return tuple(chosen + [s for _, s in smallest if s not in chosen])
