"""Published rows against predictions: errors per row, and their summary by kind, source and model family.

In: the rows of a file. Out: an `Accuracy`. Allocated, reserved and device figures are never mixed in one number; a
figure whose kind the source does not name is compared with the allocated peak and summed up apart as ``unnamed``.
Rows that are held against the diffusers of their time are summed up apart too, as ``matching``; bands are made of them
and of rows that tell no time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cardfit.accuracy import rivals
from cardfit.accuracy.bands import Band, band
from cardfit.accuracy.kept import Kept
from cardfit.accuracy.kept import kept as kept_traces
from cardfit.accuracy.older import series_of
from cardfit.accuracy.rebuild import NotRebuilt, Rebuilt, Why, rebuild
from cardfit.accuracy.rows import Kind, Published, read
from cardfit.accuracy.runs import Runs
from cardfit.cards.usable import CONTEXT_LIKELY_BYTES
from cardfit.errors import BadFile, CardfitError
from cardfit.plan.answer import Said
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.memory import CUBLAS_WORKSPACE_BYTES, CUBLAS_WORKSPACE_HOPPER_BYTES
from cardfit.trace import cache
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

    ``versions`` is the diffusers whose code was traced, ``series`` the release series of the row's time, None where the
    row tells neither version nor day. ``matching`` says that the two give the same figures. ``rivals`` holds the same
    error of the simpler rules that speak of the row.
    """

    id: str
    kind: Kind
    measured_bytes: int
    predicted_bytes: int
    error_pct: float
    source: str
    family: str
    model: str
    versions: str
    series: str | None
    matching: bool
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


class Summary(_Frozen):
    """Errors of all rows by kind of figure and of the rivals; ``matching`` holds those of matching rows by kind."""

    allocated: Errors
    reserved: Errors
    device: Errors
    unnamed: Errors
    rule: Errors
    weights_only: Errors
    comfyui: Errors
    invokeai: Errors
    matching: dict[Kind, Errors]

    def __getitem__(self, name: str) -> Errors:
        found = getattr(self, name)
        assert isinstance(found, Errors)
        return found


class Accuracy(_Frozen):
    """Rows, skips and summaries. ``by_source`` and ``by_family`` hold one summary a kind of figure that occurs."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    rows: tuple[ScoredRow, ...]
    skipped: tuple[SkippedRow, ...]
    summary: Summary
    by_source: dict[str, dict[str, Errors]]
    by_family: dict[str, dict[str, Errors]]
    bands: dict[str, Band]
    notes: tuple[Said, ...] = ()


def score(path: Path, *, progress: Progress | None = None, kept: Kept | None = None) -> Accuracy:
    """Rebuild and predict every row of ``path``, with the diffusers of its time where ``kept`` has it.

    Left out, ``kept`` is what the package keeps. Raises BadFile for a file with another header or for kept traces that
    cannot be read; ModuleNotFoundError when a package that a dry run needs is missing.
    """
    good, bad = read(path)
    runs = Runs(kept_traces() if kept is None else kept)
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
            found.append(_scored(row, rebuilt, runs))
        except NotRebuilt as reason:
            skipped.append(SkippedRow(id=row.id, why=reason.why, detail=reason.detail))
        except BadFile:
            raise
        except CardfitError as failed:
            skipped.append(SkippedRow(id=row.id, why=Why.DRY_RUN_FAILED, detail=str(failed)))
    rows = tuple(found)
    installed = cache.versions() if rows else {}
    return Accuracy(
        versions=installed,
        rows=rows,
        skipped=tuple(skipped),
        summary=summary(rows),
        by_source=_grouped(rows, lambda row: row.source),
        by_family=_grouped(rows, lambda row: row.family),
        bands=bands(rows),
        notes=tuple(_notes(rows, installed)),
    )


def summary(rows: Sequence[ScoredRow]) -> Summary:
    """One summary a kind, and of the rivals over the rows they speak of."""
    by_name = {
        name: Errors.of([row.rivals[name] for row in rows if name in row.rivals])
        for name in rivals.RIVALS
    }
    matching = [row for row in rows if row.matching]
    return Summary(**_by_kind(rows), **by_name, matching=_by_kind(matching))


def bands(rows: Sequence[ScoredRow]) -> dict[str, Band]:
    """The bands of matching rows and of rows that tell no time, whatever their error; none without such rows."""
    chosen = [row for row in rows if row.matching or row.series is None]
    return {kind: band(chosen, kind) for kind in BANDS} if chosen else {}


def _by_kind(rows: Sequence[ScoredRow]) -> dict[Kind, Errors]:
    return {kind: Errors.of([row.error_pct for row in rows if row.kind == kind]) for kind in KINDS}


def _notes(rows: Sequence[ScoredRow], installed: dict[str, str]) -> Iterator[Said]:
    """Which rows were held against another release than that of their time."""
    other = [row for row in rows if not row.matching]
    for code, found in (
        ("accuracy-other-versions", [row.id for row in other if row.series is not None]),
        ("accuracy-no-time", [row.id for row in other if row.series is None]),
    ):
        if found:
            yield Said.of(code, installed=installed["diffusers"], rows=", ".join(found))


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


def _scored(row: Published, rebuilt: Rebuilt, runs: Runs) -> ScoredRow:
    series = series_of(row)
    run = runs.of(rebuilt, series)
    predicted = predicted_bytes(row.kind, rebuilt, run.trace, run.memory)
    measured = row.peak_bytes or 0
    said = rivals.figures(rebuilt, run.trace, run.memory)
    return ScoredRow(
        id=row.id,
        kind=row.kind,
        measured_bytes=measured,
        predicted_bytes=predicted,
        error_pct=error_pct(predicted, measured),
        source=row.source,
        family=rebuilt.model.family,
        model=rebuilt.model.id,
        versions=run.diffusers,
        series=series,
        matching=run.matching,
        rivals={name: error_pct(size, measured) for name, size in said.items()},
    )


def error_pct(predicted_bytes: int, measured_bytes: int) -> float:
    """Predicted against measured in percent.

    >>> error_pct(90, 100)
    -10.0
    """
    return round(100 * (predicted_bytes - measured_bytes) / measured_bytes, 4)


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
    if rebuilt.in_place and not rebuilt.loading:  # counted from the first call on
        allocated = max(stage.allocated_bytes for stage in found.stages if stage.name != "load")
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
