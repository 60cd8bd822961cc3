"""`cardfit comfy inventory`: what lies in a models folder, what is there twice or not needed, what a rebuild takes.

In: a folder, workflows. Out: an `Inventory`. Equal files are found by size, then by the hash of their first bytes, then
by the hash of the whole. Links are not followed: what they lead to inside the folder is counted where it lies, and what
lies outside is named. A file counts as wanted when a workflow asks for its name, in whatever folder: better to keep one
too many.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cardfit.comfy.downloads import PICKLES, below_models
from cardfit.comfy.lists import wanted_in
from cardfit.comfy.shown import shown
from cardfit.errors import BadFile
from cardfit.messages.said import Said
from cardfit.plan.answer import Money
from cardfit.request.read import read_text
from cardfit.units import MIB

SCHEMA = "cardfit.inventory/1"
MAX_FILES = 200_000
MAX_JSON_BYTES = 256 * MIB
_PIECE = 4 * MIB
_HEAD = MIB
_GB = 1e9
_LONGEST = 4096  # of a path
Progress = Callable[[str, float | None], None]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Kept(_Frozen):
    """A file, by its path below the folder. ``wanted`` is None where no workflow was given."""

    path: str
    kind: str = Field(description="its folder below models/")
    size_bytes: int
    sha256: str | None = Field(
        default=None, description="only of files that another equals in size"
    )
    pickle: bool = Field(default=False, description="can run code when it is loaded")
    wanted: bool | None = None


class Kind(_Frozen):
    """The files of one kind together."""

    kind: str
    files: int
    size_bytes: int


class Same(_Frozen):
    """Files that hold the same; ``spare_bytes`` is what all but one of them take."""

    sha256: str
    size_bytes: int
    spare_bytes: int
    paths: tuple[str, ...]


class Missing(_Frozen):
    """A file that a workflow wants and that is not there."""

    path: str
    size_bytes: int | None
    url: str | None
    node: str


class Rebuild(_Frozen):
    """What a new machine would have to download: every file once, only the wanted ones where workflows were given."""

    files: int
    size_bytes: int
    seconds: float | None = Field(description="None without a download rate")
    cost: Money | None = Field(
        description="of the machine while it downloads; None without its price"
    )
    keep_month: Money | None = Field(description="of keeping it all on the disk for a month")


class Inventory(_Frozen):
    """What is in the folder. ``total_bytes`` is what `cardfit rent --library` takes."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    folder: str
    total_bytes: int
    files: tuple[Kept, ...]
    kinds: tuple[Kind, ...]
    same: tuple[Same, ...]
    unused: tuple[str, ...] = Field(
        description="wanted by no given workflow; empty without workflows"
    )
    missing: tuple[Missing, ...]
    rebuild: Rebuild
    notes: tuple[Said, ...]

    @property
    def spare_bytes(self) -> int:
        """What the duplicates take."""
        return sum(each.spare_bytes for each in self.same)


def inventory(
    folder: Path,
    workflows: Sequence[Path] = (),
    *,
    down_bytes_per_s: float | None = None,
    hourly: Money | None = None,
    disk_per_gb_month: Money | None = None,
    progress: Progress | None = None,
) -> Inventory:
    """What lies in ``folder``, against ``workflows``. Raises BadFile for a folder or workflow that cannot be read."""
    notes: list[Said] = []
    found = _walk(folder, notes)
    wanted = wanted_in(workflows)
    notes += wanted.refused
    hashes = _equal(folder, found, notes, progress)
    names = {_name(each.name) for each in wanted.files}
    kept = [
        Kept(
            path=shown(path, _LONGEST),
            kind=shown(path.partition("/")[0]) if "/" in path else ".",
            size_bytes=size,
            sha256=hashes.get(path),
            pickle=path.lower().endswith(PICKLES),
            wanted=_name(path) in names if workflows else None,
        )
        for path, size in sorted(found.items())
    ]
    there = {_name(each.path) for each in kept}
    missing = [
        Missing(
            path=shown(below_models(each.folder, each.name) or each.name),
            size_bytes=each.size_bytes,
            url=each.url,
            node=shown(each.node),
        )
        for each in wanted.files
        if _name(each.name) not in there
    ]
    return Inventory(
        folder=shown(folder),
        total_bytes=sum(each.size_bytes for each in kept),
        files=tuple(kept),
        kinds=_kinds(kept),
        same=_same(kept),
        unused=tuple(each.path for each in kept if each.wanted is False),
        missing=tuple(missing),
        rebuild=_rebuild(kept, missing, down_bytes_per_s, hourly, disk_per_gb_month),
        notes=tuple(notes),
    )


def library_bytes(path: Path) -> int:
    """The size of the library in a file that ``cardfit comfy inventory --json`` wrote. Raises BadFile."""
    content = read_text(path, MAX_JSON_BYTES)
    try:
        found = Inventory.model_validate_json(content)
    except (ValidationError, ValueError, RecursionError) as error:
        raise BadFile("inventory-not-one", path=shown(path)) from error
    if found.schema_ != SCHEMA:
        raise BadFile("inventory-not-one", path=shown(path))
    return found.total_bytes


