"""The public verbs, under the names of the commands: plan, matrix, trace, models, cards, offers, accuracy ...

This is the only place that loads things: library entries, card and offer files, the cached dry run. The rooms below are
handed nouns and return nouns. Every verb returns what its command prints as JSON; none of them prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from cardfit import __version__
from cardfit.cards import find
from cardfit.cards import load as load_cards
from cardfit.cards.card import Card
from cardfit.errors import BadRequest, DryRunFailed, InputError, MissingExtra, Note
from cardfit.library.add_ons import resolved
from cardfit.library.load import load as load_model
from cardfit.library.models import Model
from cardfit.library.rules import settings_allowed
from cardfit.library.sourced import entries, taken
from cardfit.messages import say
from cardfit.offers import Offer
from cardfit.offers import load as load_offers
from cardfit.plan.answer import Answer, Said
from cardfit.plan.around import check_figures, check_streams, disk_notes
from cardfit.plan.bill import Session, use_of
from cardfit.plan.facts import facts_of, model_row, turned
from cardfit.plan.knobs import closed
from cardfit.plan.locked import hold_against
from cardfit.plan.make import make, uses_bfloat16
from cardfit.plan.place import Place, own_currency, place_of, within
from cardfit.plan.post import after_of
from cardfit.plan.prompts import prompt_notes
from cardfit.plan.search import Estimates
from cardfit.plan.timer import timer
from cardfit.plan.verdict import Host, Os
from cardfit.predict import calibration
from cardfit.predict.alloc_conf import parse_alloc_conf
from cardfit.predict.transfers import listed_link
from cardfit.records.costs import quality_costs
from cardfit.request import ExactRequest, Request, Settings, Task
from cardfit.request.read import validate_request, validate_settings
from cardfit.trace import source

if TYPE_CHECKING:
    from cardfit.accuracy.field import FieldAccuracy
    from cardfit.accuracy.score import Accuracy
    from cardfit.accuracy.times import TimesAccuracy
    from cardfit.autopsy import Autopsy, Case, Reading
    from cardfit.comfy.placement import WorkflowFacts
    from cardfit.plan.front import Front
    from cardfit.plan.machine import Probed
    from cardfit.plan.matrix import Entry, Matrix
    from cardfit.plan.sequence import SequenceAnswer
    from cardfit.predict.estimate import MemoryEstimate
    from cardfit.records.models import Record
    from cardfit.request.mix import RequestsFile
    from cardfit.trace.stream import Trace

__all__ = [
    "accuracy",
    "autopsy",
    "cards",
    "front",
    "matrix",
    "model",
    "models",
    "offers",
    "plan",
    "records",
    "sequence",
    "trace",
]

_Answered = TypeVar("_Answered")
Progress = Callable[[str, float | None], None]
_EXTRA = ("torch", "diffusers", "transformers", "accelerate", "peft", "tokenizers")


def plan(
    request: Request | str,
    settings: Settings | None = None,
    *,
    cards: Sequence[str] | None = None,
    ram_bytes: int | None = None,
    disk_bytes: int | None = None,
    os: Os = "linux",
    here: bool = False,
    machine: Path | None = None,
    cards_file: Path | None = None,
    offers_file: Path | None = None,
    outputs_per_month: float | None = None,
    hours_per_week: float | None = None,
    session: Session | None = None,
    target_bytes: int | None = None,
    lock: Path | None = None,
    workflow: WorkflowFacts | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Lay one exact request over the cards: verdict, settings, offer and advice for each.

    ``settings`` left out means that every knob is open. ``cards`` names the cards to look at (all
    when left out), ``here`` reads this machine (its cards, its RAM, the container's limit), ``machine`` one that
    ``probe --json`` described in a file. ``session`` says what is known of the time and prices around the runs.
    ``ram_bytes`` and ``disk_bytes`` are the host's. ``target_bytes`` is the most device memory to take: of the named
    cards, else of a card that is nothing but this size. ``lock`` is a requirements or lock file: where it
    names other versions than were traced the bands are wider and a note says so. ``workflow`` is what a ComfyUI
    workflow says beside the request, whose runtime then is comfyui. ``progress`` is called with what is
    being done and the share that is done, ``None`` where nobody knows. Raises InputError for an unknown model
    or card, a size the model cannot make, a file that cannot be read, or ``here`` where there is
    no card and none was named; MissingExtra when a dry run is needed and torch or diffusers is not installed.
    """
    return ask(
        make,
        request,
        settings,
        cards=cards,
        ram_bytes=ram_bytes,
        disk_bytes=disk_bytes,
        os=os,
        here=here,
        machine=machine,
        cards_file=cards_file,
        offers_file=offers_file,
        outputs_per_month=outputs_per_month,
        hours_per_week=hours_per_week,
        session=session,
        target_bytes=target_bytes,
        lock=lock,
        workflow=workflow,
        progress=progress,
    )


