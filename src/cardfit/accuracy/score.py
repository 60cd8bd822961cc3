"""Published rows against predictions: errors per row, and their summary by kind, source and model family.

In: the rows of a file. Out: an `Accuracy`. Allocated, reserved and device figures are never mixed in one number; a
figure whose kind the source does not name is compared with the allocated peak and summed up apart as ``unnamed``.
Rows of one configuration share one trace.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cardfit.accuracy import rivals
from cardfit.accuracy.bands import Band, band
from cardfit.accuracy.rebuild import NotRebuilt, Rebuilt, Why, rebuild
from cardfit.accuracy.rows import Kind, Published, read
from cardfit.cards.usable import CONTEXT_LIKELY_BYTES
from cardfit.errors import CardfitError
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.memory import CUBLAS_WORKSPACE_BYTES, CUBLAS_WORKSPACE_HOPPER_BYTES, estimate
from cardfit.predict.store import kept
from cardfit.trace import cache
from cardfit.trace.coding import decode, encode
from cardfit.trace.stream import Op, Trace

SCHEMA = "cardfit.accuracy/1"
_HOPPER_ON = ("Hopper", "Blackwell")
KINDS: tuple[Kind, ...] = ("allocated", "reserved", "device", "unnamed")
BANDS: tuple[Kind, ...] = ("allocated", "reserved", "device")
Progress = Callable[[str, float | None], None]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ScoredRow(_Frozen):
    """One row: measured and predicted in bytes, ``error_pct`` is predicted against measured.

    ``rivals`` holds the same error of the simpler rules that speak of the row.
    """

    id: str
    kind: Kind
    measured_bytes: int
    predicted_bytes: int
    error_pct: float
    source: str
    family: str
    model: str
    rivals: dict[str, float] = {}


class SkippedRow(_Frozen):
    """A row that is not scored: a reason of the closed list, and what stood in the way."""

    id: str
    why: Why
    detail: str = ""
    row: int | None = None
    column: str | None = None


class Errors(_Frozen):
    """Errors of ``n`` rows in percent; ``worst_pct`` keeps its sign. None where there is no row."""

    n: int
    median_abs_pct: float | None
    p90_abs_pct: float | None
    worst_pct: float | None

    @classmethod
    def of(cls, errors: Sequence[float]) -> Errors:
        """The summary of signed percentages; the 90th percentile is the smallest that 90 % of the rows stay under.

        >>> Errors.of([1.0, -2.0, 3.0]).median_abs_pct
        2.0
        """
        if not errors:
            return cls(n=0, median_abs_pct=None, p90_abs_pct=None, worst_pct=None)
        ordered = sorted(abs(error) for error in errors)
        return cls(
            n=len(errors),
            median_abs_pct=round(statistics.median(ordered), 4),
            p90_abs_pct=ordered[math.ceil(0.9 * len(ordered)) - 1],
            worst_pct=max(errors, key=abs),
        )


class Accuracy(_Frozen):
    """Rows, skips and summaries. ``by_source`` and ``by_family`` hold one summary a kind of figure that occurs."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    rows: tuple[ScoredRow, ...]
    skipped: tuple[SkippedRow, ...]
    summary: dict[str, Errors]
    by_source: dict[str, dict[str, Errors]]
    by_family: dict[str, dict[str, Errors]]
    bands: dict[str, Band]


def score(path: Path, *, progress: Progress | None = None) -> Accuracy:
    """Rebuild and predict every row of ``path``.

    Raises BadFile for a file with another header; ModuleNotFoundError when a package that a dry run needs is missing.
    """
    good, bad = read(path)
    skipped = [
        SkippedRow(id=b.id, why=Why.BAD_VALUE, detail=b.found, row=b.row, column=b.column)
        for b in bad
    ]
    found: list[ScoredRow] = []
    for done, row in enumerate(good):
        try:
            rebuilt = rebuild(row)
            if progress is not None:
                progress(f"{row.id} {rebuilt.model.id}", done / len(good))
            found.append(_scored(row, rebuilt))
        except NotRebuilt as reason:
            skipped.append(SkippedRow(id=row.id, why=reason.why, detail=reason.detail))
        except CardfitError as failed:
            skipped.append(SkippedRow(id=row.id, why=Why.DRY_RUN_FAILED, detail=str(failed)))
    rows = tuple(found)
    return Accuracy(
        versions=cache.versions() if rows else {},
        rows=rows,
        skipped=tuple(skipped),
        summary=summary(rows),
        by_source=_grouped(rows, lambda row: row.source),
        by_family=_grouped(rows, lambda row: row.family),
        bands={kind: band(rows, kind) for kind in BANDS} if rows else {},
    )


def summary(rows: Sequence[ScoredRow]) -> dict[str, Errors]:
    """One summary a kind, and of the rivals over the rows they speak of."""
    found: dict[str, Errors] = {
        kind: Errors.of([row.error_pct for row in rows if row.kind == kind]) for kind in KINDS
    }
    for name in rivals.RIVALS:
        found[name] = Errors.of([row.rivals[name] for row in rows if name in row.rivals])
    return found


