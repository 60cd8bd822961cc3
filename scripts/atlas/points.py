"""Sizes looked at one by one: what is left where sizes follow no formula that a few points give.

In: a model, its usual sizes and clips. Out: tables whose keys are whole points and whose numbers are constants, so an
answer exists there and nowhere else. Steps alone are followed: from `MANY` on a step repeats, which is checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from math import gcd
from typing import Any

from fit import Formula
from survey import MANY, Piece, Row, Survey, Table, affine, possible

from cardfit.library.models import Model
from cardfit.trace.atlas.compose import covers
from cardfit.trace.atlas.domain import Domain, key_of

POINT = ("batch", "height", "width", "frames")
FEW = (4, 8)  # steps of distilled models
REPEATED = (MANY, 30, 50)


def constant(value: float) -> Formula:
    """A formula that gives ``value`` whatever the point."""
    return (((0, 0, 0, 0, 0), Fraction(round(value))),) if value else ()


def domain_at(
    model: Model,
    ask: Callable[..., Any],
    sizes: Iterable[tuple[int, int, int]],
    reached: Sequence[dict[str, Any]],
) -> Domain | None:
    """The domain of those ``sizes`` (width, height, frames) that the model takes as they are; None without one.

    Those that one of the variants in ``reached`` holds are left out.
    """
    held: dict[tuple[int, int], None] = {}
    counts: dict[int, None] = {}
    steps = model.defaults.num_inference_steps
    for width, height, count in sizes:
        more = {"num_frames": count} if model.is_video else {}
        found = possible(ask, width=width, height=height, num_inference_steps=steps, **more)
        if found is None or (found.width, found.height) != (width, height):
            continue
        if any(covers(variant, found) for variant in reached):
            continue
        if found.num_frames == count or not model.is_video:
            held[width, height] = None
            counts[count] = None
    if not held:
        return None
    sides = [side for size in held for side in size]
    return Domain(
        grid=gcd(*sides),
        temporal=max(1, model.vae.temporal_compression),
        smallest=min(sides),
        largest=max(sides),
        pixels=max(width * height for width, height in held),
        batch=1,
        sizes=tuple(sorted(held)),
        frame_counts=tuple(sorted(counts)),
    )


class Points(Survey):
    """The rows of single points."""

    def survey(self) -> None:
        """Every size with every number of frames, at the usual steps, at few and at many."""
        usual = self.session.model.defaults.num_inference_steps
        tried = dict.fromkeys((usual, *FEW, *REPEATED))
        sizes, counts = self.domain.sizes, self.domain.frame_counts
        for at, ((width, height), count) in enumerate(product(sizes, counts)):
            for steps in tried:
                if at and steps not in (*self._steps(), *self._many()):
                    continue
                self.see(self._ask(width, height, count, 1, steps))
        many = self._many()
        self.domain.many_from = MANY if many else None
        self.domain.steps = tuple(s for s in self._steps() if not many or s < MANY)

    def narrow(self) -> bool:
        """Nothing lies between the points."""
        return True

    def table(self, name: str, pool: list[Formula], problems: list[str]) -> Table:
        """What was seen at each point."""
        del pool
        features = ("steps", *POINT) if name == "timeline" else POINT
        groups: dict[tuple[int, ...], list[Row]] = defaultdict(list)
        for row in self.rows[name]:
            groups[key_of(row.point, features, self.domain.many_from)].append(row)
        found: list[Piece] = []
        pieces: dict[tuple[int, ...], int] = {}
        for key, rows in sorted(groups.items()):
            formulas = self._seen(rows)
            if isinstance(formulas, str):
                problems.append(f"{name} {key}: {formulas}")
                continue
            pieces[key] = len(found)
            found.append(Piece(rows[0].structure, formulas))
        return Table(features, pieces, found)

    def _seen(self, rows: list[Row]) -> list[Formula] | str:
        """The numbers of one point, which only its steps may change."""
        if len({row.structure for row in rows}) > 1:
            return "does something else at other steps"
        out: list[Formula] = []
        for n, kind in enumerate(self.structures.all[rows[0].structure][1]):
            ys = [row.slots[n] for row in rows]
            if kind == "r":
                line = affine([(row.point[4], y) for row, y in zip(rows, ys, strict=True)])
                if line is None:
                    return "repeats by no rule"
                out.append(line)
            elif len(set(ys)) > 1:
                return f"slot {n} ({kind}) differs by steps"
            else:
                out.append(constant(ys[0]))
        return out

    def _steps(self) -> list[int]:
        """Numbers of steps that the pipeline ran at."""
        return sorted({row.point[4] for row in self.rows["timeline"]})

    def _many(self) -> list[int]:
        """Those from `MANY` on, where the first size showed that a step repeats by rule; else none."""
        rows = [row for row in self.rows["timeline"] if row.point[4] in REPEATED]
        first = [row for row in rows if row.point[:4] == rows[0].point[:4]]
        if len(first) < len(REPEATED) or isinstance(self._seen(first), str):
            return []
        return list(REPEATED)
