"""The diffusers lines for settings that a plan chose.

In: a `Recipe` (what the library knows of the model), the request and the settings. Out: Python source that loads the
pipeline, turns the same knobs as the prediction did, and makes the output. Written for diffusers 0.42; it leaves out
prompts and input pictures, which stand as names to fill in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from cardfit.library.add_ons import with_add_ons
from cardfit.library.models import Model
from cardfit.plan.answer import Answer, Pick
from cardfit.predict.offload import DENOISERS
from cardfit.predict.placement import streams
from cardfit.predict.weights import NOT_CONVERTED_BY_CLASS
from cardfit.report import beside, denoiser, quantized, words
from cardfit.request import Dtype, ExactRequest, Quantization, Settings

# Call arguments that a pipeline of diffusers 0.42.1 does not take (its signature; a test compares).
LACKS: dict[str, frozenset[str]] = {
    "StableVideoDiffusionPipeline": frozenset({"prompt", "guidance_scale"}),
    "HunyuanVideo15ImageToVideoPipeline": frozenset({"height", "width"}),
    "StableDiffusionXLImg2ImgPipeline": frozenset({"height", "width"}),
}
# How a VAE takes its tile size: as arguments of enable_tiling with strides or with overlap factors, else as attributes.
_STRIDED = frozenset(
    {
        "AutoencoderDC",
        "AutoencoderKLHunyuanVideo",
        "AutoencoderKLLTX2Video",
        "AutoencoderKLLTXVideo",
        "AutoencoderKLMochi",
        "AutoencoderKLQwenImage",
        "AutoencoderKLWan",
    }
)
_FACTORED = frozenset({"AutoencoderKLCogVideoX"})
_ONE_FACTOR = frozenset({"AutoencoderKLHunyuanVideo15"})
GUIDER = "guider"  # guidance is a component of the pipeline, not an argument of its call
_TAKES_IMAGE = frozenset({"image-to-image", "inpainting", "image-editing", "image-to-video"})


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the code needs to know of a model; ``dtypes`` are the recommended ones, ``classes`` the module classes."""

    pipeline: str
    repo_id: str
    dtypes: dict[str, Dtype]
    classes: dict[str, str]
    guidance_argument: str = "guidance_scale"
    call: dict[str, object] = field(default_factory=dict)
    video: bool = False
    vae: str = "vae"
    vae_compression: int = 8
    beside: Model | None = None  # the entry as the request runs it, where it asks for add-ons

    @classmethod
    def of(cls, model: Model, request: ExactRequest | None = None) -> Recipe:
        """The recipe of a library entry; with the add-ons of ``request`` where it has any."""
        fitted = model if request is None else with_add_ons(model, request)
        beside = None
        if request is not None and (
            fitted is not model or request.ip_adapters or request.reference_images
        ):
            beside, model = fitted, fitted
        parts = {name: part for name, part in model.components.items() if part.counted}
        return cls(
            pipeline=model.pipeline
            if beside is None or request is None
            else model.pipeline_for(request.task),
            repo_id=model.repo_id,
            dtypes={name: part.recommended_dtype for name, part in parts.items()},
            classes={name: part.class_path for name, part in parts.items()},
            guidance_argument=model.defaults.guidance_argument,
            call=model.call,
            video=model.is_video,
            vae=model.vae.component,
            vae_compression=model.vae.spatial_compression,
            beside=beside,
        )


def code(answer: Answer, pick: Pick, recipe: Recipe) -> str:
    """Python source for ``pick``, with the card and the versions it was predicted for in its head."""
    row = next(row for row in answer.cards if row.card == pick.card)
    versions = ", ".join(f"{name} {answer.versions[name]}" for name in sorted(answer.versions))
    settings = words.settings_words(pick.settings)
    head = [f"# {answer.model.title} on {row.name}: {settings}", f"# {versions}"]
    return "\n".join([*head, *body(answer.request, pick.settings, recipe)]) + "\n"


