"""The files that a chain loads: what they are in the library's entry, in which precision, and where they come from.

In: a chain with its loaders. Out: `Part` values, the library entry, the settings that come nearest, and the workflow's
`WantedFile` list. A name or folder that would leave ComfyUI's models folder is refused with BadFile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cardfit.comfy.chains import Chain
from cardfit.comfy.graph import Node, shown
from cardfit.comfy.nodes import Known, Load
from cardfit.comfy.result import Part, Pass
from cardfit.comfy.values import Unknown, Values
from cardfit.comfy.wanted import WantedFile, safe_parts
from cardfit.errors import BadFile
from cardfit.library.filenames import SCHEMES, encoder_class, plain_name, seen
from cardfit.library.headers import Header, read_header, shaped_like
from cardfit.library.models import Model
from cardfit.library.quantizable import allowed_schemes
from cardfit.request import Quantization, Settings, Task

_NO_FILE = frozenset({"", "none", "None", "pixel_space"})
_DENOISERS = ("transformer", "unet", "prior")
_URL = re.compile(r"https://[\w.-]+(?::\d+)?/[^\s\x00-\x1f]{1,2000}")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


# folders that ComfyUI searches too, by the name of the one it writes today
_ALSO = {"diffusion_models": ("unet",), "text_encoders": ("clip",)}


def parts_of(chain: Chain, known: Known, values: Values, models: Path | None) -> tuple[Part, ...]:
    """What the nodes of a chain load, in the order of the graph; with headers of files that lie below ``models``."""
    found = []
    for node in chain.loaders:
        kind = known.kind(node.type)
        for each in kind.loads if kind is not None else ():
            part = _part(node, each, values, models)
            if part is not None:
                found.append(part)
    return tuple(found)


def once(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Each file once, however many nodes load it."""
    return tuple({(part.folder, part.file): part for part in reversed(tuple(parts))}.values())[::-1]


def _part(node: Node, load: Load, values: Values, models: Path | None) -> Part | None:
    file = _input(values, node, load.file)
    if not isinstance(file, str) or file in _NO_FILE:
        return None
    dtype = None if load.dtype is None else _input(values, node, load.dtype)
    strength = _input(values, node, "strength_model") if load.use == "lora" else None
    name = _safe(file, node, values.path)
    _, precision = plain_name(name)
    model, kin, size = None, False, None
    if load.use == "denoiser" or load.use == "checkpoint":
        named = seen(name, load.use)
        model, kin = named.model, named.kin
    if (header := header_of(models, load.folder, name)) is not None:
        precision, size = header.precision, header.size_bytes
        if model is None and load.use in ("denoiser", "checkpoint"):
            model, kin = shaped_like(header), True
    return Part(
        use=load.use,
        file=name,
        folder=load.folder,
        precision=precision,
        kin=kin,
        size_bytes=size,
        loader_dtype=shown(dtype) if isinstance(dtype, str) and dtype != "default" else None,
        model=model,
        strength=strength if isinstance(strength, (int, float)) else None,
        node=node.title,
        id=node.id,
    )


def header_of(models: Path | None, folder: str, name: str) -> Header | None:
    """The header of a file below ComfyUI's models folder; None where it is not there."""
    if models is None or not name.endswith((".safetensors", ".sft", ".gguf")):
        return None
    for place in (folder, *_ALSO.get(folder, ())):
        path = models / place / name
        if path.is_file():
            return read_header(path)
    return None


def _input(values: Values, node: Node, name: str) -> Any:
    try:
        return values.input(node, name).value
    except Unknown:
        return None


def _safe(file: str, node: Node, path: str) -> str:
    parts = safe_parts(file)
    if parts is None:
        raise BadFile(
            "comfy-unsafe-path", path=path, node=f"{node.title} (#{node.id})", found=shown(file)
        )
    return "/".join(parts)


def library_of(passes: Sequence[Pass], parts: Sequence[Part]) -> tuple[str | None, bool]:
    """The library entry of a chain: that of its first pass, where its file is known; and whether it is kin only."""
    file = next((each.file for each in passes if each.file is not None), None)
    part = next((each for each in parts if each.file == file), None)
    return (None, False) if part is None else (part.model, part.kin)


