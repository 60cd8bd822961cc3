"""What each knob would change on one card: the settings of its row with one thing turned, planned each.

In: a question for one card and the row that answers it. Out: a line for each change, in the order of the knobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from cardfit.errors import CardfitError
from cardfit.library.models import Model
from cardfit.messages import say
from cardfit.plan.answer import CardRow
from cardfit.report.card_view import KnobLine, knob
from cardfit.request import OFFLOADS, Settings
from cardfit.web.answers import Answers
from cardfit.web.controls import denoiser_of
from cardfit.web.questions import PlanQuestion
from cardfit.web.state import State

_SCHEMES = ("none", "fp8-layerwise", "bnb-nf4")
Change = tuple[str, dict[str, Any], dict[str, str]]  # label, settings, the same as a query


async def lines(
    answers: Answers, state: State, question: PlanQuestion, entry: Model, before: CardRow
) -> list[KnobLine]:
    """A line for each change of the settings of ``before``."""
    settings = _closed(entry, before.settings or question.settings)
    changes = list(_changes(entry, settings))

    async def one(change: Change) -> KnobLine:
        label, update, written = change
        asked = question.model_copy(update={"settings": settings.model_copy(update=update)})
        query = state.link(**written)
        try:
            made = await answers.plan(asked)
        except CardfitError as refused:
            return KnobLine(label, None, "", "", str(refused), query)
        return knob(label, query, before, made.value.cards[0])

    return list(await asyncio.gather(*map(one, changes)))


def _closed(entry: Model, settings: Settings) -> Settings:
    """``settings`` with the weights as they are: left open, a change would be made up for by another scheme."""
    denoiser = denoiser_of(entry)
    if settings.quantization or denoiser is None:
        return settings
    return settings.model_copy(update={"quantization": {denoiser: "none"}})


def _changes(entry: Model, settings: Settings) -> Iterable[Change]:
    for offload in OFFLOADS:
        if offload != (settings.offload or "none"):
            plain = {"offload": offload, "use_stream": None, "blocks_to_swap": None}
            label = f"{say('label-offload')}: {say(f'choice-offload-{offload}')}"
            yield label, plain, {"offload": offload}
    if entry.vae.tiling and not entry.vae.tiling_required:
        tiled = not settings.vae_tiling
        label = f"{say('label-vae_tiling')}: {say('web-on' if tiled else 'web-off')}"
        yield label, {"vae_tiling": tiled, "vae_tile": None}, {"vae_tiling": str(tiled).lower()}
    denoiser = denoiser_of(entry)
    if denoiser is None:
        return
    for scheme in _SCHEMES:
        if scheme != settings.quantization.get(denoiser, "none"):
            name = say("web-scheme-none") if scheme == "none" else scheme
            label = f"{say('label-quantization')}: {name}"
            yield (
                label,
                {"quantization": {denoiser: scheme}, "offload": None},  # not all move in groups
                {"quantization": f"{denoiser}={scheme}"},
            )
