"""A local diffusers folder: whether it is what the model says, and the configs that it brings.

In: a folder, a library model. Out: the model with the folder's own configs, and which components differ from the
library's. Checked before anything is loaded: the pipeline's class, every component's class, safetensors and no pickle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cardfit.errors import BadFile, BadRequest
from cardfit.library import folder as read
from cardfit.library.headers import PICKLES
from cardfit.library.models import ComponentSpec, Model
from cardfit.request import Task


def with_folder(
    model: Model, folder: Path, task: Task, *, weights: bool
) -> tuple[Model, tuple[str, ...]]:
    """``model`` with the configs in ``folder``, and the components whose config is not the library's.

    With ``weights`` every component must have its safetensors. Raises BadFile, BadRequest.
    """
    index = read.index_of(folder)
    expected = model.pipeline_for(task)
    found = index.get("_class_name")
    if found not in (expected, model.pipeline):
        raise BadRequest(
            "folder-other-pipeline",
            folder=str(folder),
            found=found,
            model=model.id,
            expected=expected,
        )
    parts, differs = dict(model.components), []
    for name, part in model.components.items():
        if not part.counted:
            continue
        listed = index.get(name)
        if not (isinstance(listed, list) and len(listed) == 2 and listed[0]):
            raise BadRequest("folder-lacks", folder=str(folder), component=name, model=model.id)
        _check_class(folder, name, listed, part)
        if weights:
            _check_weights(folder / name)
        config = read.config_of(folder, name)
        if read.differing(part.config, config):
            differs.append(name)
            parts[name] = part.model_copy(update={"config": config})
    scheduler = read.scheduler_of(folder, index, model.scheduler)
    changed = model.model_copy(update={"components": parts, "scheduler": scheduler})
    return changed, tuple(differs)


def _check_class(folder: Path, name: str, listed: list[Any], part: ComponentSpec) -> None:
    library, kind = listed
    read.check_library(folder, name, library)
    expected = part.class_path.rpartition(".")[2]
    if kind != expected:
        raise BadRequest(
            "folder-other-class", folder=str(folder), component=name, found=kind, expected=expected
        )


def _check_weights(folder: Path) -> None:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        raise BadFile(
            "folder-not-read", folder=str(folder), why=error.strerror or str(error)
        ) from error
    if any(name.endswith(".safetensors") for name in names):
        return
    pickled = [name for name in names if name.endswith(PICKLES)]
    if pickled:
        raise BadFile("folder-pickle", folder=str(folder), found=pickled[0])
    raise BadFile("folder-no-weights", folder=str(folder))
