"""A library entry made on the fly from a diffusers folder: its own configs, and the rules of the entry nearest to it.

In: a folder with ``model_index.json`` and the configs of its parts, and what its weight files hold. Out: a `Sourced`
model and notes on what was not known. Sizes, frames and defaults come from the library entry of the same pipeline
class, else from the signature of the call (`library.general`). Left out: parts that are not loaded by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cardfit.errors import BadFile, BadRequest, Note
from cardfit.library import folder as read
from cardfit.library.count import counted
from cardfit.library.general import general
from cardfit.library.headers import PICKLES
from cardfit.library.load import all_models
from cardfit.library.models import ComponentSpec, Model, VaeFacts
from cardfit.library.sourced import Kind, Sourced, Stored
from cardfit.messages import say
from cardfit.request import DTYPES, Dtype, Quantization

# parts without weights: nothing of them lies on a card
_WEIGHTLESS = re.compile(r"Tokenizer|Scheduler|Processor|FeatureExtractor|Guider")
_CHECKERS = ("safety_checker", "watermark")  # looked at after the picture is made
_NOT_FIELDS = ("requires_safety_checker",)  # of the index: they only warn
_AGREES = 0.005  # share by which files and configs may differ: buffers, tied weights
_UNLIKE = 1000  # one component of another class weighs more than all differing values


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model lies: the folder with its configs, what its files hold, and what its page states."""

    source: str
    kind: Kind
    folder: Path
    title: str
    weights: Mapping[str, Stored] = field(default_factory=dict)
    license: str | None = None
    released: str | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """One component as the folder states it."""

    class_path: str
    config: dict[str, Any]
    stated: dict[str, Any]  # what the config says about its file


def assembled(place: Place) -> Sourced:
    """The model in ``place``. Raises BadFile, BadRequest and MissingExtra with the reason."""
    index = read.index_of(place.folder)
    pipeline = _pipeline(index, place)
    parts, left_out = _parts(index, place)
    base = _nearest(pipeline, parts, index, place)
    said: list[Note] = []
    if base is None:
        first = {name: _spec(name, part, None, place, said) for name, part in parts.items()}
        entry = general(pipeline, first, index, place.source)
        said.append(Note("source-general", {"source": place.source, "pipeline": pipeline}))
        distance, components = 1, first
    else:
        entry, distance = base
        components = {
            name: _spec(name, part, entry.components.get(name), place, said)
            for name, part in parts.items()
        }
        off = {name: part for name, part in entry.components.items() if not part.counted}
        components = {**components, **{n: p for n, p in off.items() if n not in components}}
        code = "source-is-entry" if distance == 0 else "source-rules"
        about: dict[str, object] = {"source": place.source, "pipeline": pipeline, "model": entry.id}
        said.append(Note(code, about))
    said += _remarks(place, components, left_out)
    return _made(place, index, entry, components, said, same=distance == 0)


def _made(
    place: Place,
    index: dict[str, Any],
    entry: Model,
    components: dict[str, ComponentSpec],
    said: list[Note],
    *,
    same: bool,
) -> Sourced:
    settled = {
        key: value
        for key, value in index.items()
        if not key.startswith("_")
        and key not in _NOT_FIELDS
        and not isinstance(value, (list, dict))
    }
    vae = components.get(entry.vae.component)
    facts = entry.vae if vae is None else _vae_facts(entry.vae, vae.config)
    agree = all(part.verified for part in components.values() if part.counted)
    return Sourced.made(
        entry,
        source=place.source,
        kind=place.kind,
        id=place.source,
        title=place.title,
        repo_id=place.source,
        license=place.license or say("source-not-stated"),
        released=place.released or say("source-not-stated"),
        verified=agree,
        unverified_parts=tuple(n for n, p in components.items() if p.counted and not p.verified),
        components=components,
        scheduler=read.scheduler_of(place.folder, index, entry.scheduler),
        pipeline_config={**entry.pipeline_config, **settled},
        defaults=_defaults(entry, components, facts),
        vae=facts,
        notes=tuple(note.text for note in said),
        sources=(place.source, *((entry.id,) if entry.repo_id else ())),
        stored=dict(place.weights),
        schemes=_schemes(components, place),
        same_as=entry if same else None,
        said=tuple(said),
    )


def _pipeline(index: dict[str, Any], place: Place) -> str:
    """The class of the pipeline; code that lies beside it is never run."""
    kind = index.get("_class_name")
    if isinstance(kind, list):
        raise BadRequest("source-custom-pipeline", source=place.source, found=str(kind)[:80])
    if not isinstance(kind, str) or not kind.isidentifier():
        raise BadFile("folder-bad-config", folder=place.source, file=read.INDEX)
    return kind


