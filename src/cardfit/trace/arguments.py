"""The arguments of a call of any pipeline class: what its `__call__` asks for by name, made up to a size.

In: a pipeline object and a size. Out: arguments by name. Pictures are blank, prompts a few words: the sizes are what
shapes the work. What a class wants beside the usual names stands in the facts: sizes as ``$width``, ``$height``,
``$frames``, tensors as ``{tensor: [shape], dtype: ...}``, and ``{repeat: value}`` once for each of the batch. Left out:
what makes sense only together with other arguments.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image

from cardfit.trace.facts import of_pipeline

_WORDS = "one two three four five six seven"
_BATCHES = ("num_images_per_prompt", "num_videos_per_prompt")


@dataclass(frozen=True, slots=True)
class Size:
    """What is asked of a walk: pixels, frames, how many at once."""

    width: int
    height: int
    frames: int = 1
    batch: int = 1
    steps: int = 2


def call_of(pipeline: Any, size: Size) -> dict[str, Any]:
    """The arguments of ``pipeline(...)`` for ``size``."""
    kind = type(pipeline)
    names = inspect.signature(kind.__call__).parameters
    given = {name: _made(value, size) for name, value in of_pipeline(kind.__name__).call.items()}
    wanted = _usual(size)
    if not any(name in names for name in _BATCHES):
        wanted["batch_size"] = size.batch
        if "batch_size" not in names and size.batch > 1:
            wanted["prompt"] = [_WORDS] * size.batch
    defaults = {name: each.default for name, each in names.items()}
    if defaults.get("image", 0) is None and defaults.get("video", 0) is None:
        del wanted["video"]  # one of the two
    found = {name: value for name, value in wanted.items() if name in names}
    return {name: value for name, value in {**found, **given}.items() if value != "$none"}


def _usual(size: Size) -> dict[str, Any]:
    picture = Image.new("RGB", (size.width, size.height))
    mask = Image.new("L", picture.size, 255)
    clip = [picture] * size.frames
    return {
        "prompt": _WORDS,
        "height": size.height,
        "width": size.width,
        "num_frames": size.frames,
        "num_inference_steps": size.steps,
        "prior_num_inference_steps": size.steps,
        "decoder_num_inference_steps": size.steps,
        "super_res_num_inference_steps": size.steps,
        "num_images_per_prompt": size.batch,
        "num_videos_per_prompt": size.batch,
        "image": picture,
        "control_image": picture,
        "mask_image": mask,
        "control_mask": mask,
        "video": clip,
        "control_video": clip,
        "conditioning_frames": clip,
        "strength": 1.0,
        "use_resolution_binning": False,
        "output_type": "pt",
    }


def _made(value: Any, size: Size) -> Any:
    """A value of the facts: sizes by name, pictures, tensors; anything else as it stands."""
    if isinstance(value, list):
        return [_made(each, size) for each in value]
    if isinstance(value, dict):
        if "tensor" in value:
            shape = [_number(each, size) for each in value["tensor"]]
            return torch.zeros(shape, dtype=getattr(torch, value.get("dtype", "float32")))
        if "repeat" in value:
            return [_made(value["repeat"], size)] * size.batch
        return {key: _made(each, size) for key, each in value.items()}
    if isinstance(value, str) and value.startswith("$") and value != "$none":
        return _symbol(value, size)
    return value


def _symbol(value: str, size: Size) -> Any:
    usual = _usual(size)
    named = {
        "$picture": usual["image"],
        "$mask": usual["mask_image"],
        "$clip": usual["video"],
        "$prompt": _WORDS,
        "$generator": torch.Generator().manual_seed(0),
    }
    return named[value] if value in named else _number(value, size)


def _number(value: Any, size: Size) -> int:
    """A whole number, or one of the size's by name, with a divisor or a factor: ``$height/8``."""
    if isinstance(value, int):
        return value
    name, _, divisor = str(value).partition("/")
    name, _, factor = name.partition("*")
    found = int(getattr(size, name.removeprefix("$")))
    return found * int(factor or 1) // int(divisor or 1)
