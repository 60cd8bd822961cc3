"""The answer to `cardfit compare`: the saved schema, field by field.

Levels are of 0 to 255, shares are of 1, unknown is None with a note. Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from cardfit.media.pixels import Levels, Rgb
from cardfit.messages.said import Said
from cardfit.quality.edges import EdgeScore
from cardfit.quality.seams import SeamScore

SCHEMA = "cardfit.compare/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Side(_Frozen):
    """One of the two: what it is and its size in pixels; ``fps`` is None for pictures and folders."""

    path: str
    kind: str
    width: int
    height: int
    fps: float | None
    frames: int | None
    bit_depth: int


class FrameScores(_Frozen):
    """One frame against the same of the reference; ``psnr_db`` is None where the two are identical.

    ``flip``, ``xpsnr_db`` and ``vif`` are None where they were not asked for.
    """

    frame: int
    psnr_db: float | None
    ssim: float
    composition: float | None
    flip: float | None = None
    xpsnr_db: float | None = None
    vif: float | None = None


class Totals(_Frozen):
    """All frames together: PSNR of the mean squared difference over all of them, means of the rest."""

    psnr_db: float | None
    ssim: float
    ssim_lowest: float
    flip: float | None
    xpsnr_db: float | None
    vif: float | None
    identical_frames: int


class Worst(_Frozen):
    """The frame with the lowest SSIM, and the square in it that is worst: its corner and side in pixels."""

    frame: int
    ssim: float
    flip: float | None
    x: int
    y: int
    side: int


class Seen(_Frozen):
    """Seams on the grid: the lines looked at, every score, and whether one is a seam. ``new``: not in the reference."""

    columns: tuple[int, ...]
    rows: tuple[int, ...]
    found: bool
    new: bool
    scores: tuple[SeamScore, ...]


class Joints(_Frozen):
    """Chunk edges: the frames looked at, every score, and whether one can be seen."""

    frames: tuple[int, ...]
    found: bool
    scores: tuple[EdgeScore, ...]


class Drift(_Frozen):
    """Whether the two still show the same: ``composition`` 1 the same layout, 0 unrelated (median over frames).

    ``diverged``: paired scores mean little. ``fine_energy_ratio`` is the finest detail and grain of the candidate as a
    share of the reference's: below 1 is softer.
    """

    composition: float | None
    diverged: bool
    fine_energy_ratio: float | None


@dataclass(frozen=True)
class Evidence:
    """Pictures for a report: the worst frame of both, its SSIM map, the mean luma of the candidate."""

    reference: Rgb
    candidate: Rgb
    ssim: Levels
    mean: Levels
    difference: Levels
    flip: Levels | None = field(default=None)


class Comparison(_Frozen):
    """Two pieces of footage compared; `evidence` holds the pictures and is no part of the JSON."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    versions: dict[str, str]
    reference: Side
    candidate: Side
    aligned: bool
    frames: int
    totals: Totals
    worst: Worst
    seams: Seen | None
    edges: Joints | None
    flicker: float | None
    drift: Drift
    per_frame: tuple[FrameScores, ...]
    notes: tuple[Said, ...]

    _evidence: Evidence | None = PrivateAttr(default=None)

    @property
    def evidence(self) -> Evidence | None:
        """The pictures, where the comparison was made in this process."""
        return self._evidence

    def noted(self, notes: Sequence[Said], *, without: Collection[str] = ()) -> Comparison:
        """This comparison with ``notes`` before its own, less those of the codes ``without``; the pictures stay."""
        own = (note for note in self.notes if note.code not in without)
        return self.model_copy(update={"notes": (*notes, *own)})

    def with_evidence(self, evidence: Evidence) -> Comparison:
        """This comparison with its pictures."""
        self._evidence = evidence
        return self
