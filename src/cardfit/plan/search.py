"""The search: for each card the least costly settings that fit, else that are tight, else the nearest miss.

In: candidates in the order of their price, a card, and `Estimates` (a memo over the dry run and
the memory replay, so that a tiling is traced only when some card needs it). Out: a `Choice`.
Every card walks the same list; a candidate is left out for a card only when nothing with that
trace can fit there, because even leaf-by-leaf offload does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cardfit.plan.knobs import Candidate, trace_key
from cardfit.plan.target import Band, Target
from cardfit.plan.verdict import Host, Judgement, judge, judge_limited, needs_limit
from cardfit.predict.estimate import MemoryEstimate
from cardfit.request import Settings
from cardfit.trace.stream import Trace

Tracer = Callable[[Settings], Trace]
# (trace, settings, architecture, limit in bytes)
Predictor = Callable[[Trace, Settings, str | None, int | None], MemoryEstimate]

# cuBLAS's workspace is the only thing in an estimate that the architecture changes, and it
# changes from Hopper on.
_LATER = {"hopper": "Hopper", "blackwell": "Blackwell"}


def architecture_class(architecture: str | None) -> str | None:
    """Cards of one class share their estimates: ``None`` for everything before Hopper.

    >>> architecture_class("Ada Lovelace"), architecture_class("Hopper")
    (None, 'Hopper')
    """
    words = (architecture or "").lower().split()
    return _LATER.get(words[0]) if words else None


@dataclass(slots=True)
class Estimates:
    """A memo: traces by the settings that shape them, estimates by (settings, architecture class, limit)."""

    tracer: Tracer
    predictor: Predictor
    _traces: dict[str, Trace] = field(default_factory=dict)
    _found: dict[tuple[str, str | None, int | None], MemoryEstimate] = field(default_factory=dict)

    def trace(self, settings: Settings) -> Trace:
        """The trace for ``settings``, made at the first call."""
        key = trace_key(settings)
        name = key.model_dump_json()
        if name not in self._traces:
            self._traces[name] = self.tracer(key)
        return self._traces[name]

    def of(
        self, settings: Settings, architecture: str | None = None, limit_bytes: int | None = None
    ) -> MemoryEstimate:
        """The memory of ``settings`` on a card of ``architecture``, with its bytes as a limit if given."""
        kind = architecture_class(architecture)
        key = (settings.model_dump_json(), kind, limit_bytes)
        if key not in self._found:
            trace = self.trace(settings)
            self._found[key] = self.predictor(trace, settings, kind, limit_bytes)
        return self._found[key]


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
    for choice in _judged(candidates, target, usable, host, estimates):
        tried.append(choice)
        if choice.judgement.verdict == "fits":
            return choice
    for at, choice in enumerate(tried):
        if choice.judgement.verdict == "tight":
            return choice
        if needs_limit(choice.judgement):
            tried[at] = _limited(choice, target, estimates)
            if tried[at].judgement.verdict == "tight":
                return tried[at]
    spilling = [each for each in tried if each.judgement.verdict == "spills"]
    return _smallest(spilling or _enough_ram(tried) or tried)


def _judged(
    candidates: tuple[Candidate, ...],
    target: Target,
    usable: Band,
    host: Host,
    estimates: Estimates,
) -> Iterable[Choice]:
    hopeless: set[Settings | str] = set()
    floors = _floors(candidates)
    for candidate in candidates:
        key = trace_key(candidate.settings).model_dump_json()
        if key in hopeless:
            continue
        estimate = estimates.of(candidate.settings, target.architecture)
        choice = Choice(candidate, judge(estimate, usable, host))
        yield choice
        floor = floors.get(key)
        if choice.judgement.reason not in ("device", "spill") or floor in (None, candidate):
            continue
        assert floor is not None
        lowest = estimates.of(floor.settings, target.architecture)
        if lowest.allocated_bytes > usable.likely:
            hopeless.add(key)
            yield Choice(floor, judge(lowest, usable, host))


def _floors(candidates: tuple[Candidate, ...]) -> dict[str, Candidate]:
    """Per trace, the candidate below which no other goes: full weights, moved leaf by leaf."""
    return {
        trace_key(each.settings).model_dump_json(): each
        for each in candidates
        if each.settings.offload == "sequential" and not each.settings.quantization
    }


def _limited(choice: Choice, target: Target, estimates: Estimates) -> Choice:
    def replay(limit_bytes: int) -> MemoryEstimate:
        return estimates.of(choice.candidate.settings, target.architecture, limit_bytes)

    return Choice(choice.candidate, judge_limited(choice.judgement, replay))


def _enough_ram(tried: list[Choice]) -> list[Choice]:
    return [each for each in tried if each.judgement.reason != "host"]


def _smallest(tried: list[Choice]) -> Choice:
    return min(tried, key=lambda each: each.judgement.estimate.reserved_bytes)