def _grouped(
    rows: Sequence[ScoredRow], key: Callable[[ScoredRow], str]
) -> dict[str, dict[str, Errors]]:
    groups: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        groups.setdefault(key(row), {}).setdefault(row.kind, []).append(row.error_pct)
    return {
        name: {kind: Errors.of(kinds[kind]) for kind in KINDS if kind in kinds}
        for name, kinds in sorted(groups.items())
    }


def _scored(row: Published, rebuilt: Rebuilt) -> ScoredRow:
    trace = _trace(rebuilt)
    memory = _estimate(rebuilt, trace)
    predicted = predicted_bytes(row.kind, rebuilt, trace, memory)
    measured = row.peak_bytes or 0
    said = rivals.figures(rebuilt, trace, memory)
    return ScoredRow(
        id=row.id,
        kind=row.kind,
        measured_bytes=measured,
        predicted_bytes=predicted,
        error_pct=error_pct(predicted, measured),
        source=row.source,
        family=rebuilt.model.family,
        model=rebuilt.model.id,
        rivals={name: error_pct(size, measured) for name, size in said.items()},
    )


def error_pct(predicted_bytes: int, measured_bytes: int) -> float:
    """Predicted against measured in percent.

    >>> error_pct(90, 100)
    -10.0
    """
    return round(100 * (predicted_bytes - measured_bytes) / measured_bytes, 4)


def _trace(rebuilt: Rebuilt) -> Trace:
    """The trace of the run, or of the decode alone, from the cache where it is there."""
    model, request, settings = rebuilt.model, rebuilt.request, rebuilt.settings
    if rebuilt.scope != "decode":
        return cache.cached(model, request, settings)[0]
    name = cache.name_of("decode", *cache.trace_parts(model, request, settings))
    stored = cache.read(name)
    if stored is not None:
        # a damaged file: trace again and write it anew
        with suppress(KeyError, TypeError, ValueError, IndexError):
            return decode(stored, request, settings)
    from cardfit.trace.dryrun import dry_part

    shape = model.latent_shape(request.width, request.height, request.num_frames, request.batch)
    if not model.is_video and model.vae.temporal_compression > 1:
        shape = (*shape[:2], 1, *shape[2:])  # a video autoencoder that makes pictures
    trace = dry_part(model, request, settings, model.vae.component, "decode", shape)
    cache.write(name, encode(trace))
    return trace


def _estimate(rebuilt: Rebuilt, trace: Trace) -> MemoryEstimate:
    settings, architecture = rebuilt.settings, rebuilt.architecture
    if rebuilt.scope == "decode":
        return estimate(trace, settings, architecture=architecture)
    return kept(
        estimate, rebuilt.model, trace, settings, architecture=architecture, limit_bytes=None
    )


def predicted_bytes(kind: Kind, rebuilt: Rebuilt, trace: Trace, found: MemoryEstimate) -> int:
    """The figure that the row measured.

    A working set is without weights and without cuBLAS's workspace, which a warmed-up run holds before. A denoiser
    alone is the denoise stage without the weights of the other components.
    """
    if rebuilt.scope == "decode":
        held = found.stages[0].weights_bytes + _workspace_bytes(rebuilt, trace)
        less = held if rebuilt.working else 0
        if kind in ("allocated", "unnamed"):
            return found.allocated_bytes - less
        if kind == "reserved":
            return found.reserved_bytes - less
        return found.reserved_bytes + CONTEXT_LIKELY_BYTES
    allocated, reserved = found.allocated_bytes, found.reserved_bytes
    if rebuilt.scope == "denoise":
        stage = next(stage for stage in found.stages if stage.name == "denoise")
        others = _others_bytes(rebuilt, trace)
        allocated, reserved = stage.allocated_bytes - others, stage.reserved_bytes - others
    if kind == "device":
        return reserved + CONTEXT_LIKELY_BYTES
    return reserved if kind == "reserved" else allocated


def _workspace_bytes(rebuilt: Rebuilt, trace: Trace) -> int:
    """cuBLAS's workspace where the trace multiplies matrices at all, by the generation of the card."""
    if not any(event[0] == Op.MATMUL for stream in trace.streams for event in stream.events):
        return 0
    newer = (rebuilt.architecture or "").startswith(_HOPPER_ON)
    return CUBLAS_WORKSPACE_HOPPER_BYTES if newer else CUBLAS_WORKSPACE_BYTES


def _others_bytes(rebuilt: Rebuilt, trace: Trace) -> int:
    """Weights that lie on the card while the denoiser runs and are not its own; with offload there are none."""
    if rebuilt.settings.offload != "none":
        return 0
    return sum(
        rivals.component_bytes(each, rebuilt.settings)
        for each in trace.components
        if not rivals.is_denoiser(each)
    )
