"""The atlas: traces that are shipped as formulas, so that an answer needs neither torch nor a dry run.

A model's file holds, for each task, the structure of what its pipeline does (which storages are born and die in which
order, which calls are made) and every size as a polynomial of batch, height, width, frames and steps. Each structure
holds where it was seen; between the points looked at sizes are exact, outside of them there is no answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from cardfit.library.models import Model
from cardfit.request import ExactRequest, Settings
from cardfit.trace.atlas.compose import Gap, added, bounds, compose, gap
from cardfit.trace.atlas.domain import Domain
from cardfit.trace.atlas.forms import forms_of
from cardfit.trace.atlas.read import FOLDER, book_of
from cardfit.trace.stream import Trace


def find(model: Model, request: ExactRequest, settings: Settings) -> Trace | Gap:
    """The Trace of ``request``, or what of it lies outside the atlas. Raises BadFile for a damaged file."""
    if (
        beside := added(request)
    ) is not None:  # before the entry, which has the add-ons' components in it
        return beside
    book = book_of(model.id)
    if book is None or book["entry"] != entry_hash_of(model):
        return Gap("model")
    shared = partial(forms_of, model.id)
    found = compose(book, request, _left_open(model, settings), shared)
    return replace(found, settings=settings) if isinstance(found, Trace) else found


def _left_open(model: Model, settings: Settings) -> Settings:
    """``settings`` without dtypes where those given are the recommended ones that the atlas holds."""
    given = settings.dtype
    same = all(
        given.get(name, given.get("*", part.recommended_dtype)) == part.recommended_dtype
        for name, part in model.components.items()
        if part.counted
    )
    return settings.model_copy(update={"dtype": {}}) if given and same else settings


def versions_of(model: Model) -> dict[str, str]:
    """The versions that the model's file was made with; empty where the atlas has none."""
    book = book_of(model.id)
    return dict(book["versions"]) if book is not None else {}


def models() -> frozenset[str]:
    """The ids of the library entries that the atlas has a file for."""
    return frozenset(path.stem for path in FOLDER.glob("*.xz"))


def domain(model: Model, request: ExactRequest) -> Domain | None:
    """The bounds inside which the atlas knows requests like this one; None where it knows none."""
    if added(request) is not None:
        return None
    book = book_of(model.id)
    if book is None or book["entry"] != entry_hash_of(model):
        return None
    found = bounds(book, request)
    return None if isinstance(found, Gap) else found


def outside(model: Model, request: ExactRequest, settings: Settings) -> str | None:
    """The field that lies outside, told without composing a trace; None where nothing does."""
    if (beside := added(request)) is not None:
        return beside.field
    book = book_of(model.id)
    if book is None or book["entry"] != entry_hash_of(model):
        return "model"
    return gap(book, request, _left_open(model, settings))


def entry_hash_of(model: Model) -> str:
    """The hash of a library entry, worked out once per model."""
    from cardfit.trace.atlas.read import entry_hash

    if model.id not in _HASHES:
        _HASHES[model.id] = entry_hash(model)
    return _HASHES[model.id]


_HASHES: dict[str, str] = {}
