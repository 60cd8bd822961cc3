"""Choose among what was measured: the smallest configuration that passed, and how many cards a demand takes.

In: records of one request, the bytes a card has, prices, a demand. Out: a `Choice`. More cards are named only where
the lower end of the measured throughput says that one is not enough; where the repetitions are too few or too uneven
to tell, the choice says how many are missing instead of guessing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadRequest
from cardfit.measure.samples import headline, interval, repeats_for, steady
from cardfit.records.models import OutcomeKind, Quality, Reason, Record
from cardfit.request import ExactRequest, Settings

SCHEMA = "cardfit.choice/1"
HEADROOM = 0.05
SECONDS_PER_HOUR = 3600
By = Literal["memory", "price", "seconds"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Limits(_Frozen):
    """What an output may lose against its reference; ``None`` does not ask. ``max_seam`` is a score: 6 is a seam."""

    min_ssim: float | None = None
    max_seam: float | None = None

    def check(self) -> None:
        """Raise BadRequest for limits that cannot be meant."""
        if self.min_ssim is not None and not -1 <= self.min_ssim <= 1:
            raise BadRequest("choose-bad-ssim", asked=self.min_ssim)
        if self.max_seam is not None and not 0 <= self.max_seam < math.inf:
            raise BadRequest("choose-bad-seam", asked=self.max_seam)

    def broken_by(self, quality: Quality | None) -> Reason | None:
        """Why an output of ``quality`` does not pass; None where it does. One that was not compared does not."""
        if self == ANY:
            return None
        if quality is None:
            return Reason.of("choose-not-compared")
        if self.min_ssim is not None and quality.ssim < self.min_ssim:
            code = "choose-diverged" if quality.diverged else "choose-low-ssim"
            return Reason.of(code, ssim=quality.ssim, asked=self.min_ssim)
        seam = quality.seam_score
        if self.max_seam is not None and seam is not None and seam > self.max_seam:
            return Reason.of("choose-seam", seam=seam, asked=self.max_seam)
        return None


ANY = Limits()


class Throughput(_Frozen):
    """Outputs an hour of one card: the mean, and its 95 % interval where repetitions allow one."""

    per_hour: float
    low_per_hour: float | None
    high_per_hour: float | None
    repeats: int


class Candidate(_Frozen):
    """One configuration on one device, with every record of it."""

    settings: Settings
    on: Annotated[str, Field(description="card, or the device of a CPU run")]
    records: tuple[str, ...]
    outcomes: tuple[OutcomeKind, ...]
    peak_bytes: float | None
    usable_bytes: int | None
    headroom_share: float | None
    seconds: float | None
    throughput: Throughput | None
    cost_per_output: Annotated[float | None, Field(description="USD")] = None
    quality: Annotated[
        Quality | None, Field(description="the worst of its records by SSIM; None: not compared")
    ] = None
    passed: bool
    why: Reason


class Cards(_Frozen):
    """Cards for a demand: ``cards`` where the measurement decides, else ``None`` and how many repeats are missing."""

    demand_per_hour: float
    cards: int | None
    cards_low: int | None
    cards_high: int | None
    missing_repeats: int | None
    why: Reason


class Choice(_Frozen):
    """What to run on: ``chosen`` is an index into ``candidates``, ``None`` where nothing passed."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    model: str
    by: By
    headroom: float
    candidates: tuple[Candidate, ...]
    chosen: int | None
    why: Reason
    demand: Cards | None = None


