"""What people ran and what happened, as a CSV file holds it, read with limits.

In: a file with the header of `benchmarks/data/field_oom.csv`. Out: `FieldCase` rows in base units, and a `BadCell` for
every row whose number or outcome cannot be read; the others stand. Sizes of memory are read as memory is sold: a card
of "24" holds 24 times 1024 three times. Nothing here knows a model or a card.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from cardfit.accuracy.rows import MAX_COUNT, BadCell
from cardfit.cards import table
from cardfit.units import GIB

COLUMNS = tuple(
    "id repo issue title_in_own_words model width height frames batch steps precision quantization offload "
    "vae_tiling attention framework gpu gpu_vram_gib host_ram_gib outcome stage tried_to_allocate peak_reported "
    "time_reported fix_that_worked completeness notes".split()
)
Outcome = Literal["ok", "slow", "oom", "host_oom", "wrong_output"]
Completeness = Literal["full", "partial"]
RAN: tuple[Outcome, ...] = ("ok", "slow")
# the words of the file -> the stage of a prediction; what is not here is not known
STAGES = {
    "load": "load",
    "text_encode": "encode_prompt",
    "vae_encode": "encode_condition",
    "denoise": "denoise",
    "vae_decode": "decode",
    "export": "export",
}
_UNSTATED = ("", "unknown")
MAX_GIB = 65536


@dataclass(frozen=True, slots=True)
class FieldCase:
    """One case, sizes in pixels. ``None`` is what nobody stated; the other texts are as written.

    ``stage`` is where it ended (or peaked) in the words of a prediction. ``remarks`` is the title with the notes.
    """

    id: str
    model: str
    width: int | None
    height: int | None
    num_frames: int | None
    batch: int | None
    steps: int | None
    precision: str
    quantization: str
    offload: str
    vae_tiling: str
    attention: str
    framework: str
    gpu: str
    vram_bytes: int | None
    ram_bytes: int | None
    outcome: Outcome
    stage: str | None
    completeness: Completeness
    remarks: str

    @property
    def ran(self) -> bool:
        """Whether the run reached its end, slow or not."""
        return self.outcome in RAN


class _Bad(Exception):
    def __init__(self, column: str) -> None:
        self.column = column


def read(path: Path) -> tuple[tuple[FieldCase, ...], tuple[BadCell, ...]]:
    """The cases of ``path`` that can be read, and the cells that cannot.

    Raises BadFile for a file that is missing, too large, no CSV or has another header.
    """
    good: list[FieldCase] = []
    bad: list[BadCell] = []
    for row in table.read(path, columns=COLUMNS, required=COLUMNS):
        try:
            good.append(_case(row.cells))
        except _Bad as fault:
            found = row.cells.get(fault.column, "")[:60]
            bad.append(BadCell(row.cells["id"][:60], row.number, fault.column, found))
    return tuple(good), tuple(bad)


def _case(cells: dict[str, str]) -> FieldCase:
    outcome = next((each for each in get_args(Outcome) if each == cells["outcome"].lower()), None)
    if outcome is None:
        raise _Bad("outcome")
    stated = cells["completeness"].lower()
    completeness = next((each for each in get_args(Completeness) if each == stated), None)
    if completeness is None:
        raise _Bad("completeness")
    if not cells["id"]:
        raise _Bad("id")
    said = cells["stage"].lower()
    if said not in _UNSTATED and said not in STAGES:
        raise _Bad("stage")
    return FieldCase(
        id=cells["id"],
        model=cells["model"],
        width=_count(cells, "width"),
        height=_count(cells, "height"),
        num_frames=_count(cells, "frames"),
        batch=_count(cells, "batch"),
        steps=_count(cells, "steps"),
        precision=cells["precision"].lower(),
        quantization=cells["quantization"].lower(),
        offload=cells["offload"].lower(),
        vae_tiling=cells["vae_tiling"].lower(),
        attention=cells["attention"].lower(),
        framework=cells["framework"].lower(),
        gpu=cells["gpu"],
        vram_bytes=_size(cells, "gpu_vram_gib"),
        ram_bytes=_size(cells, "host_ram_gib"),
        outcome=outcome,
        stage=STAGES.get(said),
        completeness=completeness,
        remarks=f"{cells['title_in_own_words']}; {cells['notes']}",
    )


def _number(cells: dict[str, str], column: str, most: float) -> float | None:
    if not cells[column]:
        return None
    try:
        value = float(cells[column])
    except ValueError:
        raise _Bad(column) from None
    if not math.isfinite(value) or not 0 < value <= most:
        raise _Bad(column)
    return value


def _count(cells: dict[str, str], column: str) -> int | None:
    value = _number(cells, column, MAX_COUNT)
    if value is not None and value != int(value):
        raise _Bad(column)
    return None if value is None else int(value)


def _size(cells: dict[str, str], column: str) -> int | None:
    value = _number(cells, column, MAX_GIB)
    return None if value is None else round(value * GIB)
