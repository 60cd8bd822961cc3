"""What a call on a pipeline or component changes in the books, where that is more than a knob.

In: what is done (`Done`): the event, and the pipeline and component that it is done to. Out: nothing; the books are
changed. `RULES` names the rules by the words that `data/calls.yaml` uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cardfit.script.books import Part, Pipe, Told, device_named, dtype_named, knob, leave
from cardfit.script.known import Known, Take
from cardfit.script.schemes import scheme_of
from cardfit.script.scopes import Event
from cardfit.script.values import Thing, is_plain, kind_of, path_of, truth, word_of


@dataclass(frozen=True, slots=True)
class Done:
    """An event and what it is done to."""

    event: Event
    subject: Thing
    pipe: Pipe | None
    part: Part | None
    known: Known


def _quantize(done: Done) -> None:
    """``quantize_(component, config)`` of torchao, ``quantize(component, weights=qint8)`` of quanto."""
    event, subject, pipe, part = done.event, done.subject, done.pipe, done.part
    config = event.argument(0, "config", "weights")
    if isinstance(config, Thing):
        scheme = scheme_of(done.known, "torchao", (kind_of(config.made),), {})
    else:
        scheme = scheme_of(done.known, "quanto", (config,), {})
    if part is None or scheme is None:
        leave(pipe, part, event.line, f"{event.last}({path_of(subject)})")
    else:
        part.scheme = Told(scheme, (event.line,))


def _cast(done: Done) -> None:
    """Layerwise casting: a storage dtype of eight bits."""
    event, subject, pipe, part = done.event, done.subject, done.pipe, done.part
    storage = event.argument(0, "storage_dtype")
    if part is None or not word_of(storage).startswith("float8"):
        leave(pipe, part, event.line, f"{path_of(subject)}.{event.last}")
        return
    part.scheme = Told("fp8-layerwise", (event.line,))
    compute = dtype_named(event.argument(1, "compute_dtype"), done.known)
    if isinstance(compute, str) and part.dtype is None:
        part.dtype = Told(compute, (event.line,))


def _to(done: Done) -> None:
    """``to``, ``cuda``, ``half``: a device, a dtype or both."""
    event, pipe, part = done.event, done.pipe, done.part
    dtype: Any = done.known.casts.get(event.last)
    device = event.last if event.last in ("cuda", "cpu") else None
    for value in (*event.args, event.kwargs.get("device"), event.kwargs.get("dtype")):
        found = dtype_named(value, done.known)
        if found in done.known.casts.values() and value not in ("cuda", "cpu"):
            dtype = found
        elif value is not None:
            device = device_named(value) or device
    lines = (event.line,)
    if "memory_format" in event.kwargs:
        leave(pipe, part, event.line, word_of(event.kwargs["memory_format"]))
    if part is not None:
        part.device = device or part.device
        part.dtype = Told(dtype, lines) if dtype else part.dtype
    elif pipe is not None:
        pipe.device = Told(device, lines) if device else pipe.device
        if dtype:
            pipe.dtype = Told(dtype, lines)
            for each in pipe.parts.values():
                each.dtype = None if each.scheme is None else each.dtype
                each.own = False if each.scheme is None else each.own


def _group(done: Done) -> None:
    """Group offload, of a component or of all that a pipeline has."""
    event, pipe, part = done.event, done.pipe, done.part
    offload = event.argument(2, "offload_type")
    blocks = event.argument(3, "num_blocks_per_group")
    word = "block_level" if offload is None else word_of(offload).lower()
    fields = {
        "type": "leaf_level" if word.startswith("leaf") else "block_level",
        "num_blocks_per_group": blocks if isinstance(blocks, int) else None,
        "use_stream": truth(event.argument(5, "use_stream")) is True,
        "low_cpu_mem_usage": truth(event.argument(7, "low_cpu_mem_usage")) is True,
        "to_disk": event.kwargs.get("offload_to_disk_path") is not None,
        "lines": (event.line,),
    }
    told = Told(fields, (event.line,))
    if part is not None:
        part.group = told
    elif pipe is not None:
        pipe.group = told
        kept = event.kwargs.get("exclude_modules")
        names = [kept] if isinstance(kept, str) else kept
        pipe.excluded = tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


def _tiling(done: Done) -> None:
    """Tiles, and their sides where the call says them."""
    event, pipe, part = done.event, done.pipe, done.part
    on = event.argument(99, "use_tiling")
    knob(pipe, part, "vae_tiling", Told(on is not False, (event.line,)))
    names = (
        "tile_sample_min_height",
        "tile_sample_min_width",
        "tile_sample_stride_height",
        "tile_sample_stride_width",
    )
    given = dict(zip(names, event.args, strict=False)) | event.kwargs
    for name, value in given.items():
        if name.startswith("tile_") and value is not None:
            knob(pipe, part, name, Told(value, (event.line,)))


def _attention(done: Done) -> None:
    """The attention backend or processor."""
    event, pipe, part = done.event, done.pipe, done.part
    what = event.argument(0, "backend", "processor")
    kind = done.known.attention.get(word_of(what))
    if kind is None:
        leave(pipe, part, event.line, f"{event.last}({word_of(what)})")
    else:
        knob(pipe, part, "attention", Told(kind, (event.line,)))


def _compile(done: Done) -> None:
    """Compiling: of the denoiser it is a knob."""
    event, subject, pipe, part = done.event, done.subject, done.pipe, done.part
    name = next((n for n, p in (pipe.parts if pipe else {}).items() if p is part), "")
    if part is not None and name.startswith(("vae", "text_encoder")):
        leave(pipe, part, event.line, f"compile({path_of(subject)})")
    else:
        knob(pipe, part, "compile", Told(True, (event.line,)))


def _scheduler(done: Done) -> None:
    """Another scheduler."""
    event, pipe = done.event, done.pipe
    value = event.args[0]
    if pipe is not None and isinstance(value, Thing):
        pipe.knobs["scheduler"] = Told(kind_of(value.made), (event.line,))


def _guider(done: Done) -> None:
    """Guidance as a component of the pipeline."""
    event, pipe = done.event, done.pipe
    value = event.args[0]
    scale = value.kwargs.get("guidance_scale") if isinstance(value, Thing) else None
    if pipe is not None and is_plain(scale) and scale is not None:
        pipe.knobs["guider"] = Told(scale, (event.line,))


def _lora(done: Done) -> None:
    """An adapter is loaded."""
    event, pipe, part = done.event, done.pipe, done.part
    if pipe is None:
        leave(pipe, part, event.line, event.last)
        return
    source = event.argument(0, "pretrained_model_name_or_path_or_dict")
    file = event.kwargs.get("weight_name")
    name = event.kwargs.get("adapter_name")
    words = [each for each in (source, file) if isinstance(each, str)]
    key = name if isinstance(name, str) else f"default_{len(pipe.loras)}"
    pipe.loras.setdefault(
        key,
        {
            "source": "/".join(words) or None,
            "name": name if isinstance(name, str) else None,
            "scale": None,
            "fused": False,
            "line": event.line,
        },
    )


def _fuse(done: Done) -> None:
    """Adapters go into the weights."""
    event, pipe = done.event, done.pipe
    names = event.kwargs.get("adapter_names")
    scale = event.kwargs.get("lora_scale")
    for name, each in (pipe.loras if pipe else {}).items():
        if not isinstance(names, (list, tuple)) or name in names:
            each["fused"] = True
            each["scale"] = float(scale) if isinstance(scale, (int, float)) else each["scale"]


def _adapters(done: Done) -> None:
    """Adapters get their scales."""
    event, pipe = done.event, done.pipe
    names, scales = (
        event.argument(0, "adapter_names"),
        event.argument(1, "adapter_weights", "weights"),
    )
    names = [names] if isinstance(names, str) else names
    scales = [scales] if isinstance(scales, (int, float)) else scales
    if pipe is not None and isinstance(names, (list, tuple)) and isinstance(scales, (list, tuple)):
        for name, scale in zip(names, scales, strict=False):
            if name in pipe.loras and isinstance(scale, (int, float)):
                pipe.loras[name]["scale"] = float(scale)


def _unload(done: Done) -> None:
    """Adapters go, unless they are in the weights."""
    pipe = done.pipe
    if pipe is not None:
        pipe.loras = {name: each for name, each in pipe.loras.items() if each["fused"]}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def valued(event: Event, take: Take) -> Any:
    """The value that an argument gives."""
    found = event.argument(take.place, take.arg)
    found = take.default if found is None else found
    return take.map.get(word_of(found), found)


RULES: dict[str, Callable[[Done], None]] = {
    "adapters": _adapters,
    "attention": _attention,
    "cast": _cast,
    "compile": _compile,
    "fuse": _fuse,
    "group": _group,
    "guider": _guider,
    "lora": _lora,
    "quantize": _quantize,
    "scheduler": _scheduler,
    "tiling": _tiling,
    "to": _to,
    "unload": _unload,
}
