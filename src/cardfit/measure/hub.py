"""Weights that lie on the Hugging Face hub: fetched into its cache once, then a local folder like any other.

In: a repo id, the library model that it should be. Out: the folder of the snapshot. The configs come first and are
checked before gigabytes follow; of the rest only safetensors and the tokenizers' files: no pickle, no code. The
variables of huggingface_hub hold (HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE).
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cardfit.errors import BadFile, BadRequest, MissingExtra
from cardfit.library.models import Model
from cardfit.measure.folder import with_folder
from cardfit.request import Task

_REPO = re.compile(r"^[A-Za-z0-9][\w.-]*/[\w.-]+$")
_CONFIGS = ("model_index.json", "*/config.json", "*/*_config.json")
_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")  # in a component's folder
# a second set of weights beside the plain one, which from_pretrained reads only when asked
_VARIANTS = ("*.fp16.*", "*.bf16.*", "*.non_ema.*", "*.fp16-*", "*.bf16-*")


def located(weights: str | Path, model: Model, task: Task) -> Path:
    """The folder that ``weights`` means: itself, or a snapshot of the repo of that id, fetched where it is missing.

    Raises BadFile where the hub cannot be reached or the disk is full, BadRequest for another model's repo.
    """
    repo = Path(weights).as_posix()
    if Path(weights).exists() or not _REPO.match(repo):
        return Path(weights)
    configs = _snapshot(repo, _CONFIGS)
    with_folder(model, configs, task, weights=False)
    parts = [name for name, part in model.components.items() if part.counted]
    others = [name for name in _listed(configs) if name.startswith(("tokenizer", "processor"))]
    return _snapshot(repo, [f"{name}/{kind}" for name in (*parts, *others) for kind in _FILES])


def name_of(folder: Path) -> str:
    """What a record calls the folder: its last part, for a snapshot of the hub its repo and revision.

    >>> name_of(Path("/x/models--org--name/snapshots/0123456789abcdef"))
    'org/name@0123456789ab'
    """
    whole = folder.resolve()
    if whole.parent.name == "snapshots" and whole.parents[1].name.startswith("models--"):
        repo = whole.parents[1].name.removeprefix("models--").replace("--", "/", 1)
        return f"{repo}@{whole.name[:12]}"
    return whole.name


def _listed(folder: Path) -> list[str]:
    index: dict[str, Any] = json.loads((folder / "model_index.json").read_bytes())
    return [name for name, value in index.items() if isinstance(value, list)]


def _snapshot(repo: str, patterns: Sequence[str]) -> Path:
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        errors: Any = importlib.import_module("huggingface_hub.errors")
        importlib.import_module("huggingface_hub.utils").disable_progress_bars()
    except ModuleNotFoundError as missing:
        raise MissingExtra(
            "run-needs-torch", package=missing.name or "huggingface_hub"
        ) from missing
    try:
        found = hub.snapshot_download(
            repo,
            allow_patterns=list(patterns),
            ignore_patterns=list(_VARIANTS),
            endpoint=os.environ.get("HF_ENDPOINT") or None,
        )
    except errors.RepositoryNotFoundError as error:
        raise BadRequest("hub-no-repo", repo=repo) from error
    except (OSError, errors.HFValidationError, RuntimeError) as error:
        why = str(error).strip().splitlines() or [type(error).__name__]
        raise BadFile("hub-not-fetched", repo=repo, why=why[0]) from error
    return Path(found)
