"""What a step after the pipeline does: the dry run of an upscaler over the frames, cached like any trace.

In: an exact request with `post`. Out: a Trace for each step, with one component and the stage ``post``. A frame is on
the card at a time, in half precision; frames are alike, so one is traced and repeated. torch is loaded only where
nothing is cached.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from cardfit.request import ExactRequest, Settings, Upscale
from cardfit.trace import cache
from cardfit.trace.coding import decode, encode
from cardfit.trace.stream import Trace

_AS_IS = Settings(offload="none")


def post_traces(request: ExactRequest) -> tuple[Trace, ...]:
    """The Trace of every step of ``request.post``, in order, each at the size that it is handed.

    Raises ModuleNotFoundError when a package that the dry run needs is missing, DryRunFailed.
    """
    found = []
    given = request.model_copy(update={"post": ()})
    for step in request.post:
        found.append(_cached(given, step.upscale))
        times = step.upscale.factor_made
        size = {"width": given.width * times, "height": given.height * times}
        given = given.model_copy(update=size)
    return tuple(found)


def _cached(request: ExactRequest, upscale: Upscale) -> Trace:
    size: dict[str, Any] = request.model_dump(include={"width", "height"})
    versions = cache.versions()
    name = cache.name_of("post", upscale.model, upscale.tile, size, versions)
    one = cache.read(name)
    trace = None
    if one is not None:
        with suppress(KeyError, TypeError, ValueError, IndexError):
            trace = decode(one, request, _AS_IS)
    if trace is None:
        from cardfit.trace.dryrun import dry_upscale

        trace = dry_upscale(request, upscale)
        cache.write(name, encode(trace))
    frames = request.batch * request.num_frames
    return replace(
        trace,
        timeline=tuple(replace(part, repeat=part.repeat * frames) for part in trace.timeline),
        notes=(),
    )
