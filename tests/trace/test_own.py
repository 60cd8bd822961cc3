"""Somebody's own pipeline object, built on meta: traced as it is called, and left as it was."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import AutoencoderKL, DDIMScheduler, DiffusionPipeline, UNet2DConditionModel
from diffusers.image_processor import VaeImageProcessor

import cardfit
from cardfit.errors import BadRequest, DryRunFailed
from cardfit.library import load
from cardfit.library.build import build
from cardfit.predict.memory import estimate
from cardfit.report.trace import rows
from cardfit.request import Settings
from cardfit.trace import recipes
from cardfit.trace.dryrun import dry_run
from cardfit.trace.own import trace_pipeline

UNET = {
    "sample_size": 8,
    "block_out_channels": (16, 32),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "layers_per_block": 1,
    "norm_num_groups": 8,
    "cross_attention_dim": 16,
    "attention_head_dim": 8,
}
VAE = {
    "block_out_channels": (16, 16),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "norm_num_groups": 8,
    "layers_per_block": 1,
}


class TwoPass(DiffusionPipeline):
    """An author's own pipeline: conditioned on nothing, two denoising calls a step, decoded at the end."""

    model_cpu_offload_seq = "unet->vae"

    def __init__(self, unet: Any, vae: Any, scheduler: Any) -> None:
        super().__init__()
        self.register_modules(unet=unet, vae=vae, scheduler=scheduler)
        self.processor = VaeImageProcessor(vae_scale_factor=2)

    @torch.no_grad()
    def __call__(self, side: int = 64, num_inference_steps: int = 4, fail: bool = False) -> Any:
        device = self._execution_device
        if fail:
            raise RuntimeError("the author's own words")
        latents = torch.randn(1, 4, side // 2, side // 2, device=device, dtype=self.unet.dtype)
        text = torch.zeros(1, 7, 16, device=device, dtype=self.unet.dtype)
        self.scheduler.set_timesteps(num_inference_steps, device=device)
        for t in self.progress_bar(self.scheduler.timesteps):
            noise = self.unet(latents, t, text).sample - self.unet(latents, t, text).sample
            latents = self.scheduler.step(noise, t, latents).prev_sample
        image = self.vae.decode(latents).sample
        return self.processor.postprocess(image, output_type="pil")


def made(device: str = "meta") -> TwoPass:
    with torch.device(device):
        unet, vae = UNet2DConditionModel(**UNET), AutoencoderKL(**VAE)
    return TwoPass(unet, vae, DDIMScheduler())


def own_attributes(pipe: Any) -> list[set[str]]:
    parts = [each for each in pipe.components.values() if isinstance(each, torch.nn.Module)]
    return [set(vars(module)) for part in parts for module in part.modules()]


def test_an_authors_own_class_is_traced_as_it_calls_its_parts() -> None:
    pipe = made()
    before = own_attributes(pipe)
    found = cardfit.trace(pipe, side=96, num_inference_steps=6)
    assert found.pipeline == "TwoPass" and found.offload_sequence == ("unet", "vae")
    assert [(row.stage, row.component, row.calls) for row in rows(found)] == [
        ("denoise", "unet", 12),
        ("decode", "vae", 1),
    ]
    request = found.request
    assert (request.width, request.height, request.num_frames) == (96, 96, 1)
    assert (request.num_inference_steps, request.task) == (6, "text-to-image")
    weights = sum(p.numel() * 4 for part in (pipe.unet, pipe.vae) for p in part.parameters())
    assert sum(each.weights_bytes for each in found.components) == weights
    whole, offloaded = (estimate(found, Settings(offload=mode)) for mode in ("none", "model"))
    assert whole.allocated_bytes > offloaded.allocated_bytes > 0
    assert own_attributes(pipe) == before
    assert pipe.device.type == "meta" and pipe._execution_device.type == "meta"
    assert "_progress_bar_config" not in vars(pipe)


def test_a_larger_picture_takes_more_and_a_second_trace_is_the_same() -> None:
    pipe = made()
    small, again, large = (cardfit.trace(pipe, side=side) for side in (64, 64, 128))
    assert (small.timeline, small.streams) == (again.timeline, again.streams)
    peaks = [max(row.activation_bytes for row in rows(each)) for each in (small, large)]
    assert peaks[1] > 3 * peaks[0]


def test_a_real_pipeline_gives_the_library_models_own_trace() -> None:
    """The object that the library's dry run would make, handed in: the same calls and peaks."""
    model = tiny().shrunk("stable-diffusion-1.5")
    request = library_request(model)
    expected = dry_run(model, request, Settings())
    modules = {
        name: build(spec, spec.recommended_dtype)
        for name, spec in model.components.items()
        if spec.counted
    }
    kind = importlib.import_module("diffusers").StableDiffusionPipeline
    pipe = kind(**modules, **recipes.parts(model, kind, modules, request))
    call = recipes.call_arguments(model, pipe, request, Settings())
    found = cardfit.trace(pipe, **call)
    assert rows(found) == rows(expected)
    assert found.request.width == request.width
    for mode in ("none", "model", "sequential"):
        mine, theirs = (estimate(each, Settings(offload=mode)) for each in (found, expected))
        assert (mine.allocated_bytes, mine.reserved_bytes) == (
            theirs.allocated_bytes,
            theirs.reserved_bytes,
        )


def tiny() -> Any:
    """The tiny models of the measuring tests."""
    path = Path(__file__).parents[1] / "measure" / "tiny.py"
    spec = importlib.util.spec_from_file_location("tiny_models", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def library_request(model: Any) -> Any:
    from cardfit.library.rules import resolve
    from cardfit.request import Request

    asked = Request(model=model.id, width=128, height=128, num_inference_steps=3)
    return resolve(load(model.id), asked)[0]


def test_what_cannot_be_traced_is_named() -> None:
    with pytest.raises(BadRequest, match="unet has weights on cpu"):
        trace_pipeline(made("cpu"), {})
    with pytest.raises(BadRequest, match="wdith"):
        cardfit.trace(made(), wdith=64)
    for thing in (7, object(), torch.nn.Linear(2, 2)):
        with pytest.raises(BadRequest, match="not a pipeline"):
            cardfit.trace(thing)
    with pytest.raises(BadRequest, match="side"):
        cardfit.trace("stable-diffusion-1.5", side=64)


def test_an_error_of_the_pipeline_is_told_in_its_own_words_and_leaves_it_whole() -> None:
    pipe = made()
    before = own_attributes(pipe)
    with pytest.raises(DryRunFailed, match="the author's own words"):
        cardfit.trace(pipe, fail=True)
    assert own_attributes(pipe) == before


def test_hooks_that_look_for_a_card_are_refused() -> None:
    hooks = importlib.import_module("accelerate.hooks")
    pipe = made()
    hooks.add_hook_to_module(pipe.unet, hooks.ModelHook())
    with pytest.raises(BadRequest, match="unet has offload hooks"):
        cardfit.trace(pipe)