def front(request: Request | str, settings: Settings | None = None, **more: Any) -> Front:
    """All settings on all cards, and of these the ones that nothing beats in price, seconds and quality at once.

    ``more`` are the keywords of `plan`; raises as `plan` does.
    """
    from cardfit.plan.front import make_front

    return ask(make_front, request, settings, **more)


def ask(
    answer: Callable[..., _Answered],
    request: Request | str,
    settings: Settings | None,
    *,
    cards: Sequence[str] | None = None,
    ram_bytes: int | None = None,
    disk_bytes: int | None = None,
    os: Os = "linux",
    here: bool = False,
    machine: Path | None = None,
    cards_file: Path | None = None,
    offers_file: Path | None = None,
    outputs_per_month: float | None = None,
    hours_per_week: float | None = None,
    session: Session | None = None,
    target_bytes: int | None = None,
    lock: Path | None = None,
    workflow: WorkflowFacts | None = None,
    progress: Progress | None = None,
) -> _Answered:
    """Everything that `plan` takes loaded and handed to ``answer``."""
    check_figures(ram_bytes, outputs_per_month, disk_bytes, hours_per_week)
    catalog = load_cards(cards_file)
    market = load_offers(offers_file, cards=catalog)
    probed = None if machine is None else _probed(machine, catalog, here)
    host = Host(ram_bytes, os, disk_bytes=disk_bytes)
    elsewhere = None if probed is None else probed.machine
    place = place_of(catalog, market, cards, host, here=here, machine=elsewhere)
    if target_bytes is not None:
        place = within(place, target_bytes, named=cards is not None or here or probed is not None)
    entry, exact, given, notes = _resolved(request, settings or Settings())
    check_streams(given, (find(catalog, name) for name in cards or ()))
    files_bytes, weights_bytes, disk_notes = _files(entry, exact, place)
    host = replace(place.host, files_bytes=files_bytes)
    said: list[Note] = []
    estimates = _estimates(entry, exact, progress, said)
    base = estimates.trace(closed(given))
    said += hold_against(lock, base, estimates)
    after, maker = after_of(exact, said), cast(Callable[..., Any], answer)
    if exact.runtime == "comfyui" and answer is make:
        from cardfit.comfy.runtime import Way, make_comfy

        maker = partial(make_comfy, Way(entry, workflow, lambda card: listed_link(catalog[card])))
    found: _Answered = maker(
        exact,
        given,
        place.targets,
        host,
        replace(turned(entry, base, given), measured=tuple(quality_costs(entry.id).items())),
        estimates,
        facts_of(
            entry,
            base,
            (
                *place.notes,
                *notes,
                *disk_notes,
                *prompt_notes(entry.id, base),
                *said,
                *calibration.notes(target.card for target in place.targets),
            ),
            files_bytes,
            version=__version__,
        ),
        currency=own_currency(market),
        use=use_of(session, outputs_per_month, hours_per_week, weights_bytes),
        timer=after.timer(timer(entry, estimates, catalog, probed), catalog),
        after=after,
        catalog=catalog,
        progress=progress,
    )
    return found


