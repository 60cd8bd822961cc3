"""The YAML file of a budget: requests with limits in memory, seconds and money, for a check that can fail.

In: a path. Out: a `Budget`. Read as a plan file is: safe loader, limits, every fault named by file and line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadFile, BadRequest, Note
from cardfit.request.models import Request, Settings
from cardfit.request.read import Lines, kind_of, read_fields, validate_fields, validate_settings
from cardfit.units import parse_bytes

MAX_CHECKS = 1000


class MaxCost(BaseModel):
    """The most that one output may cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    amount: Annotated[float, Field(gt=0, le=1e9)]
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$", description="ISO 4217, as in USD")]


class BudgetedRequest(Request):
    """A request with what it may take. It needs a card or ``max_peak``; seconds and cost need a card."""

    name: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    card: Annotated[str | None, Field(min_length=1, description="the card it must run on")] = None
    max_peak: Annotated[
        str | None, Field(max_length=40, description="device memory, context included, as in 24GB")
    ] = None
    max_seconds: Annotated[float | None, Field(gt=0, description="likely seconds of a run")] = None
    max_cost: Annotated[MaxCost | None, Field(description="of one output")] = None
    allow_tight: Annotated[
        bool, Field(description="likely inside, though not surely, is good enough")
    ] = False
    settings: Annotated[Settings, Field(description="on top of the file's settings")] = Settings()

    @property
    def request(self) -> Request:
        """The request without its limits."""
        return Request(**self.model_dump(include=set(Request.model_fields), exclude_unset=True))

    @property
    def max_peak_bytes(self) -> int | None:
        """The limit on device memory in bytes. Raises ValueError for a text that is no size."""
        return None if self.max_peak is None else parse_bytes(self.max_peak, memory=True)


class Budget(BaseModel):
    """What a budget file holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests: Annotated[tuple[BudgetedRequest, ...], Field(min_length=1, max_length=MAX_CHECKS)]
    settings: Settings = Settings()

    def settings_of(self, each: BudgetedRequest) -> Settings:
        """The settings of one request: the file's, with its own on top."""
        shared = self.settings.model_dump(exclude_unset=True)
        return validate_settings(shared | each.settings.model_dump(exclude_unset=True))


def read_budget(path: str | Path) -> Budget:
    """The budget in the YAML file at ``path``. Raises BadFile and BadRequest as `read_plan_file` does."""
    path = Path(path)
    fields, lines = read_fields(path)
    if not isinstance(fields, dict):
        raise BadFile("budget-not-a-mapping", path=str(path), found=kind_of(fields))
    listed = fields.pop("requests", None)
    if not isinstance(listed, list) or not listed:
        raise BadFile("budget-no-list", path=str(path))
    if len(listed) > MAX_CHECKS:
        raise BadFile("budget-too-many", path=str(path), found=len(listed), allowed=MAX_CHECKS)
    if fields.get("settings", ...) is None:  # the key with nothing below it
        del fields["settings"]
    entries = [_entry(each, number, path, lines) for number, each in enumerate(listed)]
    return validate_fields(Budget, {**fields, "requests": entries}, path, lines)


def _entry(fields: Any, number: int, path: Path, lines: Lines) -> BudgetedRequest:
    own = {at[2:]: line for at, line in lines.items() if at[:2] == ("requests", number)}
    where = Note("in-file-line", {"path": str(path), "line": own.get((), 1)}).text
    if not isinstance(fields, dict):
        raise BadRequest("budget-not-a-request", where=where, found=kind_of(fields))
    found = validate_fields(BudgetedRequest, fields, path, own)
    try:
        size = found.max_peak_bytes
    except ValueError:
        size = 0
    if size is not None and size <= 0:
        raise BadRequest("budget-bad-size", where=where, asked=found.max_peak)
    if found.card is None and size is None:
        raise BadRequest("budget-no-limit", where=where)
    if found.card is None and (found.max_seconds is not None or found.max_cost is not None):
        raise BadRequest("budget-needs-card", where=where)
    return found
