"""The public verbs, under the names of the commands: plan, matrix, trace, models, cards, offers, accuracy ...

This is the only place that loads things: library entries, card and offer files, the cached dry
run. The rooms below are handed nouns and return nouns. Every verb returns what its command prints
as JSON; none of them prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, overload

from cardfit import __version__
from cardfit.cards import find
from cardfit.cards import load as load_cards
from cardfit.cards.card import Card
from cardfit.cards.usable import CONTEXT_LIKELY_BYTES
from cardfit.errors import BadRequest, DryRunFailed, InputError, MissingExtra, Note
from cardfit.library.load import all_models
from cardfit.library.load import load as load_model
from cardfit.library.models import Model
from cardfit.library.rules import resolve, settings_allowed
from cardfit.messages import say
from cardfit.offers import Offer
from cardfit.offers import load as load_offers
from cardfit.plan.answer import Answer, ModelRow, Said
from cardfit.plan.around import check_streams, disk_notes
from cardfit.plan.knobs import Knobs, closed, knobs_of
from cardfit.plan.locked import hold_against
from cardfit.plan.make import Facts, make, uses_bfloat16
from cardfit.plan.matrix import Entry, Matrix, cheapest_first
from cardfit.plan.matrix import row as matrix_row
from cardfit.plan.place import Place, own_currency, place_of, within
from cardfit.plan.prompts import prompt_notes
from cardfit.plan.rows import Timer
from cardfit.plan.search import Estimates
from cardfit.plan.verdict import Host, Os
from cardfit.predict import calibration
from cardfit.predict.alloc_conf import parse_alloc_conf
from cardfit.predict.timing import TimeEstimate, seconds
from cardfit.predict.totals import Totals, head_dim_of, totals
from cardfit.records.verbs import listed as records
from cardfit.request import ExactRequest, Request, Settings, Task
from cardfit.request.read import validate_request, validate_settings
from cardfit.trace import source

if TYPE_CHECKING:
    from cardfit.accuracy.field import FieldAccuracy
    from cardfit.accuracy.score import Accuracy
    from cardfit.accuracy.times import TimesAccuracy
    from cardfit.autopsy import Autopsy, Case, Reading
    from cardfit.plan.rent_answer import Rent
    from cardfit.plan.rent_question import RentQuestion
    from cardfit.plan.sequence import SequenceAnswer
    from cardfit.predict.estimate import MemoryEstimate
    from cardfit.request.mix import RequestsFile
    from cardfit.trace.stream import Trace

__all__ = [
    "accuracy",
    "autopsy",
    "cards",
    "matrix",
    "model",
    "models",
    "offers",
    "plan",
    "records",
    "rent",
    "sequence",
    "trace",
]

HOURS_PER_WEEK = 168
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
    cards_file: Path | None = None,
    offers_file: Path | None = None,
    outputs_per_month: float | None = None,
    hours_per_week: float | None = None,
    target_bytes: int | None = None,
    lock: Path | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Lay one exact request over the cards: verdict, settings, offer and advice for each.

    ``settings`` left out means that every knob is open. ``cards`` names the cards to look at (all
    when left out), ``here`` reads this machine (its cards, its RAM, the container's limit).
    ``ram_bytes`` and ``disk_bytes`` are the host's. ``target_bytes`` is the most device memory to take: of the named
    cards, else of a card that is nothing but this size. ``lock`` is a requirements or lock file: where it
    names other versions than were traced the bands are wider and a note says so. ``progress`` is called with what is
    being done and the share that is done, ``None`` where nobody knows. Raises InputError for an unknown model
    or card, a size the model cannot make, a file that cannot be read, or ``here`` where there is
    no card and none was named; MissingExtra when a dry run is needed and torch or diffusers is not installed.
    """
    _check(ram_bytes, outputs_per_month, disk_bytes, hours_per_week)
    catalog = load_cards(cards_file)
    market = load_offers(offers_file, cards=catalog)
    place = place_of(catalog, market, cards, Host(ram_bytes, os, disk_bytes=disk_bytes), here=here)
    if target_bytes is not None:
        place = within(place, target_bytes, named=cards is not None or here)
    entry, exact, given, notes = _resolved(request, settings or Settings())
    check_streams(given, (find(catalog, name) for name in cards or ()))
    files_bytes, disk_notes = _files(entry, exact, place)
    host = replace(place.host, files_bytes=files_bytes)
    said: list[Note] = []
    estimates = _estimates(entry, exact, progress, said)
    base = estimates.trace(closed(given))
    said += hold_against(lock, base, estimates)
    return make(
        exact,
        given,
        place.targets,
        host,
        _knobs(entry, base, given),
        estimates,
        _facts(
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
        ),
        currency=own_currency(market),
        outputs_per_month=outputs_per_month,
        hours_per_week=hours_per_week,
        timer=_timer(entry, estimates, catalog),
        progress=progress,
    )


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
    catalog = load_cards(cards_file)
    market = load_offers(offers_file, cards=catalog)
    place = place_of(catalog, market, cards, Host())
    wanted = _wanted(models, task)
    ordered, columns = cheapest_first(place.targets, own_currency(market))
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
        rows.append(matrix_row(laid, ordered, place.host))
        versions.update(traced_with)
    return Matrix(
        versions=versions,
        cards=columns,
        rows=tuple(rows),
        notes=tuple(Said.of(note.code, **note.args) for note in notes),
    )


