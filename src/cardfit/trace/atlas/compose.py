"""A Trace from the atlas: the pieces that hold at a point, with their formulas worked out there.

In: a model's file (`read`), a request and settings. Out: the Trace that a dry run would give, or a `Gap` that names
what lies outside. No torch, no numpy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cardfit.request import ExactRequest, Settings
from cardfit.trace.atlas.columns import events_of
from cardfit.trace.atlas.domain import Domain, Point, key_of
from cardfit.trace.atlas.forms import Forms
from cardfit.trace.atlas.layout import EARLY
from cardfit.trace.atlas.read import tiles_of
from cardfit.trace.stream import Binding, Event, Op, Segment, Stream, Trace, Work

_ADDED = ("loras", "controlnets", "t2i_adapters", "ip_adapters", "reference_images", "components")
_BIRTH, _DEATH, _WORKSPACE, _CALL = (int(o) for o in (Op.BIRTH, Op.DEATH, Op.WORKSPACE, Op.CALL))


@dataclass(frozen=True, slots=True)
class Gap:
    """``field`` of the request or the settings lies outside what the atlas holds."""

    field: str


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The book of one size in tiles and the number of each of the VAE's calls in it."""

    size: str
    book: dict[str, Any]
    calls: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Pages:
    """A book, its formulas worked out at one point, and what other requests share of it."""

    book: dict[str, Any]
    values: _Values
    forms: Forms


class _Values:
    """Formulas worked out at one point, each once."""

    def __init__(self, formulas: list[list[list[int]]], point: Point) -> None:
        self.formulas, self.point = formulas, point
        self.known: dict[int, float] = {}

    def exact(self, number: int) -> float:
        """The value of formula ``number``."""
        found = self.known.get(number)
        if found is None:
            b, h, w, f, n = self.point
            found = 0.0
            for eb, eh, ew, ef, en, top, bottom in self.formulas[number]:
                found += b**eb * h**eh * w**ew * f**ef * n**en * top / bottom
            self.known[number] = found
        return found

    def whole(self, number: int) -> int:
        """The same in whole bytes or counts."""
        return round(self.exact(number))


def compose(
    book: dict[str, Any],
    request: ExactRequest,
    settings: Settings,
    forms_of: Callable[[str], Forms] = lambda size: Forms(),
) -> Trace | Gap:
    """The Trace of ``request`` with ``settings`` from a model's ``book``.

    ``forms_of`` gives what other requests share of the book (of the size ``""``), and of its tiles at a size.
    """
    variant = _variant(book, request)
    if isinstance(variant, Gap):
        return variant
    domain = Domain.of(variant["domain"])
    if (field := domain.outside(request)) is not None:
        return Gap(field)
    tables = _tables(variant, request, settings)
    if isinstance(tables, Gap):
        return tables
    tiles = _tiles(book, variant, request, settings)
    if isinstance(tiles, Gap):
        return tiles
    point = domain.point(request)
    line = _piece(variant["timeline"], point, domain)
    if line is None:
        return Gap("num_inference_steps")
    values = _Values(book["formulas"], point)
    whole = _Pages(book, values, forms_of(""))
    tiled = None
    if tiles is not None:
        in_tiles = _Values(tiles.book["formulas"], point)
        tiled = _Pages(tiles.book, in_tiles, forms_of(tiles.size))
    segments, stages, called, recasts = book["timelines"][line]
    streams: list[Stream] = []
    numbers: dict[int, int] = {}
    tops, more = [], 0
    for name in called:
        pages, number = whole, _piece(tables[name], point, domain)
        if tiles is not None and tiled is not None and name in tiles.calls:
            pages, number = tiled, tiles.calls[name]
        if number is None:
            return Gap("num_frames" if "frames" in tables[name]["features"] else "batch")
        top, extra = pages.book["calls"][number]
        # two calls may be the same piece: they stay two streams, as the dry run has them
        own: dict[int, int] = {}
        tops.append(_stream(pages, top, streams, own))
        more = max(more, pages.values.whole(extra))
        numbers |= own
    components = [whole.forms.component(book, n) for n in variant["components"]]
    return Trace(
        request=request,
        settings=settings,
        versions=dict(book["versions"]),
        pipeline=variant["pipeline"],
        offload_sequence=tuple(variant["offload_sequence"]),
        components=tuple(components),
        recasts=tuple(whole.forms.component(book, n) for n in recasts),
        stages=tuple((stage, component) for stage, component in stages),
        streams=tuple(streams),
        timeline=_timeline(segments, values, tops),
        sites=whole.forms.sites(book),
        notes=(*((code, args) for code, args in variant["notes"]), *_prompt(domain, request)),
        more_without_flash_bytes=more,
        excluded=tuple(variant["excluded"]),
        basis="atlas",
        shared=whole.forms.memo,
    )


