"""The controls of the configurator, as the model's rules allow them.

In: a library entry, the bounds of its shipped traces, and the state of the page. Out: values, limits and choices, each
with the code of its label; what the rules made of a value stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardfit.cards import Card
from cardfit.errors import CardfitError, Note
from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.messages import TEXTS, say
from cardfit.plan.target import short_name
from cardfit.report.plan_view import ENCODES, SORTS
from cardfit.report.words import DTYPE_WORDS
from cardfit.request import OFFLOADS, ExactRequest, Request, Settings
from cardfit.trace import atlas
from cardfit.trace.atlas.domain import Domain
from cardfit.web.questions import (
    PLACE_FIELDS,
    REPEATED,
    REQUEST_FIELDS,
    SETTINGS_FIELDS,
    PlanQuestion,
)
from cardfit.web.state import State, field_of

# The schemes offered by name; the planner knows more of them.
SCHEMES = (
    "fp8-layerwise",
    "bnb-int8",
    "bnb-nf4",
    "torchao-int8",
    "torchao-fp8",
    "gguf-q8_0",
    "gguf-q4_k",
)
_FIELDS = {*REQUEST_FIELDS, *SETTINGS_FIELDS, *PLACE_FIELDS} - {"model", "task"}
_DENOISERS = ("transformer", "unet", "prior")


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its limits; ``slider`` where dragging makes sense."""

    name: str
    value: str
    low: float
    high: float
    step: float
    slider: bool = False
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """One choice; ``group`` is the heading it stands under."""

    value: str
    text: str
    chosen: bool = False
    disabled: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Choices of which one holds."""

    name: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """A size the model was made for, as a link."""

    text: str
    query: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Controls:
    """The whole form; ``beside`` are messages by field, ``lead`` one that belongs to no field.

    ``kept`` is what the address says and no control shows.
    """

    model: Choice
    make: tuple[Number | Choice, ...]
    run: tuple[Number | Choice, ...]
    place: tuple[Number | Choice, ...]
    show: tuple[Number | Choice, ...]
    presets: tuple[Preset, ...]
    kept: tuple[tuple[str, str], ...]
    beside: Mapping[str, str]
    errors: frozenset[str]
    lead: str


def controls(
    state: State,
    entry: Model,
    entries: Sequence[Model],
    shipped: frozenset[str],
    cards: Sequence[Card],
    *,
    dry_runs: bool,
) -> Controls:
    """The form for ``state``."""
    question = state.question
    exact, notes = _exact(entry, question.request)
    bounds = None if dry_runs else atlas.domain(entry, exact)
    held = _Held(entry, exact, dry_runs)
    beside, errors, lead = _messages(state.error, notes)
    make, run = tuple(_make(entry, exact, bounds, state)), tuple(_run(entry, question, held))
    place, show = tuple(_place(question, cards, state)), tuple(_show(cards, state))
    return Controls(
        model=_models(entry, entries, shipped),
        make=make,
        run=run,
        place=place,
        show=show,
        kept=tuple(_kept(state, (*make, *run, *place, *show))),
        presets=tuple(_presets(entry, exact, bounds, state)),
        beside=beside,
        errors=errors,
        lead=lead,
    )


def _kept(state: State, shown: Iterable[Number | Choice]) -> Iterable[tuple[str, str]]:
    """What is asked beside the controls: fields without one, and values that a list of choices does not have."""
    offered: dict[str, set[str]] = {}
    for each in shown:
        values = each.options if isinstance(each, Choice) else ()
        offered[each.name] = {option.value for option in values}
    for name, value in state.pairs():
        lists = name in REPEATED and name in offered
        if (lists and value not in offered[name]) or name in _FIELDS - offered.keys():
            yield name, value


def _exact(entry: Model, request: Request) -> tuple[ExactRequest, tuple[Note, ...]]:
    try:
        return resolve(entry, request)
    except CardfitError:  # said by the answer; the controls stand at the model's own values
        return resolve(entry, Request(model=entry.id))


def _messages(
    error: CardfitError | None, notes: Iterable[Note]
) -> tuple[dict[str, str], frozenset[str], str]:
    beside: dict[str, str] = {}
    for note in notes:
        field = field_of(note.code, note.args)
        if field is not None and note.code != "defaults-taken":
            beside.setdefault(field, note.text)
    if error is None:
        return beside, frozenset(), ""
    field = field_of(error.code, error.args_)
    if field is None or f"label-{field}" not in TEXTS:
        return beside, frozenset(), str(error)
    return {**beside, field: str(error)}, frozenset({field}), ""


def _models(entry: Model, entries: Sequence[Model], shipped: frozenset[str]) -> Choice:
    """Every model: those that can be answered first, pictures before videos."""

    def group(model: Model) -> str:
        if model.id not in shipped:
            return say("web-group-elsewhere")
        return say("web-group-videos" if model.is_video else "web-group-pictures")

    order = sorted(entries, key=lambda m: (m.id not in shipped, m.is_video, m.title.lower()))
    return Choice(
        "model",
        tuple(
            Option(m.id, m.title, m.id == entry.id, m.id not in shipped, group(m)) for m in order
        ),
    )


def _make(
    entry: Model, exact: ExactRequest, bounds: Domain | None, state: State
) -> Iterable[Number | Choice]:
    if len(entry.tasks) > 1:
        yield Choice("task", tuple(Option(t, t, t == exact.task) for t in entry.tasks))
    step = _grid(entry, bounds)
    low, high = (bounds.smallest, bounds.largest) if bounds else (step, 8192)
    for name, value in (("width", exact.width), ("height", exact.height)):
        yield Number(name, _value(state, name, value), low, high, step, unit="px")
    if entry.is_video:
        counts = bounds.frame_counts if bounds else (1, 1 + entry.vae.temporal_compression, 1024)
        low, step, high = counts[0], counts[min(1, len(counts) - 1)] - counts[0] or 1, counts[-1]
        yield Number(
            "num_frames", _value(state, "num_frames", exact.num_frames), low, high, step, True
        )
        yield Number("fps", _value(state, "fps", exact.fps or 24), 1, 240, 1)
    steps = exact.num_inference_steps
    yield Number(
        "num_inference_steps", _value(state, "num_inference_steps", steps), 1, 100, 1, True
    )
    yield Number(
        "batch", _value(state, "batch", exact.batch), 1, bounds.batch if bounds else 64, 1, True
    )


def _grid(entry: Model, bounds: Domain | None) -> int:
    if bounds is not None:
        return bounds.grid
    rule = entry.rules.size
    return max(rule.refuse_unless, rule.floor_to, 8)


def _value(state: State, name: str, value: float) -> str:
    """What was written, right or wrong, else what holds."""
    return state.given.get(name) or f"{value:g}"


@dataclass(frozen=True, slots=True)
class _Held:
    """Whether this server could answer with a knob turned."""

    entry: Model
    exact: ExactRequest
    dry_runs: bool

    def lacks(self, **knobs: Any) -> bool:
        if self.dry_runs:
            return False
        settings = Settings(**{"vae_tiling": False, **knobs})
        return atlas.outside(self.entry, self.exact, settings) in knobs


def _run(entry: Model, question: PlanQuestion, held: _Held) -> Iterable[Number | Choice]:
    settings = question.settings
    comfy = question.request.runtime == "comfyui"
    names = (("", "diffusers", not comfy), ("comfyui", "ComfyUI", comfy))
    yield Choice("runtime", tuple(Option(*each) for each in names))
    common = settings.dtype.get("*")
    yield Choice(
        "dtype",
        (
            Option("", say("web-dtype-recommended"), common is None),
            *(
                Option(word, word, common == name, held.lacks(dtype={"*": name}))
                for name, word in DTYPE_WORDS.items()
            ),
        ),
    )
    denoiser = denoiser_of(entry)
    if denoiser is not None:
        chosen = settings.quantization.get(denoiser)
        yield Choice(
            "quantization",
            (
                Option("", say("web-open"), chosen is None),
                Option(f"{denoiser}=none", say("web-scheme-none"), chosen == "none"),
                *(Option(f"{denoiser}={each}", each, chosen == each) for each in SCHEMES),
            ),
        )
    yield Choice(
        "offload",
        (
            Option("", say("web-open"), settings.offload is None),
            *(
                Option(each, say(f"choice-offload-{each}"), settings.offload == each)
                for each in OFFLOADS
            ),
        ),
    )
    if entry.vae.tiling and not entry.vae.tiling_required:
        yield _switch("vae_tiling", settings.vae_tiling, held)
    if entry.vae.slicing:
        yield _switch("vae_slicing", settings.vae_slicing, held)


def denoiser_of(entry: Model) -> str | None:
    """The component that denoises."""
    return next((name for name in entry.components if name.startswith(_DENOISERS)), None)


def _switch(name: str, value: bool | None, held: _Held) -> Choice:
    return Choice(
        name,
        (
            Option("", say("web-auto"), value is None),
            Option("true", say("web-on"), value is True, held.lacks(**{name: True})),
            Option("false", say("web-off"), value is False),
        ),
    )


def _place(
    question: PlanQuestion, cards: Sequence[Card], state: State
) -> Iterable[Number | Choice]:
    named = question.cards or ()
    yield Choice(
        "card",
        (
            Option("", say("web-every-card"), not named),
            *(
                Option(card.id, _card_text(card), card.id in named[:1], group=card.architecture)
                for card in sorted(cards, key=lambda card: (card.architecture, card.name))
            ),
        ),
    )
    yield Choice(
        "ram",
        (
            Option("", say("web-ram-open"), question.ram_bytes is None),
            *(
                Option(f"{size}GB", f"{size} GB", state.given.get("ram") == f"{size}GB")
                for size in (16, 32, 48, 64, 96, 128, 192, 256, 512)
            ),
        ),
    )
    yield Choice(
        "os",
        tuple(Option(o, say(f"choice-os-{o}"), question.os == o) for o in ("linux", "windows")),
    )


def _card_text(card: Card) -> str:
    memory = card.memory_marketing_gb
    name = short_name(card.name)
    return say("web-card-of", {"card": name, "memory": memory}) if memory else name


def _show(cards: Sequence[Card], state: State) -> Iterable[Number | Choice]:
    only = state.only
    price = "" if only.per_hour is None else f"{only.per_hour:g}"
    yield Number("price", price, 0.05, 100, 0.05, unit="/h")
    vendors = sorted({card.vendor for card in cards})
    yield Choice(
        "vendor",
        (
            Option("", say("web-any"), not only.vendor),
            *(Option(each, each, only.vendor == each) for each in vendors),
        ),
    )
    yield Choice(
        "encodes",
        (
            Option("", say("web-any"), not only.encodes),
            *(Option(each, say(f"choice-codec-{each}"), only.encodes == each) for each in ENCODES),
        ),
    )
    yield Choice(
        "sort", tuple(Option(each, say(f"choice-sort-{each}"), only.sort == each) for each in SORTS)
    )


def _presets(
    entry: Model, exact: ExactRequest, bounds: Domain | None, state: State
) -> Iterable[Preset]:
    sizes = entry.rules.native_sizes or entry.rules.size.sizes
    for width, height in sizes[:6]:
        tried = exact.model_copy(update={"width": width, "height": height})
        if bounds is None or bounds.outside(tried) != "size":
            chosen = (exact.width, exact.height) == (width, height)
            query = state.link(width=str(width), height=str(height))
            yield Preset(f"{width}×{height}", query, chosen)