def trace(
    request: Request | str, settings: Settings | None = None, *, progress: Progress | None = None
) -> Trace:
    """What one request does, independent of any card: the dry run of the real pipeline, cached on disk.

    Raises InputError and MissingExtra as `plan` does; DryRunFailed when the pipeline's own code
    raised.
    """
    entry, exact, given, _ = _resolved(request, settings or Settings())
    return _estimates(entry, exact, progress, []).trace(closed(given))


def models(*, task: Task | None = None) -> tuple[Model, ...]:
    """The library's entries, those that do ``task`` when it is given."""
    return tuple(entry for entry in all_models() if task in (None, *entry.tasks))


def model(name: str) -> Model:
    """The library entry called ``name``: an id, an alias or a repo id. Raises UnknownModel with suggestions."""
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


def rent(
    question: RentQuestion | None = None,
    *,
    cards_file: Path | None = None,
    offers_file: Path | None = None,
    **fields: object,
) -> Rent:
    """By the month, by the hour, from an API or not at all: ``question``, or its ``fields`` (``monthly=286``).

    Raises BadRequest for a figure that cannot be meant, UnknownCard, BadFile.
    """
    from cardfit.offers import providers
    from cardfit.plan.rent import make_rent
    from cardfit.plan.rent_question import question_of

    catalog = load_cards(cards_file)
    market = load_offers(offers_file, cards=catalog)
    asked = question or question_of(fields)
    return make_rent(asked, catalog, market, providers.load(), date.today())


def _check(
    ram_bytes: int | None,
    outputs_per_month: float | None,
    disk_bytes: int | None = None,
    hours_per_week: float | None = None,
) -> None:
    if ram_bytes is not None and ram_bytes <= 0:
        raise BadRequest("plan-bad-ram", ram=ram_bytes)
    if disk_bytes is not None and disk_bytes <= 0:
        raise BadRequest("plan-bad-disk", disk=disk_bytes)
    if outputs_per_month is not None and outputs_per_month <= 0:
        raise BadRequest("plan-bad-outputs", outputs=outputs_per_month)
    if hours_per_week is not None and not 0 < hours_per_week <= HOURS_PER_WEEK:
        raise BadRequest("plan-bad-hours", hours=hours_per_week, most=HOURS_PER_WEEK)


def _files(entry: Model, exact: ExactRequest, place: Place) -> tuple[int, tuple[Note, ...]]:
    """Bytes of disk for files and outputs, and what should be said of them."""
    from cardfit.predict.disk import disk_parts, second_copy_bytes

    need = sum(disk_parts(entry, exact).values())
    more = second_copy_bytes(entry, place.host.os)
    return need, disk_notes(need, place.disk_free_bytes, more)


