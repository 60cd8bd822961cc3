"""The workflows of the package comfyui-workflow-templates-json, and which of them the numbers speak of."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

_spec = importlib.util.find_spec("comfyui_workflow_templates_json")
assert _spec is not None and _spec.submodule_search_locations
FOLDER = Path(next(iter(_spec.submodule_search_locations))) / "templates"

LOADERS = {"UNETLoader", "CheckpointLoaderSimple", "ImageOnlyCheckpointLoader"}


def path(name: str) -> Path:
    return FOLDER / f"{name}.json"


@cache
def raw(name: str) -> Any:
    return json.loads(path(name).read_text(encoding="utf-8"))


def is_workflow(found: Any) -> bool:
    return isinstance(found, dict) and "nodes" in found


@cache
def names() -> tuple[str, ...]:
    """All workflows of the package."""
    found = sorted(each.stem for each in FOLDER.glob("*.json"))
    return tuple(name for name in found if is_workflow(raw(name)))


def active_types(found: Any) -> set[str]:
    nodes = list(found["nodes"])
    for each in (found.get("definitions") or {}).get("subgraphs", ()):
        nodes += each["nodes"]
    return {node["type"] for node in nodes if node.get("mode", 0) not in (2, 4)}


@cache
def local() -> tuple[str, ...]:
    """Those with an active loader of a diffusion model and a sampler, of any kind."""
    return tuple(
        name
        for name in names()
        if (types := active_types(raw(name))) & LOADERS and any("Sampler" in t for t in types)
    )