def matrix(
    models: Sequence[str] | None = None,
    *,
    cards: Sequence[str] | None = None,
    task: Task | None = None,
    cards_file: Path | None = None,
    offers_file: Path | None = None,
    progress: Progress | None = None,
) -> Matrix:
    """Lay models over cards: the best precision each card holds, exact and by the 15 % rule, cheapest card first.

    Each model stands at its default request. ``models`` and ``cards`` left out mean all; ``task``
    keeps the models that do it. A model whose dry run fails is left out with a note. Raises
    InputError for an unknown model or card and MissingExtra as `plan` does.
    """
    from cardfit.plan import matrix as matrix_of

    catalog = load_cards(cards_file)
    market = load_offers(offers_file, cards=catalog)
    place = place_of(catalog, market, cards, Host())
    wanted = _wanted(models, task)
    ordered, columns = matrix_of.cheapest_first(place.targets, own_currency(market))
    rows, versions = [], {"cardfit": __version__}
    notes = [Note("plan-matrix-defaults"), Note("plan-matrix-rule")]
    for done, entry in enumerate(wanted):
        if progress is not None:
            progress(entry.title, done / len(wanted))
        try:
            laid, traced_with = _laid(entry, task, progress)
        except DryRunFailed as failed:
            notes.append(Note("plan-matrix-failed", {"model": entry.id, "reason": str(failed)}))
            continue
        rows.append(matrix_of.row(laid, ordered, place.host))
        versions.update(traced_with)
    return matrix_of.Matrix(
        versions=versions,
        cards=columns,
        rows=tuple(rows),
        notes=tuple(Said.of(note.code, **note.args) for note in notes),
    )


def trace(
    request: Request | str | object,
    settings: Settings | None = None,
    *,
    progress: Progress | None = None,
    **call: Any,
) -> Trace:
    """What one request does, independent of any card: the dry run of the real pipeline, cached on disk.

    In place of a request: a diffusers pipeline that the reader built on the meta device, and the arguments of its
    ``call``. Raises InputError and MissingExtra as `plan` does; DryRunFailed when the pipeline's own code raised.
    """
    if not isinstance(request, (Request, str)):
        from cardfit.trace.own import trace_pipeline

        return trace_pipeline(request, call, progress=_tracing(progress))
    if call:
        raise BadRequest("trace-call-of-a-model", asked=", ".join(call))
    entry, exact, given, _ = _resolved(request, settings or Settings())
    return _estimates(entry, exact, progress, []).trace(closed(given))


def models(*, task: Task | None = None) -> tuple[Model, ...]:
    """The library's entries and the reader's own, those that do ``task`` when it is given."""
    return tuple(entry for entry in entries() if task in (None, *entry.tasks))


def model(name: str) -> Model:
    """The model called ``name``: an id, an alias, a repo, a folder or a file. Raises UnknownModel with suggestions."""
    return load_model(name)


def cards(*, cards_file: Path | None = None) -> tuple[Card, ...]:
    """The catalog of cards; ``cards_file`` overrides or adds. Raises BadFile naming row and column."""
    return tuple(load_cards(cards_file).values())


def offers(
    *, card: str | None = None, cards_file: Path | None = None, offers_file: Path | None = None
) -> tuple[Offer, ...]:
    """The offers, those of ``offers_file`` first; only those for ``card`` when it is given.

    Raises BadFile naming row and column, UnknownCard with suggestions.
    """
    catalog = load_cards(cards_file)
    market = load_offers(offers_file, cards=catalog)
    if card is None:
        return market
    wanted = find(catalog, card).id
    return tuple(offer for offer in market if offer.card == wanted)


def _probed(file: Path, catalog: Mapping[str, Card], here: bool) -> Probed:
    if here:
        raise BadRequest("bad-together", one="--machine", other="--here")
    from cardfit.plan.machine import read_machine

    return read_machine(file, catalog)


def _files(entry: Model, exact: ExactRequest, place: Place) -> tuple[int, int, tuple[Note, ...]]:
    """Bytes of disk for files and outputs, those of the weights, and what should be said of them."""
    from cardfit.predict.disk import disk_parts, second_copy_bytes

    parts = disk_parts(entry, exact)
    need, more = sum(parts.values()), second_copy_bytes(entry, place.host.os)
    return need, parts["weights"], disk_notes(need, place.disk_free_bytes, more)