def _resolved(
    request: Request | str, settings: Settings
) -> tuple[Model, ExactRequest, Settings, tuple[Note, ...]]:
    """The entry, the request after its rules, the settings it allows and what was said about them."""
    parse_alloc_conf(settings.alloc_conf)
    asked = Request(model=request) if isinstance(request, str) else request
    entry = load_model(asked.model)
    exact, notes = resolve(entry, asked)
    notes = (*notes, *settings_allowed(entry, settings))
    if entry.vae.tiling_required and settings.vae_tiling is None:
        settings = settings.model_copy(update={"vae_tiling": True})
    return entry, exact, settings, notes


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


def _timer(entry: Model, estimates: Estimates, catalog: Mapping[str, Card]) -> Timer:
    """Seconds of one run by card and settings; the work of a trace is summed once."""
    head_dim = head_dim_of(entry)
    work: dict[int, Totals] = {}

    def time(card: str, settings: Settings) -> TimeEstimate | None:
        known = catalog.get(card)
        if known is None:  # a card of this machine that the catalog does not hold
            return None
        traced = estimates.trace(settings)
        if id(traced) not in work:
            work[id(traced)] = totals(traced, head_dim=head_dim)
        found = work[id(traced)]
        if not any(each.work for each in found.stages):
            return None
        return seconds(found, settings, known, correction=calibration.correction(card))

    return time


def _tracing(progress: Progress | None) -> Progress | None:
    """``progress`` that says what of the dry run is being done."""
    if progress is None:
        return None
    return lambda what, share: progress(say("plan-progress-trace", {"what": what}), share)


def _knobs(entry: Model, traced: Trace, given: Settings) -> Knobs:
    side = given.vae_tile or entry.vae.tile_side
    return knobs_of(
        traced,
        tile=side if entry.vae.tiling else None,
        slicing=entry.vae.slicing,
        chunked=entry.vae.decode_chunk_size,
        always_tiled=entry.vae.tiling_required,
    )


def _model_row(entry: Model) -> ModelRow:
    return ModelRow(
        id=entry.id,
        title=entry.title,
        license=entry.license,
        verified=entry.verified,
        pipeline=entry.pipeline,
    )


def _facts(entry: Model, traced: Trace, notes: tuple[Note, ...], files_bytes: int) -> Facts:
    from cardfit.predict.rule import denoiser_rule_bytes, rule_of_thumb_bytes

    return Facts(
        model=_model_row(entry),
        versions={"cardfit": __version__, **traced.versions},
        rule_bytes=rule_of_thumb_bytes(traced),
        denoiser_rule_bytes=denoiser_rule_bytes(traced),
        disk_bytes=files_bytes,
        context_bytes=CONTEXT_LIKELY_BYTES,
        notes=(*notes, *(Note(code, args) for code, args in traced.notes)),
    )


def _wanted(names: Sequence[str] | None, task: Task | None) -> tuple[Model, ...]:
    """The entries that were named (all when none was), those that do ``task`` when it is given."""
    entries = all_models() if names is None else tuple(map(load_model, dict.fromkeys(names)))
    return tuple(entry for entry in entries if task in (None, *entry.tasks))


def _laid(
    entry: Model, task: Task | None, progress: Progress | None
) -> tuple[Entry, Mapping[str, str]]:
    """The entry ready for the matrix and the versions it was traced with."""
    from cardfit.predict.rule import rule_of_thumb_bytes

    _, exact, given, _ = _resolved(Request(model=entry.id, task=task), Settings())
    estimates = _estimates(entry, exact, progress, [])
    base = estimates.trace(closed(given))
    laid = Entry(
        model=_model_row(entry),
        request=exact,
        knobs=_knobs(entry, base, given),
        estimates=estimates,
        rule_bytes=rule_of_thumb_bytes(base),
        bfloat16=uses_bfloat16(base),
        settings=given,
    )
    return laid, base.versions


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

    _check(ram_bytes, None)
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
        turned = _knobs(entry, estimates.trace(closed(ran)), ran)
    except (InputError, DryRunFailed) as failed:
        if found.given and not isinstance(failed, (DryRunFailed, MissingExtra)):
            raise
        return None, (Note("autopsy-planner-failed", {"reason": str(failed)}),)
    said[:0] = (*found.notes, *notes)
    return Case(exact, closed(ran), turned, estimates, notes=tuple(said)), ()


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
