"""Where a model behaves alike, and what its numbers are there.

In: a model, a task, guidance on or off. Out: a `Variant`: for the timeline and for each distinct call a table from a
key (batch, latent frames, steps, as far as they matter) to a piece, and for each piece a formula per slot. Pieces
whose formulas do not give every observed number are left out, and so are keys that were not looked at.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import parts
from fit import Fitter, Formula, Point, evaluate
from session import Session, exact

from cardfit.errors import CardfitError
from cardfit.library.models import Model
from cardfit.request import ExactRequest, Settings, Task
from cardfit.trace.atlas.domain import Domain, key_of

# Few steps are looked at one by one; from the first of these on, schedulers do the same at every step but the ends.
SCANNED_STEPS = (1, 2, 4, 8, 16, 20, 30, 50)
MANY = 20
MAX_BATCH = 8
FAILS = -1  # stands for a structure where the pipeline itself ends in an error
EVERY_FRAME = 32  # of the latent; beyond it every fourth where each has a structure of its own
MAX_FRAMES = 257
IMAGE_PIXELS = 2048 * 2048
VIDEO_PIXELS = 1920 * 1088
_FEATURES = ((), ("few",), ("frames",), ("frames", "few"), ("batch",), ("frames", "batch"))


@dataclass(slots=True)
class Row:
    """What a part was at a point."""

    point: Point
    structure: int
    slots: tuple[float, ...]


@dataclass(slots=True)
class Piece:
    """A structure and one formula for each of its slots."""

    structure: int
    formulas: list[Formula]


@dataclass(slots=True)
class Table:
    """Which piece a part is, by the ``features`` of the point."""

    features: tuple[str, ...]
    pieces: dict[tuple[int, ...], int]  # key -> index into ``found``
    found: list[Piece]


class Structures:
    """Every structure once, with the kinds of its slots."""

    def __init__(self) -> None:
        self.index: dict[Any, int] = {}
        self.all: list[tuple[Any, str]] = []

    def number(self, part: parts.Part) -> int:
        """The number of the part's structure."""
        if part.structure not in self.index:
            self.index[part.structure] = len(self.all)
            self.all.append((part.structure, part.kinds))
        return self.index[part.structure]


@dataclass(slots=True)
class Variant:
    """A task with guidance on or off, under some settings of the VAE."""

    domain: Domain
    timeline: Table
    calls: dict[str, Table]
    pipeline: str
    sequence: tuple[str, ...]
    excluded: tuple[str, ...]
    notes: tuple[Any, ...]
    problems: list[str] = field(default_factory=list)


