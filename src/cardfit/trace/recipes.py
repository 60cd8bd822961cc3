"""How to hold each pipeline: the parts its constructor wants beside the components, and the arguments of its call.

In: a library model, an exact request and settings. Out: constructor and call arguments, filled by the pipeline's own
parameter names, so that a new pipeline usually needs nothing here.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch
from PIL import Image

from cardfit.library.models import Model
from cardfit.request import ExactRequest, Settings
from cardfit.trace import addons
from cardfit.trace.tokens import DryImageProcessor, DryTokenizer, DryVisionProcessor

_IMAGE_TASKS = {"image-to-image", "inpainting", "image-editing", "image-to-video"}
_VISION_LANGUAGE = (
    "Qwen2_5_VLForConditionalGeneration",
    "Mistral3ForConditionalGeneration",
    "Qwen2VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLModel",
)
_UNBOUNDED = 1 << 16  # tokens; an encoder without a table of its own


class DryGuard:
    """Stands where Cosmos wants its separately installed guardrail models; they are not counted."""

    def to(self, _device: Any) -> DryGuard:
        """Stay."""
        return self

    def check_text_safety(self, _prompt: str) -> bool:
        """Everything passes."""
        return True

    def check_video_safety(self, video: Any) -> Any:
        """Everything passes."""
        return video


def scheduler(model: Model) -> Any:
    """The real scheduler of the published repository."""
    library, _, name = model.scheduler.class_path.rpartition(".")
    return getattr(importlib.import_module(library), name).from_config(model.scheduler.config)


def parts(
    model: Model, pipeline: Any, components: dict[str, torch.nn.Module], request: ExactRequest
) -> dict[str, Any]:
    """Everything the constructor of ``pipeline`` asks for that is not a component with weights."""
    found: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(pipeline.__init__).parameters.items())[1:]:
        if name in components:
            continue
        if name in model.pipeline_config:
            found[name] = model.pipeline_config[name]
        elif name == "scheduler":
            found[name] = scheduler(model)
        elif name.startswith("tokenizer") or name == "processor":
            part = _tokenizer(name, model, components, request)
            if part is not None:
                found[name] = part
        elif name == "safety_checker" and pipeline.__name__.startswith("Cosmos"):
            found[name] = DryGuard()
        elif name in ("image_processor", "feature_extractor"):
            found[name] = _image_processor(components)
        elif name == "guider":
            kind = importlib.import_module("diffusers").ClassifierFreeGuidance
            found[name] = kind(guidance_scale=request.guidance_scale)
        elif parameter.default is inspect.Parameter.empty:
            found[name] = None
    return found


def _tokenizer(
    name: str, model: Model, components: dict[str, torch.nn.Module], request: ExactRequest
) -> DryTokenizer | None:
    encoder_name = (
        "text_encoder" + name.removeprefix("tokenizer")
        if name.startswith("tokenizer")
        else "text_encoder"
    )
    encoder: Any = components.get(encoder_name) or components.get("text_encoder")
    if encoder is None:
        return None
    return tokenizer(encoder, model.defaults.max_sequence_length or _UNBOUNDED)


def tokenizer(encoder: Any, limit: int) -> DryTokenizer:
    """What stands before ``encoder``: its own number of tokens where it has a table of them, else at most ``limit``."""
    config = encoder.config
    kind = type(encoder).__name__
    if kind.startswith("CLIP"):
        limit = int(config.max_position_embeddings)
    elif kind.startswith(("Qwen", "Llama", "Mistral")) or kind in _VISION_LANGUAGE:
        limit = _UNBOUNDED
    eos = getattr(config, "eos_token_id", None)
    image = getattr(config, "image_token_id", None)
    maker = DryVisionProcessor if kind in _VISION_LANGUAGE else DryTokenizer
    made = maker(limit, eos if isinstance(eos, int) else 1, image)
    made.positions = kind.startswith("ChatGLM")
    if isinstance(made, DryVisionProcessor) and kind.startswith("Qwen"):
        made.patch = int(config.vision_config.patch_size)
        made.types = kind.startswith("Qwen3VL")
    return made


def _image_processor(components: dict[str, torch.nn.Module]) -> DryImageProcessor | None:
    side = image_side(components)
    return None if side is None else DryImageProcessor(side)


def image_side(components: dict[str, torch.nn.Module], name: str = "") -> int | None:
    """Pixels of the side that the vision encoder takes; ``name`` is the processor's, which may carry a prefix."""
    before = name.partition("image_processor")[0].partition("feature_extractor")[0]
    wanted = (f"{before}image_encoder", "image_encoder", "safety_checker")
    for encoder in (components[each] for each in wanted if components.get(each) is not None):
        config: Any = encoder.config
        return int(getattr(config, "vision_config", config).image_size)
    return None


