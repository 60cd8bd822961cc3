"""The autopsy itself: stage, cause and cures of a text, with the planner's figures where the request is known.

In: a `Reading`, and a `Case` when the request is known: the planner's memo of estimates, the card, the settings that
ran. Out: an `Autopsy`. A size that was asked for is looked up among the tensors of the dry run: where one of them has
exactly that size, the stage is known even without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cardfit.autopsy.cause import Cause, cause
from cardfit.autopsy.cures import cure, remedies, settings_with
from cardfit.autopsy.read import Reading
from cardfit.autopsy.result import (
    Autopsy,
    CauseName,
    Cure,
    Evidence,
    Match,
    Numbers,
    Planned,
    Predicted,
    Program,
    StageName,
)
from cardfit.autopsy.where import program, where
from cardfit.errors import Note
from cardfit.plan.answer import Said, Verdict
from cardfit.plan.knobs import Candidate, Knobs, candidates, price_of, settings_text
from cardfit.plan.search import Choice, Estimates, choose
from cardfit.plan.target import Band, Target
from cardfit.plan.verdict import Host, deciding_stage
from cardfit.predict.estimate import MemoryEstimate
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Event, Op, Trace
from cardfit.units import GIB, MIB, human_bytes

_ROUNDING_BYTES = 2 * MIB  # PyTorch asks the driver for large blocks in steps of this
_LEAST_TOLD_BYTES = 20 * MIB  # below, every request is rounded up to one of two sizes
_WORTH_MATH_BYTES = 512 * MIB  # a request for which attention without a fused kernel is looked at
_MOST_MATCHES = 3
_ATTENTION_OPS = ("attention", "softmax", "bmm", "scaled_dot")
_ON_CARD: frozenset[CauseName] = frozenset(
    {"decode_untiled", "decode", "attention", "fragmentation", "text_encoder_resident", "weights_do_not_fit",
     "activations", "load_on_card", "spill", "other_process", "unknown"}
)  # fmt: skip
_PLANNED = _ON_CARD | {"host_ram", "pinned_memory"}
_NEEDS_FIGURE = "autopsy-not-in-plan"


@dataclass(frozen=True, slots=True)
class Case:
    """What is known beside the text: the request, what ran, the card, and the planner's memo.

    ``target`` carries the capacity that the message states; ``assumed`` says that the card was found by it.
    """

    request: ExactRequest
    settings: Settings
    knobs: Knobs
    estimates: Estimates
    target: Target | None = None
    host: Host = field(default_factory=Host)
    assumed: bool = False
    notes: tuple[Note, ...] = ()


def wants_plan(found: Autopsy) -> bool:
    """Whether the planner has something to add: the end had to do with memory."""
    return found.cause in _PLANNED and (found.error is not None or found.cause == "spill")


def on_card(
    case: Case, numbers: Numbers, targets: Sequence[Target], host: Host, *, named: bool
) -> Case:
    """``case`` on the one card of ``targets`` that was named, else on the one with the stated capacity."""
    target = targets[0] if named else card_like(numbers, targets)
    if target is not None:
        target = as_stated(target, numbers)
    return replace(case, target=target, host=host, assumed=not named and target is not None)


def card_like(numbers: Numbers, targets: Sequence[Target]) -> Target | None:
    """The card whose CUDA total is nearest to the stated capacity, within 3 %; None where there is none."""
    capacity = numbers.capacity_bytes
    known = [each for each in targets if each.total is not None and each.unverified is None]
    if capacity is None or not known or numbers.backend != "cuda":
        return None
    found = min(known, key=lambda each: (abs(_total(each).likely - capacity), each.card))
    return found if abs(_total(found).likely - capacity) <= 0.03 * capacity else None


def as_stated(target: Target, numbers: Numbers) -> Target:
    """``target`` with the capacity and the context that the message states, and without what others hold."""
    capacity = numbers.capacity_bytes
    if capacity is None or target.context is None:
        return target
    context = target.context
    if numbers.in_use_bytes is not None and numbers.reserved_bytes is not None:
        seen = numbers.in_use_bytes - numbers.reserved_bytes
        if 0 < seen <= 2 * context.high:
            context = Band(seen, seen, seen)
    left = max(capacity - (numbers.other_bytes or 0), context.high)
    return replace(target, total=Band(left, left, left), context=context)


def _total(target: Target) -> Band:
    assert target.total is not None
    return target.total


def diagnose(
    reading: Reading,
    case: Case | None = None,
    *,
    versions: Mapping[str, str] | None = None,
    notes: Sequence[Note] = (),
) -> Autopsy:
    """The autopsy of a text; ``case`` brings in the planner where the end had to do with memory."""
    place = where(reading)
    found = cause(reading, place)
    stage = place.stage
    if found.name not in _PLANNED:
        case = None
    matches: tuple[Match, ...] = ()
    ran = program(reading)
    if case is not None and found.name in _ON_CARD:
        matches = _matches(reading, case) if ran in (None, "diffusers") else ()
        found, stage = _with_matches(found, stage, matches, reading.numbers)
        found = _with_weights(found, stage, case)
    codes = remedies(found, stage, reading.numbers)
    cures, as_run, planned = _cures(codes, case, found)
    error = reading.error
    return Autopsy(
        versions=dict(versions or {}),
        program=ran,
        error=None if error is None else reading.line(error.at),
        line_of_error=None if error is None else error.at + 1,
        numbers=reading.numbers,
        stage=stage,
        cause=found.name,
        confidence=found.confidence,
        why=_why(found, reading.numbers),
        evidence=found.evidence,
        cures=cures,
        request=None if case is None else case.request,
        settings=None if case is None else case.settings,
        card=None if case is None or case.target is None else case.target.card,
        as_run=as_run,
        matches=matches,
        planned=planned,
        next_step=_next(found, case, planned),
        notes=tuple(
            Said.of(note.code, **note.args)
            for note in (
                *reading.notes,
                *notes,
                *_cautions(reading, case, found, as_run, stage, ran),
            )
        ),
    )


def _why(found: Cause, numbers: Numbers) -> Said:
    code = f"autopsy-cause-{found.name}"
    if found.name == "no_memory_error":
        code = f"autopsy-no-memory-{found.detail}"
    elif found.name == "pinned_memory" and found.detail == "driver":
        code = "autopsy-cause-driver"
    elif found.name == "unknown" and found.detail == "nothing":
        code = "autopsy-cause-nothing"
    return Said.of(code)


# --- what the dry run knows


def _matches(reading: Reading, case: Case) -> tuple[Match, ...]:
    """The tensors and workspaces of the request that have the size that was asked for."""
    tried = reading.numbers.tried_bytes
    if tried is None or tried < _LEAST_TOLD_BYTES or reading.numbers.backend not in ("cuda", "hip"):
        return ()
    ran = case.settings
    found = matching(case.estimates.trace(ran), tried, ran.attention)
    if not found and ran.attention == "sdpa" and tried >= _WORTH_MATH_BYTES:
        math = ran.model_copy(update={"attention": "math"})
        found = matching(case.estimates.trace(math), tried, "math")
    return found


def matching(trace: Trace, tried_bytes: int, attention: str) -> tuple[Match, ...]:
    """The requests of ``trace`` that PyTorch would print as ``tried_bytes``, one for each place, at most three.

    A block of 10 MiB or more is asked for in steps of 2 MiB, and the message keeps two digits after the point.
    """
    width = 0.0051 * (GIB if tried_bytes >= GIB else MIB)
    found: dict[tuple[str, str, str], Match] = {}
    for stage, part, size, site in _requests(trace):
        asked = -(-size // _ROUNDING_BYTES) * _ROUNDING_BYTES
        if abs(asked - tried_bytes) > width:
            continue
        op, path = trace.sites[site] if 0 <= site < len(trace.sites) else ("", "")
        owner = trace.components[part].name if part >= 0 else ""
        place = (stage, owner, op)
        found.setdefault(
            place, Match(stage=stage, component=owner, op=op, site=path, attention=attention)
        )
        if len(found) == _MOST_MATCHES:
            break
    return tuple(found.values())


def _requests(trace: Trace) -> Iterator[tuple[str, int, int, int]]:
    """(stage, component or -1, bytes, site) of every birth and workspace, each call once per stage."""
    stage, seen = "", set[tuple[str, int]]()
    for segment in trace.timeline:
        for event in segment.events:
            if event[0] == Op.STAGE:
                stage = trace.stages[event[1]][0]
            else:
                yield from _of_event(trace, stage, -1, event, seen)


def _of_event(
    trace: Trace, stage: str, owner: int, event: Event, seen: set[tuple[str, int]]
) -> Iterator[tuple[str, int, int, int]]:
    op, a, b, site = event
    if op in (Op.BIRTH, Op.WORKSPACE):
        yield stage, owner, b, site
    elif op == Op.CALL and (stage, a) not in seen:
        seen.add((stage, a))
        stream = trace.streams[a]
        for each in stream.events:
            yield from _of_event(trace, stage, stream.component, each, seen)


def _with_matches(
    found: Cause, stage: StageName | None, matches: tuple[Match, ...], numbers: Numbers
) -> tuple[Cause, StageName | None]:
    """The cause and the stage where the size that was asked for tells more than the text."""
    if not matches:
        return found, stage
    stages = {match.stage for match in matches}
    first = matches[0]
    said = Evidence(
        line=None,
        text=first.site,
        tells=Said.of(
            "autopsy-tells-match",
            size=human_bytes(numbers.tried_bytes or 0),
            stage=first.stage,
            component=first.component,
            op=first.op,
        ),
    )
    evidence = (*found.evidence, said)
    if stage is None and len(stages) == 1:
        stage = first.stage  # type: ignore[assignment]
    if stage is not None and stage not in stages:
        return found, stage
    math = first.attention == "math" and any(word in first.op for word in _ATTENTION_OPS)
    if math and found.name in ("attention", "activations", "unknown", "weights_do_not_fit"):
        return Cause("attention", "sure", evidence), stage
    if found.name == "unknown" or (found.name == "attention" and found.confidence == "guess"):
        name: CauseName = "decode_untiled" if stage == "decode" else "activations"
        return Cause(name, "likely", evidence), stage
    return replace(found, evidence=evidence), stage


def _with_weights(found: Cause, stage: StageName | None, case: Case) -> Cause:
    """What lies on the card beside the work: a denoiser that is too large, or an encoder that need not be there."""
    if found.name not in ("activations", "weights_do_not_fit", "unknown"):
        return found
    room = case.target.usable if case.target is not None else None
    if room is None or case.settings.offload not in (None, "none"):
        return found
    sizes = {
        part.name: part.weights_bytes for part in case.estimates.trace(case.settings).components
    }
    largest = max((sizes[name] for name in case.knobs.denoisers if name in sizes), default=0)
    if largest > room.likely:
        said = Said.of(
            "autopsy-tells-denoiser", size=human_bytes(largest), room=human_bytes(room.likely)
        )
        return Cause(
            "weights_do_not_fit",
            "sure",
            (*found.evidence, Evidence(line=None, text="", tells=said)),
        )
    text = sum(size for name, size in sizes.items() if name.startswith("text_encoder"))
    peak = case.estimates.of(case.settings, case.target.architecture if case.target else None)
    later = [each.reserved_bytes for each in peak.stages if each.name in ("denoise", "decode")]
    most = max(later, default=0)
    if stage in (None, "denoise") and most > room.likely >= most - text > 0:
        said = Said.of(
            "autopsy-tells-encoder", size=human_bytes(text), over=human_bytes(most - room.likely)
        )
        return Cause(
            "text_encoder_resident",
            "likely",
            (*found.evidence, Evidence(line=None, text="", tells=said)),
        )
    return found


# --- what the planner says of the cures


def _cures(
    codes: Sequence[str], case: Case | None, found: Cause
) -> tuple[tuple[Cure, ...], Predicted | None, Planned | None]:
    if case is None:
        return tuple(cure(code, None, ()) for code in codes if code != "slicing"), None, None
    made = []
    if case.settings.dtype.get("*") == "float32":
        codes = ("half_precision", *codes)
    for code in codes:
        after = settings_with(code, case.settings, case.knobs.denoisers, case.knobs.text_encoders)
        if _turned(code, after, case):
            continue
        one = cure(code, after, case.knobs.denoisers)
        if after is not None:
            one = one.model_copy(update={"predicted": _predicted(after, case)})
        made.append(one)
    return _telling(made), _predicted(case.settings, case), _planned(case)


def _telling(made: list[Cure]) -> tuple[Cure, ...]:
    """Without smaller tiles where they take no less than the tiles of the VAE itself."""
    peaks = {each.code: each.predicted.reserved_bytes for each in made if each.predicted}
    tiled, smaller = peaks.get("tiling"), peaks.get("smaller_tile")
    idle = tiled is not None and smaller is not None and smaller > 0.98 * tiled
    return tuple(each for each in made if not (idle and each.code == "smaller_tile"))


def _turned(code: str, after: Settings | None, case: Case) -> bool:
    """Whether a cure changes nothing here: it is in place already, or the model has no such knob."""
    knobs = case.knobs
    if code in ("tiling", "smaller_tile") and (knobs.tile is None or knobs.always_tiled):
        return True
    if code == "smaller_tile" and knobs.tile is not None and knobs.tile <= 128:
        return True
    if code == "slicing" and (not knobs.slicing or knobs.batch == 1):
        return True
    rank = {"none": 0, "model": 1, "group-block": 2, "group-leaf": 3, "sequential": 4}
    offload = {"model_offload": 1, "group_offload": 3, "sequential_offload": 4}.get(code)
    if offload is not None and rank[case.settings.offload or "none"] >= offload:
        return True
    return after is None and code in ("tiling", "slicing", "encode_apart", "fp8", "nf4")


def _choice(settings: Settings, case: Case) -> Choice | None:
    if case.target is None or case.target.usable is None:
        return None
    one = Candidate(settings, price_of(settings, case.knobs), (0,))
    return choose((one,), case.target, case.target.usable, case.host, case.estimates)


def _predicted(settings: Settings, case: Case) -> Predicted:
    """The figures of ``settings``; the verdict is unknown where no card is."""
    choice = _choice(settings, case)
    if choice is not None:
        return _of(choice.judgement.estimate, choice.judgement.verdict)
    return _of(case.estimates.of(settings), "unknown")


def _of(estimate: MemoryEstimate, verdict: Verdict) -> Predicted:
    return Predicted(
        reserved_bytes=estimate.reserved_bytes,
        allocated_bytes=estimate.allocated_bytes,
        host_bytes=estimate.host_bytes,
        stage=deciding_stage(estimate),
        verdict=verdict,
    )


def _planned(case: Case) -> Planned | None:
    """The cheapest settings that hold the request on this card, every knob open but the dtypes."""
    target = case.target
    if target is None or target.usable is None:
        return None
    given = Settings(dtype=case.settings.dtype, attention=case.settings.attention)
    options = case.estimates.traceable(candidates(given, case.knobs))
    choice = choose(options, target, target.usable, case.host, case.estimates)
    if choice.judgement.verdict == "does_not_fit":
        return None
    settings = choice.candidate.settings
    return Planned(
        card=target.card,
        card_name=target.name,
        settings=settings,
        settings_text=settings_text(settings, case.knobs),
        predicted=_of(choice.judgement.estimate, choice.judgement.verdict),
    )


# --- what to do next


def _next(found: Cause, case: Case | None, planned: Planned | None) -> Said:
    if found.name in ("no_memory_error", "dtype"):
        return Said.of("autopsy-next-fix")
    if found.detail == "nothing":
        return Said.of("autopsy-next-paste")
    if case is None:
        return Said.of("autopsy-next-flags")
    asked = _asked(case.request)
    if case.target is None:
        return Said.of("autopsy-next-card", asked=asked)
    if planned is None:
        return Said.of("autopsy-next-other-card", asked=asked)
    return Said.of("autopsy-next-plan", asked=asked, card=planned.card)


def _asked(request: ExactRequest) -> str:
    """The words that ask for ``request`` again."""
    size = f"{request.model} --width {request.width} --height {request.height}"
    frames = f" --num-frames {request.num_frames}" if request.num_frames > 1 else ""
    return size + frames + (f" --batch {request.batch}" if request.batch > 1 else "")


def _cautions(
    reading: Reading,
    case: Case | None,
    found: Cause,
    as_run: Predicted | None,
    stage: str | None,
    ran: Program | None,
) -> list[Note]:
    notes: list[Note] = []
    if case is None:
        notes += (
            [Note(_NEEDS_FIGURE)] if found.name in _ON_CARD and found.detail != "nothing" else []
        )
    else:
        notes += case.notes
        if ran not in (None, "diffusers"):
            notes.append(Note("autopsy-other-program", {"program": ran}))
        if case.assumed and case.target is not None:
            notes.append(Note("autopsy-card-assumed", {"card": case.target.name}))
        if as_run is not None and as_run.verdict == "fits" and found.name in _ON_CARD:
            notes.append(
                Note("autopsy-plan-disagrees", {"peak": human_bytes(as_run.reserved_bytes)})
            )
        elif as_run is not None and stage not in (None, "load", as_run.stage):
            notes.append(Note("autopsy-other-stage", {"stage": as_run.stage, "here": stage}))
    numbers = reading.numbers
    if (
        numbers.allocated_bytes is not None
        and numbers.capacity_bytes is not None
        and numbers.allocated_bytes > numbers.capacity_bytes
    ):
        notes.append(
            Note("autopsy-spilled-before", {"allocated": human_bytes(numbers.allocated_bytes)})
        )
    return notes