def _resolved(
    request: Request | str, settings: Settings
) -> tuple[Model, ExactRequest, Settings, tuple[Note, ...]]:
    """The entry, the request after its rules, the settings it allows and what was said about them."""
    parse_alloc_conf(settings.alloc_conf)
    asked = Request(model=request) if isinstance(request, str) else request
    entry, settings, said = taken(asked.model, settings)
    entry, exact, notes = resolved(entry, asked)
    more = settings_allowed(entry, settings)
    if entry.vae.tiling_required and settings.vae_tiling is None:
        settings = settings.model_copy(update={"vae_tiling": True})
    return entry, exact, settings, (*said, *notes, *more)


def _estimates(
    entry: Model, exact: ExactRequest, progress: Progress | None, said: list[Note]
) -> Estimates:
    """The memo over the cached dry run and the memory replay; ``said`` collects the cache's notes."""

    def tracer(settings: Settings) -> Trace:
        try:
            found, notes = source.traced(entry, exact, settings, progress=_tracing(progress))
        except ModuleNotFoundError as missing:
            package = (missing.name or "").partition(".")[0]
            if package not in _EXTRA:
                raise
            raise MissingExtra("plan-needs-trace", package=package) from missing
        said.extend(note for note in notes if note not in said)
        return found

    def predictor(
        traced: Trace, settings: Settings, architecture: str | None, limit_bytes: int | None
    ) -> MemoryEstimate:
        from cardfit.predict.memory import estimate
        from cardfit.predict.store import kept

        return kept(
            estimate, entry, traced, settings, architecture=architecture, limit_bytes=limit_bytes
        )

    return Estimates(tracer, predictor, can=partial(source.can_trace, entry, exact))


def _tracing(progress: Progress | None) -> Progress | None:
    """``progress`` that says what of the dry run is being done."""
    if progress is None:
        return None
    return lambda what, share: progress(say("plan-progress-trace", {"what": what}), share)


def _wanted(names: Sequence[str] | None, task: Task | None) -> tuple[Model, ...]:
    """The entries that were named (all when none was), those that do ``task`` when it is given."""
    found = entries() if names is None else tuple(map(load_model, dict.fromkeys(names)))
    return tuple(entry for entry in found if task in (None, *entry.tasks))


def _laid(
    entry: Model, task: Task | None, progress: Progress | None
) -> tuple[Entry, Mapping[str, str]]:
    """The entry ready for the matrix and the versions it was traced with."""
    from cardfit.plan.matrix import Entry
    from cardfit.predict.rule import rule_of_thumb_bytes

    _, exact, given, _ = _resolved(Request(model=entry.id, task=task), Settings())
    estimates = _estimates(entry, exact, progress, [])
    base = estimates.trace(closed(given))
    laid = Entry(
        model=model_row(entry),
        request=exact,
        knobs=turned(entry, base, given),
        estimates=estimates,
        rule_bytes=rule_of_thumb_bytes(base),
        bfloat16=uses_bfloat16(base),
        settings=given,
    )
    return laid, base.versions


def records(store: str | None = None, **filters: Any) -> tuple[Record, ...]:
    """The records that match, oldest first; filters and errors as `cardfit.records.verbs.listed`."""
    from cardfit.records.verbs import listed

    return listed(store, **filters)


@overload
def accuracy(file: Path, *, progress: Progress | None = None) -> Accuracy: ...
@overload
def accuracy(*, field: Path, progress: Progress | None = None) -> FieldAccuracy: ...
@overload
def accuracy(*, times: Path, progress: Progress | None = None) -> TimesAccuracy: ...
def accuracy(
    file: Path | None = None,
    *,
    field: Path | None = None,
    times: Path | None = None,
    progress: Progress | None = None,
) -> Accuracy | FieldAccuracy | TimesAccuracy:
    """Published measurements in ``file`` against predictions, with simpler rules on the same rows.

    With ``field`` instead, what people ran against the verdict that they would have got; with ``times`` published
    seconds against predicted ones. Rows that cannot be rebuilt are skipped with a reason of a closed list. Raises
    BadFile for a file with another header, BadRequest for none or several files, MissingExtra when a dry run is
    needed and torch or diffusers is not installed.
    """
    given = sum(each is not None for each in (file, field, times))
    if given != 1:
        raise BadRequest("accuracy-one-file", given=given)
    try:
        if times is not None:
            from cardfit.accuracy import times as timed

            return timed.score(times, progress=_tracing(progress))
        if field is not None:
            from cardfit.accuracy import field as cases

            return cases.score(field, progress=_tracing(progress))
        from cardfit.accuracy.score import score

        assert file is not None
        return score(file, progress=_tracing(progress))
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        raise MissingExtra("accuracy-needs-trace", package=package) from missing