def body(request: ExactRequest, settings: Settings, recipe: Recipe) -> list[str]:
    """The lines below the head."""
    dtypes = words.dtypes_of(settings, recipe.dtypes)
    schemes = {name: scheme for name, scheme in settings.quantization.items() if scheme != "none"}
    config, config_imports = quantized.config(schemes, recipe.classes)
    files, file_imports, handed = quantized.files(schemes, recipe.classes, dtypes, recipe.repo_id)
    more = [*config_imports, *file_imports, *_casting_imports(schemes, recipe)]
    if settings.offload_to_disk and settings.offload in ("group-leaf", "group-block"):
        more.append("from diffusers.hooks import apply_group_offloading")
    return [
        *_imports(request, recipe, more),
        "",
        *config,
        *files,
        *(beside.load(recipe.beside, request, dtypes) if recipe.beside else ()),
        *_load(
            recipe,
            dtypes,
            bool(config),
            [
                *denoiser.left_out(settings, recipe.classes),
                *handed,
                *(beside.arguments(recipe.beside) if recipe.beside else ()),
            ],
        ),
        *(beside.ip_adapters(recipe.beside, request) if recipe.beside else ()),
        *_casting(schemes, dtypes, recipe),
        *denoiser.loras(request, recipe.pipeline, recipe.classes),
        *denoiser.attention(settings, recipe.classes),
        *denoiser.chunks(settings, recipe.classes),
        *denoiser.fused_qkv(settings, recipe.classes),
        *_offload(settings, recipe),
        *denoiser.compiled(settings, recipe.classes),
        *_vae(settings, recipe),
        "",
        *_call(request, settings, recipe),
    ]


def _imports(request: ExactRequest, recipe: Recipe, more: list[str]) -> list[str]:
    names = (["export_to_video"] if recipe.video else []) + (
        ["load_image"] if request.task in _TAKES_IMAGE else []
    )
    names += ["load_video"] if request.task == "video-to-video" else []
    kinds = [recipe.pipeline]
    if recipe.beside is not None:
        kinds += beside.classes(recipe.beside)
        if "load_image" not in names and beside.call(recipe.beside, request, takes_image=False):
            names.append("load_image")
    found = ["import torch", f"from diffusers import {', '.join(sorted(kinds))}", *more]
    if names:
        found.append(f"from diffusers.utils import {', '.join(names)}")
    return found


def _load(
    recipe: Recipe, dtypes: dict[str, Dtype], has_config: bool, arguments: list[str]
) -> list[str]:
    common = Counter(dtypes.values()).most_common(1)[0][0]
    others = {name: dtype for name, dtype in dtypes.items() if dtype != common}
    dtype = f"torch.{common}"
    if others:
        parts = [f'"default": {dtype}', *(f'"{name}": torch.{x}' for name, x in others.items())]
        dtype = "{" + ", ".join(parts) + "}"
    lines = [
        f"pipe = {recipe.pipeline}.from_pretrained(",
        f'    "{recipe.repo_id}",',
        f"    dtype={dtype},",
        *arguments,
    ]
    if has_config:
        lines.append("    quantization_config=quantization,")
    return [*lines, ")"]


def _kept(recipe: Recipe, name: str) -> tuple[str, ...]:
    """Layers that casting would break: T5 turns what it feeds them to the dtype their weight is stored in."""
    return NOT_CONVERTED_BY_CLASS.get(recipe.classes.get(name, "").rpartition(".")[2], ())


def _casting_imports(schemes: Mapping[str, Quantization], recipe: Recipe) -> list[str]:
    cast = [name for name, scheme in schemes.items() if scheme == "fp8-layerwise"]
    hooked = [name for name in cast if quantized.of_transformers(recipe.classes, name)]
    found = ["from diffusers.hooks import apply_layerwise_casting"] if hooked else []
    if any(_kept(recipe, name) for name in hooked):
        found.append("from diffusers.hooks.layerwise_casting import DEFAULT_SKIP_MODULES_PATTERN")
    return found