def _walk(folder: Path, notes: list[Said]) -> dict[str, int]:
    """The size of every file below ``folder`` by its path; a file with several names counts once."""
    if not folder.is_dir():
        raise BadFile("inventory-no-folder", path=shown(folder))
    home = folder.resolve()
    found: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()

    def unread(error: OSError) -> None:
        why = error.strerror or str(error)
        notes.append(Said.of("inventory-not-read", path=shown(error.filename), why=why))

    for base, folders, names in os.walk(folder, onerror=unread):
        folders.sort()
        for name in sorted((*names, *(each for each in folders if Path(base, each).is_symlink()))):
            path = Path(base, name)
            below = path.relative_to(folder).as_posix()
            if path.is_symlink():
                if not path.resolve().is_relative_to(home):
                    notes.append(Said.of("inventory-link-outside", path=shown(below)))
                continue
            try:
                facts = path.stat()
            except OSError as error:
                unread(error)
                continue
            if path.is_file() and facts.st_size and (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                found[below] = facts.st_size
        if len(found) > MAX_FILES:
            raise BadFile("inventory-too-many", path=shown(folder), most=MAX_FILES)
    return found


def _equal(
    folder: Path, found: dict[str, int], notes: list[Said], progress: Progress | None
) -> dict[str, str]:
    """SHA-256 of every file that may be a duplicate: another has its size and its first bytes."""
    by_size: dict[int, list[str]] = defaultdict(list)
    for path, size in found.items():
        by_size[size].append(path)
    alike: list[str] = []
    for paths in by_size.values():
        by_head: dict[str, list[str]] = defaultdict(list)
        for path in paths if len(paths) > 1 else ():
            if head := _digest(folder / path, notes, limit=_HEAD):
                by_head[head].append(path)
        alike += [path for group in by_head.values() if len(group) > 1 for path in group]
    whole, done = sum(found[path] for path in alike), 0
    hashes: dict[str, str] = {}
    for path in alike:

        def told(read: int, before: int = done, name: str = shown(path, 40)) -> None:
            if progress is not None:
                progress(name, (before + read) / whole)

        if digest := _digest(folder / path, notes, told=told):
            hashes[path] = digest
        done += found[path]
    return hashes


def _digest(
    path: Path,
    notes: list[Said],
    *,
    limit: int | None = None,
    told: Callable[[int], None] | None = None,
) -> str | None:
    """The hash of a file, or of its first ``limit`` bytes; None, and a note, where it cannot be read."""
    digest, read = hashlib.sha256(), 0
    try:
        with path.open("rb", buffering=0) as stream:
            while piece := stream.read(min(_PIECE, limit or _PIECE)):
                digest.update(piece)
                read += len(piece)
                if told is not None:
                    told(read)
                if limit is not None:
                    break
    except OSError as error:
        why = error.strerror or str(error)
        notes.append(Said.of("inventory-not-read", path=shown(path), why=why))
        return None
    return digest.hexdigest()


def _kinds(kept: Sequence[Kept]) -> tuple[Kind, ...]:
    sizes: dict[str, list[int]] = defaultdict(list)
    for each in kept:
        sizes[each.kind].append(each.size_bytes)
    found = [Kind(kind=kind, files=len(each), size_bytes=sum(each)) for kind, each in sizes.items()]
    return tuple(sorted(found, key=lambda each: (-each.size_bytes, each.kind)))


def _same(kept: Sequence[Kept]) -> tuple[Same, ...]:
    groups: dict[str, list[Kept]] = defaultdict(list)
    for each in kept:
        if each.sha256 is not None:
            groups[each.sha256].append(each)
    found = [
        Same(
            sha256=digest,
            size_bytes=each[0].size_bytes,
            spare_bytes=each[0].size_bytes * (len(each) - 1),
            paths=tuple(file.path for file in each),
        )
        for digest, each in groups.items()
        if len(each) > 1
    ]
    return tuple(sorted(found, key=lambda each: (-each.spare_bytes, each.paths)))


def _rebuild(
    kept: Sequence[Kept],
    missing: Sequence[Missing],
    down_bytes_per_s: float | None,
    hourly: Money | None,
    disk_per_gb_month: Money | None,
) -> Rebuild:
    once = {each.sha256 or each.path: each.size_bytes for each in kept if each.wanted is not False}
    size = sum(once.values()) + sum(each.size_bytes or 0 for each in missing)
    seconds = None if down_bytes_per_s is None else size / down_bytes_per_s
    cost = None
    if hourly is not None and seconds is not None:
        cost = Money(amount=hourly.amount * seconds / 3600, currency=hourly.currency)
    keep = None
    if disk_per_gb_month is not None:
        amount = disk_per_gb_month.amount * size / _GB
        keep = Money(amount=amount, currency=disk_per_gb_month.currency)
    files = len(once) + len(missing)
    return Rebuild(files=files, size_bytes=size, seconds=seconds, cost=cost, keep_month=keep)


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].casefold()
