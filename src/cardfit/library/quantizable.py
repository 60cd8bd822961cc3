"""Which weight schemes a component can take, and which offloads go with them.

In: a library entry and settings. Out: nothing, or BadRequest with the list of what is allowed. A scheme changes half
precision weights; GGUF and SVDQuant come as files of a denoiser; a VAE is mostly convolutions, which only casting and
torchao's call on any module leave working. Left out: which files somebody has published, and what a card can compute.
"""

from __future__ import annotations

from cardfit.errors import BadRequest
from cardfit.library.models import ComponentSpec, Model
from cardfit.request import QUANTIZATIONS, Offload, Quantization, Settings

# diffusers 0.42.1, loaders/single_file_model.py: the denoisers of the library that load from one file, as GGUF is (a
# test compares)
SINGLE_FILE = frozenset(
    {
        "AuraFlowTransformer2DModel",
        "ChromaTransformer2DModel",
        "CosmosTransformer3DModel",
        "Flux2Transformer2DModel",
        "FluxTransformer2DModel",
        "HiDreamImageTransformer2DModel",
        "HunyuanVideoTransformer3DModel",
        "LTX2VideoTransformer3DModel",
        "LTXVideoTransformer3DModel",
        "Lumina2Transformer2DModel",
        "MochiTransformer3DModel",
        "QwenImageTransformer2DModel",
        "SD3Transformer2DModel",
        "SanaTransformer2DModel",
        "SkyReelsV2Transformer3DModel",
        "UNet2DConditionModel",
        "WanTransformer3DModel",
        "WanVACETransformer3DModel",
        "ZImageTransformer2DModel",
    }
)
_DENOISERS = ("transformer", "unet", "prior")
# weights of bitsandbytes move as whole components only (diffusers 0.42.1: `.to` of a pipeline and model offload)
_WHOLE_ONLY = "bnb"
_WHOLE: tuple[Offload, ...] = ("none", "model")


def allowed_schemes(name: str, part: ComponentSpec, dtype: str) -> tuple[Quantization, ...]:
    """The schemes that component ``name`` can take when it is loaded in ``dtype``; at least ``none``."""
    if dtype == "float32":
        return ("none",)
    kind = part.class_path.rpartition(".")[2]
    families = ["none", "fp8", "torchao"]
    if not kind.startswith("Autoencoder"):
        families += ["bnb", "quanto"]
    if name.startswith(_DENOISERS):
        families += ["gguf"] if kind in SINGLE_FILE else []
        families += ["svdq"] if "Transformer" in kind else []
    return tuple(each for each in QUANTIZATIONS if each.partition("-")[0] in families)


def check_quantization(model: Model, settings: Settings) -> None:
    """Raise BadRequest for a scheme that its component or the offload cannot take."""
    for name, scheme in settings.quantization.items():
        part = model.components.get(name)
        if scheme == "none" or part is None:
            continue
        dtype = settings.dtype.get(name) or settings.dtype.get("*") or part.recommended_dtype
        allowed = allowed_schemes(name, part, dtype)
        kind = part.class_path.rpartition(".")[2]
        if dtype == "float32":
            raise BadRequest(
                "quantization-of-fp32", component=name, scheme=scheme, model=model.id, kind=kind
            )
        if scheme not in allowed:
            raise BadRequest(
                "quantization-not-taken",
                component=name,
                scheme=scheme,
                model=model.id,
                kind=kind,
                allowed=", ".join(allowed),
            )
        offload = settings.offload or "none"
        if scheme.startswith(_WHOLE_ONLY) and offload not in _WHOLE:
            raise BadRequest(
                "quantization-with-offload",
                component=name,
                scheme=scheme,
                offload=offload,
                allowed=", ".join(_WHOLE),
            )
