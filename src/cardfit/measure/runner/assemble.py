"""Build the real pipeline on a device: from a local folder of safetensors, or with random weights of the right dtype.

In: a `Job` and a device. Out: the diffusers pipeline and its components by name. Nothing is downloaded, no pickle is
read and no remote code runs. Random weights are made where they are to lie, so that a model of any size is measured
without its files.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any

import torch

from cardfit.errors import BadRequest
from cardfit.library.build import build
from cardfit.measure.job import Job
from cardfit.trace import addons, recipes

_DENOISERS = ("transformer", "unet", "prior")
_STD = 0.02  # of random weights: large enough to be no zeros, small enough for sums to stay finite


def device_of(asked: str) -> torch.device:
    """The device that was asked for; ``auto`` is the card where there is one. Raises BadRequest."""
    there = torch.cuda.is_available()
    if asked == "auto":
        return torch.device("cuda", torch.cuda.current_device()) if there else torch.device("cpu")
    if asked == "cpu":
        return torch.device("cpu")
    number = asked.removeprefix("cuda").removeprefix(":") or "0"
    if not there:
        raise BadRequest("run-no-gpu", asked=asked)
    if int(number) >= torch.cuda.device_count():
        raise BadRequest("run-no-such-gpu", asked=asked, found=torch.cuda.device_count())
    return torch.device("cuda", int(number))


def dtype_of(job: Job, name: str) -> str:
    """The dtype a component is loaded in."""
    given = job.settings.dtype
    return given.get(name) or given.get("*") or job.model.components[name].recommended_dtype


def components_of(job: Job) -> tuple[str, ...]:
    """The components whose weights are loaded."""
    return tuple(name for name, part in job.model.components.items() if part.counted)


def assemble(job: Job, device: torch.device) -> tuple[Any, dict[str, torch.nn.Module]]:
    """The pipeline with its weights, on ``device`` unless an offload keeps them in host RAM; not yet set."""
    diffusers = importlib.import_module("diffusers")
    for name in ("diffusers", "transformers"):
        logging.getLogger(name).setLevel(logging.ERROR)
    kind = getattr(diffusers, job.model.pipeline_for(job.request.task), None)
    if kind is None:
        raise BadRequest("run-no-pipeline", model=job.model.id, version=diffusers.__version__)
    home = device if (job.settings.offload or "none") == "none" else torch.device("cpu")
    pipeline = (
        _from_folder(kind, job)
        if job.folder and job.weights == "folder"
        else _random(kind, job, home)
    )
    pipeline.set_progress_bar_config(disable=True)
    modules = {
        name: part
        for name in components_of(job)
        if isinstance(part := getattr(pipeline, name, None), torch.nn.Module)
    }
    return pipeline, modules


def vae_alone(job: Job, device: torch.device) -> torch.nn.Module:
    """The VAE by itself, on ``device``: what a decode from saved latents needs."""
    name = job.model.vae.component
    if job.folder and job.weights == "folder":
        kind = _class(job.model.components[name].class_path)
        dtype = getattr(torch, dtype_of(job, name))
        vae = kind.from_pretrained(
            job.folder,
            subfolder=name,
            torch_dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
        )
        return vae.to(device)  # type: ignore[no-any-return]
    return filled(build(job.model.components[name], dtype_of(job, name)), device, job.request.seed)


def _class(path: str) -> Any:
    library, _, name = path.rpartition(".")
    return getattr(importlib.import_module(library), name)


def _random(kind: Any, job: Job, home: torch.device) -> Any:
    modules: dict[str, torch.nn.Module] = {}
    for name in components_of(job):
        module = build(job.model.components[name], dtype_of(job, name))
        if name.startswith(_DENOISERS):
            addons.fit(name, module, job.model, job.request, dtype_of(job, name))
        modules[name] = filled(module, home, job.request.seed)
    return kind(**modules, **recipes.parts(job.model, kind, modules, job.request))


def filled(module: torch.nn.Module, device: torch.device, seed: int) -> torch.nn.Module:
    """``module`` with random parameters on ``device``; buffers keep their values, tied parameters stay tied."""
    generator = torch.Generator(device).manual_seed(seed)
    done: dict[int, torch.nn.Parameter] = {}
    for owner in module.modules():
        for name, parameter in list(owner.named_parameters(recurse=False)):
            if id(parameter) not in done:
                values = torch.empty(parameter.shape, dtype=parameter.dtype, device=device)
                if values.is_floating_point():
                    values.normal_(std=_STD, generator=generator)
                else:
                    values.zero_()
                done[id(parameter)] = torch.nn.Parameter(values, requires_grad=False)
            setattr(owner, name, done[id(parameter)])
        for name, buffer in list(owner.named_buffers(recurse=False)):
            setattr(owner, name, buffer.to(device))
    return module


def _from_folder(kind: Any, job: Job) -> Any:
    dtypes = {name: getattr(torch, dtype_of(job, name)) for name in components_of(job)}
    left_out = {name: None for name, part in job.model.components.items() if not part.counted}
    asked = set(importlib.import_module("inspect").signature(kind.__init__).parameters)
    more: dict[str, Any] = {name: None for name in left_out if name in asked}
    if "safety_checker" in asked and "safety_checker" not in dtypes:
        more |= {"safety_checker": None, "requires_safety_checker": False}
    return kind.from_pretrained(
        job.folder,
        torch_dtype={"default": torch.float32, **dtypes},
        use_safetensors=True,
        local_files_only=True,
        **{name: value for name, value in more.items() if name in asked},
    )
