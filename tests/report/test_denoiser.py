"""The printed lines of the denoiser's and the prompt's knobs name only what diffusers has."""

from __future__ import annotations

import ast
import inspect

import pytest

from cardfit.library.load import all_models
from cardfit.report import code, denoiser
from cardfit.request import ExactRequest, Lora, Settings

TWO = {
    "transformer": "diffusers.WanTransformer3DModel",
    "transformer_2": "diffusers.WanTransformer3DModel",
    "text_encoder": "transformers.UMT5EncoderModel",
    "vae": "diffusers.AutoencoderKLWan",
}
UNET = {"unet": "diffusers.UNet2DConditionModel", "vae": "diffusers.AutoencoderKL"}


def request(*loras: Lora) -> ExactRequest:
    return ExactRequest(
        model="m",
        task="text-to-video",
        width=1280,
        height=720,
        num_frames=81,
        fps=16,
        num_inference_steps=50,
        guidance_scale=5.0,
        prompt_tokens=512,
        loras=loras,
    )


def body(settings: Settings, *loras: Lora) -> str:
    recipe = code.Recipe(
        pipeline="WanPipeline",
        repo_id="Wan-AI/Wan2.2-T2V-A14B-Diffusers",
        dtypes=dict.fromkeys(TWO, "bfloat16"),
        classes=TWO,
        video=True,
    )
    source = "\n".join(code.body(request(*loras), settings, recipe))
    ast.parse(source)
    return source


def test_flash_is_named_on_transformers_and_left_to_torch_on_a_unet():
    flash = Settings(attention="flash")
    assert denoiser.attention(flash, TWO) == [
        'pipe.transformer.set_attention_backend("_native_flash")',
        'pipe.transformer_2.set_attention_backend("_native_flash")',
    ]
    assert denoiser.attention(flash, UNET) == []
    diffusers = pytest.importorskip("diffusers")
    assert hasattr(diffusers.WanTransformer3DModel, "set_attention_backend")
    backends = pytest.importorskip("diffusers.models.attention_dispatch").AttentionBackendName
    assert "_native_flash" in {backend.value for backend in backends}


@pytest.mark.parametrize(
    ("kernel", "off"),
    [
        ("sdpa", ()),
        ("efficient", ("flash", "cudnn")),
        ("math", ("flash", "mem_efficient", "cudnn")),
    ],
)
def test_other_kernels_are_switched_off_in_torch(kernel, off):
    torch = pytest.importorskip("torch")
    lines = denoiser.attention(Settings(attention=kernel), UNET)
    assert lines == [f"torch.backends.cuda.enable_{name}_sdp(False)" for name in off]
    assert all(hasattr(torch.backends.cuda, f"enable_{name}_sdp") for name in off)


def test_both_experts_get_every_adapter_and_lose_what_is_fused():
    source = body(Settings(), Lora(rank=8), Lora(rank=4, fused=True))
    assert source.count("load_into_transformer_2=True") == 2
    assert 'pipe.transformer_2.fuse_lora(adapter_names=["lora_2"])' in source
    assert 'delete_adapters(["lora_2"])' in source
    assert "fuse_lora" not in body(Settings(), Lora(rank=8))
    assert source.index("load_lora_weights") < source.index('pipe.to("cuda")')


def test_prompts_that_arrive_encoded_need_no_encoder():
    source = body(Settings(prompt_embeds=True))
    assert "    text_encoder=None," in source
    assert "    **embeds," in source
    assert "prompt=" not in source
    assert "weights_only=True" in source


def test_chunks_and_compile_go_to_every_denoiser():
    source = body(Settings(forward_chunking=64, compile=True))
    assert source.count("enable_forward_chunking(chunk_size=64, dim=1)") == 2
    assert source.index("pipe.transformer_2.compile()") > source.index('pipe.to("cuda")')


def test_adapters_are_loaded_by_what_has_a_loader():
    diffusers = pytest.importorskip("diffusers")
    for model in all_models():
        names = {model.pipeline, *model.task_pipelines.values()}
        for kind in (getattr(diffusers, name) for name in names if hasattr(diffusers, name)):
            parts = [
                getattr(diffusers, part.class_path.rpartition(".")[2])
                for name, part in model.components.items()
                if name.startswith(("transformer", "unet", "prior"))
            ]
            by_model = all(hasattr(part, "load_lora_adapter") for part in parts)
            expected = by_model and not hasattr(kind, "load_lora_weights")
            assert (kind.__name__ in denoiser.LORA_BY_MODEL) == expected, kind.__name__
    wan = inspect.signature(diffusers.WanPipeline.load_lora_weights).parameters
    assert "kwargs" in wan  # load_into_transformer_2 is read from them