def autopsy(
    text: str,
    request: Request | Mapping[str, object] | str | None = None,
    settings: Settings | None = None,
    *,
    card: str | None = None,
    ram_bytes: int | None = None,
    os: Os = "linux",
    cards_file: Path | None = None,
    notes: Sequence[Note] = (),
    progress: Progress | None = None,
) -> Autopsy:
    """The stage, cause and cures of an error message, log or traceback, with the numbers in it.

    What ran is read from ``text``; ``request`` (some fields are enough) and ``settings`` go on top. Where the model is
    known each cure carries its new peak on ``card``, else on the card with the capacity that the message states.
    Raises BadRequest for an empty text or a given request that cannot be made, UnknownModel, UnknownCard.
    """
    from cardfit.autopsy import diagnose, on_card, read, wants_plan

    check_figures(ram_bytes)
    reading, versions = read(text, notes), {"cardfit": __version__}
    if not wants_plan(plain := diagnose(reading, versions=versions)):
        return plain
    case, more = _case(reading, request, settings, progress)
    if case is None:
        return diagnose(reading, versions=versions, notes=more)
    place = place_of(load_cards(cards_file), (), [card] if card else None, Host(ram_bytes, os))
    case = on_card(case, reading.numbers, place.targets, place.host, named=bool(card))
    try:
        traced = case.estimates.trace(case.settings).versions
        return diagnose(reading, case, versions=versions | traced, notes=more)
    except MissingExtra as missing:  # the shipped traces lack a setting that the planner looks at
        failed = Note("autopsy-planner-failed", {"reason": str(missing)})
        return diagnose(reading, versions=versions, notes=(*more, failed))


def _case(
    reading: Reading,
    request: Request | Mapping[str, object] | str | None,
    settings: Settings | None,
    progress: Progress | None,
) -> tuple[Case | None, tuple[Note, ...]]:
    """What ran, from the text and from what was given; None where no model is known or nothing can be traced."""
    from cardfit.autopsy import Case, asked

    found = asked(reading.lines, request, settings)
    if "model" not in found.request:
        return None, found.notes
    said: list[Note] = []
    try:
        wanted = validate_request(found.request)
        entry, exact, ran, notes = _resolved(wanted, validate_settings(found.settings))
        estimates = _estimates(entry, exact, progress, said)
        knobs = turned(entry, estimates.trace(closed(ran)), ran)
    except (InputError, DryRunFailed) as failed:
        if found.given and not isinstance(failed, (DryRunFailed, MissingExtra)):
            raise
        return None, (Note("autopsy-planner-failed", {"reason": str(failed)}),)
    said[:0] = (*found.notes, *notes)
    return Case(exact, closed(ran), knobs, estimates, notes=tuple(said)), ()


def sequence(
    requests: RequestsFile | Path,
    *,
    cards: Sequence[str] = (),
    cards_file: Path | None = None,
    progress: Progress | None = None,
) -> SequenceAnswer:
    """Requests one after another in one process: the worst case, when it comes, and which of ``cards`` holds it.

    Open settings are left alone: nothing offloaded, no tiling. Raises as `plan` does.
    """
    from cardfit.plan.sequence import make_sequence, mix_of
    from cardfit.request.mix import read_requests_file

    found = read_requests_file(requests) if isinstance(requests, Path) else requests
    place = place_of(load_cards(cards_file), (), tuple(cards), Host())
    traces, said = [], list[Note]()
    for each in found.requests:
        entry, exact, given, notes = _resolved(each.request, found.settings)
        said += [note for note in notes if note not in said]
        traces.append(_estimates(entry, exact, progress, said).trace(closed(given)))
    versions = {"cardfit": __version__} | traces[0].versions
    return make_sequence(
        mix_of(found, traces), place.targets, versions=versions, notes=said, progress=progress
    )