def _casting(
    schemes: Mapping[str, Quantization], dtypes: dict[str, Dtype], recipe: Recipe
) -> list[str]:
    """Layerwise casting: a method of diffusers' models, a hook function for the others."""
    found = []
    for name, scheme in schemes.items():
        if scheme != "fp8-layerwise":
            continue
        if quantized.of_transformers(recipe.classes, name):
            found += ["apply_layerwise_casting(", f"    pipe.{name},"]
        else:
            found.append(f"pipe.{name}.enable_layerwise_casting(")
        found += [
            "    storage_dtype=torch.float8_e4m3fn,",
            f"    compute_dtype=torch.{dtypes.get(name, 'bfloat16')},",
        ]
        if quantized.of_transformers(recipe.classes, name) and (kept := _kept(recipe, name)):
            names = ", ".join(f'"{each}"' for each in kept)
            found.append(f"    skip_modules_pattern=(*DEFAULT_SKIP_MODULES_PATTERN, {names}),")
        found.append(")")
    return found


def _offload(settings: Settings, recipe: Recipe) -> list[str]:
    lines = _swap(settings, recipe)
    if settings.offload == "model":
        if "bnb-int8" in settings.quantization.values():
            lines.append(
                "# bitsandbytes 0.48 and transformers 4.58 or later: older ones leave 8-bit"
            )
            lines.append("# components on the card")
        return [*lines, "pipe.enable_model_cpu_offload()"]
    if settings.offload == "sequential":
        return ["pipe.enable_sequential_cpu_offload()"]
    if settings.offload in ("group-leaf", "group-block"):
        return _groups(settings, recipe)
    return [*lines, 'pipe.to("cuda")']


def _swap(settings: Settings, recipe: Recipe) -> list[str]:
    """Hooks that bring the last blocks of every denoiser in for their own forward; diffusers has none of its own."""
    if settings.blocks_to_swap is None:
        return []
    lines = [
        "",
        "",
        "def swap(block):",
        "    def move(device):",
        "        for tensor in (*block.parameters(), *block.buffers()):",
        "            tensor.data = tensor.data.to(device)",
        "",
        "    block._apply = lambda fn, recurse=True: block  # the rest of the model moves without it",
        '    block.register_forward_pre_hook(lambda *_: move("cuda"))',
        '    block.register_forward_hook(lambda *_: move("cpu"))',
        "",
        "",
    ]
    for name in recipe.classes:
        if not name.startswith(DENOISERS):
            continue
        lines += [
            "blocks = [",
            "    block",
            f"    for part in pipe.{name}.children()",
            "    if isinstance(part, (torch.nn.ModuleList, torch.nn.Sequential))",
            "    for block in part",
            '    if "Block" in type(block).__name__',
            "]",
            f"for block in blocks[-{settings.blocks_to_swap}:]:",
            "    swap(block)",
        ]
    return lines


def _groups(settings: Settings, recipe: Recipe) -> list[str]:
    """Group offload: of the whole pipeline at once, or component by component where each needs something else."""
    leaf = 'offload_type="leaf_level"'
    together = f"num_blocks_per_group={settings.num_blocks_per_group or 1}"
    blocks = ('offload_type="block_level"', together)
    # hooks of blocks wait for forward, which decoding never calls, so a VAE goes by leaves; it comes first because
    # the pipeline moves what it excludes to the card, unless that has hooks (diffusers then only warns)
    autoencoders = [
        name
        for name, path in recipe.classes.items()
        if path.rpartition(".")[2].startswith("Autoencoder")
    ]
    if settings.offload_to_disk:
        # diffusers names a group's file after its path in the component: a folder for each, or they would collide
        lines = []
        for name in recipe.classes:
            by_leaf = settings.offload == "group-leaf" or name in autoencoders
            kind = (leaf,) if by_leaf else blocks
            folder = f'offload_to_disk_path="offloaded/{name}"'
            lines += _group(f"apply_group_offloading(\n    pipe.{name},", settings, *kind, folder)
        return lines
    if settings.offload == "group-leaf":
        return _group("pipe.enable_group_offload(", settings, leaf)
    lines = []
    for name in autoencoders:
        lines += _group(f"pipe.{name}.enable_group_offload(", settings, leaf)
    names = ", ".join(f'"{name}"' for name in autoencoders)
    excluded = [f"exclude_modules=[{names}]"] if autoencoders else []
    return lines + _group("pipe.enable_group_offload(", settings, *blocks, *excluded)


