"""One safetensors or GGUF file: which library model its weights are, and in what they are stored.

In: a path; only the header is read. Out: a `Sourced` model: the entry with as many weights in its denoiser, with the
file's own bytes and schemes in place of the published ones. What the file does not hold is the entry's. Raises BadFile
for pickles, adapters and headers that cannot be true, UnknownModel where no entry has as many weights.
"""

from __future__ import annotations

from pathlib import Path

from cardfit.errors import BadFile, Note, UnknownModel
from cardfit.library.filenames import SCHEMES, seen
from cardfit.library.headers import (
    DENOISER,
    Group,
    Header,
    denoisers_like,
    read_header,
    refuse_pickle,
)
from cardfit.library.models import Model
from cardfit.library.quantizable import allowed_schemes
from cardfit.library.sourced import Sourced, Stored
from cardfit.request import Quantization
from cardfit.units import human_bytes

_NEAR = (
    0.06  # share by which a text encoder in one file may differ: layers and projections left out
)


def from_file(source: str, path: Path) -> Sourced:
    """The model that the file at ``path`` is a variant of."""
    refuse_pickle(path)
    header = read_header(path)
    entry, component = _entry(source, path, header)
    groups = _placed(entry, component, header)
    if groups[component].precision == "fp4":  # ComfyUI's own form, or bitsandbytes' other one
        raise BadFile("source-fp4", source=source, model=entry.id, component=component)
    stored = {
        name: Stored(group.size_bytes, group.elements, group.precision)
        for name, group in groups.items()
    }
    schemes = _schemes(entry, stored)
    held = ", ".join(
        f"{name} {human_bytes(each.size_bytes)} {each.precision}" for name, each in stored.items()
    )
    args = {"source": source, "model": entry.id, "parts": held}
    said = [Note("source-file", {**args, "count": f"{header.denoiser_elements:,}"})]
    others = [n for n, part in entry.components.items() if part.counted and n not in stored]
    if others:
        said.append(Note("source-file-others", {"parts": ", ".join(others), "model": entry.id}))
    if schemes:
        named = ", ".join(f"{name}={scheme}" for name, scheme in schemes.items())
        said.append(Note("source-file-schemes", {"source": source, "schemes": named}))
    return Sourced.made(
        entry,
        source=source,
        kind="file",
        id=source,
        title=f"{path.name} ({entry.title})",
        stored=stored,
        schemes=schemes,
        same_as=entry,
        said=tuple(said),
    )


def _entry(source: str, path: Path, header: Header) -> tuple[Model, str]:
    """The entry and its denoiser with as many weights: the one that the file's name means, else the nearest."""
    if header.adapter:
        raise BadFile("source-adapter", source=source)
    found = denoisers_like(header)
    named = seen(path.name).model or seen(path.name, "checkpoint").model
    meant = [each for each in found if each[0].id == named]
    kinds = {entry.components[name].class_path for entry, name in found}
    if meant:
        return meant[0]
    if len(kinds) == 1:
        return found[0]
    count = f"{header.denoiser_elements:,}"
    args = {"source": source, "count": count, "precision": header.precision or "-"}
    if kinds:
        raise UnknownModel(
            "source-several", models=", ".join(entry.id for entry, _ in found[:5]), **args
        )
    raise UnknownModel("source-no-model", architecture=header.architecture or "-", **args)


def _placed(entry: Model, denoiser: str, header: Header) -> dict[str, Group]:
    """Which component each part of the file is: the denoiser, and of the others the one with as many weights."""
    found = {denoiser: header.groups[DENOISER]}
    for label, group in header.groups.items():
        if label in (DENOISER, "", "model_ema"):
            continue
        near = [
            (abs(part.params - group.elements) / part.params, name)
            for name, part in entry.components.items()
            if part.counted and name not in found
        ]
        if near and min(near)[0] <= _NEAR:
            found[min(near)[1]] = group
    return found


def _schemes(entry: Model, stored: dict[str, Stored]) -> dict[str, Quantization]:
    """The scheme that comes nearest to what each component is stored in, where the component can take it."""
    found: dict[str, Quantization] = {}
    for name, each in stored.items():
        part, scheme = entry.components[name], SCHEMES.get(each.precision or "")
        if scheme in allowed_schemes(name, part, part.recommended_dtype) and scheme is not None:
            found[name] = scheme
    return found
