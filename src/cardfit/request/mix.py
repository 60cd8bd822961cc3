"""The YAML file of a production mix: requests with counts, the settings they share, how they follow each other.

In: a path. Out: a `RequestsFile`. Read as a plan file is: safe loader, limits, every fault named by file and line.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadFile, BadRequest, Note
from cardfit.request.models import Request, Settings
from cardfit.request.read import Lines, kind_of, read_fields, validate_fields

MAX_REQUESTS = 100_000  # in all, counts multiplied out


class MixedRequest(Request):
    """A request that comes ``count`` times."""

    count: Annotated[int, Field(ge=1, le=MAX_REQUESTS, description="how often it comes")] = 1

    @property
    def request(self) -> Request:
        """The request without its count."""
        return Request(**self.model_dump(exclude={"count"}, exclude_unset=True))


class RequestsFile(BaseModel):
    """What a YAML file of requests holds: a process that serves them one after another."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests: Annotated[tuple[MixedRequest, ...], Field(min_length=1)]
    settings: Settings = Settings()
    shuffle: Annotated[
        int | None, Field(ge=0, lt=2**63, description="seed of a random order; as listed without")
    ] = None
    keep: Annotated[
        bool,
        Field(description="pipelines of other models stay loaded when another one's turn comes"),
    ] = False
    empty_cache: Annotated[
        bool, Field(description="torch.cuda.empty_cache() before every request")
    ] = False

    def order(self) -> list[int]:
        """The numbers of the requests, from 0, in the order in which they come."""
        found = [number for number, each in enumerate(self.requests) for _ in range(each.count)]
        if self.shuffle is not None:
            random.Random(self.shuffle).shuffle(found)
        return found


def read_requests_file(path: str | Path) -> RequestsFile:
    """The requests in the YAML file at ``path``. Raises BadFile and BadRequest as `read_plan_file` does."""
    path = Path(path)
    fields, lines = read_fields(path)
    if fields is None:
        raise BadFile("requests-empty", path=str(path))
    if not isinstance(fields, dict):
        raise BadFile("requests-not-a-mapping", path=str(path), found=kind_of(fields))
    listed = fields.pop("requests", None)
    if not isinstance(listed, list) or not listed:
        raise BadFile("requests-no-list", path=str(path))
    if fields.get("settings", ...) is None:  # the key with nothing below it
        del fields["settings"]
    entries = [_entry(each, number, path, lines) for number, each in enumerate(listed)]
    found = validate_fields(RequestsFile, {**fields, "requests": entries}, path, lines)
    total = sum(each.count for each in found.requests)
    if total > MAX_REQUESTS:
        raise BadRequest("requests-too-many", path=str(path), found=total, allowed=MAX_REQUESTS)
    return found


def _entry(fields: Any, number: int, path: Path, lines: Lines) -> MixedRequest:
    """One request of the list; a bare text is a model."""
    own = {at[2:]: line for at, line in lines.items() if at[:2] == ("requests", number)}
    if isinstance(fields, str):
        fields = {"model": fields}
    if not isinstance(fields, dict):
        where = Note("in-file-line", {"path": str(path), "line": own.get((), 1)}).text
        raise BadRequest("requests-not-a-request", where=where, found=kind_of(fields))
    return validate_fields(MixedRequest, fields, path, own)
