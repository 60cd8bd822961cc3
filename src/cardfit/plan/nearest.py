"""The nearest job that fits: for a red or tight row fewer frames, a smaller size or batch, a smaller sibling model.

In: an answer and `plan` as it was asked. Out: the answer with `near_miss` filled and a
note of what was tried. A cure by a knob stays in front: that leaves the job as it was asked. At most `MOST_CARDS`
rows are looked at, those that miss by least; each value is planned once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cardfit.errors import BadRequest, DryRunFailed, InputError, MissingExtra
from cardfit.library.models import Model
from cardfit.messages import say
from cardfit.plan.answer import Answer, CardRow, Said
from cardfit.plan.place import TARGET
from cardfit.plan.target import short_name
from cardfit.plan.vary import VARIED, Step, Vary, edge, steps, value_text
from cardfit.request import ExactRequest, Request, Settings

MOST_CARDS = 4
MOST_SIBLINGS = 3
_LEAST_WORK = 0.25  # of what was asked: the smallest size that still counts as the same job
_KEPT = (
    0.5  # a change that keeps less than this share of the work has a sibling model named beside it
)
_SHORT = ("plan-short-video", "plan-short-image")  # what a row says where no knob cures it


@dataclass(slots=True)
class _Asked:
    """The memo: rows by card for each request that was tried; none where it cannot be made."""

    plan: Callable[..., Answer]
    settings: Settings
    cards: tuple[str, ...] | None
    rows: dict[str, dict[str, CardRow]] = field(default_factory=dict)

    def of(self, request: Request) -> dict[str, CardRow]:
        key = request.model_dump_json()
        if key not in self.rows:
            try:
                answer = self.plan(request, self.settings, cards=self.cards)
            except MissingExtra:
                raise
            except (InputError, DryRunFailed):
                self.rows[key] = {}
            else:
                self.rows[key] = {row.card: row for row in answer.cards}
        return self.rows[key]

    def fits(self, request: Request, card: str) -> bool:
        row = self.of(request).get(card)
        return row is not None and row.verdict == "fits"


def with_near_misses(
    answer: Answer, model: Model, library: Sequence[Model], plan: Callable[..., Answer]
) -> Answer:
    """``answer`` with the nearest job that fits on its red and tight rows.

    ``library`` holds the siblings; ``plan`` answers for (request, settings, ``cards=``) as the answer was made.
    """
    missed = sorted(filter(_open, answer.cards), key=lambda row: -(row.headroom_bytes or 0))
    chosen = [row.card for row in missed[:MOST_CARDS]]
    if not chosen:
        return answer
    cards = None if chosen == [TARGET] else tuple(chosen)
    asked = _Asked(plan, answer.settings, cards)
    axes = _axes(model, answer.request)
    siblings = siblings_of(model, answer.request, library)
    found = {card: _nearest(asked, answer.request, card, axes, siblings) for card in chosen}
    rows = tuple(
        row.model_copy(update={"near_miss": _said(row, found[row.card])})
        if row.card in found
        else row
        for row in answer.cards
    )
    note = Said.of(
        "nearest-looked",
        cards=", ".join(short_name(row.name) for row in missed[:MOST_CARDS]),
        others=len(missed) - len(chosen),
    )
    return answer.model_copy(update={"cards": rows, "notes": (*answer.notes, note)})


def _open(row: CardRow) -> bool:
    """Whether a smaller job may help: not where numbers or files are what stops it."""
    missed = row.verdict in ("tight", "spills", "does_not_fit")
    return missed and row.settings is not None and row.why.code != "plan-over-disk"


def siblings_of(model: Model, request: ExactRequest, library: Sequence[Model]) -> tuple[Model, ...]:
    """Models of the same family and task that are smaller, or that take fewer steps; the largest first."""
    steps_of = request.num_inference_steps
    found = [
        each
        for each in library
        if each.family == model.family
        and each.id != model.id
        and request.task in each.tasks
        and (
            each.params < 0.95 * model.params
            or (each.params <= model.params and each.defaults.num_inference_steps * 2 < steps_of)
        )
    ]
    return tuple(sorted(found, key=lambda each: (-each.params, each.id))[:MOST_SIBLINGS])


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of the job that fits: what of it, from what to what, the row, the share of the work that is left."""

    what: str
    asked: str
    value: str
    row: CardRow
    share: float


