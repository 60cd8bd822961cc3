"""A pipeline class that no list knows: read, built without weights, and run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from diffusers import (
    AutoencoderKL,
    ControlNetModel,
    DDIMScheduler,
    DiffusionPipeline,
    FluxPipeline,
    StableDiffusionControlNetPipeline,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
)
from transformers import CLIPTextModel, CLIPTokenizer, PreTrainedModel

from cardfit.errors import DryRunFailed
from cardfit.trace.anyclass import assemble, nearest, thinned
from cardfit.trace.arguments import Size, call_of
from cardfit.trace.declared import parts_of
from cardfit.trace.own import trace_pipeline


class Own(DiffusionPipeline):
    """An author's class: declared, and in no table."""

    def __init__(
        self,
        unet: UNet2DConditionModel,
        vae: AutoencoderKL,
        text_encoder: CLIPTextModel,
        tokenizer: CLIPTokenizer,
        scheduler: DDIMScheduler,
        scale: float = 8.0,
    ) -> None:
        super().__init__()
        self.register_modules(
            unet=unet, vae=vae, text_encoder=text_encoder, tokenizer=tokenizer, scheduler=scheduler
        )

    @torch.no_grad()
    def __call__(
        self, prompt: str, height: int = 64, width: int = 64, num_inference_steps: int = 9
    ) -> Any:
        ids = self.tokenizer(prompt, padding="max_length", return_tensors="pt").input_ids
        words = self.text_encoder(ids)[0]
        latents = torch.randn(1, 4, height // 8, width // 8, dtype=self.unet.dtype)
        self.scheduler.set_timesteps(num_inference_steps)
        for t in self.scheduler.timesteps:
            noise = self.unet(latents, t, words).sample
            latents = self.scheduler.step(noise, t, latents).prev_sample
        return self.vae.decode(latents).sample


class Vague(DiffusionPipeline):
    """Declares a base class, of which no module can be made."""

    def __init__(self, text_encoder: PreTrainedModel) -> None:
        super().__init__()
        self.register_modules(text_encoder=text_encoder)


def test_a_constructor_says_what_its_parts_are() -> None:
    roles = {part.name: part.role for part in parts_of(Own)}
    assert roles == {
        "unet": "module",
        "vae": "module",
        "text_encoder": "module",
        "tokenizer": "tokenizer",
        "scheduler": "scheduler",
        "scale": "plain",
    }
    optional = {part.name for part in parts_of(FluxPipeline) if not part.needed}
    assert optional == {"image_encoder", "feature_extractor"}


def test_an_unknown_class_is_built_from_the_nearest_entry_and_runs() -> None:
    pipe = assemble(Own, depth=1)
    found = nearest("Own", parts_of(Own))
    assert found is not None and found.family == "stable-diffusion"
    weights = [p for part in (pipe.unet, pipe.vae, pipe.text_encoder) for p in part.parameters()]
    assert {p.device.type for p in weights} == {"meta"}
    # the text encoder's width is the one that the denoiser attends to
    width = found.components["unet"].config["cross_attention_dim"]
    assert pipe.text_encoder.config.hidden_size == pipe.unet.config.cross_attention_dim == width
    call = call_of(pipe, Size(128, 64, steps=3))
    assert (call["width"], call["height"], call["num_inference_steps"]) == (128, 64, 3)
    trace = trace_pipeline(pipe, call)
    stages = [("encode_prompt", "text_encoder"), ("denoise", "unet"), ("decode", "vae")]
    assert list(trace.stages) == stages
    assert (trace.request.width, trace.request.height) == (128, 64)


def test_the_whole_depth_is_the_entrys() -> None:
    entry = nearest("Own", parts_of(Own))
    assert entry is not None
    whole, thin = assemble(Own), assemble(Own, depth=1)
    layers = entry.components["text_encoder"].config["num_hidden_layers"]
    assert len(whole.text_encoder.encoder.layers) == layers > 1
    assert len(thin.text_encoder.encoder.layers) == 1
    assert (whole.unet.config.layers_per_block, thin.unet.config.layers_per_block) == (2, 1)
    assert sum(p.numel() for p in whole.unet.parameters()) == entry.components["unet"].params


def test_a_control_network_takes_the_denoisers_sizes() -> None:
    pipe = assemble(StableDiffusionControlNetPipeline, depth=1)
    assert isinstance(pipe.controlnet, ControlNetModel)
    assert pipe.controlnet.config.cross_attention_dim == pipe.unet.config.cross_attention_dim
    assert pipe.controlnet.config.cross_attention_dim == 768


def test_layers_are_left_out_and_widths_stay() -> None:
    config = thinned(UNet2DConditionModel, None, {"transformer_layers_per_block": (1, 2, 10)}, 2)
    assert config["transformer_layers_per_block"] == (1, 1, 1)
    assert config["block_out_channels"] == (320, 640, 1280, 1280)
    xl = nearest("StableDiffusionXLPipeline", parts_of(StableDiffusionXLPipeline))
    assert xl is not None and xl.pipeline == "StableDiffusionXLPipeline"


def test_what_cannot_be_built_is_said_with_its_part() -> None:
    with pytest.raises(DryRunFailed, match="Vague cannot be built.*text_encoder"):
        assemble(Vague)
