"""Chunk edges and window joints: a step of brightness or a jump of the picture at known frames, and flicker.

In: a few numbers of every frame and the frames at which a chunk begins. Out: an `EdgeScore` for every way to look.
A step of brightness (a few frames after an edge against a few before it: their mean, darkest or brightest) or a change
of the picture from one frame to the next is compared with those around it that see no edge, so that a fade or a pan
cancels, and with how much they vary anywhere else in the clip, so that a lively scene needs a larger step than a still
one. Brightness is taken in the way that varies least elsewhere: as the ratio to the reference, where the scene's own
changes cancel, or of the candidate alone, which is left when the two show different pictures. Flicker is what
brightness does from frame to frame away from the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from cardfit.media.pixels import Levels

Look = Literal["brightness", "jump"]
Of = Literal["candidate", "difference"]
Numbers = NDArray[np.float64]
Summary = Callable[..., Numbers]

FOUND_SCORE = 6.0  # robust deviations of the other frames; calibrated with benchmarks/quality.py
FOUND_RATIO = 1.2  # of what nine in ten of the other frames stay below
_SIDE = 4  # frames on each side of a step of brightness: coded frames of different kinds differ by up to 1 %
_DARK, _BRIGHT = 8.0, 247.0  # levels between which a change of brightness can be told
# Coded frames of one kind are all a little brighter than those of another: the darkest of each side compare best then.
_SUMMARIES: tuple[Summary, ...] = (np.mean, np.min, np.max)
_AROUND = 6  # frames on each side that a change is compared with
_ENOUGH = 3
# What rounding does, and the least natural logarithm that counts: 0.4 % of brightness, half as much change again.
_LIMITS: dict[Look, tuple[float, float]] = {"brightness": (0.0003, 0.004), "jump": (0.05, 0.405)}
_REST_LEVELS = 0.05


@dataclass(frozen=True, slots=True)
class FrameLight:
    """The numbers of one frame: its mean luma in levels and natural logarithms of brightness ratios.

    ``gain`` is the median over small squares of the ratio to the frame before, ``to_reference`` to the same frame of
    the reference; ``change_levels`` is the mean absolute difference to the frame before, that gain taken out. None
    where there is no such frame or it is too dark or too bright.
    """

    mean_levels: float
    gain: float | None
    to_reference: float | None
    change_levels: float | None


@dataclass(frozen=True, slots=True)
class EdgeScore:
    """The strongest edge, looked at in one way: ``score`` in robust deviations, ``size`` a share, ``frame`` where.

    ``edges_found`` of ``edges`` are over the limits.
    """

    of: Of
    look: Look
    score: float
    size: float
    frame: int
    edges: int
    edges_found: int
    found: bool


def chunk_edges(frames: int, chunk: int, first: int | None = None) -> tuple[int, ...]:
    """The frames at which a chunk begins, when the first has ``first`` frames (as many as the others, unless given).

    >>> chunk_edges(25, 8), chunk_edges(25, 8, first=9)
    ((8, 16, 24), (9, 17))
    """
    return tuple(range(first or chunk, frames, chunk))


def log_ratio(cells: Levels, before: Levels) -> float | None:
    """The median natural logarithm of ``cells`` to ``before``, where both are neither dark nor bright."""
    low, high = np.minimum(cells, before), np.maximum(cells, before)
    usable = (low > _DARK) & (high < _BRIGHT)
    if not usable.any():
        return None
    return float(np.median(np.log(cells[usable] / before[usable])))


def edge_scores(lights: Sequence[FrameLight], edges: Sequence[int]) -> tuple[EdgeScore, ...]:
    """How far the frames ``edges`` stand out of the others; what can be seen first, then the strongest."""
    count = len(lights)
    at = sorted({edge for edge in edges if 0 < edge < count})
    if not at:
        return ()
    side = max(1, min(_SIDE, int(min(np.diff([0, *at]))) // 2))  # an edge near the end is left out
    whole = np.log([max(each.mean_levels, 0.1) for each in lights])
    gains = _numbers([each.gain for each in lights])
    parts = np.concatenate([[0.0], np.cumsum(gains[1:])])
    ratios = _numbers([each.to_reference for each in lights])
    ways: list[tuple[Of, Numbers]] = [
        ("difference", ratios),
        ("candidate", whole),
        ("candidate", parts),
    ]
    steps = [
        (of, _own(_steps(light, side, summary), at, side))
        for of, light in ways
        for summary in _SUMMARIES
    ]
    of, quietest = min(steps, key=lambda each: _spread(each[1], at, side))
    changes = np.log(_numbers([each.change_levels for each in lights]) + _REST_LEVELS)
    found = [
        _score(of, "brightness", quietest, at, side),
        _score("candidate", "jump", _own(changes, at, 1), at, 1),
    ]
    known = [each for each in found if each is not None]
    return tuple(sorted(known, key=lambda each: (not each.found, -each.score)))


def flicker(lights: Sequence[FrameLight], edges: Sequence[int] = ()) -> float | None:
    """The typical change of brightness against the frames on both sides, as a share; None for fewer than 5 frames.

    It is taken against the reference where there is one.
    """
    ratios = _numbers([each.to_reference for each in lights])
    if np.isnan(ratios).mean() > 0.5:
        ratios = np.log(np.array([max(each.mean_levels, 0.1) for each in lights]))
    bent = ratios[1:-1] - (ratios[:-2] + ratios[2:]) / 2
    away = np.ones(len(lights), bool)
    for edge in edges:
        away[max(edge - 1, 0) : edge + 1] = False
    bent = bent[away[1:-1]]
    bent = bent[~np.isnan(bent)]
    return float(1.4826 * np.median(np.abs(bent))) if len(bent) >= 3 else None


def _numbers(values: Sequence[float | None]) -> Numbers:
    return np.array([np.nan if each is None else each for each in values], np.float64)


def _steps(light: Numbers, side: int, summary: Summary) -> Numbers:
    """``summary`` of ``side`` frames from each frame on less that of those before it; NaN near the ends."""
    found = np.full(len(light), np.nan)
    if len(light) >= 2 * side:
        of_windows = summary(sliding_window_view(light, side), axis=1)
        found[side : len(light) - side + 1] = of_windows[side:] - of_windows[:-side]
    return found


def _plain(count: int, edges: Sequence[int], reach: int) -> NDArray[np.bool_]:
    """The frames whose ``reach`` frames before and from them on hold no edge in between."""
    frames = np.arange(count)
    found: NDArray[np.bool_] = np.abs(frames[:, None] - np.array(edges)[None]).min(axis=1) >= reach
    return found


def _own(changes: Numbers, edges: Sequence[int], reach: int) -> Numbers:
    """Each change less the median of those around it that see no edge: a fade or a pan is gone."""
    plain = _plain(len(changes), edges, reach) & ~np.isnan(changes)
    found = np.full_like(changes, np.nan)
    frames = np.arange(len(changes))
    for at in (*edges, *frames[plain]):
        apart = np.abs(frames - at)
        around = changes[plain & (apart >= reach) & (apart <= max(_AROUND, 3 * reach))]
        if len(around):
            found[at] = changes[at] - np.median(around)
    return found


def _others(own: Numbers, edges: Sequence[int], reach: int) -> Numbers:
    values = np.abs(own[_plain(len(own), edges, reach)])
    return values[~np.isnan(values)]


def _spread(own: Numbers, edges: Sequence[int], reach: int) -> float:
    others = _others(own, edges, reach)
    return 1.4826 * float(np.median(others)) if len(others) >= _ENOUGH else float("inf")


def _score(of: Of, look: Look, own: Numbers, edges: Sequence[int], reach: int) -> EdgeScore | None:
    spread = _spread(own, edges, reach)
    here = own[list(edges)]
    if not np.isfinite(spread) or np.isnan(here).all():
        return None
    rest, least = _LIMITS[look]
    sizes = np.nan_to_num(here if look == "jump" else np.abs(here))
    scores = sizes / (spread + rest)
    high = float(np.quantile(_others(own, edges, reach), 0.9))
    over = (scores >= FOUND_SCORE) & (sizes >= least) & (sizes >= FOUND_RATIO * high)
    worst = int(scores.argmax())
    return EdgeScore(
        of=of,
        look=look,
        score=round(float(scores[worst]), 2),
        size=round(float(np.expm1(sizes[worst])), 4),
        frame=edges[worst],
        edges=len(edges),
        edges_found=int(over.sum()),
        found=bool(over.any()),
    )
