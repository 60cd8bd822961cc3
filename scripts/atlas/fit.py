"""From numbers at points to exact formulas: sums of monomials with rational coefficients.

In: points (batch, height, width, frames, steps) and what a slot was at each. Out: a formula that gives every one of
them exactly (bytes, launches) or to one part in a million (FLOPs, whose sums are rounded), or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
from scipy.optimize import nnls

Point = tuple[int, int, int, int, int]
Exponents = tuple[int, int, int, int, int]
Formula = tuple[tuple[Exponents, Fraction], ...]

_PLANE = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 2))
_MORE_PLANE = (*_PLANE, (2, 0), (0, 2), (2, 1), (1, 2))
NEARLY = 3e-3  # relative; of work where there are too few points for more
LOOSE = 1e-6  # relative; FLOPs and bytes moved are sums of floating point numbers


def monomials(points: Sequence[Point], *, steps: bool, wide: bool) -> list[Exponents]:
    """Candidates, simplest first; variables that do not vary are left out."""
    varies = [len({p[n] for p in points}) > 1 for n in range(5)]
    found = []
    for b, (h, w), u, n in product((0, 1), _MORE_PLANE if wide else _PLANE, (0, 1, 2), (0, 1)):
        exponents = (b, h, w, u, n)
        if n and (not steps or b + h + w + u > 1):
            continue
        if any(e and not v for e, v in zip(exponents, varies, strict=True)):
            continue
        found.append(exponents)
    return sorted(found, key=lambda e: (sum(e), e))


def value(exponents: Exponents, point: Point) -> int:
    """The monomial at a point."""
    out = 1
    for e, x in zip(exponents, point, strict=True):
        out *= x**e
    return out


def evaluate(formula: Formula, point: Point) -> Fraction:
    """The formula at a point."""
    return sum((c * value(e, point) for e, c in formula), Fraction(0))


def _holds(formula: Formula, points: Sequence[Point], ys: Sequence[float], loose: bool) -> bool:
    for point, y in zip(points, ys, strict=True):
        found = evaluate(formula, point)
        if loose:
            if abs(float(found) - y) > LOOSE * abs(y):
                return False
        elif found != y:
            return False
    return True


def _solve(
    support: list[Exponents], points: Sequence[Point], ys: Sequence[float]
) -> Formula | None:
    """Exact coefficients on ``support`` from as many independent points."""
    rows = [
        [Fraction(value(e, p)) for e in support] + [Fraction(y)]
        for p, y in zip(points, ys, strict=True)
    ]
    size = len(support)
    for column in range(size):
        pivot = next((r for r in range(column, len(rows)) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column]
        head[:] = [x / head[column] for x in head]
        for r, row in enumerate(rows):
            if r != column and row[column]:
                factor = row[column]
                row[:] = [x - factor * y for x, y in zip(row, head, strict=True)]
    return tuple((e, rows[n][size]) for n, e in enumerate(support) if rows[n][size])


class Fitter:
    """Fits the slots of one piece; equal rows of numbers are fitted once."""

    def __init__(self, points: Sequence[Point], *, steps: bool) -> None:
        self.points = tuple(points)
        self.sets = [monomials(points, steps=steps, wide=wide) for wide in (False, True)]
        self.matrices = [
            np.array([[float(value(e, p)) for e in found] for p in self.points])
            for found in self.sets
        ]
        self.known: dict[tuple[tuple[float, ...], bool], Formula | None] = {}

    def fit(self, ys: tuple[float, ...], *, loose: bool) -> Formula | None:
        """The formula of a slot."""
        key = (ys, loose)
        if key not in self.known:
            self.known[key] = self._fit(ys, loose)
        return self.known[key]

    def _fit(self, ys: tuple[float, ...], loose: bool) -> Formula | None:
        if not any(ys):
            return ()
        for e in self.sets[0]:
            one = self._one(e, ys)
            if one is not None and _holds(one, self.points, ys, loose):
                return one
        if not all(y > 0 for y in ys):
            return None
        if (
            len(ys) < 8 and not loose
        ):  # too few points for the search below to find the fewest terms
            for terms in chain(combinations(self.sets[0], 2), combinations(self.sets[0], 3)):
                if len(terms) < len(
                    ys
                ):  # one point more than coefficients: exact there, or not at all
                    few = _solve(list(terms), self.points, ys)
                    if few is not None and _holds(few, self.points, ys, loose):
                        return few
        for found, matrix in zip(self.sets, self.matrices, strict=True):
            formula = self._some(found, matrix, ys, loose)
            if formula is not None:
                return formula
        return self._nearly(ys) if loose else None

    def _nearly(self, ys: tuple[float, ...]) -> Formula | None:
        """Work at few points, by the fewest and best terms of the picture's sides: the rest is a small part of it."""
        planes = [e for e in self.sets[0] if e[0] == 0 and e[3:] == (0, 0)]
        best: tuple[float, Formula] | None = None
        for count in range(1, min(4, len(ys))):
            for terms in combinations(planes, count):
                columns = [self.sets[0].index(e) for e in terms]
                scaled = self.matrices[0][:, columns] / np.array(ys)[:, None]
                weights, _ = nnls(scaled, np.ones(len(ys)))
                off = float(np.abs(scaled @ weights - 1).max())
                if off <= NEARLY and (best is None or off < best[0] / 10):
                    rows = zip(terms, weights, strict=True)
                    near = [
                        (e, Fraction(float(c)).limit_denominator(1 << 20)) for e, c in rows if c
                    ]
                    best = (off, tuple(near))
        return best[1] if best else None

    def _one(self, e: Exponents, ys: tuple[float, ...]) -> Formula | None:
        first = value(e, self.points[0])
        return ((e, Fraction(ys[0]) / first),) if first else None

    def _some(
        self, found: list[Exponents], matrix: np.ndarray, ys: tuple[float, ...], loose: bool
    ) -> Formula | None:
        y = np.array(ys, dtype=float)
        scaled = matrix / y[:, None]
        norm = np.linalg.norm(scaled, axis=0)
        norm[norm == 0] = 1.0
        try:
            weights, residual = nnls(scaled / norm, np.ones(len(ys)), maxiter=2000)
        except RuntimeError:
            return None
        if residual > 1e-5:
            return None
        share = (scaled / norm * weights).max(axis=0)
        support = [e for e, s in zip(found, share, strict=True) if s > 1e-7]
        # more points than unknowns: an exact match beyond them is no accident
        if not support or len(support) >= len(ys):
            return None
        if loose:
            columns = [found.index(e) for e in support]
            solved, *_ = np.linalg.lstsq(scaled[:, columns], np.ones(len(ys)), rcond=None)
            formula = tuple(
                (e, Fraction(float(c)).limit_denominator(1 << 20))
                for e, c in zip(support, solved, strict=True)
            )
        else:
            exact = _solve(support, self.points, ys)
            if exact is None:
                return None
            formula = exact
        return formula if _holds(formula, self.points, ys, loose) else None
