"""Weights that lie on the Hugging Face hub: fetched into its cache once, then a local folder like any other.

In: a repo id, the library model that it should be. Out: the folder of the snapshot. The configs come first and are
checked before gigabytes follow; of the rest only safetensors and the tokenizers' files: no pickle, no code. The
variables of huggingface_hub hold (HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE).
"""

from __future__ import annotations

from pathlib import Path

from cardfit.library.folder import index_of, parts_of
from cardfit.library.hub import CONFIGS, REPO, snapshot
from cardfit.library.models import Model
from cardfit.measure.folder import with_folder
from cardfit.request import Task

_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")  # in a component's folder


def located(weights: str | Path, model: Model, task: Task) -> Path:
    """The folder that ``weights`` means: itself, or a snapshot of the repo of that id, fetched where it is missing.

    Raises BadFile where the hub cannot be reached or the disk is full, BadRequest for another model's repo.
    """
    repo = Path(weights).as_posix()
    if Path(weights).exists() or not REPO.match(repo):
        return Path(weights)
    configs = snapshot(repo, CONFIGS)
    with_folder(model, configs, task, weights=False)
    parts = [name for name, part in model.components.items() if part.counted]
    others = [
        name for name in parts_of(index_of(configs)) if name.startswith(("tokenizer", "processor"))
    ]
    return snapshot(repo, [f"{name}/{kind}" for name in (*parts, *others) for kind in _FILES])
