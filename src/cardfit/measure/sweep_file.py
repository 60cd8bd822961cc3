"""The file of a sweep: a request, settings, and the values to go through.

In: a path, or a request with axes. Out: `SweepFile`, and its cells: every combination, checked before the first runs.
Read as a plan file is: safe loader, limits, every fault named by file and line.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadFile, BadRequest
from cardfit.request import Request, Settings
from cardfit.request.read import (
    kind_of,
    read_fields,
    validate_fields,
    validate_request,
    validate_settings,
)

MAX_CELLS = 1000


class SweepFile(BaseModel):
    """What a YAML file of a sweep holds. ``sweep``: a field of the request or the settings -> its values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    request: Request
    settings: Settings = Settings()
    sweep: Annotated[dict[str, list[Any]], Field(description="field -> values to go through")] = {}


def read_sweep_file(path: Path) -> SweepFile:
    """The sweep in the YAML file at ``path``. Raises BadFile and BadRequest as a plan file's reader does."""
    fields, lines = read_fields(path)
    if fields is None:
        raise BadFile("planfile-empty", path=str(path))
    if not isinstance(fields, dict):
        raise BadFile("planfile-not-a-mapping", path=str(path), found=kind_of(fields))
    if fields.get("settings", ...) is None:  # the key with nothing below it
        del fields["settings"]
    return validate_fields(SweepFile, fields, path, lines)


def cells(asked: SweepFile) -> tuple[tuple[Request, Settings, dict[str, Any]], ...]:
    """Every combination as a request, settings, and the values that make it. Raises BadRequest."""
    for name, values in asked.sweep.items():
        if name not in Settings.model_fields and name not in Request.model_fields:
            allowed = ", ".join(sorted({*Settings.model_fields, *Request.model_fields} - {"model"}))
            raise BadRequest("sweep-unknown-field", field=name, allowed=allowed)
        if name == "model" or not values:
            raise BadRequest("sweep-no-values", field=name)
    count = math.prod(len(values) for values in asked.sweep.values())
    if count > MAX_CELLS:
        raise BadRequest("sweep-too-many", found=count, allowed=MAX_CELLS)
    found = []
    for combination in itertools.product(*asked.sweep.values()):
        chosen = dict(zip(asked.sweep, combination, strict=True))
        found.append((*_with(asked, chosen), chosen))
    return tuple(found)


def _with(asked: SweepFile, values: Mapping[str, Any]) -> tuple[Request, Settings]:
    own = {name: value for name, value in values.items() if name in Settings.model_fields}
    rest = {name: value for name, value in values.items() if name not in own}
    request = asked.request.model_dump(exclude_unset=True) | rest
    settings = asked.settings.model_dump(exclude_unset=True) | own
    return validate_request(request), validate_settings(settings)
