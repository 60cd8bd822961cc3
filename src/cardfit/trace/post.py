"""What a step after the pipeline does: the dry run of an upscaler or an interpolation, cached like any trace.

In: an exact request with `post`. Out: a Trace for each step, with one component and the stage ``post``. A frame (of an
interpolation: two) is on the card at a time, in the network's own precision; frames are alike, so one is traced and
repeated. torch is loaded only where nothing is cached.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from cardfit.errors import BadRequest
from cardfit.request import ExactRequest, Post, Settings
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
        found.append(_cached(given, step))
        if step.upscale is not None:
            times = step.upscale.factor_made
            size = {"width": given.width * times, "height": given.height * times}
            given = given.model_copy(update=size)
        elif step.interpolate is not None:
            frames = step.interpolate.made(given.num_frames)
            given = given.model_copy(update={"num_frames": frames})
    return tuple(found)


def _cached(request: ExactRequest, step: Post) -> Trace:
    size: dict[str, Any] = request.model_dump(include={"width", "height"})
    versions = cache.versions()
    name = cache.name_of("post", _shape(step), size, versions)
    one = cache.read(name)
    trace = None
    if one is not None:
        with suppress(KeyError, TypeError, ValueError, IndexError):
            trace = decode(one, request, _AS_IS)
    if trace is None:
        from cardfit.trace.dryrun import dry_post

        trace = dry_post(request, step)
        cache.write(name, encode(trace))
    calls = request.batch * _calls(request, step)
    return replace(
        trace,
        timeline=tuple(replace(part, repeat=part.repeat * calls) for part in trace.timeline),
        notes=(),
    )


def _shape(step: Post) -> list[Any]:
    """What shapes the trace of one call."""
    if step.upscale is not None:
        return [step.upscale.model, step.upscale.tile]
    assert step.interpolate is not None
    return [step.interpolate.model]


def _calls(request: ExactRequest, step: Post) -> int:
    """How often the network runs for one output. Raises BadRequest where there is nothing between frames."""
    frames = request.num_frames
    if step.interpolate is None:
        return frames
    if frames < 2:
        raise BadRequest("post-interpolate-image", frames=frames)
    return step.interpolate.made(frames) - frames
