"""A local diffusers folder: whether it is what the model says, and the configs that it brings.

In: a folder, a library model. Out: the model with the folder's own configs, and which components differ from the
library's. Checked before anything is loaded: the pipeline's class, every component's class, safetensors and no pickle.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cardfit.errors import BadFile, BadRequest
from cardfit.library.models import ComponentSpec, Model
from cardfit.request import Task
from cardfit.units import MIB

MAX_BYTES = 4 * MIB  # of a config
_PICKLES = (".bin", ".ckpt", ".pt", ".pth", ".pkl")
# what a config says about its file and not about its module
_ABOUT = frozenset(
    {
        "_class_name", "_diffusers_version", "_name_or_path", "architectures", "auto_map", "dtype", "torch_dtype",
        "transformers_version",
    }
)  # fmt: skip
_LIBRARIES = ("diffusers", "transformers")


def with_folder(
    model: Model, folder: Path, task: Task, *, weights: bool
) -> tuple[Model, tuple[str, ...]]:
    """``model`` with the configs in ``folder``, and the components whose config is not the library's.

    With ``weights`` every component must have its safetensors. Raises BadFile, BadRequest.
    """
    index = _json(folder / "model_index.json", folder)
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
        config = _config(folder / name, folder)
        if _differs(part.config, config):
            differs.append(name)
            parts[name] = part.model_copy(update={"config": config})
    changed = model.model_copy(
        update={"components": parts, "scheduler": _scheduler(model, folder, index)}
    )
    return changed, tuple(differs)


def _check_class(folder: Path, name: str, listed: list[Any], part: ComponentSpec) -> None:
    library, kind = listed
    if library not in _LIBRARIES:
        raise BadRequest("folder-foreign-code", folder=str(folder), component=name, library=library)
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
    pickled = [name for name in names if name.endswith(_PICKLES)]
    if pickled:
        raise BadFile("folder-pickle", folder=str(folder), found=pickled[0])
    raise BadFile("folder-no-weights", folder=str(folder))


def _config(folder: Path, whole: Path) -> dict[str, Any]:
    found = _json(folder / "config.json", whole)
    return {name: value for name, value in found.items() if name not in _ABOUT}


def _differs(library: dict[str, Any], folder: dict[str, Any]) -> bool:
    """Whether the folder says otherwise on anything that the library's config states; lists and tuples are alike."""
    plain = json.loads(json.dumps(library))
    return any(name in folder and folder[name] != value for name, value in plain.items())


def _scheduler(model: Model, folder: Path, index: dict[str, Any]) -> Any:
    listed = index.get("scheduler")
    path = folder / "scheduler" / "scheduler_config.json"
    if not (
        isinstance(listed, list)
        and len(listed) == 2
        and listed[0] == "diffusers"
        and path.is_file()
    ):
        return model.scheduler
    config = {k: v for k, v in _json(path, folder).items() if k not in _ABOUT}
    return model.scheduler.model_copy(
        update={"class_path": f"diffusers.{listed[1]}", "config": config}
    )


def _json(path: Path, folder: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        code = "folder-none" if not folder.is_dir() else "folder-not-diffusers"
        raise BadFile(
            code, folder=str(folder), file=path.name, why=error.strerror or str(error)
        ) from error
    try:
        found = json.loads(content) if len(content) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadFile("folder-bad-config", folder=str(folder), file=str(path.relative_to(folder)))
    return found
