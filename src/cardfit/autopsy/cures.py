"""What to change for a cause: a table of cures and, per cause, which of them help, in the order of their price.

In: a cause, the stage, the settings that ran. Out: cures without predictions; `diagnose` adds those. Flags are
cardfit's, lines are diffusers', the other words are those of ComfyUI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from cardfit.autopsy.cause import Cause
from cardfit.autopsy.result import CauseName, Cure, CurePrice, Numbers, StageName
from cardfit.messages import say
from cardfit.request import Settings

PRICES: tuple[CurePrice, ...] = get_args(CurePrice)
_SEGMENTS = "expandable_segments:True"


@dataclass(frozen=True, slots=True)
class Remedy:
    """One cure as the table holds it: ``turn`` are the settings it changes; a dict in it goes on top of what is set."""

    price: CurePrice
    turn: Mapping[str, Any] = field(default_factory=dict)
    flags: str = ""
    lines: tuple[str, ...] = ()
    comfyui: str | None = None


REMEDIES: dict[str, Remedy] = {
    "segments": Remedy(
        "free",
        {"alloc_conf": _SEGMENTS},
        f"--alloc-conf {_SEGMENTS}",
        ("import os", f'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "{_SEGMENTS}"  # before torch'),
        f"PYTORCH_CUDA_ALLOC_CONF={_SEGMENTS}, --disable-cuda-malloc",
    ),
    "close_others": Remedy("free", lines=(), comfyui="nvidia-smi"),
    "fused_attention": Remedy(
        "free",
        {"attention": "efficient"},
        "--attention efficient",
        ('pipe.transformer.set_attention_backend("_native_efficient")',),
        "--use-pytorch-cross-attention",
    ),
    "latents_first": Remedy(
        "free",
        lines=('latents = pipe(..., output_type="latent")[0]', "# save, then decode in a new process"),
        comfyui="SaveLatent, LoadLatent",
    ),
    "slicing": Remedy(
        "free", {"vae_slicing": True}, "--vae-slicing", ("pipe.vae.enable_slicing()",)
    ),
    "encode_apart": Remedy(
        "free",
        {"prompt_embeds": True},
        "--prompt-embeds",
        ("embeds = pipe.encode_prompt(...)", "pipe.text_encoder = None  # and pass prompt_embeds"),
        "CLIPLoader, device: cpu",
    ),
    "one_dtype": Remedy("free", lines=("pipe.to(torch.bfloat16)",), comfyui="weight_dtype: default"),
    "cuda_build": Remedy("free"),
    "kernel_build": Remedy("free"),
    "quiet_card": Remedy("free", comfyui="--reserve-vram 1"),
    "model_offload": Remedy(
        "slower",
        {"offload": "model"},
        "--offload model",
        ("pipe.enable_model_cpu_offload()  # instead of .to(\"cuda\")",),
        "--lowvram",
    ),
    "group_offload": Remedy(
        "slower",
        {"offload": "group-leaf"},
        "--offload group-leaf",
        (
            "pipe.enable_group_offload(",
            '    onload_device=torch.device("cuda"), offload_device=torch.device("cpu"),',
            '    offload_type="leaf_level", use_stream=True,',
            ")",
        ),
        "WanVideoBlockSwap, --novram",
    ),
    "sequential_offload": Remedy(
        "slower",
        {"offload": "sequential"},
        "--offload sequential",
        ("pipe.enable_sequential_cpu_offload()",),
        "--novram",
    ),
    "unpinned": Remedy(
        "slower",
        {"low_cpu_mem_usage": True},
        "--low-cpu-mem-usage",
        ("pipe.enable_group_offload(..., low_cpu_mem_usage=True)",),
        "--disable-pinned-memory",
    ),
    "page_file": Remedy("slower", comfyui="--cache-none"),
    "weights_on_disk": Remedy(
        "slower",
        {"offload": "group-leaf", "offload_to_disk": True},
        "--offload group-leaf --offload-to-disk",
        ('pipe.enable_group_offload(..., offload_to_disk_path="offload")',),
    ),
    "no_fallback": Remedy("slower"),
    "more_ram": Remedy("more_ram"),
    "tiling": Remedy(
        "lossy",
        {"vae_tiling": True},
        "--vae-tiling",
        ("pipe.vae.enable_tiling()",),
        "VAE Decode (Tiled): tile_size 512, overlap 64, temporal_size 64, temporal_overlap 8",
    ),
    "smaller_tile": Remedy(
        "lossy",
        {"vae_tiling": True, "vae_tile": 128},
        "--vae-tiling --vae-tile 128",
        (),
        "VAE Decode (Tiled): tile_size 256, overlap 64, temporal_size 32, temporal_overlap 8",
    ),
    "fp8": Remedy(
        "lossy",
        {"quantization": "fp8-layerwise"},
        "--quantization {denoiser}=fp8-layerwise",
        (
            "pipe.{denoiser}.enable_layerwise_casting(",
            "    storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16,",
            ")",
        ),
        "weight_dtype: fp8_e4m3fn",
    ),
    "nf4": Remedy(
        "lossy",
        {"quantization": "bnb-nf4"},
        "--quantization {denoiser}=bnb-nf4",
        (
            "PipelineQuantizationConfig(",
            '    quant_backend="bitsandbytes_4bit", quant_kwargs={{"load_in_4bit": True}},',
            '    components_to_quantize=["{denoiser}"],',
            ")",
        ),
        "Unet Loader (GGUF), Q4_K_M",
    ),
    "half_precision": Remedy(
        "free",
        {"dtype": {"*": "bfloat16"}},
        "--dtype bf16",
        ("from_pretrained(..., torch_dtype=torch.bfloat16)",),
        "--bf16-vae, --fp16-unet",
    ),
    "smaller_job": Remedy("other_job"),
    "larger_card": Remedy("other_job"),
}  # fmt: skip

_OFFLOADS = ("model_offload", "group_offload", "sequential_offload")
_SMALLER = ("fp8", "nf4", "smaller_job")
_BY_CAUSE: dict[CauseName, tuple[str, ...]] = {
    "decode_untiled": ("latents_first", "slicing", *_OFFLOADS[:2], "tiling", "smaller_tile", "smaller_job"),
    "decode": ("latents_first", *_OFFLOADS[:2], "smaller_tile", "smaller_job"),
    "attention": ("fused_attention", "group_offload", "smaller_job", "larger_card"),
    "fragmentation": ("segments",),
    "text_encoder_resident": ("encode_apart", *_OFFLOADS, "nf4"),
    "weights_do_not_fit": (*_OFFLOADS, "fp8", "nf4", "larger_card"),
    "activations": (*_OFFLOADS, *_SMALLER),
    "load_on_card": (*_OFFLOADS, "fp8", "nf4"),
    "host_ram": ("page_file", "weights_on_disk", "more_ram", "nf4"),
    "pinned_memory": ("unpinned", "more_ram", "fp8"),
    "spill": (*_OFFLOADS[:2], "no_fallback", "tiling", *_SMALLER),
    "dtype": ("one_dtype",),
    "other_process": ("close_others", "quiet_card"),
    "no_memory_error": (),
    "unknown": ("segments", *_OFFLOADS[:2], "tiling"),
}  # fmt: skip
_BY_DETAIL: dict[str, tuple[str, ...]] = {"kernel": ("kernel_build",), "build": ("cuda_build",)}
# What helps at a stage whatever else is said, after the cause's own.
_BY_STAGE: dict[StageName, tuple[str, ...]] = {
    "load": ("model_offload", "nf4"),
    "encode_prompt": ("encode_apart", "model_offload"),
    "encode_condition": ("model_offload", "tiling"),
    "denoise": ("model_offload", "group_offload", "fp8"),
    "decode": ("latents_first", "model_offload", "tiling"),
}
_WITH_STAGE: frozenset[CauseName] = frozenset({"fragmentation", "other_process"})


def remedies(cause: Cause, stage: StageName | None, numbers: Numbers) -> tuple[str, ...]:
    """The codes of the cures for ``cause``, the cheapest first, none twice; empty where nothing is to be turned."""
    found = [*_BY_DETAIL.get(cause.detail, ()), *_BY_CAUSE[cause.name]]
    if cause.name in _WITH_STAGE and stage is not None:
        found += _BY_STAGE.get(stage, ())
    apart, free, tried = (
        numbers.reserved_unallocated_bytes,
        numbers.free_bytes,
        numbers.tried_bytes,
    )
    on_card = cause.name not in ("host_ram", "pinned_memory", "dtype", "no_memory_error", "spill")
    if on_card and apart is not None and tried is not None and apart + (free or 0) >= tried:
        found.insert(0, "segments")
    if numbers.backend in ("mps", "xpu"):
        found = [code for code in found if code != "segments"]
    unique = dict.fromkeys(found)
    return tuple(sorted(unique, key=lambda code: PRICES.index(REMEDIES[code].price)))


def settings_with(
    code: str, settings: Settings, denoisers: Sequence[str], text_encoders: Sequence[str] = ()
) -> Settings | None:
    """``settings`` after the cure; None where it turns no setting, or none that is not turned already."""
    turn = dict(REMEDIES[code].turn)
    if not turn:
        return None
    if (scheme := turn.get("quantization")) is not None:
        names = [*denoisers, *(text_encoders if scheme == "bnb-nf4" else ())]
        if not names:
            return None
        turn["quantization"] = {**settings.quantization, **dict.fromkeys(names, scheme)}
    found = settings.model_copy(update=turn)
    return None if found == settings else found


def cure(code: str, settings: Settings | None, denoisers: Sequence[str]) -> Cure:
    """The cure as the answer holds it, without a prediction; ``settings`` are those after it, if known."""
    remedy = REMEDIES[code]
    named = {"denoiser": denoisers[0] if denoisers else "transformer"}
    quantized = "quantization" in remedy.turn
    return Cure(
        code=code,
        price=remedy.price,
        text=say(f"autopsy-cure-{code}"),
        settings=settings,
        flags=remedy.flags.format(**named) if quantized else remedy.flags,
        lines=tuple(line.format(**named) if quantized else line for line in remedy.lines),
        comfyui=remedy.comfyui,
        predicted=None,
    )
