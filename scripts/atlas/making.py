"""One model's file in the making: what is looked at, in which order, and what is left out.

In: a library entry, or the file that it has already. Out: the content of its file, and the problems met on the way.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from fit import NEARLY, evaluate
from points import Points, constant, domain_at
from session import Session
from survey import (
    IMAGE_PIXELS,
    MANY,
    MAX_BATCH,
    MAX_FRAMES,
    VIDEO_PIXELS,
    Piece,
    Structures,
    Survey,
    Table,
    Variant,
    make_request,
    possible,
)
from write import Book

from cardfit.errors import CardfitError
from cardfit.library.models import Model
from cardfit.request import Settings
from cardfit.trace.atlas.domain import Domain, key_of
from cardfit.trace.atlas.read import entry_hash
from cardfit.trace.cache import versions
from cardfit.trace.coding import encode

SMALLEST = 320  # pixels of a side; below it the dry run keeps tables of positions real


# Where decoding in tiles is looked at: the sizes of the usual ratios, and the usual clips.
IMAGE_SIZES = (
    (768, 768), (1024, 1024), (1152, 896), (1216, 832), (1344, 768), (1280, 720), (1536, 1024),
    (1536, 1536), (1920, 1088), (2048, 2048),
)  # fmt: skip
VIDEO_SIZES = ((832, 480), (1280, 720))
FRAME_COUNTS = (81,)
CLIPS = (16, 17, 25, 33, 49, 61, 65, 81, 85, 97, 121, 129, 161, 193)  # where formulas do not reach
_TILED = ("batch", "height", "width", "frames")


def guidances(model: Model) -> list[tuple[str, float]]:
    """A guidance above 1 and one that is not, the default first."""
    usual = model.defaults.guidance_scale
    pair = [("on", usual if usual > 1 else 4.0), ("off", usual if usual <= 1 else 1.0)]
    return pair if usual > 1 else pair[::-1]


def domain_of(model: Model, ask: Any, grid: int) -> Domain:
    """The bounds to look in, as far as the model's own rules allow."""
    rules = model.rules
    video = model.is_video
    pixels = VIDEO_PIXELS if video else IMAGE_PIXELS
    sizes: set[tuple[int, int]] = set()
    default = (model.defaults.width, model.defaults.height)
    if rules.size.fit != "plain":
        asked = [*rules.size.sizes, *rules.native_sizes, default]
        asked += [(w, h) for w in range(512, 2049, 128) for h in range(512, 2049, 128)]
        for width, height in asked:
            found = possible(ask, width=width, height=height)
            if found is not None:
                sizes.add((found.width, found.height))
        for side in [s for size in sizes for s in size]:
            grid = gcd(grid * 64, side) if grid == 1 else gcd(grid, side)
    counts: tuple[int, ...] = (1,)
    if video:
        most = min(MAX_FRAMES, rules.frames.max_frames or MAX_FRAMES)
        found_counts = set()
        for n in range(1, most + 1):
            found = possible(ask, width=default[0], height=default[1], num_frames=n)
            if found is not None and found.num_frames == n:
                found_counts.add(n)
        counts = tuple(sorted(found_counts))
    largest = min(rules.size.max_side or 4096, 4096)
    return Domain(
        grid=grid,
        temporal=max(1, model.vae.temporal_compression),
        smallest=smallest_side(model, ask, grid),
        largest=largest // grid * grid,
        pixels=pixels,
        batch=1 if video else MAX_BATCH,
        sizes=tuple(sorted(sizes)),
        frame_counts=counts,
        prompt_tokens=None,
    )


