"""The model files that workflows want, as one list.

In: workflow files. Out: `Wanted`: every file once, and what was refused because its name would leave the models folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardfit.comfy.http import parsed
from cardfit.comfy.reader import read_workflow
from cardfit.comfy.shown import shown
from cardfit.comfy.wanted import WantedFile, safe_parts
from cardfit.errors import BadFile
from cardfit.messages.said import Said
from cardfit.request.read import read_text
from cardfit.units import MIB

MAX_BYTES = 32 * MIB
_OFF = (2, 4)  # muted, bypassed


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files of some workflows, each once, and a sentence for each that was refused."""

    files: tuple[WantedFile, ...] = ()
    refused: tuple[Said, ...] = ()


def wanted_in(workflows: Sequence[Path]) -> Wanted:
    """What ``workflows`` want together, in their order. Raises BadFile."""
    found: dict[tuple[str, str], WantedFile] = {}
    refused: dict[str, Said] = {}
    for path in workflows:
        for entry in _listed(path) if _is_graph(path) else read_workflow(path).files:
            if isinstance(entry, Said):
                refused[entry.text] = entry
            else:
                found.setdefault((entry.folder, entry.name), entry)
    return Wanted(tuple(found.values()), tuple(refused.values()))


def _is_graph(path: Path) -> bool:
    """Whether it is a graph as the editor saves it, whose loaders list their files with addresses.

    What the server was sent, and pictures and videos that carry a workflow, are read as `cardfit comfy plan` does.
    """
    if path.suffix.lower() != ".json":
        return False
    raw = read_json(path)
    return not (isinstance(raw, dict) and "nodes" not in raw and any(map(_is_node, raw.values())))


def _is_node(value: object) -> bool:
    return isinstance(value, dict) and "class_type" in value


def read_json(path: Path) -> Any:
    """The JSON of a workflow file. Raises BadFile for one that cannot be read, is too large or is not JSON."""
    text = read_text(path, MAX_BYTES)
    try:
        return parsed(text)
    except (ValueError, RecursionError) as error:
        why = str(error).partition(":")[0]
        raise BadFile("comfy-file-not-json", path=shown(path), why=why) from error


def _listed(path: Path) -> Iterator[WantedFile | Said]:
    """What the active loader nodes of a UI graph list under ``properties.models``."""
    graph = read_json(path)
    if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
        raise BadFile("comfy-file-not-graph", path=shown(path))
    definitions = graph.get("definitions")
    inner = definitions.get("subgraphs") if isinstance(definitions, dict) else None
    for part in (graph, *(inner if isinstance(inner, list) else ())):
        nodes = part.get("nodes") if isinstance(part, dict) else None
        for node in nodes if isinstance(nodes, list) else ():
            if isinstance(node, dict) and node.get("mode") not in _OFF:
                yield from _models(node)


def _models(node: dict[str, Any]) -> Iterator[WantedFile | Said]:
    properties = node.get("properties")
    models = properties.get("models") if isinstance(properties, dict) else None
    for entry in models if isinstance(models, list) else ():
        if isinstance(entry, dict):
            yield _file(entry, str(node.get("title") or node.get("type") or node.get("id")))


def _file(entry: dict[str, Any], node: str) -> WantedFile | Said:
    name, folder = entry.get("name"), entry.get("directory")
    if not isinstance(name, str) or not isinstance(folder, str):
        return Said.of("comfy-model-unnamed", node=shown(node))
    if safe_parts(name) is None or safe_parts(folder) is None:
        return Said.of("comfy-model-outside", node=shown(node), name=shown(f"{folder}/{name}"))
    url, size, digest = entry.get("url"), entry.get("size"), entry.get("hash")
    hashed = isinstance(digest, str) and str(entry.get("hash_type", "sha256")).lower() == "sha256"
    return WantedFile(
        name=name,
        folder=folder,
        url=url if isinstance(url, str) else None,
        size_bytes=size if isinstance(size, int) and size > 0 else None,
        sha256=str(digest).lower() if hashed else None,
        node=node,
        used_by=folder,
    )
