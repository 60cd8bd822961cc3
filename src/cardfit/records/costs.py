"""What each lossy knob was measured to cost the picture, from the records that were compared.

In: the records' folder, a model. Out: knob -> 1 - SSIM, the median of the records in which that knob was all that
differed from the reference. Records that showed another picture say nothing about a knob and are left out.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from cardfit.errors import BadFile
from cardfit.records import files
from cardfit.records.models import Record
from cardfit.request import Settings

_NOT_COMPARED = b'"quality": null'
_REST = ("dtype", "attention", "forward_chunking", "fuse_qkv", "compile", "prompt_embeds")


def lossy_knobs(settings: Settings) -> frozenset[str]:
    """The knobs of ``settings`` that change the picture, each with its value, as one word.

    >>> sorted(lossy_knobs(Settings(vae_tiling=True, vae_tile=256, quantization={"transformer": "bnb-nf4"})))
    ['quantization transformer=bnb-nf4', 'vae_tiling 256']
    """
    found = set()
    if settings.vae_tiling or settings.vae_tile is not None:
        overlap = "" if settings.vae_overlap is None else f" overlap {settings.vae_overlap}"
        found.add(
            f"vae_tiling{'' if settings.vae_tile is None else f' {settings.vae_tile}'}{overlap}"
        )
    if settings.decode_chunk_size is not None:
        found.add(f"decode_chunk_size {settings.decode_chunk_size}")
    schemes = {name: each for name, each in settings.quantization.items() if each != "none"}
    if schemes:
        found.add("quantization " + ",".join(f"{name}={schemes[name]}" for name in sorted(schemes)))
    return frozenset(found)


def quality_costs(model: str, folder: Path | None = None) -> dict[str, float]:
    """Knob, as `lossy_knobs` names it, to the share of SSIM that it cost; empty where nothing was compared."""
    base = folder or files.records_folder()
    found: dict[str, list[float]] = {}
    for path in sorted(base.glob(f"*/{files.NAME}")):
        record = _compared(path)
        if record is None or record.model != model or record.quality is None:
            continue
        if (knob := _knob(record, base)) is not None and not record.quality.diverged:
            found.setdefault(knob, []).append(1 - record.quality.ssim)
    return {knob: median(values) for knob, values in found.items()}


def _compared(path: Path) -> Record | None:
    """The record at ``path`` if it was compared: the others are told apart without reading their fields."""
    try:
        return None if _NOT_COMPARED in path.read_bytes() else _read(path)
    except OSError:
        return None


def _read(path: Path) -> Record | None:
    try:
        return files.read(path)
    except BadFile:
        return None  # `cardfit records` says why; a plan goes on without it


def _knob(record: Record, base: Path) -> str | None:
    """The one knob in which ``record`` differs from its reference; None where none or several do."""
    assert record.quality is not None
    reference = _read(base / record.quality.reference)
    if reference is None or reference.settings is None or record.settings is None:
        return None
    one, other = reference.settings, record.settings
    if any(getattr(one, name) != getattr(other, name) for name in _REST):
        return None
    before, after = lossy_knobs(one), lossy_knobs(other)
    more = after - before
    return next(iter(more)) if len(more) == 1 and before <= after else None
