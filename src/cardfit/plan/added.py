"""What came of making a library entry: where it was written, the entry, and what its dry run takes stage by stage.

In: an entry, its trace and the estimate of its memory. Out: the value that the verb `add_model` returns, JSON under
``cardfit.added/1``, bytes as plain numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import Note
from cardfit.library.models import Model
from cardfit.messages.said import Said
from cardfit.plan.answer import StageRow
from cardfit.predict.estimate import MemoryEstimate
from cardfit.request import ExactRequest
from cardfit.trace.stream import Trace

SCHEMA: Literal["cardfit.added/1"] = "cardfit.added/1"


class Added(BaseModel):
    """A library entry, written to ``file``, and its dry run with everything on the card."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Annotated[Literal["cardfit.added/1"], Field(alias="schema")] = SCHEMA
    file: str
    model: Model
    versions: dict[str, str]
    request: ExactRequest
    stages: tuple[StageRow, ...]
    peak_stage: str
    peak_reserved_bytes: int
    notes: tuple[Said, ...]


def added(
    entry: Model, file: Path, traced: Trace, found: MemoryEstimate, notes: Iterable[Note]
) -> Added:
    """The value: ``found`` is the memory of ``traced`` with everything on the card."""
    said = (*notes, *(Note(code, args) for code, args in traced.notes))
    return Added(
        file=str(file),
        model=entry,
        versions=traced.versions,
        request=traced.request.model_copy(update={"model": entry.id}),
        stages=tuple(map(StageRow.of, found.stages)),
        peak_stage=found.peak_stage,
        peak_reserved_bytes=found.reserved_bytes,
        notes=tuple(Said.of(note.code, **note.args) for note in said),
    )
