"""Where tiles and chunks meet, as a person says it.

In: a tile and its overlap or the lines themselves, a chunk or its edges. Out: a checked `Where`, which gives the grid
for a size and the edges for a length.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardfit.errors import BadRequest
from cardfit.quality import edges, seams

LEAST_TILE = 16


@dataclass(frozen=True, slots=True)
class Where:
    """Pixels and frames, counted from 0; what is not given is None and not looked for."""

    tile: int | None = None
    overlap: int | None = None
    lines_x: tuple[int, ...] = ()
    lines_y: tuple[int, ...] = ()
    chunk: int | None = None
    first_chunk: int | None = None
    edges: tuple[int, ...] = ()

    def check(self) -> None:
        """Raise BadRequest for what cannot be meant."""
        if self.tile is None and self.overlap is not None:
            raise BadRequest("quality-overlap-alone")
        overlap = self.overlap or 0
        if self.tile is not None and not (self.tile >= LEAST_TILE and 0 <= overlap < self.tile):
            raise BadRequest("quality-bad-tile", tile=self.tile, overlap=overlap, least=LEAST_TILE)
        for flag, lines in (("--lines-x", self.lines_x), ("--lines-y", self.lines_y)):
            if any(line <= 0 for line in lines):
                raise BadRequest("quality-bad-lines", flag=flag, asked=_commas(lines))
            if lines and self.tile is not None:
                raise BadRequest("bad-together", one="--tile", other=flag)
        for chunk in (self.chunk, self.first_chunk):
            if chunk is not None and chunk < 1:
                raise BadRequest("quality-bad-chunk", asked=chunk)
        if any(edge <= 0 for edge in self.edges):
            raise BadRequest("quality-bad-edges", asked=_commas(self.edges))
        if self.edges and self.chunk is not None:
            raise BadRequest("bad-together", one="--chunk", other="--edges")

    def grid(self, width: int, height: int) -> seams.Grid | None:
        """The lines inside a picture of that size; None where none were given."""
        if self.tile is not None:
            return seams.tile_grid(width, height, self.tile, self.overlap or 0)
        if self.lines_x or self.lines_y:
            inside = [
                tuple(sorted({line for line in lines if line < side - seams.MARGIN}))
                for lines, side in ((self.lines_x, width), (self.lines_y, height))
            ]
            return seams.Grid(inside[0], inside[1])
        return None

    def chunk_edges(self, frames: int) -> tuple[int, ...] | None:
        """The frames at which a chunk begins in a clip of ``frames``; None where none were given."""
        if self.chunk is not None:
            return edges.chunk_edges(frames, self.chunk, self.first_chunk)
        return tuple(edge for edge in self.edges if edge < frames) if self.edges else None


def _commas(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))
