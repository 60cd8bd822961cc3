"""Models that are not in the library: entries of the reader's own, folders, files and repos, by the word for them.

In: what a person typed where a model is asked for. Out: a `Sourced` model, or None where the word is neither. Nothing
that was found is ever run. `indoors` shuts the way out: a server answers for strangers, who have no business with its
files or with what it fetches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from cardfit.errors import BadFile
from cardfit.library import own
from cardfit.library.assembled import Place, assembled
from cardfit.library.filenames import MODEL_ENDINGS
from cardfit.library.folder import INDEX, index_of, name_of, parts_of, plain_weights
from cardfit.library.headers import read_header
from cardfit.library.hub import CONFIGS, REPO, Repo, headers, repo_of, snapshot
from cardfit.library.single_file import from_file
from cardfit.library.sourced import Sourced, Stored

_OUTDOORS: ContextVar[bool] = ContextVar("outdoors", default=True)
_PATH_LIKE = ("./", "../", "/", "~", ".\\", "..\\")
_LONGEST = 1000
Stamp = tuple[tuple[str, int, int], ...]


@contextmanager
def indoors() -> Iterator[None]:
    """Within, only the library and the reader's own entries are known: no path and no repo is looked at."""
    token = _OUTDOORS.set(False)
    try:
        yield
    finally:
        _OUTDOORS.reset(token)


def find(word: str, suggestion: str = "") -> Sourced | None:
    """The model that ``word`` leads to: an own entry's name, a folder, a file, a repo of the hub; None for none.

    ``suggestion`` is said along where a repo is not there. Raises BadFile, BadRequest and MissingExtra for what is
    there and cannot be taken.
    """
    if (mine := own.entry(word)) is not None:
        return mine
    if not _OUTDOORS.get() or len(word) > _LONGEST:
        return None
    path = Path(word).expanduser()
    try:
        if path.is_dir():
            return _of_folder(word, path, _stamp(path))
        if path.is_file():
            return _of_file(word, path, _stamp(path))
    except (OSError, ValueError):  # a sign that no path may have
        return None
    if word.lower().endswith(MODEL_ENDINGS) or word.startswith(_PATH_LIKE):
        raise BadFile("source-none", source=word)
    return _of_repo(word, suggestion) if REPO.match(word) else None


def _stamp(path: Path) -> Stamp:
    """What changes with the content: a second look in one process costs nothing."""
    names = (
        [path]
        if path.is_file()
        else [path / INDEX, *path.glob("*/*.json"), *path.glob("*/*.safetensors")]
    )
    found = []
    for name in sorted(names):
        if name.is_file():
            about = name.stat()
            found.append((str(name), about.st_mtime_ns, about.st_size))
    return tuple(found)


@lru_cache(maxsize=8)
def _of_file(word: str, path: Path, stamp: Stamp) -> Sourced:
    return from_file(word, path)


@lru_cache(maxsize=8)
def _of_folder(word: str, path: Path, stamp: Stamp) -> Sourced:
    weights = {}
    for name in parts_of(index_of(path)):
        if files := _local(path / name):
            weights[name] = Stored.of(map(read_header, files))
    return assembled(Place(word, "folder", path, name_of(path) or word, weights))


def _local(folder: Path) -> list[Path]:
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError:
        return []
    return [folder / name for name in plain_weights(names)]


@lru_cache(maxsize=8)
def _of_repo(word: str, suggestion: str) -> Sourced:
    folder = snapshot(word, CONFIGS, suggestion)
    index, repo, weights = parts_of(index_of(folder)), None, {}
    with suppress(BadFile):  # offline, with the configs in the hub's cache
        repo = repo_of(word)
    for name in index:
        if files := _local(folder / name):
            weights[name] = Stored.of(map(read_header, files))
        elif repo is not None and (remote := _remote(repo, name)):
            weights[name] = Stored.of(headers(repo, remote))
    more = {} if repo is None else {"license": repo.license, "released": repo.created}
    return assembled(Place(word, "repo", folder, word, weights, **more))


def _remote(repo: Repo, component: str) -> list[str]:
    """The weight files of a component in a repo."""
    prefix = f"{component}/"
    names = [name.removeprefix(prefix) for name in repo.files if name.startswith(prefix)]
    return [prefix + name for name in plain_weights(each for each in names if "/" not in each)]
