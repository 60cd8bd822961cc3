"""Seams on a known tile grid: a step of tone or a thin line along the grid, told from what the picture holds anyway.

In: luma [height, width] in levels of 0 to 255, the mean of a few frames at a time, so that what moves averages out.
Out: a `SeamScore` for each way to look. Every line of the grid is cut into segments at the crossing lines. For each
column (and row) and segment the second difference across it, divided by the local activity, is summed along the
segment; squares of that, in units of what is usual for the same phase of a 16-pixel codec block, are averaged over the
grid. The same number for the grid shifted by multiples of 16 pixels is the null distribution: a scene's own edges do
not know the grid. A seam is found where the grid stands `FOUND_SCORE` robust deviations above the middle of the shifted
ones and above the highest of them; a small picture, whose grid has few segments, has to show more, for the mean of
few squares strays further by chance. Source of the idea: gradient energy on the grid against neighbouring lines.

Not seen: a seam weaker than the texture it runs through, when there is no reference to subtract.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d
from scipy.special import gammaincinv

from cardfit.media.pixels import Levels

Direction = Literal["vertical", "horizontal"]
Look = Literal["line", "step", "blend"]
Of = Literal["candidate", "difference"]

FOUND_SCORE = 6.0  # calibrated with benchmarks/quality.py
FOUND_RATIO = 1.1  # of the highest shifted grid
_BY_CHANCE = 1e-4  # how often the mean of a few squares may reach the score that is asked of it
_BLOCK = 16  # the largest transform or macroblock whose phase is kept
_CLIP = 3.0  # activities: one strong edge of the scene counts no more
_CAP = 16.0  # squared deviations of a segment: the same for a whole segment
_FAR = 8.0  # levels: a larger difference across a blend is something else
_SIDE = 3  # pixels averaged on each side of a step
MARGIN = 8  # pixels at the border that are not looked at
_NEAR = 6  # a shifted line this near to a line of the grid would see it
_ENOUGH_SHIFTS = 12
_REST: dict[Of, float] = {"candidate": 0.3, "difference": 0.1}  # levels: rounding and grain


@dataclass(frozen=True, slots=True)
class Grid:
    """Where tiles meet: ``xs`` are columns and ``ys`` rows, each the first of a new tile; ``overlap`` in pixels."""

    xs: tuple[int, ...]
    ys: tuple[int, ...]
    overlap: int = 0


def tile_grid(width: int, height: int, tile: int, overlap: int = 0) -> Grid:
    """The grid of square tiles that advance by ``tile`` less ``overlap`` pixels.

    >>> tile_grid(1280, 720, 512, 128)
    Grid(xs=(384, 768, 1152), ys=(384,), overlap=128)
    """
    stride = tile - overlap
    lines = tuple(
        tuple(range(stride, side - MARGIN, stride)) if stride >= MARGIN else ()
        for side in (width, height)
    )
    return Grid(lines[0], lines[1], overlap)


@dataclass(frozen=True, slots=True)
class SeamScore:
    """How far the grid stands out in one direction, looked at in one way.

    ``score`` is in robust deviations of the shifted grids, ``ratio`` to the highest of them, ``shifted_grids`` their
    count; ``found`` says whether that is a seam. ``step_levels`` is the typical height of the seam in levels of 255,
    cleared of what shifted grids show.
    ``worst`` is the line and the first and last pixel along it of the strongest segment.
    """

    of: Of
    direction: Direction
    look: Look
    score: float
    ratio: float
    shifted_grids: int
    step_levels: float
    worst: tuple[int, int, int]
    found: bool


@dataclass
class _Sums:
    energy: NDArray[np.float32]
    height: NDArray[np.float32]


Profiles = dict[tuple[Direction, Look], _Sums]


@dataclass
class Seams:
    """Collects blocks of frames, then says how far the grid stands out.

    ``of`` is what is handed in: the candidate's own luma, or its difference to the reference.
    """

    grid: Grid
    of: Of
    width: int
    height: int
    blocks: int = 0
    _sums: Profiles = field(default_factory=dict)

    @property
    def _along(self) -> dict[Direction, int]:
        return {"vertical": self.height, "horizontal": self.width}

    def add(self, found: Profiles) -> None:
        """Take in what `profiles` found in one block."""
        self.blocks += 1
        for key, more in found.items():
            if key in self._sums:
                self._sums[key].energy += more.energy
                self._sums[key].height += more.height
            else:
                self._sums[key] = more

    def scores(self) -> tuple[SeamScore, ...]:
        """A score for every direction and look: what is a seam first, then the highest."""
        found = [
            score
            for (direction, look), sums in self._sums.items()
            if (score := self._score(direction, look, sums)) is not None
        ]
        return tuple(sorted(found, key=lambda each: (not each.found, -each.score)))

    def _score(self, direction: Direction, look: Look, sums: _Sums) -> SeamScore | None:
        lines = np.array(self.grid.xs if direction == "vertical" else self.grid.ys)
        length = sums.energy.shape[1]
        near = max(_NEAR, self.grid.overlap) if look == "blend" else _NEAR
        nulls = _shifted(lines, length, near)
        if not len(nulls):
            return None
        energy, height = sums.energy / self.blocks, sums.height / self.blocks
        along = energy.mean(axis=0)
        here = float(along[lines].mean())
        shifted = np.array([along[each].mean() for each in nulls])
        middle = float(np.median(shifted))
        spread = 1.4826 * float(np.median(np.abs(shifted - middle))) + 0.03 * middle + 0.02
        squares = np.square(height).mean(axis=0)
        usual = float(np.median([squares[each].mean() for each in nulls]))
        step = max(0.0, float(squares[lines].mean()) - usual) ** 0.5
        strongest = np.sqrt(energy[:, lines]) * np.abs(height[:, lines])
        row, column = np.unravel_index(int(strongest.argmax()), strongest.shape)
        other = self.grid.ys if direction == "vertical" else self.grid.xs
        ends = (0, *other, self._along[direction])
        score, ratio = (here - middle) / spread, here / max(float(shifted.max()), 1e-3)
        asked = needed_score(len(lines) * (len(other) + 1))
        return SeamScore(
            of=self.of,
            direction=direction,
            look=look,
            score=round(score, 2),
            ratio=round(min(ratio, 999.0), 2),
            shifted_grids=len(nulls),
            step_levels=round(step, 2),
            worst=(int(lines[column]), int(ends[row]), int(ends[row + 1])),
            found=score >= asked and ratio >= FOUND_RATIO,
        )


def needed_score(segments: int) -> float:
    """The robust deviations from which the mean of so many squares is no chance: `FOUND_SCORE` from 12 segments on.

    Source: the quantiles of a chi-squared distribution with as many degrees of freedom.
    """
    low, middle, high, far = (
        float(gammaincinv(segments / 2, share)) for share in (0.25, 0.5, 0.75, 1 - _BY_CHANCE)
    )
    return max(FOUND_SCORE, 1.349 * (far - middle) / (high - low))


def profiles(mean: Levels, grid: Grid, of: Of) -> Profiles:
    """The squared deviation and the height in levels [segments, position] of every column and row."""
    found: Profiles = {}
    height, width = mean.shape
    overlap = grid.overlap if of == "difference" else 0
    if grid.xs:
        for look, sums in _across(mean, (0, *grid.ys, height), overlap, of):
            found["vertical", look] = sums
    if grid.ys:
        turned = np.ascontiguousarray(mean.T)
        for look, sums in _across(turned, (0, *grid.xs, width), overlap, of):
            found["horizontal", look] = sums
    return found


def _across(luma: Levels, cuts: tuple[int, ...], overlap: int, of: Of) -> list[tuple[Look, _Sums]]:
    slope = np.zeros_like(luma)
    np.subtract(luma[:, 1:], luma[:, :-1], out=slope[:, 1:])
    activity = _box(_box(np.abs(slope), 25, 1), 9, 0) + np.float32(_REST[of])
    weight: Levels = np.float32(1) / activity
    share = _segments(weight, cuts)

    counts: Levels = np.diff(cuts).astype(np.float32)[:, None]

    def looked(jump: Levels, both: bool) -> _Sums:
        jump *= weight
        np.clip(jump, -_CLIP, _CLIP, out=jump)
        sums = _segments(jump, cuts)
        if both:  # a line of one pixel stands on either side of the place where tiles meet
            before = np.roll(sums, 1, axis=1)
            sums = np.where(np.abs(sums) >= np.abs(before), sums, before)
        return _Sums(_deviations((sums / np.sqrt(counts)).astype(np.float32)), sums / share)

    found: list[tuple[Look, _Sums]] = [
        ("line", looked(_line(slope), True)),
        ("step", looked(_step(luma, _SIDE, 0), False)),
    ]
    if overlap >= 2 * _SIDE:
        # so wide that most places see a part of it: no place is the measure of another, the shifted grids are
        height = _segments(np.clip(_step(luma, overlap // 2, overlap), -_FAR, _FAR), cuts) / counts
        found.append(("blend", _Sums(np.square(height), height)))
    return found


def _line(slope: Levels) -> Levels:
    """How far a pixel stands above the mean of its neighbours."""
    jump = np.zeros_like(slope)
    jump[:, 1:-1] = (slope[:, 1:-1] - slope[:, 2:]) / 2
    return jump


def _step(luma: Levels, side: int, gap: int) -> Levels:
    """Mean of ``side`` pixels from a place (and ``gap`` further) on, less those before it, less the slope around."""
    width = luma.shape[1]
    jump = np.zeros_like(luma)
    if width <= 6 * side + gap:
        return jump
    means = _box(
        luma, side, 1
    )  # at the place and side // 2 further: of the ``side`` pixels from the place on
    middle = side // 2
    after = means[:, side + gap + middle : width - side + middle + 1]
    before = means[:, middle : middle + after.shape[1]]
    jump[:, side : side + after.shape[1]] = after - before
    if gap:
        return jump
    slope = (jump[:, : -2 * side] + jump[:, 2 * side :]) / 2
    jump[:, side:-side] -= slope
    return jump


def _segments(values: Levels, cuts: tuple[int, ...]) -> Levels:
    return np.add.reduceat(values, np.array(cuts[:-1]), axis=0)


def _deviations(sums: Levels) -> Levels:
    """Squares in units of what is usual for the same phase of a codec block, capped."""
    rows, width = sums.shape
    count = -(-width // _BLOCK)
    padded = np.full((rows, count * _BLOCK), np.nan, np.float32)
    padded[:, MARGIN : width - MARGIN] = np.abs(sums[:, MARGIN : width - MARGIN])
    usual = 1.4826 * np.nanmedian(padded.reshape(rows, count, _BLOCK), axis=1) + 0.1
    scale = np.tile(usual, (1, count))[:, :width]
    found: Levels = np.minimum(np.square(sums / scale), np.float32(_CAP)).astype(np.float32)
    return found


def _shifted(lines: NDArray[np.int_], length: int, near: int) -> list[NDArray[np.int_]]:
    """The grid's lines moved together, in steps that keep the phase of codec blocks where enough remain."""
    found: list[NDArray[np.int_]] = []
    for step in (_BLOCK, _BLOCK // 2, _BLOCK // 4):
        found = []
        for shift in range(-(length // step) * step, length, step):
            moved = lines + shift
            moved = moved[(moved > MARGIN) & (moved < length - MARGIN)]
            if len(moved) < max(1, len(lines) - 1):
                continue
            if np.abs(moved[:, None] - lines[None]).min() >= near:
                found.append(moved)
        if len(found) >= _ENOUGH_SHIFTS:
            break
    return found


def _box(values: Levels, size: int, axis: int) -> Levels:
    found: Levels = uniform_filter1d(values, size, axis=axis, mode="nearest")
    return found
