"""What simpler estimates say about the same rows: weights x 1.15, the weights alone, ComfyUI's and InvokeAI's rules.

In: a configuration, its trace and its memory. Out: bytes, or None where a rule does not speak of the row. The rule of
thumb is `predict.rule`'s, as rental guides print it; the weights alone are what size calculators report. ComfyUI and
InvokeAI publish a linear rule for the working memory of a denoiser or an autoencoder: it is put in place of ours, over
the weights that lie on the card at that stage.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from cardfit.accuracy.rebuild import Rebuilt
from cardfit.library.models import Model
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.rule import GUIDE_FACTOR
from cardfit.predict.weights import module_weights
from cardfit.request import Settings
from cardfit.trace.stream import Component, Trace
from cardfit.units import MIB

RIVALS = ("rule", "weights_only", "comfyui", "invokeai")
_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}

# ComfyUI, autumn 2026: denoiser bytes = batch x latent positions x item size x 0.01 x factor x 1 MiB, with an
# efficient attention; factor by the class of the denoiser. Where it grows with the width of the network: of its config.
_COMFY_DENOISER: dict[str, float] = {
    "ChromaTransformer2DModel": 3.2,
    "FluxTransformer2DModel": 3.1,
    "HiDreamImageTransformer2DModel": 2.0,
    "HunyuanDiT2DModel": 1.3,
    "HunyuanVideo15Transformer3DModel": 4.0,
    "HunyuanVideoTransformer3DModel": 1.8,
    "Kandinsky5Transformer3DModel": 1.25,
    "Lumina2Transformer2DModel": 1.4,
    "MochiTransformer3DModel": 2.0,
    "OmniGen2Transformer2DModel": 1.95,
    "PixArtTransformer2DModel": 0.5,
    "QwenImageTransformer2DModel": 1.8,
    "SD3Transformer2DModel": 1.6,
    "ZImageTransformer2DModel": 2.8,
}
_WAN_WIDTH = 2222
_LTX_FACTOR, _LTX_WIDTH = 5.5, 2048
_SDXL_FACTOR = 0.8
_SDXL_CROSS_DIM = 2048

# ComfyUI: decode bytes over item size, from latent frames, height and width
_COMFY_DECODER: dict[str, Callable[[int, int, int], float]] = {
    "AutoencoderKL": lambda t, h, w: 2178 * h * w * 64,
    "AutoencoderKLCogVideoX": lambda t, h, w: 2800 * (4 * (t - 1) + 1) * h * w * 64,
    "AutoencoderKLHunyuanVideo": lambda t, h, w: 2800 * min(8, 4 * (t - 1) + 1) * h * w * 64,
    "AutoencoderKLHunyuanVideo15": lambda t, h, w: 14400 * h * w * 256,
    "AutoencoderKLLTXVideo": lambda t, h, w: 1200 * t * h * w * 512,
    "AutoencoderKLMochi": lambda t, h, w: 1000 * t * h * w * 384,
    "AutoencoderKLQwenImage": lambda t, h, w: (2200 if t <= 4 else 7000) * h * w * 64,
    "AutoencoderKLWan": lambda t, h, w: (2200 if t <= 4 else 7000) * h * w * 64,
}
_WAN22_SIDE = 16  # the Wan 2.2 autoencoder: 16x compression, a rule of its own
# InvokeAI pull request 9305: bytes per output pixel over item size
_INVOKEAI_DECODER = {"AutoencoderKLQwenImage": 2900}


def figures(rebuilt: Rebuilt, trace: Trace, found: MemoryEstimate) -> dict[str, int]:
    """What each rival says of the row, in bytes; a rival that does not speak of it is left out.

    Weights say nothing of a decode by itself.
    """
    said: dict[str, int | None] = {}
    if rebuilt.scope == "decode":
        held = 0 if rebuilt.working else found.stages[0].weights_bytes
        for name, working in (
            ("comfyui", decode_bytes(rebuilt)),
            ("invokeai", invokeai_decode_bytes(rebuilt)),
        ):
            said[name] = None if working is None else working + held
    else:
        weights = weights_only_bytes(trace, rebuilt.settings, only=_part(rebuilt))
        said["rule"] = round(GUIDE_FACTOR * weights)
        said["weights_only"] = weights
        said["comfyui"] = _over_weights(rebuilt, trace, found)
    return {name: size for name, size in said.items() if size is not None}


def _part(rebuilt: Rebuilt) -> Callable[[Component], bool]:
    """Which components were on the card."""
    if rebuilt.scope == "denoise":
        return is_denoiser
    return lambda component: True


def weights_only_bytes(
    trace: Trace, settings: Settings, *, only: Callable[[Component], bool] = lambda _: True
) -> int:
    """Weights of the components that ``only`` takes, under their schemes."""
    return sum(component_bytes(each, settings) for each in trace.components if only(each))


def component_bytes(component: Component, settings: Settings) -> int:
    """Weights of one component under the scheme that ``settings`` give it."""
    scheme = settings.quantization.get(component.name, "none")
    return sum(sum(module.tensors) for module in module_weights(component, scheme))


def is_denoiser(component: Component) -> bool:
    """Whether the component is what denoises."""
    return component.name.startswith(("transformer", "unet"))


def _over_weights(rebuilt: Rebuilt, trace: Trace, found: MemoryEstimate) -> int | None:
    """ComfyUI's working memory over the weights that lie on the card at each stage; the larger stage."""
    held = {stage.name: stage.weights_bytes for stage in found.stages}
    denoise = denoise_bytes(rebuilt, trace)
    if denoise is None or "denoise" not in held:
        return None
    if rebuilt.scope == "denoise":
        return denoise + weights_only_bytes(trace, rebuilt.settings, only=is_denoiser)
    decode = decode_bytes(rebuilt)
    if decode is None or "decode" not in held:
        return None
    return max(denoise + held["denoise"], decode + held["decode"])