def _prompt(domain: Domain, request: ExactRequest) -> tuple[tuple[str, dict[str, object]], ...]:
    """The caution where the length of the prompt counts: only the usual one is held then."""
    if domain.prompt_tokens is None:
        return ()
    args: dict[str, object] = {"model": request.model, "tokens": request.prompt_tokens}
    return (("plan-prompt-grows", args),)


def added(request: ExactRequest) -> Gap | None:
    """What ``request`` lays beside the model, which no file of the atlas holds."""
    return next((Gap(name) for name in _ADDED if getattr(request, name)), None)


def bounds(book: dict[str, Any], request: ExactRequest) -> Domain | Gap:
    """Where the variant that ``request`` belongs to holds."""
    variant = _variant(book, request)
    return variant if isinstance(variant, Gap) else Domain.of(variant["domain"])


def gap(book: dict[str, Any], request: ExactRequest, settings: Settings) -> str | None:
    """The field of ``request`` or ``settings`` that lies outside, as far as bounds and settings tell."""
    variant = _variant(book, request)
    if isinstance(variant, Gap):
        return variant.field
    if (field := Domain.of(variant["domain"]).outside(request)) is not None:
        return field
    tables = _tables(variant, request, settings)
    return tables.field if isinstance(tables, Gap) else None


def _variant(book: dict[str, Any], request: ExactRequest) -> dict[str, Any] | Gap:
    found: list[dict[str, Any]] = [v for v in book["variants"] if v["task"] == request.task]
    if not found:
        return Gap("task")
    guided = "on" if request.guidance_scale > 1 else "off"
    found = [v for v in found if v["guided"] in ("any", guided)]
    if not found:
        return Gap("guidance_scale")
    # single points are held beside formulas that do not reach them
    return next((v for v in found if covers(v, request)), found[0])


def covers(variant: dict[str, Any], request: ExactRequest) -> bool:
    """Whether a variant holds the size, frames, batch and steps of ``request``."""
    domain = Domain.of(variant["domain"])
    if domain.outside(request) is not None:
        return False
    point = domain.point(request)
    tables = (variant["timeline"], *variant["calls"].values())
    return all(_piece(table, point, domain) is not None for table in tables)


def _tables(
    variant: dict[str, Any], request: ExactRequest, settings: Settings
) -> dict[str, Any] | Gap:
    """The calls' tables, with those of the VAE as the settings have it."""
    shaping = (
        settings.dtype,
        settings.forward_chunking,
        settings.fuse_qkv,
        settings.decode_chunk_size,
    )
    for name, value in zip(
        ("dtype", "forward_chunking", "fuse_qkv", "decode_chunk_size"), shaping, strict=True
    ):
        if value:
            return Gap(name)
    if settings.attention != "sdpa":
        return Gap("attention")
    if settings.prompt_embeds:
        return Gap("prompt_embeds")
    sliced = bool(settings.vae_slicing) and request.batch > 1
    for held, tables in variant["settings"]:
        if held == [*_tiling(settings), sliced]:
            return {**variant["calls"], **tables}
    if settings.vae_tiling:  # what is not the VAE's is the same
        return dict(variant["calls"])
    return Gap("vae_slicing")


def _tiling(settings: Settings) -> list[Any]:
    return [bool(settings.vae_tiling), settings.vae_tile, settings.vae_overlap]