def smallest_side(model: Model, ask: Any, grid: int) -> int:
    """The smallest square side from `SMALLEST` pixels on that the model takes."""
    for side in range(-(-SMALLEST // grid) * grid, 1025, grid):
        found = possible(ask, width=side, height=side)
        if found is not None and (found.width, found.height) == (side, side):
            return side
    return -(-SMALLEST // grid) * grid


def first_grid(model: Model) -> int:
    """Steps in which a side changes nothing but sizes: a UNet halves what it gets up to three times."""
    step = max(
        model.rules.size.floor_to, model.rules.size.refuse_unless, model.vae.spatial_compression
    )
    if any("UNet" in part.class_path for part in model.components.values()):
        return max(step, model.vae.spatial_compression * 8)
    return step


def ways_of(grid: int) -> list[tuple[int, int]]:
    """What to hold a size to, least first: (steps of a side in pixels, what height x width in steps divides by).

    Attention pads a sequence to a multiple of 8, some models to one of 32; the last is for the usual size alone.
    """
    return [(grid, 1), (grid, 8), (grid, 32), (grid * 2, 1), (grid * 4, 1), (grid, 1)]


class NothingBuilt(Exception):
    """Nothing could be built."""


class ModelBuild:
    """One model's file in the making."""

    def __init__(self, model: Model, say: Any, held: dict[str, Any] | None = None) -> None:
        self.model, self.say = model, say
        self.structures = Structures()
        self.book = Book(self.structures, held)
        self.problems: list[str] = []
        sites = held["sites"] if held else [["", ""]]
        self.sites: dict[tuple[str, str], int] = {(op, at): n for n, (op, at) in enumerate(sites)}
        self.open = Settings(
            vae_tiling=model.vae.tiling_required, vae_slicing=False, offload="none"
        )

    def build(self, usual: bool, points: bool) -> dict[str, Any]:
        """Every task, or the ``usual`` one; one that cannot be done leaves a problem, not a file with holes unsaid.

        Where no formulas are found, or with ``points``, single points are held.
        """
        for task in self.model.tasks[: 1 if usual else None]:
            held = len(self.book.variants)
            if not points:
                try:
                    self._task(task, usual)
                except (
                    CardfitError,
                    IndexError,
                ) as failed:  # the smallest size or 20 steps are not for it
                    self.say(f"{task}: {failed}")
            reached = self.book.variants[held:]
            self._points(task, guidances(self.model)[0], self._asked_most(), reached)
        return self._content()

    def more(self) -> dict[str, Any]:
        """What formulas left out: sizes and clips that people ask for, other tasks and the other guidance."""
        usual = self.model.defaults
        at = [(usual.width, usual.height, usual.num_frames)]
        for number, task in enumerate(self.model.tasks):
            for guidance in guidances(self.model):
                if number == 0 and guidance == guidances(self.model)[0]:
                    self._points(
                        task, guidance, self._asked_most(), self._held(task, guidance), tiles=False
                    )
                    self._points(
                        task, guidance, self._clips(), self._held(task, guidance), tiles=False
                    )
                elif not self._held(task, guidance):
                    self._points(task, guidance, at, [], tiles=False)
        return self._content()

    def _held(self, task: Any, guidance: tuple[str, float]) -> list[dict[str, Any]]:
        """The variants of a task with a guidance."""
        guided = ("any", guidance[0])
        return [v for v in self.book.variants if v["task"] == task and v["guided"] in guided]

    def _clips(self) -> list[tuple[int, int, int]]:
        """The usual size with the numbers of frames that people ask for."""
        usual = self.model.defaults
        return [(usual.width, usual.height, n) for n in CLIPS] if self.model.is_video else []

    def _content(self) -> dict[str, Any]:
        if not self.book.variants:
            raise NothingBuilt("; ".join(self.problems) or "nothing")
        head = {
            "model": self.model.id,
            "entry": entry_hash(self.model),
            "versions": versions(),
        }
        return self.book.content(head, [list(site) for site in self.sites])

    def _task(self, task: Any, usual: bool) -> None:
        session: Session | None = None
        first: Survey | None = None
        for n, (guided, scale) in enumerate(guidances(self.model)[: 1 if usual else None]):
            ask = make_request(self.model, task, scale)
            ways = ways_of(first_grid(self.model))
            for at, (grid, whole) in enumerate(ways):
                domain = domain_of(self.model, ask, grid)
                domain.whole = whole
                only = at == len(ways) - 1 or (at > 0 and bool(domain.sizes))
                if only:
                    domain.sizes = ((self.model.defaults.width, self.model.defaults.height),)
                start = ask(**self._start(domain))
                if session is None:
                    session = Session(self.model, start, self.open)
                    session.pool.sites = self.sites
                if n and first is not None and self._same(session, ask, first, start):
                    self.book.variants[-1]["guided"] = "any"
                    return
                survey = Survey(
                    session, self.structures, ask, domain, self.open, seed=7, before=first
                )
                made = self._variant(survey)
                wrong = None if isinstance(made, str) else self._check(survey, made[0])
                if isinstance(made, str) or wrong:
                    self.say(
                        f"{task} {guided} grid {grid} whole {whole}: {made if isinstance(made, str) else wrong}"
                    )
                    if only:
                        self.problems.append(
                            f"{task} {guided}: {made if isinstance(made, str) else wrong}"
                        )
                        break
                    continue
                variant, settings = made
                self.problems += [f"{task} {guided}: {p}" for p in variant.problems]
                components = encode(survey.traced)["components"]
                self.book.add(variant, components, task=task, guided=guided, more=settings)
                first = first or survey
                break

    def _points(
        self,
        task: Any,
        guidance: tuple[str, float],
        sizes: list[tuple[int, int, int]],
        reached: list[dict[str, Any]],
        *,
        tiles: bool = True,
    ) -> None:
        """One guidance at the ``sizes`` that formulas do not reach, each as it was seen."""
        guided, scale = guidance
        ask = make_request(self.model, task, scale)
        domain = domain_at(self.model, ask, sizes, reached)
        if domain is None:
            if not reached:
                self.problems.append(f"{task}: none of the usual sizes is taken as it is")
            return
        width, height = domain.sizes[0]
        more = {"num_frames": domain.frame_counts[0]} if self.model.is_video else {}
        steps = self.model.defaults.num_inference_steps
        start = ask(width=width, height=height, num_inference_steps=steps, **more)
        session = Session(self.model, start, self.open)
        session.pool.sites = self.sites
        survey = Points(session, self.structures, ask, domain, self.open, seed=7)
        try:
            made = self._variant(survey, tiles=tiles)
        except CardfitError as failed:
            made = str(failed)
        if isinstance(made, str):
            self.problems.append(f"{task} {guided}: {made}")
            return
        variant, settings = made
        self.problems += [f"{task}: {p}" for p in variant.problems]
        components = encode(survey.traced)["components"]
        self.book.add(variant, components, task=task, guided=guided, more=settings)

    def _start(self, domain: Domain) -> dict[str, Any]:
        side = domain.smallest
        width, height = domain.sizes[0] if domain.sizes else (side, side)
        more = {"num_frames": domain.frame_counts[min(1, len(domain.frame_counts) - 1)]}
        return {
            "width": width,
            "height": height,
            "num_inference_steps": MANY if domain.many_from else domain.steps[-1],
            **(more if self.model.is_video else {}),
        }

    def _same(self, session: Session, ask: Any, first: Survey, start: Any) -> bool:
        """Whether guidance changes nothing: the timeline and the calls are those of the first variant."""
        fields = {"width": start.width, "height": start.height, "num_inference_steps": 20}
        if self.model.is_video:
            fields["num_frames"] = start.num_frames
        domain = first.domain
        one = first.look(first.request(**fields), domain.point(start))
        two = first.look(ask(**fields), domain.point(start))
        del session
        return {n: (r.structure, r.slots) for n, r in one.items()} == {
            n: (r.structure, r.slots) for n, r in two.items()
        }

    def _variant(self, survey: Survey, *, tiles: bool = True) -> tuple[Variant, list[Any]] | str:
        try:
            survey.survey()
        except CardfitError as failed:
            return str(failed)
        if not survey.narrow():
            return f"alike only from {survey.domain.smallest}^2 to {survey.domain.pixels} pixels"
        trace = survey.traced
        pool: list[Any] = []
        problems: list[str] = []
        table = survey.table("timeline", pool, problems)
        if not table.pieces:
            return "; ".join(problems)
        calls = {}
        for name in survey.rows:
            if name != "timeline":
                calls[name] = survey.table(name, pool, problems)
                if not calls[name].pieces:
                    return "; ".join(problems)
        variant = Variant(
            domain=survey.domain,
            timeline=table,
            calls=calls,
            pipeline=trace.pipeline,
            sequence=trace.offload_sequence,
            excluded=trace.excluded,
            notes=trace.notes,
            problems=problems,
        )
        self._prompt(survey)
        tiled = bool(self.open.vae_tiling)
        held: list[Any] = [[[tiled, None, None, False], {}]]
        if self.model.vae.slicing and survey.domain.batch > 1:
            tables = self._sliced(survey, pool, problems)
            if tables:
                held.append([[tiled, None, None, True], tables])
        if tiles and self.model.vae.tiling and not tiled:
            tables = self._tiled(survey, variant)
            if tables:
                held.append([[True, None, None, False], tables])
        return variant, held

    def _tiled(self, survey: Survey, variant: Variant) -> dict[str, Any]:
        """The VAE's calls in tiles, at the sizes asked for most: how many tiles there are shapes everything.

        Each size and number of frames is looked at itself and holds for itself alone.
        """
        settings = self.open.model_copy(update={"vae_tiling": True})
        domain, vae = survey.domain, self.model.vae.component
        each = Survey(survey.session, self.structures, survey.request, domain, settings, seed=13)
        found: dict[str, dict[tuple[int, ...], Piece]] = {}
        steps = MANY if domain.many_from else domain.steps[-1]
        asked = self._asked_most(domain.frame_counts)
        if isinstance(survey, Points):  # every size is held anew: the model's own ones
            usual = self.model.defaults
            own = {(usual.width, usual.height), *self.model.rules.native_sizes}
            asked = [e for e in asked if e[:2] in own and e[2] in (1, usual.num_frames)]
        for width, height, count in asked:
            if max(width, height) <= (self.model.vae.tile_side or 0):
                continue
            more = {"num_frames": count} if self.model.is_video else {}
            fields = {"width": width, "height": height, "num_inference_steps": steps, **more}
            request = possible(survey.request, **fields)
            if request is None or domain.outside(request):
                continue
            point = domain.point(request)
            try:
                seen = each.look(request, point, made_up=True)
            except CardfitError:
                continue  # the pipeline itself fails there
            wrong = self._compare(
                {"timeline": seen["timeline"]}, {"timeline": variant.timeline}, domain
            )
            if wrong:
                variant.problems.append(f"tiled: {wrong}")
                return {}
            key = key_of(point, _TILED, domain.many_from)
            for name, row in seen.items():
                if name.startswith(f"{vae}."):
                    same = [constant(y) for y in row.slots]
                    found.setdefault(name, {})[key] = Piece(row.structure, same)
        tables = {
            name: Table(_TILED, {key: n for n, key in enumerate(pieces)}, list(pieces.values()))
            for name, pieces in found.items()
        }
        return {name: self.book.table(table, "call") for name, table in tables.items()}

    def _asked_most(self, frames: tuple[int, ...] = ()) -> list[tuple[int, int, int]]:
        """Sizes and frames (of those given, else the usual) that people ask for: (width, height, frames)."""
        model, usual = self.model, self.model.defaults
        sizes = [(usual.width, usual.height), *model.rules.native_sizes]
        sizes += VIDEO_SIZES if model.is_video else IMAGE_SIZES
        sizes += [(height, width) for width, height in sizes]
        sizes = list(dict.fromkeys(sizes))
        counts = [1]
        if model.is_video:
            held = frames or (usual.num_frames,)
            near = [
                min(held, key=lambda n: abs(n - count))
                for count in (usual.num_frames, *FRAME_COUNTS)
            ]
            counts = list(dict.fromkeys(near))
        return [(width, height, n) for width, height in sizes for n in counts]

    def _sliced(self, survey: Survey, pool: list[Any], problems: list[str]) -> dict[str, Any]:
        """The VAE's calls with slicing, for batches; nothing where a fresh point says otherwise."""
        settings = self.open.model_copy(update={"vae_slicing": True})
        each = Survey(
            survey.session, self.structures, survey.request, survey.domain, settings, seed=11
        )
        each.sliced()
        vae = self.model.vae.component
        tables = {n: each.table(n, pool, problems) for n in each.rows if n.startswith(f"{vae}.")}
        width, height = survey.domain.draw(survey.random)
        request = survey._ask(width, height, 1, 3, 4)
        wrong = self._compare(
            each.look(request, each.domain.point(request)), tables, each.domain, only=vae
        )
        if wrong:
            problems.append(f"sliced: {wrong}")
            return {}
        return {name: self.book.table(table, "call") for name, table in tables.items()}

    def _prompt(self, survey: Survey) -> None:
        """Whether the length of the prompt matters; where it does only the usual one is held."""
        fields = self._start(survey.domain)
        usual = survey.request(**fields)
        point = survey.domain.point(usual)
        one = survey.look(usual, point)
        survey.domain.prompt_tokens = usual.prompt_tokens
        for tokens in (max(1, usual.prompt_tokens // 2), usual.prompt_tokens + 7):
            try:
                other = survey.look(survey.request(**fields, prompt_tokens=tokens), point)
            except CardfitError:
                return
            if {n: (r.structure, r.slots) for n, r in one.items()} != {
                n: (r.structure, r.slots) for n, r in other.items()
            }:
                return
        survey.domain.prompt_tokens = None

    def _check(self, survey: Survey, variant: Variant) -> str | None:
        """Fresh points, run for real: every number of every part."""
        domain = survey.domain
        source = survey.random
        for n in range(3):
            width, height = domain.draw(source)
            frames = source.choice([n for n in domain.frame_counts if n not in survey.failed])
            batch = (1, 1, source.randint(min(2, domain.batch), domain.batch))[n]
            steps = source.choice(
                [
                    *(s for s in (17, 22, 33, 47) if not domain.steps or domain.many_from),
                    *domain.steps,
                ]
            )
            request = survey._ask(width, height, frames, batch, steps)
            if domain.outside(request):
                continue
            tables = {"timeline": variant.timeline, **variant.calls}
            try:
                seen = survey.look(request, domain.point(request))
            except CardfitError:
                continue  # the pipeline itself fails there
            wrong = self._compare(seen, tables, domain)
            if wrong:
                return wrong
        return None

    def _compare(
        self, seen: dict[str, Any], tables: dict[str, Any], domain: Domain, only: str = ""
    ) -> str | None:
        """The first number that a table gives otherwise than a real run; keys not held are passed over."""
        for name, row in seen.items():
            if not name.startswith(only):
                continue
            table, point = tables.get(name), row.point
            if table is None:
                return f"{name} at {point} was not seen before"
            at = table.pieces.get(key_of(point, table.features, domain.many_from))
            if at is None:
                continue  # not covered, and said so when asked
            piece = table.found[at]
            if piece.structure != row.structure:
                return f"{name} at {point} does something else"
            kinds = self.structures.all[row.structure][1]
            for kind, formula, y in zip(kinds, piece.formulas, row.slots, strict=True):
                found = evaluate(formula, point)
                if abs(float(found) - y) > (2 * NEARLY * abs(y) if kind == "w" else 0):
                    return f"{name} at {point}: {float(found)} is not {y}"
        return None
