"""Turn the knobs of `Settings` on a real pipeline, through diffusers' own methods.

In: a pipeline, its components, settings, a device. Out: the pipeline ready to be called. A knob that cannot be turned
on this device, or that cardfit cannot turn on a real pipeline yet, is refused by name: nothing is quietly left out.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from cardfit.errors import BadRequest
from cardfit.measure.job import Job
from cardfit.predict.placement import streams
from cardfit.predict.weights import NOT_CONVERTED_BY_CLASS
from cardfit.trace import recipes

_DENOISERS = ("transformer", "unet", "prior")


def refuse(job: Job, device: torch.device) -> None:
    """Raise BadRequest for what cannot be set here."""
    settings = job.settings
    offload = settings.offload or "none"
    if offload != "none" and device.type != "cuda":
        raise BadRequest("run-offload-needs-card", offload=offload)
    schemes = sorted(set(settings.quantization.values()) - {"none", "fp8-layerwise"})
    if schemes:
        raise BadRequest("run-not-settable", what="quantization", asked=", ".join(schemes))
    for name in ("blocks_to_swap", "prompt_embeds"):
        if getattr(settings, name):
            raise BadRequest("run-not-settable", what=name, asked=getattr(settings, name))
    asked = job.request
    files = sum(each.file is not None for each in asked.loras)
    if files:  # peft would have to read them
        raise BadRequest("run-not-settable", what="loras", asked=files)
    for name in ("loras", "controlnets", "t2i_adapters", "ip_adapters", "components"):
        found = getattr(asked, name)
        if found and job.weights != "random":
            count = found if isinstance(found, int) else len(found)
            raise BadRequest("run-not-settable", what=name, asked=count)
    if job.request.post:
        raise BadRequest("run-not-settable", what="post", asked=len(job.request.post))
    if job.request.runtime != "diffusers":
        raise BadRequest("run-not-settable", what="runtime", asked=job.request.runtime)


def apply(
    job: Job, pipeline: Any, modules: Mapping[str, torch.nn.Module], device: torch.device
) -> None:
    """Set everything, then move what is to be resident to ``device``."""
    settings = job.settings
    denoisers = {name: part for name, part in modules.items() if name.startswith(_DENOISERS)}
    for name, scheme in settings.quantization.items():
        if scheme == "fp8-layerwise":
            _cast_by_layer(modules[name], next(modules[name].parameters()).dtype)
    for module in denoisers.values():
        _set_denoiser(job, module)
    set_vae(job, modules.get(job.model.vae.component))
    _offload(job, pipeline, modules, device)
    if settings.compile:
        for module in denoisers.values():
            module.forward = torch.compile(module.forward)


def set_vae(job: Job, vae: Any) -> None:
    """Tiling and slicing as asked; a model that always decodes in tiles does so here too."""
    settings = job.settings
    if job.model.vae.tiling_required and not settings.vae_tiling:
        settings = settings.model_copy(update={"vae_tiling": True})
    if vae is not None:
        recipes.set_vae(vae, settings)


@contextmanager
def attention(job: Job) -> Iterator[None]:
    """The kernel that attention takes; ``sdpa`` leaves the choice to torch."""
    backends = torch.nn.attention.SDPBackend
    kinds = {
        "flash": backends.FLASH_ATTENTION,
        "efficient": backends.EFFICIENT_ATTENTION,
        "math": backends.MATH,
    }
    kind = kinds.get(job.settings.attention)
    if kind is None:
        yield
        return
    with torch.nn.attention.sdpa_kernel(kind):
        yield


def _set_denoiser(job: Job, module: Any) -> None:
    settings = job.settings
    if settings.forward_chunking is not None:
        module.enable_forward_chunking(chunk_size=settings.forward_chunking, dim=1)
    if settings.fuse_qkv:
        module.fuse_qkv_projections()


def _cast_by_layer(module: Any, dtype: torch.dtype) -> None:
    if hasattr(module, "enable_layerwise_casting"):
        module.enable_layerwise_casting(storage_dtype=torch.float8_e4m3fn, compute_dtype=dtype)
        return
    hooks: Any = importlib.import_module("diffusers.hooks.layerwise_casting")
    kept = NOT_CONVERTED_BY_CLASS.get(type(module).__name__, ())  # T5 reads the dtype of its `wo`
    hooks.apply_layerwise_casting(
        module,
        storage_dtype=torch.float8_e4m3fn,
        compute_dtype=dtype,
        skip_modules_pattern=(*hooks.DEFAULT_SKIP_MODULES_PATTERN, *kept),
    )


def _offload(
    job: Job, pipeline: Any, modules: Mapping[str, torch.nn.Module], device: torch.device
) -> None:
    mode = job.settings.offload or "none"
    if mode == "none":
        pipeline.to(device)
    elif mode == "model":
        pipeline.enable_model_cpu_offload(device=device)
    elif mode == "sequential":
        pipeline.enable_sequential_cpu_offload(device=device)
    else:
        _groups(job, pipeline, modules, device)


def _groups(
    job: Job, pipeline: Any, modules: Mapping[str, torch.nn.Module], device: torch.device
) -> None:
    """Group offload. Hooks of blocks wait for forward, which decoding never calls, so autoencoders go by leaves."""
    settings = job.settings
    common: dict[str, Any] = {
        "onload_device": device,
        "offload_device": torch.device("cpu"),
        "use_stream": streams(settings),
        "low_cpu_mem_usage": bool(settings.low_cpu_mem_usage),
    }
    leaf = {"offload_type": "leaf_level"}
    blocks = {
        "offload_type": "block_level",
        "num_blocks_per_group": settings.num_blocks_per_group or 1,
    }
    vaes = [name for name, part in modules.items() if type(part).__name__.startswith("Autoencoder")]
    by_leaf = settings.offload == "group-leaf"
    if settings.offload_to_disk:
        hooks: Any = importlib.import_module("diffusers.hooks")
        for name, module in modules.items():
            kind = leaf if by_leaf or name in vaes else blocks
            folder = tempfile.mkdtemp(
                prefix=f"cardfit-{name}-"
            )  # files are named after paths in a component
            hooks.apply_group_offloading(module, **common, **kind, offload_to_disk_path=folder)
        return
    if by_leaf:
        pipeline.enable_group_offload(**common, **leaf)
        return
    for name in vaes:
        vae: Any = modules[name]
        vae.enable_group_offload(**common, **leaf)
    pipeline.enable_group_offload(**common, **blocks, exclude_modules=vaes)
