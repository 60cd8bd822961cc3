"""A record that nothing was measured for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cardfit.records import files
from cardfit.records.models import (
    Inputs,
    Machine,
    Outcome,
    Record,
    Repetition,
    Stage,
    Weights,
)
from cardfit.request import ExactRequest, Settings


def request(**fields: Any) -> ExactRequest:
    """A small request of an image model."""
    given = {
        "model": "flux.1-dev", "task": "text-to-image", "width": 64, "height": 64, "num_frames": 1,
        "num_inference_steps": 3, "guidance_scale": 3.5, "prompt_tokens": 8,
    }  # fmt: skip
    return ExactRequest(**{**given, **fields})


def repetition(
    seconds: float, reserved_bytes: int | None = 1000, phase: Any = "steady"
) -> Repetition:
    """One repetition of one stage."""
    stage = Stage(
        name="denoise",
        component="transformer",
        calls=3,
        seconds=seconds,
        allocated_peak_bytes=reserved_bytes,
        reserved_peak_bytes=reserved_bytes,
    )
    return Repetition(phase=phase, number=0, seconds=seconds, stages=(stage,))


def record(**fields: Any) -> Record:
    """A record; ``fields`` go on top."""
    given: dict[str, Any] = {
        "id": files.new_id(),
        "created": datetime.now(UTC),
        "finished": True,
        "model": "flux.1-dev",
        "request": request(),
        "settings": Settings(),
        "weights": Weights(kind="random"),
        "inputs": Inputs(prompt_sha256="0" * 64, prompt_characters=3, prompt="cat"),
        "versions": {"cardfit": "0.1.0"},
        "device": "cpu",
        "machine": Machine(os="linux"),
        "predicted": None,
        "repetitions": (repetition(1.0),),
        "outcome": Outcome(kind="ok", log="words"),
        "latents": ("latents-000.safetensors",),
    }
    return Record(**{**given, **fields})
