"""Compare two pieces of footage, a few frames at a time.

In: two paths and where tiles and chunks meet. Out: a `Comparison`. Frames are decoded once, measured in blocks by a few
threads, and dropped: memory does not grow with the length. Kept are a few numbers of every frame, sums, and the worst
frame. What one block gives is a value; only `_Tally` adds up.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter

from cardfit.errors import BadRequest, MissingExtra
from cardfit.media import pixels, source
from cardfit.media.pixels import Levels, Rgb
from cardfit.media.source import Footage
from cardfit.messages import say
from cardfit.messages.said import Said
from cardfit.quality import edges, metrics, seams
from cardfit.quality.edges import FrameLight
from cardfit.quality.filters import Filter
from cardfit.quality.result import (
    Comparison,
    Drift,
    Evidence,
    FrameScores,
    Joints,
    Seen,
    Side,
    Totals,
    Worst,
)
from cardfit.quality.seams import Grid, Seams
from cardfit.quality.where import Where

METRICS: tuple[str, ...] = ("flip", "xpsnr", "vif")  # beside PSNR and SSIM, which are always there
DIVERGED = 0.5  # median composition below which paired scores mean little
SOFT, GRAINY = 0.8, 1.25  # shares of the reference's finest detail
_SAME_FPS = 0.001
_BLOCK_FRAMES = 8
_BLOCK_PIXELS = 1280 * 720 * _BLOCK_FRAMES
_SEAM_BLOCKS = 2  # blocks that are averaged before seams are looked for
_WORKERS = 4
_SPOT = 64  # pixels: the side of the worst spot
_FINE_EVERY = 4
NOWHERE = Where()

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True)
class _Pair:
    reference: Any
    candidate: Any
    more: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class _Picture:
    ssim: float
    reference: Rgb
    candidate: Rgb
    map: Levels


@dataclass
class _Block:
    """What a block of frames gives."""

    squares: list[float] = field(default_factory=list)
    scores: list[FrameScores] = field(default_factory=list)
    lights: list[FrameLight] = field(default_factory=list)
    fine: list[tuple[float, float]] = field(default_factory=list)
    worst: _Picture | None = None
    sums: tuple[Levels, Levels] | None = None
    first: tuple[Levels, Levels] | None = (
        None  # luma and squares of its first and its last candidate
    )
    last: tuple[Levels, Levels] | None = None


def compare(
    reference: Path,
    candidate: Path,
    *,
    where: Where = NOWHERE,
    align: bool = False,
    also: Collection[str] = (),
    progress: Progress | None = None,
) -> Comparison:
    """Compare ``candidate`` with ``reference`` frame by frame.

    ``where`` says where tiles and chunks meet; what it does not say is not looked for. ``also`` names members of
    `METRICS`. Raises BadRequest for different sizes, lengths or fps unless ``align``; BadFile; MissingExtra.
    """
    where.check()
    unknown = [each for each in also if each not in METRICS]
    if unknown:
        raise BadRequest("quality-bad-metric", asked=unknown[0], allowed=", ".join(METRICS))
    one, other = source.look(reference), source.look(candidate)
    notes = _differences(one, other, align)
    tally = _Tally(one, where.grid(one.width, one.height))
    asked = tuple(each for each in METRICS if each in also)
    for found in _blocks(one, other, asked, align, progress):
        tally.add(found)
    flip = "flip" in asked or one.kind == "image"
    return tally.result(one, other, where, align, notes, flip)


def _differences(one: Footage, other: Footage, align: bool) -> list[Said]:
    """What is not the same, as notes where it is to be aligned. Raises BadRequest."""
    apart: list[tuple[str, object, object]] = []
    if (one.width, one.height) != (other.width, other.height):
        first, second = (f"{each.width}x{each.height}" for each in (one, other))
        apart.append(("size", first, second))
    if one.frames and other.frames and one.frames != other.frames:
        apart.append(("frames", one.frames, other.frames))
    if one.fps and other.fps and abs(one.fps / other.fps - 1) > _SAME_FPS:
        apart.append(("fps", f"{one.fps:g}", f"{other.fps:g}"))
    if min(one.width, one.height, other.width, other.height) < metrics.LEAST_SIDE:
        raise BadRequest("quality-too-small", least=metrics.LEAST_SIDE)
    if apart and not align:
        what, one_has, other_has = apart[0]
        paths = {"reference": one.path, "candidate": other.path}
        raise BadRequest(f"quality-differ-{what}", first=one_has, second=other_has, **paths)
    return [
        Said.of(f"quality-aligned-{what}", first=str(one_has), second=str(other_has))
        for what, one_has, other_has in apart
    ]


def _pairs(one: Footage, other: Footage, align: bool) -> Iterator[tuple[Any, Any]]:
    for count, pair in enumerate(zip_longest(source.frames(one), source.frames(other))):
        if None in pair:
            if align and count:
                return
            shorter = other if pair[1] is None else one
            raise BadRequest(
                "quality-ends-early",
                path=shorter.path,
                frames=count,
                other=(one if shorter is other else other).path,
            )
        yield pair


def _blocks(
    one: Footage, other: Footage, also: tuple[str, ...], align: bool, progress: Progress | None
) -> Iterator[_Block]:
    """The measured blocks in order, a few of them in work at a time."""
    most = max(1, min(_BLOCK_FRAMES, _BLOCK_PIXELS // (one.width * one.height)))
    filters = {name: Filter(name, one.width, one.height) for name in also if name != "flip"}
    workers = max(1, min(os.cpu_count() or 1, _WORKERS))
    waiting: deque[Future[_Block]] = deque()
    block: list[_Pair] = []
    first = 0
    with ThreadPoolExecutor(workers, thread_name_prefix="compare") as pool:

        def send() -> None:
            size = one.width, one.height
            waiting.append(pool.submit(_measure, tuple(block), first, "flip" in also, size))

        try:
            for pair in _pairs(one, other, align):
                more = {name: each.of(*pair) for name, each in filters.items()}
                block.append(_Pair(*pair, more))
                if len(block) == most:
                    send()
                    first, block = first + most, []
                    if len(waiting) > workers:
                        yield waiting.popleft().result()
                    if progress is not None:
                        total = one.frames or other.frames
                        share = None if total is None else min(first / total, 1.0)
                        progress(say("quality-progress", {"frames": first}), share)
            if block:
                send()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


def _measure(pairs: tuple[_Pair, ...], first: int, flip: bool, size: tuple[int, int]) -> _Block:
    found = _Block()
    for number, pair in enumerate(pairs, start=first):
        reference, candidate = pixels.rgb(pair.reference), pixels.rgb(pair.candidate, *size)
        square = metrics.mean_square(reference, candidate)
        ours, theirs = pixels.luma(reference), pixels.luma(candidate)
        similar = metrics.ssim_map(ours, theirs)
        ssim = float(similar.mean(dtype=np.float64))
        squares = metrics.cells(ours), metrics.cells(theirs)
        found.scores.append(
            FrameScores(
                frame=number,
                psnr_db=_rounded(metrics.psnr_db(square), 3),
                ssim=round(ssim, 6),
                composition=_rounded(metrics.composition(*squares), 4),
                flip=round(metrics.flip(reference, candidate)[0], 5) if flip else None,
                xpsnr_db=_rounded(pair.more.get("xpsnr"), 3),
                vif=_rounded(pair.more.get("vif"), 5),
            )
        )
        found.squares.append(square)
        found.lights.append(_light((theirs, squares[1]), squares[0], found.last))
        found.last = theirs, squares[1]
        found.first = found.first or found.last
        if number % _FINE_EVERY == 0:
            found.fine.append((metrics.fine_energy(ours), metrics.fine_energy(theirs)))
        if found.worst is None or ssim < found.worst.ssim:
            found.worst = _Picture(ssim, reference, candidate, similar)
        if found.sums is None:
            found.sums = ours, theirs.copy()
        else:
            found.sums[0].__iadd__(ours)
            found.sums[1].__iadd__(theirs)
    return found


def _light(
    here: tuple[Levels, Levels], reference: Levels | None, last: tuple[Levels, Levels] | None
) -> FrameLight:
    (luma, squares), gain, change = here, None, None
    if last is not None:
        gain = edges.log_ratio(squares, last[1])
        rows, columns = (
            slice(None, None, 2),
            slice(None, None, 2),
        )  # every fourth pixel tells enough
        apart = luma[rows, columns] - last[0][rows, columns] * np.float32(np.exp(gain or 0.0))
        change = float(np.abs(apart).mean(dtype=np.float64))
    ratio = None if reference is None else edges.log_ratio(squares, reference)
    return FrameLight(float(squares.mean(dtype=np.float64)), gain, ratio, change)


@dataclass
class _Tally:
    """Sums over blocks."""

    footage: Footage
    grid: Grid | None
    scores: list[FrameScores] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    lights: list[FrameLight] = field(default_factory=list)
    fine: list[tuple[float, float]] = field(default_factory=list)
    worst: _Picture | None = None
    worst_frame: int = 0

    def __post_init__(self) -> None:
        shape = self.footage.height, self.footage.width
        self._part = [np.zeros(shape, np.float32) for _ in range(2)]
        self._whole = [np.zeros(shape, np.float32) for _ in range(2)]
        self._in_part = self._blocks = 0
        self._last: tuple[Levels, Levels] | None = None
        self._seams: list[Seams] = []
        if self.grid is not None:
            width, height = self.footage.width, self.footage.height
            self._seams = [
                Seams(self.grid, "candidate", width, height),
                Seams(self.grid, "difference", width, height),
            ]

    def add(self, block: _Block) -> None:
        if block.worst is not None and (self.worst is None or block.worst.ssim < self.worst.ssim):
            self.worst = block.worst
            own = min(block.scores, key=lambda each: each.ssim)
            self.worst_frame = own.frame
        self.scores += block.scores
        self.squares += block.squares
        if self._last is not None and block.first is not None:
            joined = _light(block.first, None, self._last)
            block.lights[0] = replace(
                block.lights[0], gain=joined.gain, change_levels=joined.change_levels
            )
        self._last = block.last
        self.lights += block.lights
        self.fine += block.fine
        assert block.sums is not None
        for part, whole, more in zip(self._part, self._whole, block.sums, strict=True):
            part += more
            whole += more
        self._in_part += len(block.scores)
        self._blocks += 1
        if self._blocks % _SEAM_BLOCKS == 0:
            self._look()

    def _look(self) -> None:
        if self._in_part and self.grid is not None:
            reference, candidate = (part / np.float32(self._in_part) for part in self._part)
            for each, mean in zip(self._seams, (candidate, candidate - reference), strict=True):
                each.add(seams.profiles(mean, self.grid, each.of))
        for part in self._part:
            part.fill(0)
        self._in_part = 0

    def result(
        self,
        one: Footage,
        other: Footage,
        where: Where,
        align: bool,
        notes: list[Said],
        flip: bool,
    ) -> Comparison:
        self._look()
        count = len(self.scores)
        at = where.chunk_edges(count)
        seen, joints = self._seen(), _joints(self.lights, at)
        drift = self._drift()
        worst, evidence = self._evidence(flip, notes)
        said = [*notes, *_remarks(seen, joints, drift, one.kind)]
        return Comparison(
            versions=source.versions(),
            reference=_side(one),
            candidate=_side(other),
            aligned=align,
            frames=count,
            totals=self._totals(),
            worst=worst,
            seams=seen,
            edges=joints,
            flicker=_rounded(edges.flicker(self.lights, at or ()), 5),
            drift=drift,
            per_frame=tuple(self.scores),
            notes=tuple(said),
        ).with_evidence(evidence)

    def _totals(self) -> Totals:
        ssims = [each.ssim for each in self.scores]
        return Totals(
            psnr_db=_rounded(metrics.psnr_db(float(np.mean(self.squares))), 3),
            ssim=round(float(np.mean(ssims)), 6),
            ssim_lowest=min(ssims),
            flip=_mean([each.flip for each in self.scores]),
            xpsnr_db=_mean([each.xpsnr_db for each in self.scores]),
            vif=_mean([each.vif for each in self.scores]),
            identical_frames=sum(square == 0 for square in self.squares),
        )

    def _seen(self) -> Seen | None:
        if self.grid is None:
            return None
        scores = [score for each in self._seams for score in each.scores()]
        return Seen(
            columns=self.grid.xs,
            rows=self.grid.ys,
            found=any(each.found for each in scores),
            new=any(each.found for each in scores if each.of == "difference"),
            scores=tuple(sorted(scores, key=lambda each: (not each.found, -each.score))),
        )

    def _drift(self) -> Drift:
        known = [each.composition for each in self.scores if each.composition is not None]
        middle = float(np.median(known)) if known else None
        ours, theirs = np.mean(self.fine, axis=0)
        return Drift(
            composition=_rounded(middle, 4),
            diverged=middle is not None and middle < DIVERGED,
            fine_energy_ratio=round(float(theirs / ours), 4) if ours > 0 else None,
        )

    def _evidence(self, flip: bool, notes: list[Said]) -> tuple[Worst, Evidence]:
        assert self.worst is not None
        found, count = self.worst, np.float32(len(self.scores))
        mean, difference = self._whole[1] / count, (self._whole[1] - self._whole[0]) / count
        value, map_ = None, None
        if flip:
            try:
                value, map_ = metrics.flip(found.reference, found.candidate)
            except MissingExtra as missing:
                notes.append(Said.of(missing.code, **missing.args_))
        side = min(_SPOT, *found.map.shape)
        blurred = uniform_filter(found.map, side, mode="nearest")
        half = side // 2
        inner = blurred[half : len(blurred) - half + 1, half : blurred.shape[1] - half + 1]
        y, x = np.unravel_index(int(inner.argmin()), inner.shape)
        worst = Worst(
            frame=self.worst_frame,
            ssim=round(found.ssim, 6),
            flip=_rounded(value, 5),
            x=int(x) + metrics.WINDOW // 2,
            y=int(y) + metrics.WINDOW // 2,
            side=side,
        )
        return worst, Evidence(
            found.reference, found.candidate, found.map, mean, difference, flip=map_
        )


def _joints(lights: Sequence[FrameLight], at: tuple[int, ...] | None) -> Joints | None:
    if at is None:
        return None
    scores = edges.edge_scores(lights, at)
    return Joints(frames=at, found=any(each.found for each in scores), scores=scores)


def _remarks(seen: Seen | None, joints: Joints | None, drift: Drift, kind: str) -> Iterator[Said]:
    if drift.diverged:
        yield Said.of("quality-diverged", composition=f"{drift.composition:.2f}", limit=DIVERGED)
    ratio = drift.fine_energy_ratio
    if ratio is not None and not drift.diverged and not SOFT <= ratio <= GRAINY:
        yield Said.of(
            f"quality-{'soft' if ratio < SOFT else 'grainy'}", percent=f"{100 * ratio:.0f}"
        )
    if seen is None:
        yield Said.of("quality-no-grid")
    elif not seen.scores:
        yield Said.of("quality-grid-empty")
    elif seen.found and not seen.new:
        yield Said.of("quality-seam-in-both")
    if joints is None and kind != "image":
        yield Said.of("quality-no-edges")
    elif joints is not None and not joints.scores:
        yield Said.of("quality-edges-empty")


def _side(footage: Footage) -> Side:
    return Side(
        path=str(footage.path),
        kind=footage.kind,
        width=footage.width,
        height=footage.height,
        fps=footage.fps,
        frames=footage.frames,
        bit_depth=footage.bit_depth,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return round(float(np.mean(known)), 5) if known else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
