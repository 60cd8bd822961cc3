"""The printed lines for the knobs of the denoiser and the prompt: attention, adapters, chunks, compile, embeddings.

In: settings, the request and the classes of the components. Out: lines of Python for diffusers 0.42 that turn the
knobs the dry run turned. Files of adapters and embeddings stand as names to fill in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cardfit.request import ExactRequest, Settings

_DENOISERS = ("transformer", "unet", "prior")
# pipelines of the library that load no adapter themselves; their denoiser does (a test compares with diffusers 0.42.1)
LORA_BY_MODEL = frozenset(
    {
        "Cosmos2TextToImagePipeline",
        "Cosmos2VideoToWorldPipeline",
        "HunyuanVideo15ImageToVideoPipeline",
        "HunyuanVideo15Pipeline",
    }
)


def denoisers(classes: Mapping[str, str]) -> list[str]:
    """The components that denoise."""
    return [name for name in classes if name.startswith(_DENOISERS)]


def attention(settings: Settings, classes: Mapping[str, str]) -> list[str]:
    """The kernels that torch may take, or flash by name; a UNet takes flash by itself wherever it can."""
    if settings.attention == "flash":
        named = [name for name in denoisers(classes) if name.startswith("transformer")]
        return [f'pipe.{name}.set_attention_backend("_native_flash")' for name in named]
    off = {"math": ("flash", "mem_efficient", "cudnn"), "efficient": ("flash", "cudnn")}
    kernels = off.get(settings.attention, ())
    return [f"torch.backends.cuda.enable_{kernel}_sdp(False)" for kernel in kernels]


def loras(request: ExactRequest, pipeline: str, classes: Mapping[str, str]) -> list[str]:
    """Load the adapters, then fuse those that are to be fused."""
    found = []
    names = [f"lora_{number + 1}" for number in range(len(request.loras))]
    for name, lora in zip(names, request.loras, strict=True):
        file = json.dumps(lora.file or f"{name.replace('_', '-')}.safetensors")
        for denoiser in denoisers(classes):
            if pipeline in LORA_BY_MODEL:
                load = f'pipe.{denoiser}.load_lora_adapter({file}, adapter_name="{name}")'
            elif denoiser == "transformer_2":
                found += ["pipe.load_lora_weights("]
                found += [f'    {file}, adapter_name="{name}", load_into_transformer_2=True', ")"]
                continue
            else:
                load = f'pipe.load_lora_weights({file}, adapter_name="{name}")'
            found.append(load)
    return found + _fused(request, names, pipeline, classes)


def _fused(
    request: ExactRequest, names: list[str], pipeline: str, classes: Mapping[str, str]
) -> list[str]:
    fused = [name for name, lora in zip(names, request.loras, strict=True) if lora.fused]
    if not fused:
        return []
    listed = ", ".join(f'"{name}"' for name in fused)
    found = []
    for denoiser in denoisers(classes):
        found.append(f"pipe.{denoiser}.fuse_lora(adapter_names=[{listed}])")
        found.append(f"pipe.{denoiser}.delete_adapters([{listed}])")
    return found


def chunks(settings: Settings, classes: Mapping[str, str]) -> list[str]:
    """Feed-forward layers in chunks of tokens."""
    size = settings.forward_chunking
    if size is None:
        return []
    return [
        f"pipe.{name}.enable_forward_chunking(chunk_size={size}, dim=1)"
        for name in denoisers(classes)
    ]


def fused_qkv(settings: Settings, classes: Mapping[str, str]) -> list[str]:
    """One layer for query, key and value."""
    if not settings.fuse_qkv:
        return []
    return [f"pipe.{name}.fuse_qkv_projections()" for name in denoisers(classes)]


def compiled(settings: Settings, classes: Mapping[str, str]) -> list[str]:
    """``compile`` on the denoisers, last of all."""
    return [f"pipe.{name}.compile()" for name in denoisers(classes)] if settings.compile else []


def left_out(settings: Settings, classes: Mapping[str, str]) -> list[str]:
    """Arguments of ``from_pretrained`` that leave the text encoders out where prompts arrive encoded."""
    if not settings.prompt_embeds:
        return []
    return [f"    {name}=None," for name in classes if name.startswith("text_encoder")]


def embeds(settings: Settings) -> list[str]:
    """Read what ``encode_prompt`` gave elsewhere: a dict under the names that the call takes."""
    if not settings.prompt_embeds:
        return []
    return [
        "# made elsewhere: prompt_embeds and whatever else the call takes in place of a prompt",
        'embeds = torch.load("prompt_embeds.pt", map_location="cuda", weights_only=True)',
    ]
