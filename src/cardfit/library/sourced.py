"""A model that somebody has in hand: a library entry made on the fly, and what was found beside it.

In: what `library.assembled` or `library.single_file` found, or an entry of the reader's own. Out: a `Model` like any
other, whose further fields say where it comes from. They stay out of its JSON, which is that of a library entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cardfit.errors import Note
from cardfit.library.load import all_models, load
from cardfit.library.models import Model
from cardfit.request import Dtype, Quantization, Settings

if TYPE_CHECKING:
    from cardfit.library.headers import Header

Kind = Literal["folder", "repo", "file", "own"]
_DTYPES: dict[str, Dtype] = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class Stored:
    """What the weight files of one component hold: bytes, elements, and the precision of most."""

    size_bytes: int
    elements: int
    precision: str | None

    @classmethod
    def of(cls, headers: Iterable[Header]) -> Stored:
        """Of a component's files together."""
        by_precision: dict[str, int] = {}
        size = 0
        for header in headers:
            size += header.size_bytes
            for precision, count in header.elements.items():
                by_precision[precision] = by_precision.get(precision, 0) + count
        most = max(by_precision, key=lambda each: by_precision[each], default=None)
        return cls(size, sum(by_precision.values()), most)

    @property
    def dtype(self) -> Dtype | None:
        """The dtype of the files; None for packed or 8-bit weights."""
        return None if self.precision is None else _DTYPES.get(self.precision)


class Sourced(Model):
    """A library entry that is not the library's: a folder's, a repo's, a file's, or the reader's own."""

    source: Annotated[str, Field(exclude=True)]
    kind: Annotated[Kind, Field(exclude=True)]
    stored: Annotated[dict[str, Stored], Field(exclude=True)] = {}
    schemes: Annotated[
        dict[str, Quantization], Field(exclude=True, description="weights stored quantized")
    ] = {}
    same_as: Annotated[
        Model | None, Field(exclude=True, description="the entry that does the very same")
    ] = None
    said: Annotated[tuple[Note, ...], Field(exclude=True)] = ()

    @classmethod
    def made(cls, entry: Model, **more: Any) -> Sourced:
        """``entry`` with the fields of this class, and others in place of its own."""
        fields = {name: getattr(entry, name) for name in type(entry).model_fields}
        fields["schema"] = fields.pop("schema_")
        return cls.model_validate({**fields, **more})

    @property
    def as_traced(self) -> Model:
        """The library entry that does the very same, where there is one: it may have been traced already."""
        return self.same_as or self

    @property
    def is_own(self) -> bool:
        """Whether it lies with the reader's own entries."""
        return self.kind == "own"

    def stored_bytes(self, component: str) -> int | None:
        """Bytes of the component's files as they were found; None where they were not seen."""
        found = self.stored.get(component)
        return None if found is None else found.size_bytes


def taken(name: str, settings: Settings) -> tuple[Model, Settings, tuple[Note, ...]]:
    """The model called ``name``, and ``settings`` with the schemes that its weights are stored in, where none is given.

    With what was said of it where it was found. Raises as `library.load.load` does.
    """
    entry = load(name)
    if not isinstance(entry, Sourced):
        return entry, settings, ()
    schemes = {**entry.schemes, **settings.quantization}
    return entry, settings.model_copy(update={"quantization": schemes}), entry.said


def entries() -> tuple[Model, ...]:
    """The library's entries, and after them the reader's own. Raises BadFile for one of these that is none."""
    from cardfit.library import own

    return (*all_models(), *own.entries())