class Survey:
    """The rows of one variant."""

    def __init__(
        self,
        session: Session,
        structures: Structures,
        request: Callable[..., ExactRequest],
        domain: Domain,
        settings: Settings,
        seed: int,
        before: Survey | None = None,
    ) -> None:
        self.before = before
        self.session, self.structures, self.request = session, structures, request
        self.domain, self.settings = domain, settings
        self.random = random.Random(seed)
        self.rows: dict[str, list[Row]] = defaultdict(list)
        self.points: set[tuple[Point, bool]] = set()
        self.parts: dict[int, tuple[int, tuple[float, ...]]] = {}
        self.work: dict[tuple[str, str], list[Formula | None]] = {}
        self.failed: dict[int, str] = {}  # frame counts that ended in an error
        self.traced: Any = None
        self.video = session.model.is_video

    # -- looking ---------------------------------------------------------------------------------------------------

    def see(self, request: ExactRequest, *, made_up: bool = False) -> Point:
        """Trace ``request`` and keep what was seen."""
        point = self.domain.point(request)
        if (point, made_up) in self.points or (point, False) in self.points:
            return point
        self.points.add((point, made_up))
        try:
            found = self.look(request, point, made_up=made_up)
        except CardfitError as failed:  # a run that ends in an error has no memory to tell
            self.failed[request.num_frames] = str(failed)
            if len(self.points) < 2:
                raise
            return point
        for name, row in found.items():
            self.rows[name].append(row)
        return point

    def look(self, request: ExactRequest, point: Point, *, made_up: bool = False) -> dict[str, Row]:
        """The parts of ``request``."""
        session = self.session
        trace = session.trace(request, self.settings, made_up=made_up)
        self.traced = trace
        called = parts.names(trace)
        line = parts.timeline(trace, called)
        found = {"timeline": Row(point, self.structures.number(line), line.slots)}
        guessed = session.pool.guessed()
        for number, name in called.items():
            if number in guessed:
                continue
            if number not in self.parts:
                part = parts.call(trace, number, session.pool.without_flash.get(number, 0))
                self.parts[number] = (self.structures.number(part), part.slots)
            structure, slots = self.parts[number]
            found[name] = Row(point, structure, slots)
        return found

    def sizes(self, count: int) -> Iterator[tuple[int, int]]:
        """Sides in pixels, spread over the domain."""
        made: dict[tuple[int, int], None] = {}
        for _ in range(count * 40):
            if len(made) < count:
                made[self.domain.draw(self.random)] = None
        found = list(made)
        return iter([found[n % len(found)] for n in range(count)])

    def survey(self) -> None:
        """Everything that the tables need."""
        frames = list(self.domain.frame_counts)
        few = frames[: max(1, len(frames) // 2)]
        for n, (width, height) in enumerate(self.sizes(10 if self.video else 17)):
            batch = 1 if n < 9 or self.video else self.random.randint(2, MAX_BATCH)
            self.see(
                self._ask(
                    width, height, self.random.choice(few), batch, self.random.randint(MANY, 28)
                )
            )
            if n > 3 and not self.narrow():
                return
        frames_matter = any("frames" in self.features(name) for name in self.rows)
        if self.video and frames_matter:
            self._every_frame(frames)
        elif "batch" in self.features("timeline"):
            self._every_batch(few)
        few = [count for count in few if count not in self.failed]
        self._every_step(few)

    def _ask(self, width: int, height: int, frames: int, batch: int, steps: int) -> ExactRequest:
        more = {"num_frames": frames} if self.video else {}
        return self.request(
            width=width, height=height, batch=batch, num_inference_steps=steps, **more
        )

    def _every_frame(self, frames: list[int]) -> None:
        if self.before is not None:  # with guidance on the VAE did what it does without
            for name, rows in self.before.rows.items():
                if name.startswith(self.session.model.vae.component):
                    self.rows[name] += rows
            if "frames" not in self.features("timeline"):
                return
        sizes = list(self.sizes(9))
        steps = MANY if "frames" in self.features("timeline") else 2
        for n, count in enumerate(frames):
            if n > EVERY_FRAME and n % 4:
                continue
            for width, height in sizes[
                : 9 if n < 2 else 5
            ]:  # the first two have no like among the others
                self.see(self._ask(width, height, count, 1, steps), made_up=True)

    def sliced(self) -> None:
        """Batches decoded one output at a time."""
        for batch in range(2, self.domain.batch + 1):
            for width, height in self.sizes(4):
                self.see(self._ask(width, height, 1, batch, 4), made_up=True)

    def _every_batch(self, frames: list[int]) -> None:
        for batch in range(1, MAX_BATCH + 1):
            for width, height in self.sizes(4):
                count = self.random.choice(frames)
                self.see(self._ask(width, height, count, batch, MANY + batch), made_up=True)

    def _every_step(self, frames: list[int]) -> None:
        """Steps one by one where they are few, and between two that differ."""
        batches = (1, 1, 1) if self.video else (1, 1, 1, 2, 3, 4)
        asked = [
            (size, self.random.choice(frames), batch)
            for size, batch in zip(self.sizes(len(batches)), batches, strict=True)
        ]

        def scan(steps: int) -> int:
            for (width, height), count, batch in asked:
                self.see(self._ask(width, height, count, batch, steps), made_up=True)
            seen = (
                r.structure
                for r in reversed(self.rows["timeline"])
                if r.point[4] == steps and r.point[0] == 1
            )
            return next(seen, FAILS)

        kinds = {steps: scan(steps) for steps in SCANNED_STEPS}
        if not self._affine(kinds):
            for steps in range(1, 61):
                kinds[steps] = scan(steps)
            self.domain.many_from = None
            self.domain.steps = tuple(s for s in sorted(kinds) if kinds[s] != FAILS)
            return
        last = kinds[SCANNED_STEPS[-1]]
        many = SCANNED_STEPS[-1]
        for steps in reversed(SCANNED_STEPS):
            if kinds[steps] != last:
                break
            many = steps
        below = [s for s in SCANNED_STEPS if s < many]
        for low, high in zip(below, [*below[1:], many], strict=True):
            for steps in range(low + 1, high):
                kinds[steps] = scan(steps)
        while many > 1 and kinds.get(many - 1) == last:
            many -= 1
        self.domain.many_from = many
        self.domain.steps = tuple(s for s in sorted(kinds) if s < many and kinds[s] != FAILS)

    def _affine(self, kinds: dict[int, int]) -> bool:
        last = kinds[SCANNED_STEPS[-1]]
        if last == FAILS or kinds[MANY] != last or kinds[30] != last:
            return False
        rows = [r for r in self.rows["timeline"] if r.structure == last]
        repeats = [n for n, k in enumerate(self.structures.all[last][1]) if k == "r"]
        return all(affine([(r.point[4], r.slots[n]) for r in rows]) is not None for n in repeats)

    def usual_pixels(self) -> int:
        """The picture that the model is usually asked for."""
        return self.session.model.defaults.width * self.session.model.defaults.height

    def narrow(self) -> bool:
        """Shrink the domain to the sizes around the usual one where no part does something else for its size alone.

        The dry run keeps small tables of numbers real and large ones not, attention pads what does not divide. False
        where less than half or no more than the usual picture would be left.
        """
        usual, low, high = self.usual_pixels(), 0, self.domain.pixels
        for name, rows in self.rows.items():
            features: tuple[str, ...] = ("frames", "batch")
            if name == "timeline":
                features = ("steps", *features)
            elif not name.startswith(self.session.model.vae.component):
                features = ("batch",)  # only a VAE goes frame by frame
            groups: dict[tuple[int, ...], list[Row]] = defaultdict(list)
            for row in rows:
                groups[key_of(row.point, features, None)].append(row)
            for group in groups.values():
                group.sort(key=lambda r: abs(self._area(r) - usual))
                for row in group:
                    if row.structure == group[0].structure:
                        continue
                    if self._area(row) < usual:
                        low = max(low, self._area(row))
                    else:
                        high = min(high, self._area(row) - 1)
        grid = self.domain.grid
        while self.domain.smallest**2 <= low:
            self.domain.smallest += grid
        self.domain.pixels = high
        for name, rows in self.rows.items():
            self.rows[name] = [r for r in rows if low < self._area(r) <= high]
        return low <= usual / 2 and high > usual

    def _area(self, row: Row) -> int:
        return row.point[1] * row.point[2] * self.domain.grid**2

    # -- tables ----------------------------------------------------------------------------------------------------

    def features(self, name: str) -> tuple[str, ...]:
        """The fewest features that tell a part's structures apart; for the timeline at the same number of steps."""
        rows = [r for r in self.rows[name] if name != "timeline" or r.point[4] >= MANY]
        return next((f for f in _FEATURES if self._tells(f, rows)), _FEATURES[-1])

    def _tells(self, features: tuple[str, ...], rows: list[Row]) -> bool:
        seen: dict[tuple[int, ...], int] = {}
        return all(
            seen.setdefault(key_of(r.point, features, None), r.structure) == r.structure
            for r in rows
        )

    def table(self, name: str, pool: list[Formula], problems: list[str]) -> Table:
        """The table of a part; what cannot be fitted is left out and said."""
        features = self.features(name)
        if name == "timeline":
            features = ("steps", *features)
        many = self.domain.many_from
        keys: dict[tuple[int, ...], set[int]] = defaultdict(set)
        by_structure: dict[int, list[Row]] = defaultdict(list)
        for row in self.rows[name]:
            keys[key_of(row.point, features, many)].add(row.structure)
            by_structure[row.structure].append(row)
        found: list[Piece] = []
        numbers: dict[tuple[int, ...], int] = {}
        order = sorted(by_structure, key=lambda s: (-len(by_structure[s]), s))
        for structure in order:
            rows = by_structure[structure]
            own = {key_of(r.point, features, many) for r in rows}
            formulas = self._formulas(name, structure, rows, features, own, pool)
            if not isinstance(formulas, str):
                numbers |= dict.fromkeys(own, len(found))
                found.append(Piece(structure, formulas))
                continue
            # the same happens, but sizes jump from one frame count to the next
            groups = {
                key: [r for r in rows if key_of(r.point, features, many) == key] for key in own
            }
            failed = formulas
            for key, group in sorted(groups.items()):
                formulas = self._formulas(name, structure, group, features, {key}, pool)
                if not isinstance(formulas, str):
                    numbers[key] = len(found)
                    found.append(Piece(structure, formulas))
                else:
                    failed = formulas
            if not own <= numbers.keys():
                missing = sorted(own - numbers.keys())
                problems.append(f"{name} {missing[:4]}: {failed}")
        pieces = {
            key: numbers[key]
            for key, kinds in sorted(keys.items())
            if len(kinds) == 1 and key in numbers
        }
        return Table(features, pieces, found)

    def _formulas(
        self,
        name: str,
        structure: int,
        rows: list[Row],
        features: tuple[str, ...],
        keys: set[tuple[int, ...]],
        pool: list[Formula],
    ) -> list[Formula] | str:
        kinds = self.structures.all[structure][1]
        together = (
            self._work(name, structure) if "frames" in features and name != "timeline" else {}
        )
        steps = 5 if name == "timeline" else 4  # calls know nothing of steps
        rows = list({r.point[:steps]: r for r in rows}.values())
        points = [r.point for r in rows]
        free = self.domain.free(points, features, keys)
        if free and len(points) < 3:
            return f"{len(points)} points"
        fitter = Fitter(points, steps=name == "timeline")
        known: dict[tuple[Any, ...], Formula | None] = {}
        out: list[Formula] = []
        for n, kind in enumerate(kinds):
            ys = tuple(r.slots[n] for r in rows)
            if n in together:
                out.append(together[n])
                continue
            if (kind, ys) not in known:
                known[kind, ys] = self._formula(kind, ys, points, fitter, free, pool)
            formula = known[kind, ys]
            if formula is None:
                shown = list(zip(points, ys, strict=True))[:5]
                return f"slot {n} ({kind}) has no formula: {shown}"
            out.append(formula)
        return out

    def _work(self, name: str, structure: int) -> dict[int, Formula]:
        """Work of a call that does more with every frame, over all frame counts at once: slot -> formula."""
        layout = self._layout(structure)
        if (name, layout) not in self.work:
            rows = [r for r in self.rows[name] if self._layout(r.structure) == layout]
            fitter = Fitter([r.point for r in rows], steps=False)
            columns = []
            for at in range(layout.count("w")):
                ys = tuple(self._works(r)[at] for r in rows)
                columns.append(fitter.fit(ys, loose=True) if len(rows) > 8 else None)
            self.work[name, layout] = columns
        places = [n for n, kind in enumerate(self.structures.all[structure][1]) if kind == "w"]
        found = zip(places, self.work[name, layout], strict=True)
        return {n: formula for n, formula in found if formula is not None}

    def _layout(self, structure: int) -> str:
        """The kinds of work of every stream of a call, as one word."""
        streams = self.structures.all[structure][0]
        return "|".join("w" * 2 * len(each[6]) + str(each[6]).replace("w", "") for each in streams)

    def _works(self, row: Row) -> list[float]:
        kinds = self.structures.all[row.structure][1]
        return [y for y, kind in zip(row.slots, kinds, strict=True) if kind == "w"]

    def _formula(
        self,
        kind: str,
        ys: tuple[float, ...],
        points: list[Point],
        fitter: Fitter,
        free: bool,
        pool: list[Formula],
    ) -> Formula | None:
        if kind == "r":
            return affine([(p[4], y) for p, y in zip(points, ys, strict=True)])
        loose = kind == "w"
        if not free:
            return (
                ((((0, 0, 0, 0, 0)), Fraction(ys[0])),)
                if len(set(ys)) == 1 and ys[0]
                else (() if not any(ys) else fitter.fit(ys, loose=loose))
            )
        if len(points) < 8 and not loose:
            for formula in pool:
                if all(evaluate(formula, p) == y for p, y in zip(points, ys, strict=True)):
                    return formula
        formula = fitter.fit(ys, loose=loose)
        if formula and not loose and formula not in pool:
            pool.append(formula)
        return formula


def affine(pairs: list[tuple[int, float]]) -> Formula | None:
    """a * steps + c, exactly; a constant where the steps do not vary."""
    low, high = min(pairs), max(pairs)
    slope = Fraction(0) if low[0] == high[0] else Fraction(int(high[1] - low[1]), high[0] - low[0])
    start = Fraction(int(low[1])) - slope * low[0]
    if any(slope * n + start != y for n, y in pairs):
        return None
    terms = (((0, 0, 0, 0, 1), slope), ((0, 0, 0, 0, 0), start))
    return tuple((e, c) for e, c in terms if c)


def make_request(model: Model, task: Task, guidance: float) -> Callable[..., ExactRequest]:
    """Requests of one task at one guidance."""

    def ask(**fields: Any) -> ExactRequest:
        return exact(model, task=task, guidance_scale=guidance, **fields)

    return ask


def possible(ask: Callable[..., ExactRequest], **fields: Any) -> ExactRequest | None:
    """The request, or None where the model refuses it."""
    try:
        return ask(**fields)
    except CardfitError:
        return None