@dataclass(frozen=True, slots=True)
class _Found:
    """The changes that fit, the nearest first, and the names of everything that was tried."""

    changes: tuple[_Change, ...]
    tried: tuple[str, ...]


def _axes(model: Model, request: ExactRequest) -> dict[Vary, tuple[Step, ...]]:
    """The smaller values of each field that can be made smaller; sizes down to a quarter of the area."""
    found: dict[Vary, tuple[Step, ...]] = {}
    work = request.width * request.height * request.num_frames * request.batch
    for vary in VARIED:
        try:
            every = steps(model, request, vary)
        except BadRequest:
            continue
        least = _LEAST_WORK * work if vary == "size" else 0
        below = tuple(step for step in every if least <= step.work < work)
        if below:
            found[vary] = below
    return found


def _nearest(
    asked: _Asked,
    request: ExactRequest,
    card: str,
    axes: dict[Vary, tuple[Step, ...]],
    siblings: Sequence[Model],
) -> _Found:
    work = request.width * request.height * request.num_frames * request.batch
    changes, tried = [], []
    for vary, smaller in axes.items():
        tried.append(say(f"nearest-axis-{vary}", {"least": smaller[0].text}))
        at = _edge(asked, request, card, smaller)
        if at is not None:
            step = smaller[at]
            row = asked.of(step.on(request))[card]
            changes.append(
                _Change(vary, value_text(request, vary), step.text, row, step.work / work)
            )
    changes.sort(key=lambda change: -change.share)
    if not changes or changes[0].share < _KEPT:
        for each in siblings:
            tried.append(each.id)
            other = _on(each, request)
            if asked.fits(other, card):
                row = asked.of(other)[card]
                changes.append(_Change("model", request.model, each.id, row, 0.0))
                break
    return _Found(tuple(changes), tuple(tried))


def _edge(asked: _Asked, request: ExactRequest, card: str, smaller: tuple[Step, ...]) -> int | None:
    """The largest of ``smaller`` that fits; none is looked for where the smallest was planned and does not."""
    least = asked.of(smaller[0].on(request)).get(card)
    if least is not None and least.verdict != "fits":
        return None
    last = len(smaller) - 1
    return edge(len(smaller), last, lambda at: asked.fits(smaller[at].on(request), card)).at


def _on(model: Model, request: ExactRequest) -> Request:
    """The same output from another model, whose own steps and guidance hold."""
    own = {"num_inference_steps": None, "guidance_scale": None, "prompt_tokens": None}
    return Request(**{**request.model_dump(), **own, "model": model.id})


def _said(row: CardRow, found: _Found) -> Said:
    """What helped before, as long as it leaves the job as asked, then the change of the job."""
    tried, cure = ", ".join(found.tried), ""
    if row.near_miss is not None and row.near_miss.code not in _SHORT:
        cure = row.near_miss.text + " "
    if not found.changes:
        return Said.of("nearest-none", cure=cure, settings=row.settings_text, tried=tried)
    texts = []
    for change in found.changes:
        args = {"value": change.value, "asked": change.asked}
        changed = say(f"nearest-{change.what}", args)
        texts.append(say("nearest-fits", {"change": changed, "settings": change.row.settings_text}))
    options = [
        {"field": change.what, "value": change.value, "asked": change.asked}
        for change in found.changes
    ]
    return Said.of("nearest", cure=cure, changes=" ".join(texts), tried=tried, options=options)
