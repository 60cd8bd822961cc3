"""The dry run and the replay behind a row: with the diffusers of its time where a trace was kept, else today's.

In: a row's configuration and what was kept. Out: a `Run`. Rows of one configuration share one trace and one replay. A
row matches where its trace is of its time, where its time is the installed release's, or where the two releases were
compared for its model and gave the same figures.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from cardfit.accuracy.kept import Kept
from cardfit.accuracy.older import legacy_bnb, series_of_version
from cardfit.accuracy.rebuild import Rebuilt
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.memory import estimate
from cardfit.predict.store import kept as kept_estimate
from cardfit.predict.weights import NOT_CONVERTED_BY_CLASS, InPlace
from cardfit.request import Settings
from cardfit.trace import cache
from cardfit.trace.coding import decode, encode
from cardfit.trace.stream import Component, Trace


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration, traced and replayed; ``diffusers`` is the version whose code was traced."""

    trace: Trace
    memory: MemoryEstimate
    diffusers: str
    matching: bool


class Runs:
    """Runs of one file of rows: an older trace is replayed once for each configuration."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self._replayed: dict[tuple[Any, ...], MemoryEstimate] = {}

    def of(self, rebuilt: Rebuilt, series: str | None) -> Run:
        """The run of a configuration whose time had the release ``series``, or None where that is not known.

        Raises ModuleNotFoundError when a package that a dry run needs is missing, BadFile for a damaged trace.
        """
        found = self.kept.trace(series, rebuilt)
        trace = found or todays(rebuilt)
        version = trace.versions["diffusers"]
        same = self.kept.checked(series, rebuilt.model.id)
        matching = (
            found is not None
            or series == series_of_version(version)
            or (same is not None and same.same)
        )
        legacy = legacy_bnb(series)
        trace = in_place(trace, rebuilt)
        if legacy:
            trace = kept_in_fp32(trace, rebuilt)
        source = self.kept.name(series, rebuilt) if found is not None else None
        memory = self._memory(rebuilt, trace, source, legacy)
        return Run(trace, memory, version, matching)

    def _memory(
        self, rebuilt: Rebuilt, trace: Trace, source: str | None, legacy: bool
    ) -> MemoryEstimate:
        settings, architecture = rebuilt.settings, rebuilt.architecture
        changed = rebuilt.in_place or (legacy and bool(rebuilt.settings.quantization))
        plain = source is None and not changed
        if plain and rebuilt.scope != "decode":
            return kept_estimate(
                estimate,
                rebuilt.model,
                trace,
                settings,
                architecture=architecture,
                limit_bytes=None,
                legacy_bnb=legacy,
            )
        if plain:
            return estimate(trace, settings, architecture=architecture)
        what = (
            source or name(rebuilt),
            settings.model_dump_json(),
            architecture,
            legacy,
            rebuilt.in_place,
        )
        if what not in self._replayed:
            self._replayed[what] = estimate(
                trace, settings, architecture=architecture, legacy_bnb=legacy
            )
        return self._replayed[what]


def in_place(trace: Trace, rebuilt: Rebuilt) -> Trace:
    """``trace`` with the components marked whose quantizer was called on them as they lay."""
    if not rebuilt.in_place:
        return trace

    def marked(part: Component) -> Component:
        if part.name not in rebuilt.settings.quantization:
            return part
        return InPlace(part.name, part.kind, part.dtype, part.modules)

    return replace(
        trace,
        components=tuple(marked(part) for part in trace.components),
        recasts=tuple(marked(part) for part in trace.recasts),
    )


def kept_in_fp32(trace: Trace, rebuilt: Rebuilt) -> Trace:
    """``trace`` as transformers before 5 loaded it with bitsandbytes: what a class keeps in fp32 was cast to it.

    Its bitsandbytes quantizers asked for that whatever the dtype (``use_keep_in_fp32_modules`` in 4.48 and 4.51).
    """

    def cast(part: Component) -> Component:
        kept = set(NOT_CONVERTED_BY_CLASS.get(part.kind, ()))
        if not kept or not rebuilt.settings.quantization.get(part.name, "").startswith("bnb-"):
            return part
        modules = tuple(
            replace(
                module,
                tensors=tuple(
                    (label, 2 * size, "float32") if dtype == "bfloat16" else (label, size, dtype)
                    for label, size, dtype in module.tensors
                ),
            )
            if kept & set(module.path.split("."))
            else module
            for module in part.modules
        )
        return replace(part, modules=modules)

    return replace(trace, components=tuple(cast(part) for part in trace.components))


def name(rebuilt: Rebuilt) -> str:
    """The name under which the cache keeps the trace of a configuration."""
    kind = "decode" if rebuilt.scope == "decode" else "trace"
    return cache.name_of(kind, *cache.trace_parts(rebuilt.model, rebuilt.request, rebuilt.settings))


def todays(rebuilt: Rebuilt) -> Trace:
    """The trace of the run, or of the decode alone, with what is installed; from the cache where it is there."""
    model, request, settings = rebuilt.model, rebuilt.request, rebuilt.settings
    if rebuilt.scope != "decode":
        return cache.cached(model, request, settings)[0]
    stored = cache.read(name(rebuilt))
    if stored is not None:
        # a damaged file: trace again and write it anew
        with suppress(KeyError, TypeError, ValueError, IndexError):
            return decode(stored, request, settings)
    from cardfit.trace.dryrun import dry_part

    shape = model.latent_shape(request.width, request.height, request.num_frames, request.batch)
    if not model.is_video and model.vae.temporal_compression > 1:
        shape = (*shape[:2], 1, *shape[2:])  # a video autoencoder that makes pictures
    shaped = Settings.model_validate(cache.shaping(settings))
    trace = dry_part(model, request, shaped, model.vae.component, "decode", shape)
    cache.write(name(rebuilt), encode(trace))
    return trace