def denoise_bytes(rebuilt: Rebuilt, trace: Trace) -> int | None:
    """ComfyUI's denoiser working memory; None for a family that the published table does not name."""
    component = next((each for each in trace.components if is_denoiser(each)), None)
    if component is None:
        return None
    factor = _denoiser_factor(rebuilt.model, component)
    if factor is None:
        return None
    request = rebuilt.request
    shape = rebuilt.model.latent_shape(
        request.width, request.height, request.num_frames, request.batch
    )
    area = shape[0] * prod(shape[2:])
    return round(area * _ITEM_BYTES.get(component.dtype, 2) * 0.01 * factor * MIB)


def _denoiser_factor(model: Model, component: Component) -> float | None:
    config = model.components[component.name].config
    if component.kind == "WanTransformer3DModel":
        return float(config["num_attention_heads"] * config["attention_head_dim"]) / _WAN_WIDTH
    if component.kind == "LTXVideoTransformer3DModel":
        return _LTX_FACTOR * float(config["cross_attention_dim"]) / _LTX_WIDTH
    if component.kind == "UNet2DConditionModel":
        return _SDXL_FACTOR if config.get("cross_attention_dim") == _SDXL_CROSS_DIM else None
    return _COMFY_DENOISER.get(component.kind)


def decode_bytes(rebuilt: Rebuilt) -> int | None:
    """ComfyUI's decode working memory, untiled; None for tiles and for an autoencoder that its table does not name."""
    if rebuilt.settings.vae_tiling:
        return None
    kind, frames, height, width, item = _latent(rebuilt)
    rule = _COMFY_DECODER.get(kind)
    if rule is None:
        return None
    if kind == "AutoencoderKLWan" and rebuilt.model.vae.spatial_compression == _WAN22_SIDE:
        return 8000 * height * width * 256 * item
    return round(rule(frames, height, width) * item)


def invokeai_decode_bytes(rebuilt: Rebuilt) -> int | None:
    """InvokeAI's decode working memory: pixels x item size x a constant; None where none is published."""
    kind, _, _, _, item = _latent(rebuilt)
    constant = _INVOKEAI_DECODER.get(kind)
    if constant is None or rebuilt.settings.vae_tiling:
        return None
    return rebuilt.request.width * rebuilt.request.height * item * constant


def _latent(rebuilt: Rebuilt) -> tuple[str, int, int, int, int]:
    """Class of the autoencoder, latent frames, height and width, and bytes an element."""
    model, request = rebuilt.model, rebuilt.request
    part = model.components[model.vae.component]
    shape = model.latent_shape(request.width, request.height, request.num_frames, request.batch)
    frames = shape[2] if model.is_video else 1
    dtype = rebuilt.settings.dtype.get(model.vae.component) or rebuilt.settings.dtype.get("*")
    item = _ITEM_BYTES[dtype or part.recommended_dtype]
    return part.class_path.rpartition(".")[2], frames, shape[-2], shape[-1], item