def choose(
    records: Sequence[Record],
    *,
    by: By = "memory",
    headroom: float = HEADROOM,
    demand_per_hour: float | None = None,
    limits: Limits = ANY,
    usable: Callable[[Record], int | None] = lambda _record: None,
    price_per_hour: Callable[[str], float | None] = lambda _card: None,
) -> Choice:
    """The smallest configuration among ``records`` of one request that passed in every run of it.

    ``headroom`` is the share of usable bytes that is to stay free; a candidate whose usable bytes nobody knows passes
    by having run. ``limits`` are for the output: one that was never compared does not pass them. ``by`` orders those
    that passed: least memory, least cost of an output, or least time. Raises BadRequest for records of several
    requests, none, or figures that cannot be meant.
    """
    real = tuple(record for record in records if not record.fake)
    if records and not real:
        raise BadRequest("choose-only-fake", count=len(records))
    records = real
    _check(records, headroom, demand_per_hour)
    limits.check()
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        assert record.settings is not None
        key = (record.settings.model_dump_json(), record.machine.card or record.device)
        groups.setdefault(key, []).append(record)
    made = [
        _candidate(each, on, headroom, _asked(limits, each, records), usable, price_per_hour)
        for (_, on), each in groups.items()
    ]
    candidates = tuple(sorted(made, key=lambda each: (not each.passed, _rank(each, by))))
    passed = [each for each in candidates if each.passed]
    if not passed:
        why = Reason.of("choose-nothing", count=len(candidates))
        return Choice(
            model=records[0].model or "",
            by=by,
            headroom=headroom,
            candidates=candidates,
            chosen=None,
            why=why,
        )
    best = passed[0]
    why = Reason.of(f"choose-least-{by}", count=len(passed), of=len(candidates))
    demand = None
    if demand_per_hour is not None:
        demand = _cards(demand_per_hour, best, _seconds(groups, best), _batch(records[0]))
    return Choice(
        model=records[0].model or "",
        by=by,
        headroom=headroom,
        candidates=candidates,
        chosen=0,
        why=why,
        demand=demand,
    )


def _check(records: Sequence[Record], headroom: float, demand: float | None) -> None:
    if not 0 <= headroom < 1:
        raise BadRequest("choose-bad-headroom", asked=headroom)
    if demand is not None and not 0 < demand < 1e9:
        raise BadRequest("choose-bad-demand", asked=demand)
    if not records:
        raise BadRequest("choose-no-records")
    if any(record.request is None or record.settings is None for record in records):
        raise BadRequest("choose-own-code")
    asked = {_without_seed(record.request) for record in records if record.request is not None}
    if len(asked) > 1:
        raise BadRequest("choose-several", count=len(asked))


def _asked(limits: Limits, records: Sequence[Record], every: Sequence[Record]) -> Limits:
    """``limits``, or none for what the others were held against."""
    references = {record.quality.reference for record in every if record.quality is not None}
    return ANY if any(record.id in references for record in records) else limits


def _without_seed(request: ExactRequest) -> str:
    return request.model_dump_json(exclude={"seed"})


def _candidate(
    records: Sequence[Record],
    on: str,
    headroom: float,
    limits: Limits,
    usable: Callable[[Record], int | None],
    price: Callable[[str], float | None],
) -> Candidate:
    settings = records[0].settings
    assert settings is not None
    peaks = [peak for record in records if (peak := headline(record).peak_bytes) is not None]
    peak, room = max(peaks, default=None), usable(records[0])
    outcomes = tuple(record.outcome.kind for record in records)
    free = None if peak is None or not room else 1 - peak / room
    passed, why = _passes(outcomes, free, headroom)
    compared = [record.quality for record in records if record.quality is not None]
    lost = next(filter(None, map(limits.broken_by, compared)), None)
    lost = lost if compared else limits.broken_by(None)
    if passed and lost is not None:
        passed, why = False, lost
    found = _throughput(_times(records), _batch(records[0]))
    rate = price(on)
    cost = None if rate is None or found is None else rate / found.per_hour
    return Candidate(
        settings=settings,
        on=on,
        records=tuple(record.id for record in records),
        outcomes=outcomes,
        peak_bytes=peak,
        usable_bytes=room,
        headroom_share=free,
        seconds=None if found is None else SECONDS_PER_HOUR * _batch(records[0]) / found.per_hour,
        throughput=found,
        cost_per_output=cost,
        quality=min(compared, key=lambda each: each.ssim, default=None),
        passed=passed,
        why=why,
    )


