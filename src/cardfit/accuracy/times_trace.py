"""The trace behind a published time, as sums: of the run, or of one call of the autoencoder.

In: a `TimedRun`. Out: `Totals`, from the cache of traces where it is there. Rows of one configuration share one.
"""

from __future__ import annotations

from contextlib import suppress

from cardfit.accuracy.times_rebuild import TimedRun
from cardfit.predict.totals import Totals, head_dim_of, totals
from cardfit.trace import cache
from cardfit.trace.coding import decode, encode
from cardfit.trace.stream import Trace


def totals_of(run: TimedRun) -> Totals:
    """What the run asks of a card. Raises ModuleNotFoundError when a package that the dry run needs is missing."""
    return totals(_trace(run), head_dim=head_dim_of(run.model))


def _trace(run: TimedRun) -> Trace:
    model, request, settings = run.model, run.request, run.settings
    if run.part not in ("decode", "encode"):
        return cache.cached(model, request, settings)[0]
    name = cache.name_of(run.part, *cache.trace_parts(model, request, settings))
    stored = cache.read(name)
    if stored is not None:
        # a damaged file: trace again and write it anew
        with suppress(KeyError, TypeError, ValueError, IndexError):
            return decode(stored, request, settings)
    from cardfit.trace.dryrun import dry_part

    trace = dry_part(model, request, settings, model.vae.component, run.part, _shape(run))
    cache.write(name, encode(trace))
    return trace


def _shape(run: TimedRun) -> tuple[int, ...]:
    """What the autoencoder is given: latents, or pixels ``[batch, 3, (frames,) height, width]``."""
    model, request = run.model, run.request
    frames = (request.num_frames,) if model.is_video else ()
    if run.part == "encode":
        return (request.batch, 3, *frames, request.height, request.width)
    shape = model.latent_shape(request.width, request.height, request.num_frames, request.batch)
    if not model.is_video and model.vae.temporal_compression > 1:
        return (*shape[:2], 1, *shape[2:])  # a video autoencoder that makes pictures
    return shape