def _tiles(
    book: dict[str, Any], variant: dict[str, Any], request: ExactRequest, settings: Settings
) -> _Tiles | Gap | None:
    """The calls of a VAE in tiles, which are held for single sizes; None where it does not tile or always does."""
    asked = _tiling(settings)
    if not asked[0] or any(held[:3] == asked for held, _ in variant["settings"]):
        return None
    if asked != [True, None, None] or request.batch > 1:
        return Gap("vae_tiling")
    size = f"{request.width}x{request.height}x{request.num_frames}"
    found = tiles_of(book["model"], size)
    at = str(book["variants"].index(variant))
    if found is None or at not in found["variants"]:
        return Gap("vae_tiling")
    return _Tiles(size, found, found["variants"][at])


def _piece(table: dict[str, Any], point: Point, domain: Domain) -> int | None:
    key = list(key_of(point, tuple(table["features"]), domain.many_from))
    return next((row[-1] for row in table["pieces"] if row[:-1] == key), None)


def _bindings(rows: list[list[list[int]]]) -> tuple[Binding, ...]:
    return tuple(Binding(tuple(inputs), tuple(outputs)) for inputs, outputs in rows)


def _stream(pages: _Pages, number: int, streams: list[Stream], own: dict[int, int]) -> int:
    """The place among ``streams`` of stream ``number`` and of what it calls."""
    if number in own:
        return own[number]
    found = pages.forms.kept(number, pages.values.point)
    if found is None:
        found = _worked_out(pages, number, streams, own)
        pages.forms.keep(pages.book, number, pages.values.point, found)
    streams.append(found)
    own[number] = len(streams) - 1
    return own[number]


def _worked_out(pages: _Pages, number: int, streams: list[Stream], own: dict[int, int]) -> Stream:
    """Stream ``number`` at a point; the streams that it calls are put among ``streams`` before it."""
    component, method, inputs, _, outputs, bindings, work = pages.book["streams"][number]
    form = pages.forms.form(pages.book, number)
    exact, whole = pages.values.exact, pages.values.whole
    events = list(form.events)
    for place in form.sized:
        op, a, b, site = events[place]
        events[place] = (op, a, whole(b), site)
    for place in form.calls:
        op, a, b, site = events[place]
        events[place] = (op, _stream(pages, a, streams, own), b, site)
    done = tuple(
        Work(kind, dtype, exact(flop), exact(size), whole(launches))
        for kind, dtype, flop, size, launches in work
    )
    return Stream(
        component,
        method,
        "",
        inputs,
        tuple(events),
        tuple(outputs),
        _bindings(bindings),
        done,
        form,
    )


def _timeline(segments: list[Any], values: _Values, tops: list[int]) -> tuple[Segment, ...]:
    repeats = [values.whole(repeat) for _, _, _, repeat in segments]
    written, real = [0], [0]
    for (_, _, stride, _), repeat in zip(segments, repeats, strict=True):
        written.append(written[-1] + stride)
        real.append(real[-1] + stride * repeat)

    def place(i: int, at: int) -> int:
        """The id that the recorder would have given."""
        if i < 0:
            return i
        tag, i = divmod(i, EARLY)
        where = bisect_right(written, i) - 1
        stride = segments[where][2]
        last = repeats[where] - 1
        turn: int = 0 if where == at or tag == 1 else last if tag == 0 else last + 1 - tag
        found: int = real[where] + turn * stride + i - written[where]
        return found

    out = []
    for at, (laid, bindings, _, _) in enumerate(segments):
        events: list[Event] = []
        for op, a, b, site in events_of(laid):
            if op == _BIRTH:
                a, b = place(a, at), values.whole(b)
            elif op == _WORKSPACE:
                b = values.whole(b)
            elif op == _DEATH:
                a = place(a, at)
            elif op == _CALL:
                a = tops[a]
            events.append((op, a, b, site))
        bound = tuple(
            Binding(tuple(place(i, at) for i in inputs), tuple(place(i, at) for i in outputs))
            for inputs, outputs in bindings
        )
        out.append(Segment(tuple(events), bound, repeats[at]))
    return tuple(out)
