"""Settings that shape a trace: prompts that arrive encoded, adapters, chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cardfit.errors import BadRequest
from cardfit.library.load import all_models
from cardfit.predict.memory import estimate
from cardfit.request import Lora, Settings
from cardfit.trace import lora
from cardfit.trace.stream import Op, Trace

Traced = Callable[..., Trace]
SMALL: dict[str, Any] = {"width": 128, "height": 128, "num_inference_steps": 2}
SD = "stable-diffusion-1.5"


def denoise_bytes(trace: Trace) -> int:
    """Activations at the peak of denoising."""
    rows = estimate(trace, Settings(offload="none")).stages
    return next(row.activation_bytes for row in rows if row.name == "denoise")


def matmuls(trace: Trace) -> int:
    """Matrix products in one call of the denoiser."""
    number = [each.name for each in trace.components].index("unet")
    (stream,) = {s.signature: s for s in trace.streams if s.component == number}.values()
    return sum(work.launches for work in stream.work if work.kind == "matmul")


# -- prompts that arrive encoded


def test_without_its_encoder_a_trace_holds_the_embeddings_alone(traced: Traced) -> None:
    whole, given = traced(SD, **SMALL), traced(SD, prompt_embeds=True, **SMALL)
    assert {c.name for c in whole.components} == {"text_encoder", "unet", "vae"}
    assert {c.name for c in given.components} == {"unet", "vae"}
    assert "text_encoder" in whole.offload_sequence
    assert "text_encoder" not in given.offload_sequence
    assert "encode_prompt" not in [stage for stage, _ in given.stages]
    held = [
        event[2]
        for segment in given.timeline
        for event in segment.events
        if event[0] == Op.BIRTH and given.sites[event[3]][0] == "prompt_embeds"
    ]
    assert held == [77 * 768 * 2] * 2  # the prompt and the negative prompt, fp16


def test_denoising_is_the_same_wherever_prompts_are_encoded(traced: Traced) -> None:
    whole, given = traced(SD, **SMALL), traced(SD, prompt_embeds=True, **SMALL)
    assert denoise_bytes(whole) == pytest.approx(denoise_bytes(given), abs=1e5)
    assert all(0 <= s.component < len(given.components) for s in given.streams)


def test_every_pipeline_with_a_text_encoder_takes_embeddings() -> None:
    import inspect

    import diffusers

    for model in all_models():
        encoders = [name for name in model.components if name.startswith("text_encoder")]
        for task in model.tasks:
            kind = getattr(diffusers, model.pipeline_for(task), None)
            if kind is None or not encoders:
                continue
            names = inspect.signature(kind.__call__).parameters
            assert any(name.startswith("prompt_embeds") for name in names), kind
            assert hasattr(kind, "encode_prompt"), kind


@pytest.mark.parametrize(
    ("model", "stages"),
    [
        # the picture goes to the encoder with the prompt
        ("qwen-image-edit", {"encode_condition", "denoise", "decode"}),
        ("hidream-i1", {"denoise", "decode"}),  # four encoders, embeddings by other names
        ("flux.2-klein-4b", {"denoise", "decode"}),
    ],
)
def test_encoders_of_every_kind_stay_elsewhere(
    traced: Traced, model: str, stages: set[str]
) -> None:
    trace = traced(model, prompt_embeds=True, width=256, height=256, num_inference_steps=2)
    assert not [c.name for c in trace.components if c.name.startswith("text_encoder")]
    assert {stage for stage, _ in trace.stages} == stages


# -- adapters


def test_an_adapter_kept_apart_weighs_its_factors(traced: Traced) -> None:
    plain, adapted = traced(SD, **SMALL), traced(SD, loras=(Lora(rank=8),), **SMALL)
    unet = adapted.component("unet")
    factors = [m for m in unet.modules if lora.is_factor(m.path) and m.tensors]
    assert len(factors) == 2 * 128  # two of each: 16 transformer blocks, twice q, k, v, out
    first = next(m for m in factors if m.path.endswith("attn1.to_q.lora_A.lora_0"))
    assert first.tensors == (("weight", 8 * 320 * 2, "float16"),)
    assert not any(m.linear for m in factors)  # what a quantizer replaces was loaded before them
    more = sum(size for m in factors for _, size, _ in m.tensors)
    assert unet.weights_bytes == plain.component("unet").weights_bytes + more
    assert matmuls(adapted) == matmuls(plain) + 2 * 128  # both factors of every layer, in one call
    (note,) = [args for code, args in adapted.notes if code == "lora-kept"]
    targets = "to_q, to_k, to_v, to_out.0"
    assert note == {"component": "unet", "layers": 128, "targets": targets, "size": "3.0 MiB"}
    assert "peft" in adapted.versions


def test_a_fused_adapter_costs_nothing_in_the_run(traced: Traced) -> None:
    plain, fused = traced(SD, **SMALL), traced(SD, loras=(Lora(rank=8, fused=True),), **SMALL)
    assert fused.components == plain.components
    assert fused.timeline == plain.timeline
    (args,) = [args for code, args in fused.notes if code == "lora-fused"]
    # peft multiplies the factors in fp32: the widest layer is 1280 x 1280
    assert args == {"component": "unet", "size": "3.0 MiB", "change": "6.2 MiB"}


def test_factors_have_a_dtype_of_their_own(traced: Traced) -> None:
    both = (Lora(rank=8), Lora(rank=4, dtype="float32"))
    modules = traced(SD, loras=both, **SMALL).component("unet").modules
    by_path = {module.path: module.tensors for module in modules}
    stem = next(
        path.removesuffix(".lora_A.lora_0") for path in by_path if path.endswith("lora_A.lora_0")
    )
    ((_, half, kind),) = by_path[f"{stem}.lora_B.lora_0"]
    ((_, full, wide),) = by_path[f"{stem}.lora_B.lora_1"]
    assert (kind, wide) == ("float16", "float32")
    assert full == half  # half the rank, twice the bytes


def test_a_class_without_a_loader_is_refused(traced: Traced) -> None:
    with pytest.raises(BadRequest, match="PixArtTransformer2DModel"):
        traced("pixart-sigma", loras=(Lora(rank=8),), prompt_embeds=True, **SMALL)


def test_every_denoiser_is_adapted_or_named() -> None:
    import torch

    for kind in ("to_q", "attn.to_out.0", "to_qkv_mlp_proj"):
        model = torch.nn.Module()
        owner = model
        for part in kind.split(".")[:-1]:
            owner.add_module(part, torch.nn.Module())
            owner = getattr(owner, part)
        owner.add_module(kind.split(".")[-1], torch.nn.Linear(4, 4, device="meta"))
        assert lora.targeted(model) == (kind,)
    other = torch.nn.Sequential(torch.nn.Linear(4, 4, device="meta"))
    other.load_lora_adapter = None
    with pytest.raises(BadRequest, match="to_q, to_k, to_v, to_out.0"):
        lora.add("transformer", other, (Lora(rank=2),), "bfloat16")


# -- chunks of a feed-forward layer


def test_chunks_never_raise_the_peak(traced: Traced) -> None:
    asked = {**SMALL, "num_frames": 16, "prompt_embeds": True}
    whole = traced("animatediff-sd1.5", **asked)
    # 16 x 16 latent positions at the top, 2 x 2 at the bottom, 16 frames: 4 divides them all
    chunked = traced("animatediff-sd1.5", forward_chunking=4, **asked)
    assert denoise_bytes(chunked) <= denoise_bytes(whole)
    assert len(chunked.streams[0].events) > len(whole.streams[0].events)


def test_a_chunk_that_does_not_divide_is_said(traced: Traced) -> None:
    with pytest.raises(BadRequest, match="which 7 does not divide"):
        traced("animatediff-sd1.5", forward_chunking=7, num_frames=16, prompt_embeds=True, **SMALL)
