"""The reference of a sweep: one of its cells, or an earlier record, and every output held against it.

In: the cell's values in words, or a record's id. Out: `Against`, whose `judge` returns a record with its quality. The
reference is held against itself too, which costs nothing and says that it is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from cardfit.errors import BadRequest, CardfitError
from cardfit.measure.sweep import Cell
from cardfit.quality.verbs import compare
from cardfit.records.models import Reason, Record
from cardfit.records.verbs import find

_LONGEST = 40  # characters of a value


@dataclass
class Against:
    """``cell`` is the key of the reference's cell, None where it is a ``record`` of before."""

    cell: str | None
    record: Record | None
    store: str | None

    @classmethod
    def of(cls, words: str, cells: Sequence[Cell], store: str | None) -> Against:
        """The reference that ``words`` name. Raises BadRequest for none or several cells, and as `find` does."""
        if "=" not in words:
            record = find(words, store)
            if not record.outputs:
                raise BadRequest("quality-no-output", record=record.id)
            return cls(None, record, store)
        wanted = dict(_value(part, words) for part in words.split(","))
        near = [
            cell.key
            for cell in cells
            if all(
                name in cell.values and cell.values[name] == value for name, value in wanted.items()
            )
        ]
        if len(near) != 1:
            raise BadRequest("sweep-bad-reference", asked=words, found=len(near))
        return cls(near[0], None, store)

    def judge(self, cell: Cell, record: Record) -> Record:
        """``record`` with what its output lost; as it is, with a note, where nothing can be compared."""
        if cell.key == self.cell:
            self.record = record
        if self.record is None:  # the reference's cell did not end well
            return record
        if record.quality is not None and record.quality.reference == self.record.id:
            return record
        try:
            compare(self.record, record, store=self.store)
        except CardfitError as error:
            note = Reason.of("decode-not-compared", why=str(error))
            return record.model_copy(update={"notes": (*record.notes, note)})
        return find(record.id, self.store)


def _value(part: str, words: str) -> tuple[str, Any]:
    """A field and its value, read as the axes of a sweep are. Raises BadRequest."""
    name, _, value = part.partition("=")
    try:
        found = yaml.safe_load(value[:_LONGEST])
    except yaml.YAMLError:
        raise BadRequest("sweep-bad-axis", asked=words) from None
    return name.strip().lstrip("-").replace("-", "_"), found