def task_of(
    entry: Model | None, marks: set[str], frames: int | None, *, plays: bool
) -> Task | None:
    """What the chain makes from what; None where the entry does not do it. ``plays``: it ends as a video."""
    video = entry.is_video if entry is not None else (frames or 1) > 1 or plays
    task: Task
    if video:
        if "source-video" in marks:
            task = "video-to-video"
        else:
            task = "image-to-video" if "picture" in marks else "text-to-video"
    elif "edit" in marks and "picture" in marks:
        task = "image-editing"
    elif "inpaint" in marks:
        task = "inpainting"
    else:
        task = "image-to-image" if "encoded" in marks else "text-to-image"
    if entry is None or task in entry.tasks:
        return task
    return None


def components_of(entry: Model, parts: Sequence[Part]) -> dict[str, Part]:
    """Which component of the entry comes from which file."""
    found: dict[str, Part] = {}
    denoisers = [name for name in entry.components if name.startswith(_DENOISERS)]
    files = [part for part in parts if part.use == "denoiser"]
    for at, name in enumerate(denoisers):
        if files:
            found[name] = files[min(at, len(files) - 1)]
    for part in parts:
        if part.use == "text_encoder":
            begins = encoder_class(part.file)
            for name, spec in entry.components.items():
                kind = spec.class_path.rpartition(".")[2]
                if begins and kind.startswith(begins) and name not in found:
                    found[name] = part
                    break
        elif part.use == "vae":
            found.setdefault(entry.vae.component, part)
        elif part.use == "clip_vision":
            found.setdefault("image_encoder", part)
    for part in parts:
        if part.use == "checkpoint":  # what has no file of its own
            for name, spec in entry.components.items():
                if spec.counted:
                    found.setdefault(name, part)
    return {name: part for name, part in found.items() if name in entry.components}


def precision_settings(
    entry: Model | None, parts: Sequence[Part]
) -> tuple[Settings, dict[str, Quantization | str]]:
    """The settings that come nearest to the files, and each component's precision as it was seen.

    ComfyUI computes in the half precision of its choice, whichever a file has, so a dtype is never among them.
    """
    if entry is None:
        return Settings(), {}
    quantization: dict[str, Quantization] = {}
    precision: dict[str, Quantization | str] = {}
    for name, part in components_of(entry, parts).items():
        word = cast_precision(part)
        if word is None:
            continue
        precision[name] = word
        if (scheme := SCHEMES.get(word)) is not None:
            spec = entry.components[name]
            if scheme in allowed_schemes(name, spec, spec.recommended_dtype):
                quantization[name] = scheme
    return Settings(quantization=quantization), precision


def cast_precision(part: Part) -> str | None:
    """The precision in which a file's weights lie on the card: the loader may cast them."""
    if part.loader_dtype is not None and part.loader_dtype.startswith("fp8"):
        return "fp8"
    return part.precision


def wanted_files(
    nodes: Iterable[Node], known: Known, values: Values, path: str, models: Path | None
) -> list[WantedFile]:
    """Every file that running nodes load, with address and checksum where the workflow has them."""
    found: dict[tuple[str, str], WantedFile] = {}
    for node in nodes:
        kind = known.kind(node.type)
        for each in kind.loads if kind is not None else ():
            file = _input(values, node, each.file)
            if not isinstance(file, str) or file in _NO_FILE:
                continue
            name = _safe(file, node, path)
            listed = _listed(node, name)
            folder = listed.get("directory", each.folder)
            if not isinstance(folder, str) or safe_parts(folder) is None:
                where = f"{node.title} (#{node.id})"
                raise BadFile("comfy-unsafe-path", path=path, node=where, found=shown(folder))
            header = header_of(models, each.folder, name)
            wanted = WantedFile(
                name=name,
                size_bytes=None if header is None else header.size_bytes,
                folder=folder,
                url=_matching(_URL, listed.get("url")),
                sha256=_matching(_SHA256, listed.get("hash")),
                node=node.title,
                used_by=each.use,
            )
            found.setdefault((folder, name), wanted)
    return list(found.values())


def _matching(pattern: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def _listed(node: Node, name: str) -> dict[str, Any]:
    """The node's own entry for a file: name, url, directory, hash."""
    for entry in node.models:
        if isinstance(entry.get("name"), str) and entry["name"].replace("\\", "/") in (
            name,
            name.rpartition("/")[2],
        ):
            return entry
    return {}
