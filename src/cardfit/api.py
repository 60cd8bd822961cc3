"""The public verbs, under the names of the commands: plan, matrix, trace, models, cards, offers, accuracy.

This is the only place that loads things: library entries, card and offer files, the cached dry
run. The rooms below are handed nouns and return nouns. Every verb returns what its command prints
as JSON; none of them prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from cardfit import __version__
from cardfit.cards import detect, find, unverified_reason, usable
from cardfit.cards import load as load_cards
from cardfit.cards.card import Card
from cardfit.cards.usable import CONTEXT_LIKELY_BYTES
from cardfit.errors import BadRequest, DryRunFailed, MissingExtra, Note
from cardfit.library.load import all_models
from cardfit.library.load import load as load_model
from cardfit.library.models import Model
from cardfit.library.rules import resolve, settings_allowed
from cardfit.messages import say
from cardfit.offers import Offer, age_days
from cardfit.offers import load as load_offers
from cardfit.plan.answer import Answer, ModelRow, Money, OfferRow, Said
from cardfit.plan.knobs import Knobs, closed, knobs_of
from cardfit.plan.make import Facts, make, uses_bfloat16
from cardfit.plan.matrix import Entry, Matrix, cheapest_first
from cardfit.plan.matrix import row as matrix_row
from cardfit.plan.prompts import prompt_matters
from cardfit.plan.search import Estimates
from cardfit.plan.target import Band, Target
from cardfit.plan.verdict import Host, Os
from cardfit.request import ExactRequest, Request, Settings, Task

if TYPE_CHECKING:
    from cardfit.accuracy.score import Accuracy
    from cardfit.predict.estimate import MemoryEstimate
    from cardfit.trace.stream import Trace

__all__ = ["accuracy", "cards", "matrix", "model", "models", "offers", "plan", "trace"]

Progress = Callable[[str, float | None], None]
_EXTRA = ("torch", "diffusers", "transformers", "accelerate", "tokenizers")


def plan(
    request: Request | str,
    settings: Settings | None = None,
    *,
    cards: Sequence[str] | None = None,
    ram_bytes: int | None = None,
    os: Os = "linux",
    here: bool = False,
    cards_file: Path | None = None,
    offers_file: Path | None = None,
    outputs_per_month: float | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Lay one exact request over the cards: verdict, settings, offer and advice for each.

    ``settings`` left out means that every knob is open. ``cards`` names the cards to look at (all
    when left out), ``here`` reads this machine (its cards, its RAM). ``ram_bytes`` is the
    host's. ``progress`` is called with what is being done and the share that is done, ``None``
    where nobody knows. Raises InputError for an unknown model or card, a size the model cannot
    make, a file that cannot be read, or ``here`` where there is no card and none was named;
    MissingExtra when a dry run is needed and torch or diffusers is not installed.
    """
    _check(ram_bytes, outputs_per_month)
    catalog = load_cards(cards_file)
    market = load_offers(offers_file, cards=catalog)
    place = _place(catalog, market, cards, Host(ram_bytes, os), here=here)
    entry, exact, given, notes = _resolved(request, settings or Settings())
    said: list[Note] = []
    estimates = _estimates(entry, exact, progress, said)
    base = estimates.trace(closed(given))
    return make(
        exact,
        given,
        place.targets,
        place.host,
        _knobs(entry, base, given),
        estimates,
        _facts(entry, base, (*place.notes, *notes, *_prompt(entry, base), *said)),
        currency=_own_currency(market),
        outputs_per_month=outputs_per_month,
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
    place = _place(catalog, market, cards, Host())
    wanted = _wanted(models, task)
    ordered, columns = cheapest_first(place.targets, _own_currency(market))
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


def _check(ram_bytes: int | None, outputs_per_month: float | None) -> None:
    if ram_bytes is not None and ram_bytes <= 0:
        raise BadRequest("plan-bad-ram", ram=ram_bytes)
    if outputs_per_month is not None and outputs_per_month <= 0:
        raise BadRequest("plan-bad-outputs", outputs=outputs_per_month)


def _resolved(
    request: Request | str, settings: Settings
) -> tuple[Model, ExactRequest, Settings, tuple[Note, ...]]:
    """The entry, the request after its rules, the settings it allows and what was said about them."""
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
            from cardfit.trace.cache import cached

            found, notes = cached(entry, exact, settings, progress=_tracing(progress))
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

    return Estimates(tracer, predictor)


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


def _prompt(entry: Model, traced: Trace) -> tuple[Note, ...]:
    """The caution that the length of the prompt counts, where it does."""
    if not prompt_matters(traced):
        return ()
    args = {"model": entry.id, "tokens": traced.request.prompt_tokens}
    return (Note("plan-prompt-grows", args),)


def _model_row(entry: Model) -> ModelRow:
    return ModelRow(
        id=entry.id,
        title=entry.title,
        license=entry.license,
        verified=entry.verified,
        pipeline=entry.pipeline,
    )


def _facts(entry: Model, traced: Trace, notes: tuple[Note, ...]) -> Facts:
    from cardfit.predict.disk import disk_bytes
    from cardfit.predict.rule import denoiser_rule_bytes, rule_of_thumb_bytes

    return Facts(
        model=_model_row(entry),
        versions={"cardfit": __version__, **traced.versions},
        rule_bytes=rule_of_thumb_bytes(traced),
        denoiser_rule_bytes=denoiser_rule_bytes(traced),
        disk_bytes=disk_bytes(entry),
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the request is to run: the cards, the machine around them and what was said while looking."""

    targets: tuple[Target, ...]
    host: Host
    notes: tuple[Note, ...] = ()


def _place(
    catalog: Mapping[str, Card],
    market: Sequence[Offer],
    names: Sequence[str] | None,
    host: Host,
    *,
    here: bool = False,
) -> _Place:
    """The named cards (all when none was named) with their offers; with ``here`` those of this machine as well."""
    today = date.today()
    machine = detect.here(catalog) if here else None
    if here and machine is None and names is None:
        nothing = detect.none_found()
        raise BadRequest(nothing.code, **nothing.args)
    chosen = {card.id: _target(card, market, today) for card in _named(catalog, names, machine)}
    if machine is None:
        return _Place(tuple(chosen.values()), host, (detect.none_found(),) if here else ())
    ram_bytes = min(filter(None, (machine.ram_bytes, machine.ram_limit_bytes)), default=None)
    for card, device in zip(machine.cards, machine.devices, strict=True):
        chosen[card.id] = _target(card, market, today, device.used_bytes, ram_bytes)
    os: Os = "windows" if machine.os == "windows" else host.os
    return _Place(tuple(chosen.values()), Host(host.ram_bytes, os), machine.notes)


def _named(
    catalog: Mapping[str, Card], names: Sequence[str] | None, machine: detect.Machine | None
) -> list[Card]:
    if names is None:
        return [] if machine else list(catalog.values())
    return [find(catalog, name) for name in names]


def _target(
    card: Card,
    market: Sequence[Offer],
    today: date,
    used_bytes: int = 0,
    ram_bytes: int | None = None,
) -> Target:
    """``used_bytes`` is what the driver says is taken on this machine's card now, the driver's own share included."""
    reason = unverified_reason(card)
    capability = card.compute_capability
    target = Target(
        card=card.id,
        name=card.name,
        memory_bytes=card.memory_bytes,
        architecture=card.architecture,
        compute_capability=None if capability is None else float(capability),
        total=None,
        context=None,
        offers=_offer_rows(card, market, today),
        unverified=reason,
        machine_ram_bytes=ram_bytes,
    )
    if reason is not None or card.memory_bytes is None:
        return target
    room = usable(card)
    # what CUDA's total leaves out of the driver's memory is in ``used_bytes`` already
    tenants = max(0, used_bytes - (card.memory_bytes - room.total.likely))
    total, context = room.total, room.context
    return replace(
        target,
        total=Band(*(max(0, each - tenants) for each in (total.low, total.likely, total.high))),
        context=Band(context.low, context.likely, context.high),
    )


def _offer_rows(card: Card, market: Sequence[Offer], today: date) -> tuple[OfferRow, ...]:
    """The card's offers for one card; those of several cards together only where there is no other."""
    own = [offer for offer in market if offer.card == card.id]
    alone = [offer for offer in own if offer.gpus == 1]
    return tuple(
        OfferRow(
            provider=offer.provider,
            price=Money(amount=offer.price_per_gpu, currency=offer.currency),
            period=offer.period,
            spot=offer.spot,
            as_of=offer.as_of.isoformat(),
            age_days=age_days(offer, today),
            ram_bytes=offer.ram_bytes,
            source=offer.source,
        )
        for offer in alone or own
    )


def _own_currency(market: Sequence[Offer]) -> str | None:
    """The currency of the reader's own offers, where there are any: prices are compared in it."""
    return next((offer.currency for offer in market if offer.own), None)


def accuracy(file: Path, *, progress: Progress | None = None) -> Accuracy:
    """Published measurements in ``file`` against predictions, with simpler rules on the same rows.

    Rows that cannot be rebuilt are skipped with a reason of a closed list. Raises BadFile for a file with another
    header, MissingExtra when a dry run is needed and torch or diffusers is not installed.
    """
    try:
        from cardfit.accuracy.score import score

        return score(file, progress=_tracing(progress))
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        raise MissingExtra("accuracy-needs-trace", package=package) from missing