def _parts(index: dict[str, Any], place: Place) -> tuple[dict[str, _Part], list[str]]:
    """The parts with weights that a run loads, and the names of those that are left out."""
    found: dict[str, _Part] = {}
    left_out = []
    for name, (library, kind) in read.parts_of(index).items():
        if _WEIGHTLESS.search(kind) or name.startswith(("tokenizer", "scheduler")):
            continue
        if not name.isidentifier() or not kind.isidentifier():
            raise BadFile("folder-bad-config", folder=place.source, file=read.INDEX)
        if name in _CHECKERS:
            left_out.append(name)
            continue
        path = _class_path(place, name, library, kind)
        config = read.read_json(place.folder / name / "config.json", place.folder)
        if "auto_map" in config:
            raise BadRequest("source-auto-map", source=place.source, component=name)
        own = read.about_module(config)
        stated = {key: value for key, value in config.items() if key not in own}
        found[name] = _Part(path, own, stated)
    if not found:
        raise BadFile("source-no-parts", source=place.source)
    return found, left_out


def _class_path(place: Place, name: str, library: str, kind: str) -> str:
    """Where a class of diffusers or transformers is imported from; the index may name one of diffusers' own pipelines.

    Raises BadRequest for any other.
    """
    about = find_spec("diffusers")
    if about is not None and about.origin is not None and library.isidentifier():
        inside = Path(about.origin).parent / "pipelines" / library
        if (inside / "__init__.py").is_file():
            return f"diffusers.pipelines.{library}.{kind}"
    read.check_library(place.folder, name, library)
    return f"{library}.{kind}"


def _nearest(
    pipeline: str, parts: Mapping[str, _Part], index: dict[str, Any], place: Place
) -> tuple[Model, int] | None:
    """The entry of the same pipeline class that differs least, for the tasks of this class, and by how much."""
    ranked = []
    for entry in all_models():
        tasks = tuple(task for task in entry.tasks if entry.pipeline_for(task) == pipeline)
        if tasks:
            differs = _distance(entry, parts, index, place)
            ranked.append((differs, entry.released, entry.id, entry, tasks))
    if not ranked:
        return None
    differs, *_, entry, tasks = min(ranked, key=lambda each: each[:3])
    if entry.pipeline == pipeline:
        return entry, differs
    more = {"pipeline": pipeline, "tasks": tasks, "task_pipelines": {}}
    return entry.model_copy(update=more), max(differs, 1)


def _distance(entry: Model, parts: Mapping[str, _Part], index: dict[str, Any], place: Place) -> int:
    """How much a folder differs from ``entry``: 0 where it states the very same."""
    known = {name: part for name, part in entry.components.items() if part.counted}
    differs = _UNLIKE * len(known.keys() ^ parts.keys())
    for name in known.keys() & parts.keys():
        if known[name].class_path != parts[name].class_path:
            differs += _UNLIKE
        else:
            differs += len(read.differing(known[name].config, parts[name].config))
            differs += _other_count(known[name], place.weights.get(name))
    for key, value in entry.pipeline_config.items():
        differs += key in index and key not in _NOT_FIELDS and index[key] != value
    scheduler = read.scheduler_of(place.folder, index, entry.scheduler)
    return differs + (scheduler.class_path != entry.scheduler.class_path)


def _other_count(part: ComponentSpec, stored: Stored | None) -> bool:
    """Whether the files hold another number of weights than ``part`` has."""
    if stored is None or stored.dtype is None:
        return False
    return not _agrees(part, stored.elements)


def _agrees(part: ComponentSpec, count: int) -> bool:
    return any(
        abs(count - own) <= _AGREES * part.params
        for own in (part.params, part.params + part.persistent_buffers)
    )


def _spec(
    name: str, part: _Part, known: ComponentSpec | None, place: Place, said: list[Note]
) -> ComponentSpec:
    """The component as the folder states it; what it does not state as in ``known``, or in any of its class."""
    alike = known if known is not None and known.class_path == part.class_path else None
    kin = alike or next(
        (
            each
            for entry in all_models()
            for each in entry.components.values()
            if each.class_path == part.class_path
        ),
        None,
    )
    stored = place.weights.get(name)
    dtype, basis = _published(part, stored, kin)
    half: Dtype = dtype if dtype != "float32" else "bfloat16"
    same = alike is not None and not read.differing(alike.config, part.config)
    spec = ComponentSpec(
        class_path=part.class_path,
        config_class=None if kin is None else kin.config_class,
        config=alike.config if alike is not None and same else part.config,
        source=place.source,
        published_dtype=dtype,
        published_dtype_basis=basis,
        recommended_dtype=half if kin is None else kin.recommended_dtype,
        params=1 if alike is None else alike.params,
        persistent_buffers=0 if alike is None else alike.persistent_buffers,
        expected_params=None if stored is None or stored.dtype is None else stored.elements,
        expected_source=say("source-no-count" if stored is None else "source-from-headers"),
        basis="none" if stored is None or stored.dtype is None else "exact",
        merged_into=None if alike is None else alike.merged_into,
        keep_in_fp32_modules=() if alike is None else alike.keep_in_fp32_modules,
        verified=False,
    )
    if not same:
        spec = counted(spec, name, place.source)
    if spec.expected_params is None:
        return spec
    agrees = _agrees(spec, spec.expected_params)
    if not agrees:
        args = {"source": place.source, "component": name, "held": f"{spec.expected_params:,}"}
        said.append(Note("source-count-differs", {**args, "built": f"{spec.params:,}"}))
    return spec.model_copy(update={"verified": agrees})


