"""What two records made, ready to be compared: their files, and where their settings put tiles and chunks.

In: records that kept their outputs. Out: footage, a `Where`, notes about what else differs between the two, and the
`Quality` that a record carries. Tile sides that nobody set are the VAE's own, from the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardfit.errors import BadFile, BadRequest
from cardfit.library.load import load
from cardfit.library.models import VaeFacts
from cardfit.messages.said import Said
from cardfit.quality.result import Comparison
from cardfit.quality.where import Where
from cardfit.records import files
from cardfit.records.models import Quality, Record
from cardfit.request import Settings

_SHARE = 0.25  # of a tile that was set without an overlap (`trace.recipes`)
Sides = tuple[int, int]  # width, height


@dataclass(frozen=True, slots=True)
class Made:
    """The footage that a record kept; ``more`` counts the clips beside the first."""

    path: Path
    more: int = 0


def made(record: Record) -> Made:
    """The output of ``record``. Raises BadRequest where none was kept, BadFile where it is gone."""
    if not record.outputs:
        raise BadRequest("quality-no-output", record=record.id)
    paths = [files.records_folder() / record.id / name for name in record.outputs]
    if missing := [path for path in paths if not path.is_file()]:
        raise BadFile("quality-output-gone", path=missing[0])
    if len(paths) > 1 and all(path.suffix == ".png" for path in paths):
        return Made(paths[0].parent)  # the pictures of a batch, one by one as frames are
    return Made(paths[0], len(paths) - 1)


def where_of(record: Record) -> Where:
    """Where the decode of ``record`` puts tiles and chunks; nothing is said where its settings put none."""
    if record.model is None or record.request is None or record.settings is None:
        return Where()
    vae, settings, request = load(record.model).vae, record.settings, record.request
    found: dict[str, Any] = {}
    size = request.width, request.height
    tiles = _tiles(vae, settings)
    if tiles is not None and max(size) > max(tiles[0]):
        (width, height), (over_x, over_y) = tiles
        if (width, over_x) == (height, over_y):
            found = {"tile": width, "overlap": over_x}
        else:
            found["lines_x"] = tuple(range(width - over_x, size[0], width - over_x))
            found["lines_y"] = tuple(range(height - over_y, size[1], height - over_y))
    if vae.decode_chunk_size and settings.decode_chunk_size:
        found["chunk"] = settings.decode_chunk_size
    elif tiles is not None and (stride := vae.tile_defaults.get("tile_sample_stride_num_frames")):
        # the first tile keeps a frame more: a video VAE's first latent is one frame
        found |= {"chunk": stride, "first_chunk": stride + 1}
    return Where(**found)


def _tiles(vae: VaeFacts, settings: Settings) -> tuple[Sides, Sides] | None:
    """Sides and overlaps of the decoder's tiles in pixels; None where it decodes in one piece."""
    asked = settings.vae_tiling or settings.vae_tile is not None or vae.tiling_required
    side, overlap = settings.vae_tile, settings.vae_overlap
    if not asked or (side is None and vae.tile_side is None):
        return None
    if side is not None:
        lap = int(side * _SHARE) if overlap is None else overlap
        return (side, side), (lap, lap)
    own = vae.tile_defaults
    if "kernel" in own:  # Allegro: frames, height, width
        return (own["kernel"][2], own["kernel"][1]), (own["overlap_w"], own["overlap_h"])
    (width, lap_x), (height, lap_y) = (_side(vae, name) for name in ("width", "height"))
    return (width, height), ((lap_x, lap_y) if overlap is None else (overlap, overlap))


def _side(vae: VaeFacts, name: str) -> tuple[int, int]:
    """The VAE's own tile in one direction, and its overlap."""
    own = vae.tile_defaults
    side = int(own.get(f"tile_sample_min_{name}", vae.tile_side or 0))
    if (stride := own.get(f"tile_sample_stride_{name}")) is not None:
        return side, side - int(stride)
    share = own.get(f"tile_overlap_factor_{name}", own.get("tile_overlap_factor", _SHARE))
    return side, round(side * share)


def differences(reference: Record, candidate: Record) -> list[Said]:
    """What the reader should know of two records beside their files: another request, other inputs."""
    found = []
    if reference.request is not None and candidate.request is not None:
        one, other = (each.request.model_dump() for each in (reference, candidate) if each.request)
        if names := [name for name, value in one.items() if other[name] != value]:
            found.append(Said.of("quality-other-request", names=", ".join(names)))
    if reference.inputs != candidate.inputs:
        found.append(Said.of("quality-other-inputs"))
    if reference.weights != candidate.weights:
        found.append(Said.of("quality-other-weights"))
    return found


def quality_of(found: Comparison, reference: str) -> Quality:
    """What a record carries of a comparison with the output of the record called ``reference``."""
    seams = [
        each for each in (found.seams.scores if found.seams else ()) if each.of == "difference"
    ]
    edges = found.edges.scores if found.edges else ()
    totals = found.totals
    return Quality(
        reference=reference,
        frames=found.frames,
        psnr_db=totals.psnr_db,
        ssim=totals.ssim,
        ssim_lowest=totals.ssim_lowest,
        flip=totals.flip if totals.flip is not None else found.worst.flip,
        seam_score=max((each.score for each in seams), default=None),
        seam_found=any(each.found for each in seams),
        edge_score=max((each.score for each in edges), default=None),
        edge_found=any(each.found for each in edges),
        diverged=found.drift.diverged,
        fine_energy_ratio=found.drift.fine_energy_ratio,
    )
