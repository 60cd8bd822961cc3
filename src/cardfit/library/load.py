"""Find and read library entries.

In: a name a person typed (id, alias or repository id, any case). Out: the `Model`. Names are resolved from a small
index, and an entry's file is read when it is asked for, once. A name that is not known raises `UnknownModel` with the
nearest names.
"""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from typing import Any

from cardfit.errors import Note, UnknownModel
from cardfit.library.models import Model

_DATA = files("cardfit.library") / "data"
_SUGGESTIONS = 3


@cache
def _index() -> dict[str, dict[str, Any]]:
    index: dict[str, dict[str, Any]] = json.loads(
        (_DATA / "index.json").read_text(encoding="utf-8")
    )
    return index


@cache
def _names() -> dict[str, str]:
    """Every accepted name in lower case -> id."""
    names: dict[str, str] = {}
    for model_id, row in _index().items():
        for name in (model_id, row["repo_id"], *row["aliases"]):
            names[name.lower()] = model_id
    return names


def model_ids() -> tuple[str, ...]:
    """The ids of all library entries, sorted; reads no entry."""
    return tuple(sorted(_index()))


def aliases(model_id: str) -> tuple[str, ...]:
    """Other names that ``model_id`` answers to, its repository id first."""
    row = _index()[model_id]
    return (row["repo_id"], *row["aliases"])


def is_known(name: str) -> bool:
    """Whether ``name`` is an id, an alias or a repository id of the library, any case."""
    return name.strip().lower() in _names()


def resolve_name(name: str) -> str:
    """The id that ``name`` (id, alias or repository id, any case) stands for.

    Raises UnknownModel with the nearest ids.

    >>> resolve_name("Wan-AI/Wan2.1-T2V-14B-Diffusers")
    'wan2.1-t2v-14b'
    """
    found = _names().get(name.strip().lower())
    if found is None:
        near = suggest(name)
        suggestion = Note("did-you-mean", {"names": ", ".join(near)}).text if near else ""
        raise UnknownModel("unknown-model", asked=name, suggestion=suggestion)
    return found


def load(name: str) -> Model:
    """The library entry for ``name`` (id, alias or repository id, any case), else what ``name`` leads to elsewhere.

    Raises UnknownModel with the nearest ids, and what `library.sources` raises for a folder, a file or a repo.
    """
    try:
        return _read(resolve_name(name))
    except UnknownModel as unknown:
        from cardfit.library.sources import find

        found = find(name.strip(), str(unknown.args_["suggestion"]))
        if found is None:
            raise
        return found


@cache
def _read(model_id: str) -> Model:
    return Model.model_validate_json((_DATA / f"{model_id}.json").read_bytes())


def all_models() -> tuple[Model, ...]:
    """Every library entry, sorted by id."""
    return tuple(_read(model_id) for model_id in model_ids())


def suggest(name: str) -> tuple[str, ...]:
    """Up to three ids near ``name``, the nearest first; empty when nothing is near.

    >>> suggest("wan-14b")[0]
    'wan2.1-t2v-14b'
    """
    asked = name.strip().lower()[:200]
    scores: dict[str, float] = {}
    for known, model_id in _names().items():
        scores[model_id] = max(scores.get(model_id, 0.0), _likeness(asked, known))
    ranked = sorted(scores.items(), key=lambda item: (-item[1], *_plainness(item[0])))
    return tuple(model_id for model_id, score in ranked if score >= 0.6)[:_SUGGESTIONS]


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[^a-z0-9.]+", text) if part)


def _likeness(asked: str, known: str) -> float:
    """0 to 1: spelling, or how many of the asked parts ("wan", "14b") begin or equal a part of ``known``."""
    spelling = SequenceMatcher(None, asked, known).ratio()
    wanted, have = _parts(asked), _parts(known)
    hits = sum(
        any(part == other or (len(part) > 2 and other.startswith(part)) for other in have)
        for part in wanted
    )
    named = 0.95 * hits / len(wanted) if wanted and hits == len(wanted) else 0.0
    return max(spelling, named)


def _plainness(model_id: str) -> tuple[bool, int, str]:
    """Sort key among equals: text-to-something before image-conditioned, short names, alphabet."""
    return ("i2v" in model_id or "edit" in model_id, len(model_id), model_id)
