"""JSON as the schemas say: plain numbers with the unit in the key, unknown is null.

In: a pydantic model or a frozen dataclass. Out: text. Lists carry a schema name with a version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, TypeAdapter


def plain(value: Any) -> Any:
    """``value`` as dicts, lists, numbers and text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    return TypeAdapter(type(value)).dump_python(value, mode="json", by_alias=True)


def one(value: Any) -> str:
    """The JSON of one value that carries its own schema."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def many(kind: str, values: Iterable[Any], **more: Any) -> str:
    """The JSON of a list: ``{"schema": "cardfit.cards/1", "cards": [...]}``."""
    body = {"schema": f"cardfit.{kind}/1", **more, kind: [plain(value) for value in values]}
    return json.dumps(body, indent=2, ensure_ascii=False)


def cards(listed: Iterable[Any], worths: Iterable[Any], said: Any, intensity: float | None) -> str:
    """The JSON of the catalog with what a price buys of each card."""
    more = {"worth": [plain(each) for each in worths], "matters": plain(said)}
    return many("cards", listed, **more, flop_per_byte=intensity)
