"""The search: for each card the least costly settings that fit, else that are tight, else the nearest miss.

In: candidates in the order of their price, a card, and `Estimates` (a memo over the dry run and
the memory replay, so that a tiling is traced only when some card needs it). Out: a `Choice`.
Every card walks the same list. A candidate is left out for a card when what its tensors take at
one moment that is known already is more than the card holds (`plan.floor`).

cuBLAS's workspace is the only thing in an estimate that the architecture changes (8 MiB before
Hopper, 32 MiB since): a later card is judged by the earlier class's replay, and by its own only
where that could change the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from cardfit.plan.floor import ANY_TILING, floor_bytes, reference
from cardfit.plan.knobs import Candidate, trace_key
from cardfit.plan.target import Band, Target
from cardfit.plan.verdict import Host, Judgement, judge, judge_limited, needs_limit
from cardfit.predict.estimate import MemoryEstimate, wider
from cardfit.request import OFFLOADS, Settings
from cardfit.trace.stream import Trace
from cardfit.units import MIB

Tracer = Callable[[Settings], Trace]
# (trace, settings, architecture, limit in bytes)
Predictor = Callable[[Trace, Settings, str | None, int | None], MemoryEstimate]

_LATER = {"hopper": "Hopper", "blackwell": "Blackwell"}
# The most that the later class's workspace adds to what is reserved: a segment of its own.
LATER_MORE_BYTES = 32 * MIB
# Limits are rounded down to this, so that cards of one size share a replay; the error is on the safe side.
LIMIT_STEP_BYTES = 128 * MIB
# A replay whose tensors take no more than this times the floor is as low as offload can bring it.
AT_FLOOR = 1.02
_IN_PIECES = ("group-block", "group-leaf", "sequential")


def architecture_class(architecture: str | None) -> str | None:
    """Cards of one class share their estimates: ``None`` for everything before Hopper.

    >>> architecture_class("Ada Lovelace"), architecture_class("Hopper")
    (None, 'Hopper')
    """
    words = (architecture or "").lower().split()
    return _LATER.get(words[0]) if words else None


@dataclass(slots=True)
class Estimates:
    """A memo: traces by the settings that shape them, estimates by (settings, architecture class, limit).

    ``replayed`` is called before each replay with the number of replays so far.
    """

    tracer: Tracer
    predictor: Predictor
    replayed: Callable[[int, Settings], None] | None = None
    # whether a trace can be had: without torch only where the atlas holds it
    can: Callable[[Settings], bool] | None = None
    wider_by: float = 0.0  # bands reach so much further: other versions will run than were traced
    _traces: dict[str, Trace] = field(default_factory=dict)
    _found: dict[tuple[str, str | None, int | None], MemoryEstimate] = field(default_factory=dict)
    _ended: dict[tuple[str, str | None], int] = field(default_factory=dict)
    _floors: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict)

    def trace(self, settings: Settings) -> Trace:
        """The trace for ``settings``, made at the first call."""
        key = trace_key(settings)
        name = key.model_dump_json()
        if name not in self._traces:
            self._traces[name] = self.tracer(key)
        return self._traces[name]

    def traceable(self, options: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Those of ``options`` whose traces can be had."""
        if self.can is None:
            return options
        keys = {each.shape: each.settings for each in options}
        held = {
            name for name, each in keys.items() if name in self._traces or self.can(trace_key(each))
        }
        return tuple(each for each in options if each.shape in held)

    def floors(self, candidates: tuple[Candidate, ...]) -> tuple[int, ...]:
        """`floor_bytes` of each, which no card changes."""
        names = tuple(each.name for each in candidates)
        found = self._floors.get(names)
        if found is None:
            known = reference(candidates)
            found = (0,) * len(candidates)
            if known is not None:
                trace, estimate = self.trace(known), self.of(known)
                found = tuple(
                    floor_bytes(each.settings, known, trace, estimate) for each in candidates
                )
            self._floors[names] = found
        return found

    def of(
        self, settings: Settings, architecture: str | None = None, limit_bytes: int | None = None
    ) -> MemoryEstimate:
        """The memory of ``settings`` on a card of ``architecture``, with its bytes as a limit if given."""
        kind = architecture_class(architecture)
        key = (settings.model_dump_json(), kind, limit_bytes)
        if key not in self._found:
            trace = self.trace(settings)
            if self.replayed is not None:
                self.replayed(len(self._found), settings)
            found = self.predictor(trace, settings, kind, limit_bytes)
            self._found[key] = wider(found, self.wider_by) if self.wider_by else found
        return self._found[key]

    def limited(
        self, settings: Settings, architecture: str | None, usable_bytes: int
    ) -> MemoryEstimate | None:
        """`of` with ``usable_bytes`` as the limit; ``None`` where a higher limit ended the run before."""
        limit = usable_bytes // LIMIT_STEP_BYTES * LIMIT_STEP_BYTES
        key = (settings.model_dump_json(), architecture_class(architecture))
        if limit <= self._ended.get(key, -1):
            return None
        found = self.of(settings, architecture, limit)
        if found.failure is not None:
            self._ended[key] = limit
        return found

    def before_decode(self, settings: Settings) -> tuple[int, int]:
        """Bytes allocated and reserved before decoding, if known without tiles, slices, chunks; else 0.

        Until then the two runs are the same, event by event, unless the VAE encodes something first.
        """
        plain = settings.model_copy(
            update={"vae_tiling": False, "vae_slicing": False, "decode_chunk_size": None}
        )
        found = self._found.get((plain.model_dump_json(), None, None))
        if found is None or plain == settings:
            return 0, 0
        stages = {each.name: each for each in found.stages}
        if "encode_condition" in stages:
            return 0, 0
        same = [stages[name] for name in ANY_TILING if name in stages]
        return (
            max((each.allocated_bytes for each in same), default=0),
            max((each.reserved_bytes for each in same), default=0),
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for a card and how it was judged."""

    candidate: Candidate
    judgement: Judgement


def choose(
    candidates: tuple[Candidate, ...],
    target: Target,
    usable: Band,
    host: Host,
    estimates: Estimates,
) -> Choice:
    """The best of ``candidates`` on ``target``: the first that fits, else the first tight one, else the smallest.

    ``candidates`` is in the order of cost and not empty.
    """
    tried: list[Choice] = []
    at_limit: list[Candidate] = []
    for candidate, judgement in _judged(candidates, target, usable, host, estimates):
        if judgement is None or needs_limit(judgement):
            at_limit.append(candidate)
        if judgement is not None:
            tried.append(Choice(candidate, judgement))
            if judgement.verdict == "fits":
                return tried[-1]
    for choice in tried:
        if choice.judgement.verdict == "tight":
            return choice
    for candidate in at_limit:
        limited = estimates.limited(candidate.settings, target.architecture, usable.likely)
        if limited is not None and (found := judge_limited(limited, usable, host)) is not None:
            return Choice(candidate, found)
    spilling = [each for each in tried if each.judgement.verdict == "spills"]
    return _smallest(spilling or _enough_ram(tried) or tried)


def _judged(
    candidates: tuple[Candidate, ...],
    target: Target,
    usable: Band,
    host: Host,
    estimates: Estimates,
) -> Iterable[tuple[Candidate, Judgement | None]]:
    """The candidates that may hold, in order; the one that takes least always.

    ``None`` where another replay says already that it is over the card unless the cache is freed.
    """
    floors = estimates.floors(candidates)
    least = min(range(len(candidates)), key=lambda at: _least(candidates[at], floors[at]))
    spent = set[
        str
    ]()  # traces whose activations alone decide: smaller pieces of weights free nothing
    for at, candidate in enumerate(candidates):
        if at != least and floors[at] > usable.likely:
            continue
        settings = candidate.settings
        key = candidate.shape
        allocated, reserved = estimates.before_decode(settings)
        judgement = None
        over = reserved > usable.likely
        if at == least or not (over or (key in spent and settings.offload in _IN_PIECES)):
            judgement = judge_on(candidate, target, host, estimates)
            allocated, over = judgement.estimate.allocated_bytes, judgement.over_bytes > 0
        yield candidate, judgement
        if over and settings.offload == "group-leaf" and allocated <= floors[at] * AT_FLOOR:
            spent.add(key)


def _least(candidate: Candidate, floor: int) -> tuple[object, ...]:
    """By the floor; where it says nothing, full weights moved in the smallest pieces, tiled only for a reason."""
    settings = candidate.settings
    smaller = int(bool(settings.vae_tiling)) + int(settings.decode_chunk_size is not None)
    lossy = any(scheme != "none" for scheme in settings.quantization.values())
    offload = OFFLOADS.index(settings.offload or "none")
    return (floor, lossy, -candidate.cost[0], smaller if floor else -smaller, -offload)


def judge_on(candidate: Candidate, target: Target, host: Host, estimates: Estimates) -> Judgement:
    """The verdict of ``candidate`` on ``target``, whose facts are known, by a replay for its architecture if needed."""
    usable = target.usable
    assert usable is not None
    estimate = estimates.of(candidate.settings)
    found = judge(estimate, usable, host)
    if architecture_class(target.architecture) is None:
        return found
    more = replace(
        estimate,
        reserved_bytes=estimate.reserved_bytes + LATER_MORE_BYTES,
        reserved_high_bytes=estimate.reserved_high_bytes + LATER_MORE_BYTES,
    )
    if judge(more, usable, host).verdict == found.verdict:
        return found
    return judge(estimates.of(candidate.settings, target.architecture), usable, host)


def _enough_ram(tried: list[Choice]) -> list[Choice]:
    return [each for each in tried if each.judgement.reason != "host"]


def _smallest(tried: list[Choice]) -> Choice:
    return min(tried, key=lambda each: each.judgement.estimate.reserved_bytes)
