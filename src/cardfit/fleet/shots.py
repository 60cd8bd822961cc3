"""The YAML file of a production: shots, each a request with how many outputs are due when.

In: a path. Out: a `ShotsFile`. Read as a plan file is: safe loader, limits, every fault named by file and line.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadFile, BadRequest, Note
from cardfit.fleet.times import Until
from cardfit.request import Request, Settings
from cardfit.request.read import Lines, kind_of, read_fields, validate_fields, validate_settings

MAX_SHOTS = 1000
NAME = r"^[A-Za-z0-9_][A-Za-z0-9_. /-]*$"  # opens as text in every spreadsheet and shell
Name = Annotated[str, Field(pattern=NAME, max_length=80)]
Priority = Annotated[int, Field(ge=-100, le=100, description="a higher one is placed first")]


class Shot(Request):
    """A request with what is due: ``count`` outputs, made in runs of ``batch``."""

    id: Name
    count: Annotated[int, Field(ge=1, le=100_000, description="outputs to make")] = 1
    sequence: Annotated[Name | None, Field(description="the sequence it belongs to")] = None
    deadline: Annotated[Until | None, Field(description="date (its end) or time")] = None
    priority: Priority = 0
    settings: Annotated[Settings, Field(description="on top of the file's settings")] = Settings()

    @property
    def request(self) -> Request:
        """The request alone."""
        return Request(**self.model_dump(include=set(Request.model_fields), exclude_unset=True))

    @property
    def runs(self) -> int:
        """Runs of the pipeline that make the outputs."""
        return math.ceil(self.count / self.batch)


class Sequence(BaseModel):
    """What holds for every shot of a sequence.

    ``keep_same_card``: all on cards of one kind, since the same seed gives another picture on another architecture.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keep_same_card: bool = False
    deadline: Until | None = None


class ShotsFile(BaseModel):
    """What a YAML file of shots holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shots: Annotated[tuple[Shot, ...], Field(min_length=1, max_length=MAX_SHOTS)]
    sequences: Annotated[dict[str, Sequence], Field(description="name -> what holds for it")] = {}
    settings: Settings = Settings()

    def settings_of(self, shot: Shot) -> Settings:
        """The settings of one shot: the file's, with its own on top."""
        shared = self.settings.model_dump(exclude_unset=True)
        return validate_settings(shared | shot.settings.model_dump(exclude_unset=True))

    def deadline_of(self, shot: Shot) -> Until | None:
        """When a shot is due: its own deadline, else that of its sequence."""
        if shot.deadline is not None or shot.sequence not in self.sequences:
            return shot.deadline
        return self.sequences[shot.sequence].deadline

    def kept(self, shot: Shot) -> str | None:
        """The sequence that must stay on one kind of card, if the shot belongs to such."""
        held = self.sequences.get(shot.sequence or "")
        return shot.sequence if held is not None and held.keep_same_card else None


def read_shots(path: str | Path) -> ShotsFile:
    """The shots in the YAML file at ``path``: a list, or a mapping with ``shots``.

    Raises BadFile and BadRequest as `read_plan_file` does, and for ids that stand twice and sequences without shots.
    """
    path = Path(path)
    fields, lines = read_fields(path, dates=True)
    if isinstance(fields, list):
        fields, lines = {"shots": fields}, {("shots", *at): line for at, line in lines.items()}
    if not isinstance(fields, dict):
        raise BadFile("shots-not-a-list", path=str(path), found=kind_of(fields))
    listed = fields.pop("shots", None)
    if not isinstance(listed, list) or not listed:
        raise BadFile("shots-no-list", path=str(path))
    if len(listed) > MAX_SHOTS:
        raise BadFile("shots-too-many", path=str(path), found=len(listed), allowed=MAX_SHOTS)
    if fields.get("settings", ...) is None:  # the key with nothing below it
        del fields["settings"]
    entries = [_entry(each, number, path, lines) for number, each in enumerate(listed)]
    held = _sequences(fields.pop("sequences", None), path, lines)
    fields |= {"shots": entries, "sequences": held}
    found = validate_fields(ShotsFile, fields, path, lines)
    _check_names(found, path)
    return found


def _entry(fields: Any, number: int, path: Path, lines: Lines) -> Shot:
    own = {at[2:]: line for at, line in lines.items() if at[:2] == ("shots", number)}
    where = Note("in-file-line", {"path": str(path), "line": own.get((), 1)}).text
    if not isinstance(fields, dict):
        raise BadRequest("shots-not-a-shot", where=where, found=kind_of(fields))
    found = validate_fields(Shot, fields, path, own)
    if found.runtime != "diffusers":
        raise BadRequest("shots-not-diffusers", where=where, id=found.id, found=found.runtime)
    return found


def _sequences(fields: Any, path: Path, lines: Lines) -> dict[str, Sequence]:
    if fields is None:
        return {}
    named = fields.items() if isinstance(fields, dict) else [("sequences", fields)]
    found = {}
    for name, each in named:
        own = {at[2:]: line for at, line in lines.items() if at[:2] == ("sequences", name)}
        if not isinstance(each, dict):
            where = Note("in-file", {"path": str(path)}).text
            raise BadRequest("shots-not-a-sequence", where=where, name=name, found=kind_of(each))
        found[name] = validate_fields(Sequence, each, path, own)
    return found


def _check_names(found: ShotsFile, path: Path) -> None:
    seen = set[str]()
    for shot in found.shots:
        if shot.id in seen:
            raise BadFile("shots-twice", path=str(path), id=shot.id)
        seen.add(shot.id)
    used = {shot.sequence for shot in found.shots if shot.sequence is not None}
    for name in found.sequences:
        if name not in used:
            known = ", ".join(sorted(used)) or "-"
            raise BadFile("shots-empty-sequence", path=str(path), name=name, known=known)
