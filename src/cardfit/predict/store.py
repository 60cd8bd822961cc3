"""Replayed estimates kept on disk beside the traces they came from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from cardfit.library.models import Model
from cardfit.predict.estimate import Failure, HostMoment, MemoryEstimate, StageMemory
from cardfit.predict.memory import bands
from cardfit.request import Settings
from cardfit.trace import cache
from cardfit.trace.stream import Trace


def _decoded(data: dict[str, Any]) -> MemoryEstimate:
    failure = data.pop("failure")
    stages = tuple(StageMemory(**row) for row in data.pop("stages"))
    left_out = tuple(data.pop("left_out"))
    host = tuple(
        HostMoment(**{**row, "parts": tuple((part, size) for part, size in row["parts"])})
        for row in data.pop("host")
    )
    return MemoryEstimate(
        stages=stages,
        failure=Failure(**failure) if failure else None,
        left_out=left_out,
        host=host,
        **data,
    )


def kept(
    replay: Callable[..., MemoryEstimate],
    model: Model,
    trace: Trace,
    settings: Settings,
    *,
    architecture: str | None,
    limit_bytes: int | None,
    legacy_bnb: bool = False,
) -> MemoryEstimate:
    """``replay(trace, settings, ...)``, from the cache when the same was replayed before.

    The replay is told the dtypes that ``model`` is published in.
    """
    placed = settings.model_dump()
    parts = cache.trace_parts(model, trace.request, trace.settings, trace.versions)
    parts += tuple(
        step.model_dump() for step in trace.request.post
    )  # frames on the host are larger
    name = cache.name_of(
        "estimate", trace.basis, *parts, placed, architecture, limit_bytes, legacy_bnb, bands()
    )
    found = cache.read(name)
    if found is not None:
        # a damaged file: replay again and write it anew
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            return _decoded(found)
    estimate = replay(
        trace,
        settings,
        architecture=architecture,
        limit_bytes=limit_bytes,
        legacy_bnb=legacy_bnb,
        published={name: part.published_dtype for name, part in model.components.items()},
    )
    cache.write(name, asdict(estimate))
    return estimate