def set_vae(vae: Any, settings: Settings) -> None:
    """Switch tiling and slicing on the real VAE as the settings say."""
    if settings.vae_tiling:
        vae.enable_tiling(**tile_arguments(vae, settings))
    if settings.vae_slicing:
        vae.enable_slicing()


def tile_arguments(vae: Any, settings: Settings) -> dict[str, Any]:
    """``enable_tiling`` arguments for a tile side and overlap in pixels, by the names this VAE has."""
    tile, overlap = settings.vae_tile, settings.vae_overlap
    if tile is None and overlap is None:
        return {}
    names = inspect.signature(vae.enable_tiling).parameters
    side = (
        tile
        or getattr(vae, "tile_sample_min_height", None)
        or getattr(vae, "tile_sample_min_size", None)
    )
    wanted: dict[str, Any] = {}
    if tile is not None:
        wanted |= {
            "tile_sample_min_height": tile,
            "tile_sample_min_width": tile,
            "tile_sample_min_size": tile,
        }
    if side is not None:
        gap = side - (overlap if overlap is not None else side // 4)
        share = (overlap if overlap is not None else side // 4) / side
        wanted |= {"tile_sample_stride_height": gap, "tile_sample_stride_width": gap}
        wanted |= {name: share for name in names if name.startswith("tile_overlap_factor")}
    arguments = {name: value for name, value in wanted.items() if name in names}
    if not arguments and tile is not None:  # AutoencoderKL takes its tile as attributes
        vae.tile_sample_min_size = tile
        ratio = 2 ** (len(vae.config.block_out_channels) - 1)
        vae.tile_latent_min_size = tile // ratio
        if overlap is not None:
            vae.tile_overlap_factor = overlap / tile
    return arguments


def call_arguments(
    model: Model, pipeline: Any, request: ExactRequest, settings: Settings
) -> dict[str, Any]:
    """Arguments of ``pipeline(...)`` for the request, by the pipeline's own parameter names."""
    names = inspect.signature(pipeline.__call__).parameters
    picture = Image.new("RGB", (request.width, request.height))
    guidance = request.guidance_scale
    wanted: dict[str, Any] = {
        "prompt": " ".join(["word"] * max(1, request.prompt_tokens - 1)),
        "negative_prompt": "word" if guidance > 1 else None,
        "width": request.width,
        "height": request.height,
        "num_frames": request.num_frames,
        "num_inference_steps": request.num_inference_steps,
        "num_images_per_prompt": request.batch,
        "num_videos_per_prompt": request.batch,
        "max_sequence_length": model.defaults.max_sequence_length,
        "frame_rate": request.fps,
        "decode_chunk_size": settings.decode_chunk_size or model.defaults.decode_chunk_size,
        "output_type": "pt",
        model.defaults.guidance_argument: guidance,
        **model.call,
    }
    if request.fps is not None and "fps" in names:
        wanted["fps"] = int(request.fps)
    if request.task in _IMAGE_TASKS:
        wanted["image"] = picture
        wanted["mask_image"] = Image.new("L", picture.size)
        wanted["strength"] = 1.0
    if request.task == "video-to-video":
        wanted["video"] = [picture] * request.num_frames
    wanted |= addons.pictures(model, request, names, picture)
    return {name: value for name, value in wanted.items() if name in names and value is not None}
