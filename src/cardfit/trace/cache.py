"""Traces and what was replayed from them, kept on disk by content, so that a second question answers at once.

The name of a file is a hash of everything that shapes what it holds: configs, request, settings, versions. The files
are those of `records.cache`. Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cardfit.errors import Note
from cardfit.library.models import Model
from cardfit.records.cache import read as read
from cardfit.records.cache import write as write
from cardfit.request import ExactRequest, Settings
from cardfit.trace.coding import decode, encode
from cardfit.trace.stream import Trace

LAYOUT = 14  # of what a file holds, and of the rules that made it
_SHAPING = {
    "dtype", "vae_tiling", "vae_tile", "vae_overlap", "vae_slicing", "decode_chunk_size", "attention",
    "prompt_embeds", "forward_chunking", "fuse_qkv",
}  # fmt: skip
_NOT_SHAPING: Any = {  # of a request; a file counts by what its header holds
    "model": True, "seed": True, "runtime": True, "post": True, "export": True, "loras": {"__all__": {"file"}},
}  # fmt: skip
_PACKAGES = ("torch", "diffusers", "transformers")

Progress = Callable[[str, float | None], None]


def versions(*, adapters: bool = False) -> dict[str, str]:
    """The installed versions that shape a trace, peft's too where ``adapters`` are laid over the denoiser.

    Raises ModuleNotFoundError naming the first that is missing.
    """
    found = {}
    for name in (*_PACKAGES, "peft") if adapters else _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError as missing:
            raise ModuleNotFoundError(name=name) from missing
    return found


def name_of(kind: str, *parts: object) -> str:
    """A file name from everything that shapes its content."""
    text = json.dumps([LAYOUT, *parts], sort_keys=True, default=str)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.z"


def shaping(settings: Settings) -> dict[str, Any]:
    """The settings that change what the pipeline does, as opposed to where its weights are."""
    return settings.model_dump(include=_SHAPING)


def trace_parts(
    model: Model,
    request: ExactRequest,
    settings: Settings,
    made_with: dict[str, str] | None = None,
) -> tuple[object, ...]:
    """Everything that shapes a trace; ``made_with`` are its versions, those installed by default."""
    asked = request.model_dump(exclude=_NOT_SHAPING)
    found = made_with if made_with is not None else versions(adapters=bool(request.loras))
    return model.model_dump(by_alias=True), asked, shaping(settings), found


def cached(
    model: Model, request: ExactRequest, settings: Settings, *, progress: Progress | None = None
) -> tuple[Trace, tuple[Note, ...]]:
    """The Trace of ``request``: from the cache, else by a dry run whose result is kept.

    Raises ModuleNotFoundError when a package that the dry run needs is missing.
    """
    name = name_of("trace", *trace_parts(model, request, settings))
    found = read(name)
    if found is not None:
        # a damaged file: trace again and write it anew
        with suppress(KeyError, TypeError, ValueError, IndexError):
            return decode(found, request, settings), ()
    from cardfit.trace.dryrun import dry_run

    shaped = Settings.model_validate(shaping(settings))
    trace = dry_run(model, request, shaped, progress=progress)
    note = write(name, encode(trace))
    return trace, (note,) if note else ()