def _passes(
    outcomes: Sequence[OutcomeKind], free: float | None, headroom: float
) -> tuple[bool, Reason]:
    told = [
        kind for kind in outcomes if kind != "interrupted"
    ]  # a run that was stopped says nothing
    failed = [kind for kind in told if kind != "ok"]
    if failed:
        return False, Reason.of("choose-failed", kind=failed[0], count=len(failed), of=len(told))
    if not told:
        return False, Reason.of("choose-not-finished")
    if free is not None and free < headroom:
        return False, Reason.of("choose-too-near", free=100 * free, asked=100 * headroom)
    if free is None:
        return True, Reason.of("choose-ran")
    return True, Reason.of("choose-fits", free=100 * free)


def _times(records: Sequence[Record]) -> list[float]:
    """Seconds of every steady repetition of the records that ended well."""
    return [each.seconds for record in records if record.ok for each in steady(record)]


def _batch(record: Record) -> int:
    return record.request.batch if record.request is not None else 1


def _throughput(seconds: Sequence[float], batch: int) -> Throughput | None:
    if not seconds:
        return None
    found = interval(seconds)
    low = high = None
    if found.half is not None:
        low = SECONDS_PER_HOUR * batch / (found.mean + found.half)
        least = found.mean - found.half
        high = SECONDS_PER_HOUR * batch / least if least > 0 else None
    return Throughput(
        per_hour=SECONDS_PER_HOUR * batch / found.mean,
        low_per_hour=low,
        high_per_hour=high,
        repeats=found.n,
    )


def _rank(candidate: Candidate, by: By) -> tuple[float, float]:
    """Least first; what has no figure last; seconds decide between equals."""
    figures = {
        "memory": candidate.peak_bytes,
        "price": candidate.cost_per_output,
        "seconds": candidate.seconds,
    }
    value = figures[by]
    seconds = candidate.seconds
    return (math.inf if value is None else value, math.inf if seconds is None else seconds)


def _seconds(groups: Mapping[tuple[str, str], Sequence[Record]], chosen: Candidate) -> list[float]:
    return _times(groups[(chosen.settings.model_dump_json(), chosen.on)])


def _cards(demand: float, chosen: Candidate, seconds: Sequence[float], batch: int) -> Cards:
    """Cards for ``demand`` outputs an hour, by the ends of the interval; undecided where they differ."""
    found = chosen.throughput
    if found is None or found.low_per_hour is None:
        return _undecided(demand, None, None, repeats_for(seconds, 0.0) - len(seconds))
    most = math.ceil(demand / found.low_per_hour)
    least = 1 if found.high_per_hour is None else math.ceil(demand / found.high_per_hour)
    if most == least:
        code = "choose-one-is-enough" if most == 1 else "choose-cards"
        why = Reason.of(code, cards=most, demand=demand, low=found.low_per_hour)
        return Cards(
            demand_per_hour=demand,
            cards=most,
            cards_low=least,
            cards_high=most,
            missing_repeats=0,
            why=why,
        )
    mean = sum(seconds) / len(seconds)
    # the number of cards changes where the mean is this many seconds a call
    edges = [count * SECONDS_PER_HOUR * batch / demand for count in range(1, most + 1)]
    half = min(abs(mean - edge) for edge in edges)
    if half <= 0:
        return _undecided(demand, least, most, None)
    return _undecided(demand, least, most, max(1, repeats_for(seconds, half) - len(seconds)))


def _undecided(demand: float, least: int | None, most: int | None, missing: int | None) -> Cards:
    code = "choose-more-repeats" if missing is not None else "choose-on-the-edge"
    return Cards(
        demand_per_hour=demand,
        cards=None,
        cards_low=least,
        cards_high=most,
        missing_repeats=missing,
        why=Reason.of(code, missing=missing, demand=demand),
    )
