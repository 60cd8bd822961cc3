"""Published measurements as a CSV file holds them, read with limits.

In: a file with the header of `benchmarks/data/measured.csv`. Out: `Published` rows in base units, and a `BadCell` for
every row whose number or unit cannot be read; the others stand. "GB" is read as memory is counted: torch's counters
divided by 1024 three times, as the scripts of the sources print them. Nothing here knows a model.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cardfit.cards import table
from cardfit.units import parse_bytes

COLUMNS = tuple(
    "id model diffusers_pipeline task gpu gpu_vram_gib framework framework_version precision_weights "
    "precision_compute quantization width height num_frames batch steps guidance_cfg offload vae_tiling "
    "vae_slicing decode_chunk_size compile attention scope peak_gib_reported peak_unit_as_written peak_kind "
    "time_s time_kind source source_commit_or_date notes".split()
)
Kind = Literal["allocated", "reserved", "device", "unnamed"]
_KINDS: dict[str, Kind] = {
    "allocated": "allocated",
    "reserved": "reserved",
    "nvidia_smi": "device",
    "unknown": "unnamed",
    "": "unnamed",
}
_UNITS = ("b", "bytes", "kb", "kib", "mb", "mib", "gb", "gib", "tb", "tib")
_UNSTATED = ("", "unknown")
_IN_BYTES = re.compile(r"\bunit is bytes\b", re.I)
_SOURCE_ENDS = re.compile(r" \(|, | pull requests?\b| issue\b| and Hub| \S+\.\w+\b")
MAX_BYTES = 2**50
MAX_COUNT = 1_000_000


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell that cannot be read: the row (1 is the header), its id, the column and what stands there."""

    id: str
    row: int
    column: str
    found: str


@dataclass(frozen=True, slots=True)
class Published:
    """One published measurement, sizes in pixels. ``None`` is what the source does not state.

    ``guidance`` says whether classifier-free guidance ran. ``page`` is the whole text of the source, ``dated`` the
    commit or day it was read at. The other texts are as written.
    """

    id: str
    model: str
    gpu: str
    framework: str
    precision: str
    quantization: str
    width: int | None
    height: int | None
    num_frames: int | None
    batch: int | None
    steps: int | None
    guidance: bool | None
    offload: str
    vae_tiling: bool | None
    vae_slicing: bool | None
    decode_chunk_size: int | None
    attention: str
    scope: str
    peak_bytes: int | None
    kind: Kind
    source: str
    notes: str
    framework_version: str
    page: str
    dated: str


class _Bad(Exception):
    def __init__(self, column: str) -> None:
        self.column = column


def read(path: Path) -> tuple[tuple[Published, ...], tuple[BadCell, ...]]:
    """The rows of ``path`` that can be read, and the cells that cannot.

    Raises BadFile for a file that is missing, too large, no CSV or has another header.
    """
    good: list[Published] = []
    bad: list[BadCell] = []
    for row in table.read(path, columns=COLUMNS, required=COLUMNS):
        try:
            good.append(_published(row.cells))
        except _Bad as fault:
            found = row.cells.get(fault.column, "")[:60]
            bad.append(BadCell(row.cells["id"][:60], row.number, fault.column, found))
    return tuple(good), tuple(bad)


def _published(cells: dict[str, str]) -> Published:
    kind = _KINDS.get(cells["peak_kind"].lower())
    if kind is None:
        raise _Bad("peak_kind")
    if not cells["id"]:
        raise _Bad("id")
    _number(cells, "time_s")
    return Published(
        id=cells["id"],
        model=cells["model"],
        gpu=cells["gpu"],
        framework=cells["framework"],
        precision=cells["precision_weights"] or cells["precision_compute"],
        quantization=cells["quantization"],
        width=_count(cells, "width"),
        height=_count(cells, "height"),
        num_frames=_count(cells, "num_frames"),
        batch=_count(cells, "batch"),
        steps=_count(cells, "steps"),
        guidance=_yes(cells["guidance_cfg"]),
        offload=cells["offload"].lower(),
        vae_tiling=_yes(cells["vae_tiling"]),
        vae_slicing=_yes(cells["vae_slicing"]),
        decode_chunk_size=_count(cells, "decode_chunk_size"),
        attention=cells["attention"],
        scope=cells["scope"],
        peak_bytes=_peak(cells),
        kind=kind,
        source=source_name(cells["source"]),
        notes=cells["notes"],
        framework_version=cells["framework_version"],
        page=cells["source"],
        dated=cells["source_commit_or_date"],
    )


def source_name(text: str) -> str:
    """The publisher of a figure, without the file, thread or page it stands in.

    >>> source_name("huggingface/blog sd3.md"), source_name("Wan-Video/Wan2.1 README.md, table image")
    ('huggingface/blog', 'Wan-Video/Wan2.1')
    """
    return _SOURCE_ENDS.split(text)[0].strip()


def _yes(text: str) -> bool | None:
    return {"yes": True, "no": False}.get(text.lower())


def _number(cells: dict[str, str], column: str) -> float | None:
    text = cells[column]
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise _Bad(column) from None
    if not math.isfinite(value) or not 0 < value <= MAX_BYTES:
        raise _Bad(column)
    return value


def _count(cells: dict[str, str], column: str) -> int | None:
    value = _number(cells, column)
    if value is None:
        return None
    if value != int(value) or value > MAX_COUNT:
        raise _Bad(column)
    return int(value)


def _peak(cells: dict[str, str]) -> int | None:
    """The peak in bytes; None without a figure or where the source states no unit. An unknown unit is a bad cell."""
    value = _number(cells, "peak_gib_reported")
    unit = cells["peak_unit_as_written"].lower()
    if unit not in (*_UNITS, *_UNSTATED):
        raise _Bad("peak_unit_as_written")
    if value is None:
        return None
    if unit in _UNSTATED:
        if not _IN_BYTES.search(cells["notes"]):
            return None
        unit = "b"
    unit = "b" if unit == "bytes" else unit
    size_bytes = parse_bytes(f"{value:f} {unit}", memory=True)
    if not 0 < size_bytes <= MAX_BYTES:
        raise _Bad("peak_gib_reported")
    return size_bytes
