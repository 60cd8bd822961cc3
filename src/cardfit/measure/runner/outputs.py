"""What a run made, kept as lossless files: pictures as PNG, a clip as FFV1.

In: what a pipeline returned as tensors in 0 to 1, or what a VAE's decode returned in -1 to 1. Out: one file an output,
8 bits a component as diffusers' own post-processing rounds. Frames are brought to the host one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from cardfit.media import lossless

FOLDER = "outputs"
Clip = torch.Tensor  # [frames, 3, height, width] in 0 to 1


def of_pipeline(result: Any) -> list[Clip]:
    """The clips in what a pipeline returned: ``images`` [batch, 3, height, width] or ``frames`` [batch, frames, ...].

    Raises ValueError for another form.
    """
    found: Any = getattr(result, "frames", None)
    if found is None:
        found = getattr(result, "images", result)
    if isinstance(found, (list, tuple)) and found and torch.is_tensor(found[0]):
        found = torch.stack(list(found))
    if not torch.is_tensor(found) or found.ndim not in (4, 5):
        raise ValueError(type(found).__name__)
    return list(found if found.ndim == 5 else found.unsqueeze(1))


def of_decodes(outs: list[Any], *, video: bool, batch: int) -> list[Clip]:
    """The clips in what the calls of a VAE's decode returned, in 0 to 1. Raises ValueError for another form."""
    parts = [getattr(out, "sample", out) for out in outs]
    parts = [part[0] if isinstance(part, (list, tuple)) else part for part in parts]
    if not all(torch.is_tensor(part) and part.ndim in (4, 5) for part in parts):
        raise ValueError(type(parts[0]).__name__)
    whole = torch.cat(parts)
    if whole.ndim == 5:  # [batch, 3, frames, height, width]
        clips = whole.movedim(1, 2)
    elif video:  # a VAE of pictures takes the frames of all clips as a batch
        clips = whole.reshape(batch, -1, *whole.shape[1:])
    else:
        clips = whole.unsqueeze(1)
    return [clip / 2 + 0.5 for clip in clips]


def save(clips: list[Clip], folder: Path, fps: float | None) -> tuple[str, ...]:
    """Write every clip below ``folder`` and return the names. Raises BadFile, MissingExtra."""
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    files = [
        lossless.write(target / f"{number:03}", _images(clip), fps, one=len(clip) == 1)
        for number, clip in enumerate(clips)
    ]
    return tuple(f"{FOLDER}/{file.name}" for file in files)


def _images(clip: Clip) -> Iterator[Any]:
    for frame in clip:
        levels = frame.detach().float().clamp(0, 1).mul(255).round().to(torch.uint8)
        yield levels.movedim(0, -1).cpu().numpy()
