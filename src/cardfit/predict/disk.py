"""Disk: the published weight files as a download leaves them in the hub's cache, and what a run leaves beside them.

In: a library entry and a request. Out: bytes by name. Offloading to disk writes more (`MemoryEstimate`). Left out:
files of a repository that the pipeline does not ask for, such as weights in a second precision.
"""

from __future__ import annotations

from cardfit.library.models import Model
from cardfit.request import ExactRequest

_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_RGB = 3


def disk_bytes(model: Model) -> int:
    """Bytes of the files of every component that is loaded: as found, else as published."""
    total = 0
    for name, part in model.components.items():
        if part.counted:
            published = (part.params + part.persistent_buffers) * _ITEM_BYTES[part.published_dtype]
            stored = model.stored_bytes(name)
            total += published if stored is None else stored
    return total


def disk_parts(model: Model, request: ExactRequest) -> dict[str, int]:
    """Bytes by what takes them: the weights, the latents of the outputs in fp32, the outputs as raw RGB at most."""
    shape = model.latent_shape(request.width, request.height, request.num_frames, request.batch)
    latents = _ITEM_BYTES["float32"]
    for side in shape:
        latents *= side
    pixels = request.batch * request.num_frames * request.height * request.width
    return {"weights": disk_bytes(model), "latents": latents, "outputs": pixels * _RGB}


def second_copy_bytes(model: Model, os: str) -> int:
    """What the hub's cache may take besides once two revisions of a repository were downloaded.

    With symbolic links a file is kept once. Without them, as on Windows by default, a new file is moved into its
    snapshot and a known one copied into the next (huggingface_hub, file_download.py).
    """
    return disk_bytes(model) if os == "windows" else 0
