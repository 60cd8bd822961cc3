"""What a child process is told to run, and what it says while it runs: one JSON value each.

In: a model with its configs, an exact request, settings, where weights come from. Out: `Job`, and `Event` lines. The
child gets everything here and reads nothing of the reader's but the weights' folder and the input pictures.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.library.models import Model
from cardfit.records.models import WeightsKind
from cardfit.request import ExactRequest, Settings

EventName = Literal[
    "refused",
    "ready",
    "phase",
    "stage",
    "step",
    "latents",
    "outputs",
    "repetition",
    "failed",
    "note",
    "done",
]


class Job(BaseModel):
    """One run: load, a first call, ``repeats`` steady ones, and a ``memory`` one under the profiler where asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Model
    request: ExactRequest
    settings: Settings
    weights: WeightsKind
    folder: Annotated[str | None, Field(description="local diffusers folder")] = None
    device: Annotated[str, Field(description="auto, cpu, cuda or cuda:N")] = "auto"
    repeats: Annotated[int, Field(ge=0, le=10_000)] = 1
    memory: Annotated[bool | None, Field(description="None: where torch counts nothing itself")] = (
        None
    )
    prompt: str | None = None
    negative_prompt: str | None = None
    images: tuple[str, ...] = ()
    video: Annotated[str | None, Field(description="footage of a video-to-video run")] = None
    latents: Annotated[str | None, Field(description="folder for latents; None: not kept")] = None
    outputs: Annotated[str | None, Field(description="folder for outputs; None: not kept")] = None
    resume: Annotated[tuple[str, ...], Field(description="latents to decode instead")] = ()


class Event(BaseModel):
    """One line from the child: what happened, when by the machine's monotonic clock, and the rest by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: EventName
    at: float
    data: dict[str, Any] = {}