def _group(opened: str, settings: Settings, *arguments: str) -> list[str]:
    """One call that hooks groups."""
    low = ["low_cpu_mem_usage=True"] if settings.low_cpu_mem_usage else []
    return [
        *opened.split("\n"),
        '    onload_device=torch.device("cuda"),',
        '    offload_device=torch.device("cpu"),',
        *(f"    {argument}," for argument in (*arguments, *low)),
        f"    use_stream={streams(settings)},",
        ")",
    ]


def _vae(settings: Settings, recipe: Recipe) -> list[str]:
    found = []
    vae = f"pipe.{recipe.vae}"
    if settings.vae_tiling:
        found += _tiling(settings, recipe, vae)
    if settings.vae_slicing:
        found.append(f"{vae}.enable_slicing()")
    return found


def _tiling(settings: Settings, recipe: Recipe, vae: str) -> list[str]:
    tile = settings.vae_tile
    if tile is None:
        return [f"{vae}.enable_tiling()"]
    overlap = tile // 4 if settings.vae_overlap is None else settings.vae_overlap
    kind = recipe.classes.get(recipe.vae, "").rpartition(".")[2]
    sides = [f"tile_sample_min_height={tile}", f"tile_sample_min_width={tile}"]
    factor = round(overlap / tile, 4)
    if kind in _STRIDED:
        sides += [
            f"tile_sample_stride_height={tile - overlap}",
            f"tile_sample_stride_width={tile - overlap}",
        ]
    elif kind in _FACTORED:
        sides += [f"tile_overlap_factor_height={factor}", f"tile_overlap_factor_width={factor}"]
    elif kind in _ONE_FACTOR:
        latent = tile // recipe.vae_compression
        sides += [f"tile_latent_min_height={latent}", f"tile_latent_min_width={latent}"]
        sides.append(f"tile_overlap_factor={factor}")
    else:
        return [
            f"{vae}.tile_sample_min_size = {tile}",
            f"{vae}.tile_latent_min_size = {tile // recipe.vae_compression}",
            f"{vae}.tile_overlap_factor = {factor}",
            f"{vae}.enable_tiling()",
        ]
    return [f"{vae}.enable_tiling(", *(f"    {side}," for side in sides), ")"]


def _call(request: ExactRequest, settings: Settings, recipe: Recipe) -> list[str]:
    values: dict[str, object] = {"prompt": '"..."'}
    if request.task in _TAKES_IMAGE:
        values["image"] = 'load_image("input.png")'
    if request.task == "video-to-video":
        values["video"] = 'load_video("input.mp4")'
    if recipe.beside is not None:
        values |= beside.call(recipe.beside, request, takes_image="image" in values)
    values |= {"height": request.height, "width": request.width}
    if recipe.video:
        values["num_frames"] = request.num_frames
    values["num_inference_steps"] = request.num_inference_steps
    guider = recipe.guidance_argument == GUIDER
    if not guider:
        values[recipe.guidance_argument] = request.guidance_scale
    if request.batch > 1:
        values["num_videos_per_prompt" if recipe.video else "num_images_per_prompt"] = request.batch
    if settings.decode_chunk_size is not None:
        values["decode_chunk_size"] = settings.decode_chunk_size
    values |= {name: repr(value) for name, value in recipe.call.items() if name not in values}
    values["generator"] = f"torch.Generator().manual_seed({request.seed})"
    lacks = LACKS.get(recipe.pipeline, frozenset())
    lines = [f"    {name}={value}," for name, value in values.items() if name not in lacks]
    if settings.prompt_embeds:
        lines[0] = "    **embeds,"  # in the prompt's place
    guidance = f"pipe.guider = pipe.guider.new(guidance_scale={request.guidance_scale})"
    before = [*denoiser.embeds(settings), *([guidance] if guider else [])]
    return [*before, "result = pipe(", *lines, ")", *_save(request, recipe)]


def _save(request: ExactRequest, recipe: Recipe) -> list[str]:
    if not recipe.video:
        return [
            "for number, image in enumerate(result.images):",
            '    image.save(f"output-{number}.png")',
        ]
    fps = f", fps={request.fps:g}" if request.fps else ""
    return [
        "for number, frames in enumerate(result.frames):",
        f'    export_to_video(frames, f"output-{{number}}.mp4"{fps})',
    ]
