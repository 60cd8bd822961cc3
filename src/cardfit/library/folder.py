"""A local diffusers folder: its index, the configs of its parts, and which of its files are the weights.

In: a folder. Out: JSON values and names; nothing of it is loaded or run. Raises BadFile for what is not there, not JSON
or far too large, BadRequest for a part whose class lies in the folder or in another package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cardfit.errors import BadFile, BadRequest
from cardfit.library.models import Scheduler
from cardfit.units import MIB

MAX_BYTES = 4 * MIB  # of a config
INDEX = "model_index.json"
LIBRARIES = ("diffusers", "transformers")
# what a config says about its file and not about its module
_ABOUT = frozenset(
    {
        "_class_name", "_diffusers_version", "_name_or_path", "architectures", "auto_map", "dtype", "torch_dtype",
        "transformers_version", "quantization_config",
    }
)  # fmt: skip
_DEPTH = 32  # objects and lists inside each other in a config
_SHARD = re.compile(r"-\d{5}-of-\d{5}")
# a second set of weights beside the plain one, which from_pretrained reads only when asked
_VARIANT = re.compile(r"\.(fp16|bf16|fp32|fp8|non_ema|ema)(?=[.-])")


def index_of(folder: Path) -> dict[str, Any]:
    """The content of ``model_index.json``. Raises BadFile."""
    return read_json(folder / INDEX, folder)


def parts_of(index: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Library and class of every part that the index names; parts that are switched off are left out."""
    return {
        name: (str(value[0]), str(value[1]))
        for name, value in index.items()
        if isinstance(value, list) and len(value) == 2 and value[0] and value[1]
    }


def check_library(folder: Path, name: str, library: str) -> None:
    """Raise BadRequest for a part that comes from code in the folder or from another package."""
    if library not in LIBRARIES:
        raise BadRequest("folder-foreign-code", folder=str(folder), component=name, library=library)


def config_of(folder: Path, name: str) -> dict[str, Any]:
    """The config of part ``name``, without what it says about its file. Raises BadFile."""
    return about_module(read_json(folder / name / "config.json", folder))


def about_module(config: dict[str, Any]) -> dict[str, Any]:
    """What ``config`` says about its module."""
    return {name: value for name, value in config.items() if name not in _ABOUT}


def differing(library: dict[str, Any], folder: dict[str, Any]) -> tuple[str, ...]:
    """The keys that the library's config states and the folder's states otherwise; lists and tuples are alike."""
    plain = json.loads(json.dumps(library))
    return tuple(name for name, value in plain.items() if name in folder and folder[name] != value)


def scheduler_of(folder: Path, index: dict[str, Any], otherwise: Scheduler) -> Scheduler:
    """The folder's own scheduler; ``otherwise`` where it names none of diffusers."""
    listed = parts_of(index).get("scheduler")
    path = folder / "scheduler" / "scheduler_config.json"
    if listed is None or listed[0] != "diffusers" or not path.is_file():
        return otherwise
    if not listed[1].isidentifier():
        raise BadFile("folder-bad-config", folder=str(folder), file=INDEX)
    config = about_module(read_json(path, folder))
    return otherwise.model_copy(update={"class_path": f"diffusers.{listed[1]}", "config": config})


def plain_weights(names: Iterable[str]) -> tuple[str, ...]:
    """Of the file names of one part those that ``from_pretrained`` reads: no second precision, no second split.

    >>> plain_weights(["model.safetensors", "model.fp16.safetensors", "config.json"])
    ('model.safetensors',)
    >>> plain_weights(["model.fp16-00001-of-00002.safetensors", "model.fp16-00002-of-00002.safetensors"])
    ('model.fp16-00001-of-00002.safetensors', 'model.fp16-00002-of-00002.safetensors')
    """
    found = sorted(name for name in names if name.endswith(".safetensors"))
    found = [name for name in found if not _VARIANT.search(name)] or found
    whole = [name for name in found if not _SHARD.search(name)]
    return tuple(whole[:1] or found)


def name_of(folder: Path) -> str:
    """What to call the folder: its last part, for a snapshot of the hub its repo and revision.

    >>> name_of(Path("/x/models--org--name/snapshots/0123456789abcdef"))
    'org/name@0123456789ab'
    """
    whole = folder.resolve()
    if whole.parent.name == "snapshots" and whole.parents[1].name.startswith("models--"):
        repo = whole.parents[1].name.removeprefix("models--").replace("--", "/", 1)
        return f"{repo}@{whole.name[:12]}"
    return whole.name


def read_json(path: Path, folder: Path) -> dict[str, Any]:
    """The JSON object in ``path``, a file of ``folder``. Raises BadFile."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        code = "folder-none" if not folder.is_dir() else "folder-not-diffusers"
        file = path.relative_to(folder)
        raise BadFile(
            code, folder=str(folder), file=file, why=error.strerror or str(error)
        ) from error
    try:
        found = json.loads(content) if len(content) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or _deeper(found, _DEPTH):
        raise BadFile("folder-bad-config", folder=str(folder), file=str(path.relative_to(folder)))
    return found


def _deeper(value: Any, levels: int) -> bool:
    """Whether ``value`` holds more than ``levels`` of objects and lists inside each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_deeper(each, levels - 1) for each in inner)
