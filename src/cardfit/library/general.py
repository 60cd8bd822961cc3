"""The general rule: what a pipeline class that no entry has can be asked for, read from the signature of its call.

In: a pipeline class of diffusers and its components. Out: a `Model` whose task, defaults and VAE facts are the class's
own. Left out: which sizes and frames the class refuses or rounds; its own code says so when it is dry-run.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from cardfit.errors import BadRequest, MissingExtra
from cardfit.library.models import (
    CfgFacts,
    ComponentSpec,
    Defaults,
    FrameRule,
    Model,
    Rules,
    Scheduler,
    SizeRule,
    VaeFacts,
)
from cardfit.messages import say
from cardfit.request import Task

_SIDE, _STEPS, _FRAMES = 512, 50, 16  # pixels, where neither the call nor a config says
_GUIDANCE = ("guidance_scale", "true_cfg_scale", "cfg_scale")
_DENOISERS = ("transformer", "unet", "prior")


def general(
    pipeline: str, components: Mapping[str, ComponentSpec], index: Mapping[str, Any], source: str
) -> Model:
    """The entry of ``pipeline`` with ``components``, by the general rule.

    Raises MissingExtra without diffusers, BadRequest for a class that it does not have.
    """
    kind = _class(pipeline, source)
    call = inspect.signature(kind.__call__).parameters
    task = _task(call)
    video = task in ("text-to-video", "image-to-video", "video-to-video")
    vae = _vae(components, call)
    width, height = _size(call, components, vae)
    guidance = next((name for name in _GUIDANCE if name in call), _GUIDANCE[0])
    unknown = say("source-not-known")
    fields = {
        "id": pipeline,
        "title": pipeline,
        "family": pipeline.removesuffix("Pipeline"),
        "tasks": (task,),
        "pipeline": pipeline,
        "repo_id": "",
        "license": unknown,
        "released": unknown,
        "verified": False,
        "components": dict(components),
        "scheduler": _scheduler(index, source),
        "defaults": Defaults(
            width=width,
            height=height,
            num_frames=_whole(call, "num_frames", _FRAMES) if video else 1,
            fps=None,
            num_inference_steps=_whole(call, "num_inference_steps", _STEPS),
            guidance_scale=_number(call, guidance),
            guidance_argument=guidance,
            max_sequence_length=_whole(call, "max_sequence_length", 0) or None,
            decode_chunk_size=_whole(call, "decode_chunk_size", 0) or None,
        ),
        "rules": Rules(
            size=SizeRule(why=unknown), frames=FrameRule(kind="any" if video else "image")
        ),
        "vae": vae,
        "cfg": CfgFacts(batched=True, how=unknown),
        "sources": (source,),
    }
    return Model.model_validate({"schema": 1, **fields})


def _class(pipeline: str, source: str) -> Any:
    try:
        diffusers: Any = importlib.import_module("diffusers")
    except ModuleNotFoundError as missing:
        package = missing.name or "diffusers"
        raise MissingExtra("source-needs-trace", source=source, package=package) from missing
    kind = getattr(diffusers, pipeline, None)
    if not (isinstance(kind, type) and issubclass(kind, diffusers.DiffusionPipeline)):
        version = diffusers.__version__
        raise BadRequest("source-no-pipeline", source=source, pipeline=pipeline, version=version)
    return kind


def _task(call: Mapping[str, inspect.Parameter]) -> Task:
    """What the call makes from what, by the names of its arguments; a picture that it insists on is its source."""
    insists = {name for name in call if call[name].default is inspect.Parameter.empty}
    given = any(name in call for name in ("image", "video"))
    asks_text = "prompt" in call
    if "video" in call and "strength" in call:
        return "video-to-video"
    if "num_frames" in call or "video_length" in call:
        return "image-to-video" if "image" in call else "text-to-video"
    if "mask_image" in call:
        return "inpainting"
    if given and (not asks_text or "image" in insists or "strength" in call):
        return "image-to-image"
    return "image-editing" if "image" in call else "text-to-image"


def _vae(
    components: Mapping[str, ComponentSpec], call: Mapping[str, inspect.Parameter]
) -> VaeFacts:
    """What the class and config of the VAE state."""
    name = next((each for each in components if each.startswith(("vae", "vqvae", "movq"))), None)
    part = components[name] if name is not None else next(iter(components.values()))
    library, _, kind = part.class_path.rpartition(".")
    methods = getattr(importlib.import_module(library), kind)
    frames = part.config.get("temporal_compression_ratio") or part.config.get(
        "scale_factor_temporal"
    )
    blocks = part.config.get("block_out_channels")
    return VaeFacts(
        component=name or next(iter(components)),
        spatial_compression=2 ** (len(blocks) - 1) if isinstance(blocks, list) else 8,
        temporal_compression=frames if isinstance(frames, int) and frames > 0 else 1,
        latent_channels=4,
        tiling=hasattr(methods, "enable_tiling"),
        slicing=hasattr(methods, "enable_slicing"),
        decode_chunk_size="decode_chunk_size" in call,
    )


def _size(
    call: Mapping[str, inspect.Parameter], components: Mapping[str, ComponentSpec], vae: VaeFacts
) -> tuple[int, int]:
    """Default width and height in pixels: the call's, else the denoiser's own sample size."""
    for name, part in components.items():
        size = part.config.get("sample_size")
        if name.startswith(_DENOISERS) and isinstance(size, int) and size > 0:
            side = size * vae.spatial_compression
            break
    else:
        side = _SIDE
    return _whole(call, "width", side), _whole(call, "height", side)


def _scheduler(index: Mapping[str, Any], source: str) -> Scheduler:
    """Stands until the folder's own is read."""
    return Scheduler(
        class_path="diffusers.DDIMScheduler", config={}, source=source, basis="recalled"
    )


def _whole(call: Mapping[str, inspect.Parameter], name: str, otherwise: int) -> int:
    found = call[name].default if name in call else None
    return found if type(found) is int and found > 0 else otherwise


def _number(call: Mapping[str, inspect.Parameter], name: str) -> float:
    found = call[name].default if name in call else None
    return float(found) if isinstance(found, (int, float)) and found >= 0 else 0.0