def _published(part: _Part, stored: Stored | None, kin: ComponentSpec | None) -> tuple[Dtype, str]:
    """The dtype of the files and what that rests on: their headers, the config, others of the class."""
    if stored is not None and stored.dtype is not None:
        return stored.dtype, say("source-from-headers")
    named = part.stated.get("torch_dtype") or part.stated.get("dtype")
    dtype = next((each for each in DTYPES if each == named), None)
    if dtype is not None:
        return dtype, say("source-from-config")
    return ("bfloat16" if kin is None else kin.published_dtype), say("source-no-dtype")


def _schemes(components: dict[str, ComponentSpec], place: Place) -> dict[str, Quantization]:
    """The schemes of components whose config says that they are stored quantized."""
    found: dict[str, Quantization] = {}
    for name, part in components.items():
        path = place.folder / name / "config.json"
        if part.counted and path.is_file():
            stated = read.read_json(path, place.folder).get("quantization_config")
            scheme = _scheme(stated) if isinstance(stated, dict) else None
            if scheme is not None:
                found[name] = scheme
    return found


def _scheme(stated: dict[str, Any]) -> Quantization | None:
    """The scheme of ``Settings`` that a ``quantization_config`` means; None where there is none."""
    method = stated.get("quant_method")
    if method == "bitsandbytes" and stated.get("load_in_8bit"):
        return "bnb-int8"
    if method == "bitsandbytes" and stated.get("load_in_4bit"):
        return "bnb-nf4"
    if method == "quanto":
        schemes: dict[object, Quantization] = {
            "int8": "quanto-int8", "float8": "quanto-fp8", "int4": "quanto-int4", "int2": "quanto-int2",
        }  # fmt: skip
        return schemes.get(stated.get("weights_dtype"))
    return None


def _vae_facts(facts: VaeFacts, config: dict[str, Any]) -> VaeFacts:
    """``facts`` with the channels and the compression of this config, as far as it states them."""
    blocks = config.get("block_out_channels")
    plain = facts.temporal_compression == 1 and "spatial_compression_ratio" not in config
    side = 2 ** (len(blocks) - 1) if isinstance(blocks, list) and plain else None
    side = config.get("scale_factor_spatial") or config.get("spatial_compression_ratio") or side
    channels = config.get("latent_channels") or config.get("z_dim")
    return facts.model_copy(
        update={
            "spatial_compression": side if isinstance(side, int) else facts.spatial_compression,
            "latent_channels": channels if isinstance(channels, int) else facts.latent_channels,
        }
    )


def _defaults(entry: Model, components: dict[str, ComponentSpec], vae: VaeFacts) -> Any:
    """The entry's defaults; an image model with another ``sample_size`` makes another size."""
    for name, part in components.items():
        known = entry.components.get(name)
        if known is None or entry.is_video or not name.startswith(("unet", "transformer")):
            continue
        size = part.config.get("sample_size")
        if isinstance(size, int) and size != known.config.get("sample_size", size):
            side = size * vae.spatial_compression
            return entry.defaults.model_copy(update={"width": side, "height": side})
    return entry.defaults


def _remarks(place: Place, components: dict[str, ComponentSpec], left_out: list[str]) -> list[Note]:
    """What was not counted and what had to be taken on trust."""
    found = []
    if left_out:
        found.append(Note("source-left-out", {"parts": ", ".join(left_out)}))
    bare = [n for n, part in components.items() if part.counted and n not in place.weights]
    pickled = [name for name in bare if _has_pickles(place.folder / name)]
    if pickled:
        found.append(Note("source-pickles", {"parts": ", ".join(pickled)}))
    if bare:
        dtypes = ", ".join(f"{name} {components[name].published_dtype}" for name in bare)
        found.append(Note("source-no-weights", {"source": place.source, "dtypes": dtypes}))
    return found


def _has_pickles(folder: Path) -> bool:
    return folder.is_dir() and any(each.name.endswith(PICKLES) for each in folder.iterdir())
