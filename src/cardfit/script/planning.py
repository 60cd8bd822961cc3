"""A plan for every request of a script: as the script runs it, over every card.

In: a `ScriptReading` and the verb that plans one request. Out: a `ScriptPlan` with an `Answer` for each request, or why
there is none. Settings are those of the script: a knob that it leaves alone is off, since that is how it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.comfy.planning import Planned
from cardfit.errors import BadRequest, InputError
from cardfit.library.load import load
from cardfit.messages.said import Said
from cardfit.plan.answer import Answer
from cardfit.request import PlanFile, Settings
from cardfit.request.read import validate_request
from cardfit.script.result import ScriptReading, ScriptRequest

SCHEMA = "cardfit.script-plan/1"
_DENOISERS = ("transformer", "unet", "prior")
# what the caller asked wrongly, whatever the script says
_ABOUT_THE_QUESTION = frozenset(
    {
        "unknown-card",
        "no-gpu-here",
        "plan-bad-ram",
        "plan-bad-disk",
        "plan-bad-outputs",
        "plan-bad-hours",
    }
)


class ScriptPlan(BaseModel):
    """A script as read and planned."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    reading: ScriptReading
    plans: tuple[Planned, ...]


def plan_script(reading: ScriptReading, plan: Callable[..., Answer], **more: Any) -> ScriptPlan:
    """The plans of all requests in ``reading``; ``plan`` plans one, ``more`` goes to it.

    A request that cannot be planned says why and stops nothing; what is wrong with ``more`` is raised.
    """
    plans = tuple(
        _planned(place, request, plan, more) for place, request in enumerate(reading.requests)
    )
    return ScriptPlan(reading=reading, plans=plans)


def _planned(
    place: int, found: ScriptRequest, plan: Callable[..., Answer], more: dict[str, Any]
) -> Planned:
    if not found.complete:
        return Planned(request=place, answer=None, why=Said.of("script-incomplete"))
    try:
        asked = plan_file_of(found)
        answer = plan(asked.request, asked.settings, **more)
    except InputError as error:
        if error.code in _ABOUT_THE_QUESTION:
            raise
        why = Said.of("script-not-planned", reason=str(error))
        return Planned(request=place, answer=None, why=why)
    return Planned(request=place, answer=answer)


def plan_file_of(found: ScriptRequest) -> PlanFile:
    """The request and the settings that run it as the script does, nothing left to choose.

    Raises BadRequest for a request with open fields or a value that no request has.
    """
    if not found.complete or found.model is None:
        raise BadRequest("script-incomplete")
    entry = load(found.model)
    fields: dict[str, Any] = {
        "model": found.model,
        "task": found.task,
        "width": found.width,
        "height": found.height,
        "num_frames": found.num_frames if entry.is_video else None,
        "fps": found.fps,
        "batch": found.batch,
        "num_inference_steps": found.effective_steps or found.num_inference_steps,
        "guidance_scale": found.guidance_scale,
        "seed": found.seed,
    }
    if found.lora_rank is not None:
        adapters = [{"rank": found.lora_rank, "fused": each.fused} for each in found.loras]
        fields["loras"] = adapters
    given = {name: value for name, value in fields.items() if value is not None}
    return PlanFile(request=validate_request(given), settings=as_written(found))


def as_written(found: ScriptRequest) -> Settings:
    """The settings of the script with every knob that it leaves alone turned off."""
    settings = found.settings
    if found.model is None:
        return settings
    entry = load(found.model)
    more: dict[str, Any] = {}
    if settings.offload is None:
        more["offload"] = "none"
    if settings.vae_tiling is None and entry.vae.tiling and not entry.vae.tiling_required:
        more["vae_tiling"] = False
    if settings.vae_slicing is None and entry.vae.slicing:
        more["vae_slicing"] = False
    if not settings.quantization:
        names = [name for name in entry.components if name.startswith(_DENOISERS)]
        more["quantization"] = dict.fromkeys(names, "none")
    if entry.vae.decode_chunk_size and settings.decode_chunk_size is None:
        more["decode_chunk_size"] = found.num_frames
    return settings.model_copy(update=more)
