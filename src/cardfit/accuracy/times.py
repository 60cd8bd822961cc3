"""Published times against predictions: errors per row, after one record on the same card, and the order of cards.

In: a file with the header of `benchmarks/data/times.csv`. Out: a `TimesAccuracy`. One published row of a card, source
and framework stands for a record that corrects the others (`after_one_record`). Cards are in order where, of two that
did the same work and differ by more than a tenth, the faster one is predicted faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.accuracy.score import Errors
from cardfit.accuracy.times_rebuild import NotTimed, TimedRun, WhyNotTimed, rebuild
from cardfit.accuracy.times_rows import PublishedTime, read
from cardfit.accuracy.times_trace import totals_of
from cardfit.errors import CardfitError
from cardfit.predict.efficiency import Factors, held_out
from cardfit.predict.timing import TimeEstimate, seconds
from cardfit.predict.totals import Totals
from cardfit.trace import cache

SCHEMA = "cardfit.times/1"
APART = 0.10  # times of two cards that differ by more must be predicted in their order
Progress = Callable[[str, float | None], None]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ScoredTime(_Frozen):
    """One row: measured and predicted seconds of a run, a step or a call of the autoencoder, with the band.

    ``reached`` is the share of the ceiling that the prediction reaches, ``work`` the same text for the same work.
    """

    id: str
    model: str
    family: str
    card: str
    framework: str
    source: str
    part: str
    compiled: bool
    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    error_pct: float
    reached: float
    work: str


class SkippedTime(_Frozen):
    """A row that is not scored: a reason of the closed list, and what stood in the way."""

    id: str
    why: WhyNotTimed
    detail: str = ""
    row: int | None = None
    column: str | None = None


class Order(_Frozen):
    """Pairs of cards on the same work that differ by more than a tenth, and how many are predicted in order."""

    pairs: int
    right: int

    @property
    def share(self) -> float | None:
        """Right of all; None without pairs."""
        return self.right / self.pairs if self.pairs else None


class TimesAccuracy(_Frozen):
    """Rows, skips and summaries. ``held_out`` is what the fit said of families that it had not seen.

    ``inside`` is the share of rows within their band.
    """

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    rows: tuple[ScoredTime, ...]
    skipped: tuple[SkippedTime, ...]
    summary: dict[str, Errors]
    order: Order
    inside: float | None
    held_out: Errors
    by_card: dict[str, Errors]
    by_family: dict[str, Errors]
    by_framework: dict[str, Errors]


def score(path: Path, *, progress: Progress | None = None) -> TimesAccuracy:
    """Rebuild and predict every row of ``path``.

    Raises BadFile for a file with another header; ModuleNotFoundError when a package that a dry run needs is missing.
    """
    good, bad = read(path)
    skipped = [
        SkippedTime(id=b.id, why=WhyNotTimed.BAD_VALUE, detail=b.found, row=b.row, column=b.column)
        for b in bad
    ]
    found: list[ScoredTime] = []
    for done, row in enumerate(good):
        try:
            run = rebuild(row)
            if progress is not None:
                progress(f"{row.id} {run.model.id}", done / len(good))
            found.append(scored(row, run, totals_of(run)))
        except NotTimed as reason:
            skipped.append(SkippedTime(id=row.id, why=reason.why, detail=reason.detail))
        except CardfitError as failed:
            why = WhyNotTimed.DRY_RUN_FAILED
            skipped.append(SkippedTime(id=row.id, why=why, detail=str(failed)))
    return summed(tuple(found), tuple(skipped))


def summed(rows: tuple[ScoredTime, ...], skipped: tuple[SkippedTime, ...]) -> TimesAccuracy:
    """The page's figures from its rows."""
    inside = [row.low_s <= row.measured_s <= row.high_s for row in rows]
    return TimesAccuracy(
        versions=cache.versions() if rows else {},
        rows=rows,
        skipped=skipped,
        summary={
            "time": Errors.of([row.error_pct for row in rows]),
            "after_one_record": Errors.of(after_one_record(rows)),
        },
        order=order(rows),
        inside=round(sum(inside) / len(inside), 4) if inside else None,
        held_out=Errors(**held_out()),
        by_card=_grouped(rows, lambda row: row.card),
        by_family=_grouped(rows, lambda row: row.family),
        by_framework=_grouped(rows, lambda row: row.framework),
    )


def _grouped(rows: Sequence[ScoredTime], key: Callable[[ScoredTime], str]) -> dict[str, Errors]:
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row.error_pct)
    return {name: Errors.of(errors) for name, errors in sorted(groups.items())}


def estimate_of(run: TimedRun, work: Totals, using: Factors | None = None) -> TimeEstimate:
    """The prediction for a rebuilt row."""
    return seconds(work, run.settings, run.card, kernel=run.kernel, using=using)


def part_of(run: TimedRun, found: TimeEstimate) -> tuple[float, float, float] | None:
    """Low, likely and high seconds of what the row measured; None where they cannot be said."""
    value = found.step if run.part == "step" else found.total
    return None if value is None else (value.low, value.likely, value.high)


def scored(row: PublishedTime, run: TimedRun, work: Totals) -> ScoredTime:
    """One row against its prediction. Raises NotTimed where the card's seconds cannot be said."""
    found = estimate_of(run, work)
    value = part_of(run, found)
    if value is None:
        raise NotTimed(WhyNotTimed.RATE_UNKNOWN, " ".join(note.text for note in found.notes))
    low, likely, high = value
    return ScoredTime(
        id=row.id,
        model=run.model.id,
        family=run.model.family,
        card=run.card.id,
        framework=row.framework,
        source=row.source,
        part=run.part,
        compiled=bool(run.settings.compile),
        measured_s=row.seconds,
        predicted_s=likely,
        low_s=low,
        high_s=high,
        error_pct=round(100 * (likely / row.seconds - 1), 4),
        reached=found.reached or 0.0,
        work=work_of(run),
    )


def work_of(run: TimedRun) -> str:
    """The same text for runs of the same work: model, sizes, steps, precision, part, compiled or not."""
    request: dict[str, Any] = run.request.model_dump(exclude={"seed", "fps", "runtime"})
    settings = run.settings.model_dump(exclude={"offload"}, exclude_defaults=True)
    return f"{sorted(request.items())} {sorted(settings.items())} {run.part}"


def after_one_record(rows: Sequence[ScoredTime]) -> list[float]:
    """Errors in percent of each row, corrected by each other row of its card, source and framework."""
    groups: dict[tuple[str, str, str], list[ScoredTime]] = defaultdict(list)
    for row in rows:
        groups[row.card, row.source, row.framework].append(row)
    errors = []
    for members in groups.values():
        for record in members:
            factor = record.measured_s / record.predicted_s
            errors += [
                round(100 * (factor * each.predicted_s / each.measured_s - 1), 4)
                for each in members
                if each is not record
            ]
    return errors


def order(rows: Sequence[ScoredTime]) -> Order:
    """How many pairs of cards on the same work are predicted in their order."""
    groups: dict[str, list[ScoredTime]] = defaultdict(list)
    for row in rows:
        groups[row.work].append(row)
    pairs = right = 0
    for members in groups.values():
        for one, other in combinations(members, 2):
            fast, slow = sorted((one, other), key=lambda row: row.measured_s)
            if one.card == other.card or slow.measured_s <= (1 + APART) * fast.measured_s:
                continue
            pairs += 1
            right += fast.predicted_s < slow.predicted_s
    return Order(pairs=pairs, right=right)
