"""Apply a model's rules to a request: open fields filled, sizes and frames as the pipeline will make them.

In: a library entry and a `Request`. Out: an `ExactRequest` and the notes that say aloud what changed. What the
pipeline would answer with an error raises `BadRequest`. The rules are those of the diffusers pipelines (0.42), read in
their `check_inputs`, `__call__` and `prepare_latents`. `settings_allowed` holds settings against the entry alike.
"""

from __future__ import annotations

from cardfit.errors import BadRequest, Note
from cardfit.library.models import FrameRule, Model
from cardfit.library.quantizable import check_quantization
from cardfit.library.sizes import made_size
from cardfit.request import ExactRequest, Request, Settings, Task

DEFAULT_PROMPT_TOKENS = 64
"""Tokens of a prompt whose length nobody gave: about 45 English words, two sentences."""

CHUNKED_FORWARD = frozenset(
    {
        "HunyuanDiT2DModel",
        "I2VGenXLUNet",
        "SD3Transformer2DModel",
        "UNet3DConditionModel",
        "UNetMotionModel",
        "UNetSpatioTemporalConditionModel",
    }
)
"""Denoiser classes that have ``enable_forward_chunking`` in diffusers 0.42.1 (a test compares)."""

_LARGER = 1.1  # share over the largest size the model was made for that is worth a remark


def resolve(model: Model, request: Request) -> tuple[ExactRequest, tuple[Note, ...]]:
    """The exact request that the pipeline runs for ``request``, and what a reader should know about it.

    Sizes are pixels. ``fps`` never changes ``num_frames``. Resolving an exact request changes nothing.
    Raises BadRequest for a task, size or number of frames that the model cannot make.
    """
    notes: list[Note] = []
    task = _task(model, request.task)
    width, height = _size(model, request, notes)
    num_frames = _frames(model, request, notes)
    fps = _fps(model, request, num_frames, notes)
    steps = request.num_inference_steps
    guidance = request.guidance_scale
    fields = request.model_dump(exclude={"model", "task"})
    fields.update(
        model=model.id,
        task=task,
        width=width,
        height=height,
        num_frames=num_frames,
        fps=fps,
        num_inference_steps=model.defaults.num_inference_steps if steps is None else steps,
        guidance_scale=model.defaults.guidance_scale if guidance is None else guidance,
        prompt_tokens=_prompt_tokens(model, request, notes),
    )
    exact = ExactRequest(**fields)
    taken = _taken_from_model(request, exact)
    if taken:
        notes.insert(0, Note("defaults-taken", {"model": model.id, "fields": taken}))
    if not model.pipeline_in_diffusers:
        notes.append(
            Note("pipeline-not-in-diffusers", {"model": model.id, "pipeline": model.pipeline})
        )
    return exact, tuple(notes)


def _taken_from_model(request: Request, exact: ExactRequest) -> str:
    names = ["task", "width", "height", "num_inference_steps", "guidance_scale", "prompt_tokens"]
    if exact.num_frames > 1:
        names[3:3] = ["num_frames", "fps"]
    return ", ".join(
        f"{name} {_plain(getattr(exact, name))}" for name in names if getattr(request, name) is None
    )


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _task(model: Model, task: Task | None) -> Task:
    if task is None:
        return model.tasks[0]
    if task not in model.tasks:
        raise BadRequest(
            "task-not-made", model=model.id, asked=task, allowed=", ".join(model.tasks)
        )
    return task


def _size(model: Model, request: Request, notes: list[Note]) -> tuple[int, int]:
    """Width and height to hand to the pipeline; a note when it makes another size."""
    rule = model.rules.size
    asked = (request.width or model.defaults.width, request.height or model.defaults.height)
    _refuse_size(model, asked)
    made = made_size(rule, *asked)
    if min(made) < 1:
        raise BadRequest("size-too-small", model=model.id, asked=_by(asked), multiple=rule.floor_to)
    _remark_large(model, made, notes)
    if made == asked:
        return asked
    if rule.fit == "bins":
        notes.append(
            Note("size-resized", {"model": model.id, "asked": _by(asked), "made": _by(made)})
        )
        return asked
    notes.append(_size_becomes(model, asked, made))
    settled = made_size(rule, *made) == made
    return made if settled else asked  # the pipeline would rescale a size that it has rescaled


def _size_becomes(model: Model, asked: tuple[int, int], made: tuple[int, int]) -> Note:
    pairs = [(a, m) for a, m in zip(asked, made, strict=True) if a != m]
    args: dict[str, object] = {"model": model.id, "asked": _by(asked), "made": _by(made)}
    if len(pairs) == 1 and model.rules.size.fit == "plain":
        side, becomes = pairs[0]
        return Note(
            "side-becomes",
            {**args, "side": side, "becomes": becomes, "multiple": model.rules.size.floor_to},
        )
    return Note("size-becomes", {**args, "why": model.rules.size.why})


def _refuse_size(model: Model, asked: tuple[int, int]) -> None:
    rule, step = model.rules.size, model.rules.size.refuse_unless
    if rule.fit == "fixed" and asked not in rule.sizes:
        allowed = ", ".join(_by(size) for size in rule.sizes)
        raise BadRequest(
            "size-fixed", model=model.id, asked=_by(asked), allowed=allowed, why=rule.why
        )
    if any(side % step for side in asked):
        near = " x ".join(str(max(step, round(side / step) * step)) for side in asked)
        raise BadRequest(
            "size-not-multiple", model=model.id, asked=_by(asked), multiple=step, near=near
        )
    if rule.max_side is not None and max(asked) > rule.max_side:
        raise BadRequest(
            "size-too-large", model=model.id, asked=_by(asked), allowed=rule.max_side, why=rule.why
        )
    if model.vae.tiling_required and "kernel" in model.vae.tile_defaults:
        _refuse_below_tile(model, asked)


def _refuse_below_tile(model: Model, asked: tuple[int, int]) -> None:
    _, tile_height, tile_width = model.vae.tile_defaults["kernel"]
    if asked[0] < tile_width or asked[1] < tile_height:
        tile = f"{tile_width} x {tile_height}"
        raise BadRequest("size-below-tile", model=model.id, asked=_by(asked), tile=tile)


def _remark_large(model: Model, made: tuple[int, int], notes: list[Note]) -> None:
    native = model.rules.native_sizes
    if native and made[0] * made[1] > _LARGER * max(width * height for width, height in native):
        sizes = ", ".join(_by(size) for size in native)
        notes.append(
            Note("larger-than-made-for", {"model": model.id, "asked": _by(made), "sizes": sizes})
        )


def _by(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def made_frames(rule: FrameRule, num_frames: int) -> int:
    """Frames that come out when ``num_frames`` are asked for.

    >>> made_frames(FrameRule(kind="round", step=4), 80), made_frames(FrameRule(kind="floor", step=8), 80)
    (81, 73)
    """
    step = rule.step
    if rule.kind == "round":
        return num_frames if num_frames % step == 1 else num_frames // step * step + 1
    latent = (num_frames - 1) // step + 1
    if rule.kind == "floor":
        return (latent - 1) * step + 1
    if (
        rule.kind == "cogvideox"
    ):  # only an odd number of latent frames gives its first one a single picture
        return (latent - 1) * step + 1 if latent % 2 else latent * step
    return num_frames


def _frames(model: Model, request: Request, notes: list[Note]) -> int:
    rule = model.rules.frames
    if rule.kind == "image":
        if (request.num_frames or 1) > 1:
            raise BadRequest("frames-of-image-model", model=model.id, asked=request.num_frames)
        return 1
    asked = request.num_frames or model.defaults.num_frames
    made = made_frames(rule, asked)
    if rule.max_frames is not None and asked > rule.max_frames:
        raise BadRequest(
            "frames-too-many",
            model=model.id,
            asked=asked,
            allowed=rule.max_frames,
            why=rule.max_why,
        )
    if rule.kind == "allegro":
        _check_allegro(model, asked, notes)
    if made != asked:
        grid = {"cogvideox": "8k+1 or 8k"}.get(rule.kind, f"{rule.step}k+1")
        notes.append(
            Note("frames-become", {"model": model.id, "asked": asked, "made": made, "grid": grid})
        )
    if rule.made_for is not None and made > rule.made_for:
        notes.append(
            Note(
                "longer-than-made-for",
                {"model": model.id, "asked": made, "made_for": rule.made_for},
            )
        )
    return made


def allegro_latent_frames(num_frames: int) -> int:
    """Latent frames of `AllegroPipeline.prepare_latents` for ``num_frames``.

    >>> allegro_latent_frames(88), allegro_latent_frames(89)
    (22, 23)
    """
    return -(-num_frames // 4) if num_frames % 2 == 0 else -(-(num_frames - 1) // 4) + 1


def _check_allegro(model: Model, num_frames: int, notes: list[Note]) -> None:
    """Allegro's VAE decodes whole tiles of 24 frames every 16; frames beyond the last whole tile stay blank."""
    tile, stride = (model.vae.tile_defaults[name][0] // 4 for name in ("kernel", "stride"))
    latent = allegro_latent_frames(num_frames)
    if latent < tile:
        raise BadRequest("frames-below-tile", model=model.id, asked=num_frames, tile=4 * tile)
    decoded = 4 * (tile + (latent - tile) // stride * stride)
    if decoded < num_frames:
        notes.append(
            Note("frames-left-blank", {"model": model.id, "asked": num_frames, "decoded": decoded})
        )


def _fps(model: Model, request: Request, num_frames: int, notes: list[Note]) -> float | None:
    if not model.is_video:
        if request.fps is not None:
            notes.append(Note("fps-of-image-model", {"model": model.id}))
        return None
    fps = model.defaults.fps if request.fps is None else request.fps
    if fps is not None and num_frames > 1:
        args: dict[str, object] = {
            "frames": num_frames,
            "fps": f"{fps:g}",
            "seconds": f"{num_frames / fps:.2f}",
        }
        notes.append(Note("plays-for", args))
    return fps


def _prompt_tokens(model: Model, request: Request, notes: list[Note]) -> int:
    limit = model.defaults.max_sequence_length
    if limit is None:
        if request.prompt_tokens is not None:
            notes.append(Note("no-prompt", {"model": model.id}))
        return request.prompt_tokens or DEFAULT_PROMPT_TOKENS
    asked = request.prompt_tokens or min(DEFAULT_PROMPT_TOKENS, limit)
    if asked > limit:
        notes.append(Note("prompt-truncated", {"model": model.id, "asked": asked, "limit": limit}))
        return limit
    return asked


def settings_allowed(model: Model, settings: Settings) -> tuple[Note, ...]:
    """What a reader should know about ``settings`` on ``model``.

    Raises BadRequest for a component that the model does not have, for a VAE knob that its VAE or pipeline lacks,
    for knobs of an offload that contradict each other and for a quantization that a component cannot take.
    """
    notes = (*_check_components(model, settings), *_check_pipeline_knobs(model, settings))
    _check_tiling(model, settings)
    _check_offload(settings)
    check_quantization(model, settings)
    if settings.vae_slicing and not model.vae.slicing:
        raise BadRequest(
            "vae-knob-missing", model=model.id, knob="vae_slicing", vae=_vae_class(model)
        )
    if settings.decode_chunk_size is not None and not model.vae.decode_chunk_size:
        raise BadRequest("no-decode-chunk", model=model.id, pipeline=model.pipeline)
    return notes


def _check_components(model: Model, settings: Settings) -> tuple[Note, ...]:
    notes: list[Note] = []
    allowed = ", ".join(model.components)
    for field, names in (("dtype", settings.dtype), ("quantization", settings.quantization)):
        for name in names:
            if name == "*" and field == "dtype":
                continue
            part = model.components.get(name)
            if part is None:
                raise BadRequest(
                    "no-such-component", model=model.id, field=field, asked=name, allowed=allowed
                )
            if not part.counted:
                notes.append(Note("component-not-loaded", {"model": model.id, "name": name}))
    return tuple(notes)


def _check_pipeline_knobs(model: Model, settings: Settings) -> tuple[Note, ...]:
    """The knobs of the denoiser and the prompt: ``prompt_embeds``, ``forward_chunking``, ``compile``."""
    if settings.prompt_embeds and not any(n.startswith("text_encoder") for n in model.components):
        raise BadRequest("no-text-encoder", model=model.id, pipeline=model.pipeline)
    if settings.forward_chunking is not None:
        kinds = [
            part.class_path.rpartition(".")[2]
            for name, part in model.components.items()
            if name.startswith(("transformer", "unet", "prior"))
        ]
        lacking = [kind for kind in kinds if kind not in CHUNKED_FORWARD]
        if lacking:
            allowed = ", ".join(sorted(CHUNKED_FORWARD))
            raise BadRequest(
                "no-forward-chunking", model=model.id, kind=lacking[0], allowed=allowed
            )
    return (Note("compile-as-eager"),) if settings.compile else ()


# Knobs of group offload; a switch that is off changes nothing anywhere.
_GROUP_KNOBS = ("use_stream", "num_blocks_per_group", "low_cpu_mem_usage", "offload_to_disk")
_GROUPS = ("group-block", "group-leaf")


def _check_offload(settings: Settings) -> None:
    """Raise for knobs of an offload that contradict it or each other, naming both."""
    offload = settings.offload
    given = [name for name in _GROUP_KNOBS if getattr(settings, name)]
    if settings.blocks_to_swap is not None and (given or offload not in (None, "none", "model")):
        other = given[0] if given else "offload"
        raise BadRequest(
            "swap-with-offload",
            asked=settings.blocks_to_swap,
            other=other,
            found=getattr(settings, other),
        )
    if given and offload is not None and offload not in _GROUPS:
        found = getattr(settings, given[0])
        raise BadRequest("group-knob-alone", knob=given[0], found=found, offload=offload)
    blocks = settings.num_blocks_per_group
    if blocks is not None and offload == "group-leaf":
        raise BadRequest("blocks-of-leaves", found=blocks)
    several = blocks is not None and blocks > 1
    if several and settings.use_stream:
        raise BadRequest("blocks-on-stream", found=blocks)
    if settings.low_cpu_mem_usage and (settings.use_stream is False or several):
        other = "num_blocks_per_group" if several else "use_stream"
        raise BadRequest("pinning-without-stream", other=other, found=getattr(settings, other))
    _check_disk_offload(settings)


def _check_disk_offload(settings: Settings) -> None:
    """diffusers cannot write torchao's weights to a file (0.42.1, ModuleGroup._check_disk_offload_torchao)."""
    if not settings.offload_to_disk:
        return
    for component, scheme in settings.quantization.items():
        if scheme.startswith("torchao"):
            raise BadRequest("disk-with-torchao", component=component, scheme=scheme)


def _vae_class(model: Model) -> str:
    return model.components[model.vae.component].class_path.rpartition(".")[2]


def _check_tiling(model: Model, settings: Settings) -> None:
    given = [name for name in ("vae_tile", "vae_overlap") if getattr(settings, name) is not None]
    if not model.vae.tiling and (settings.vae_tiling or given):
        raise BadRequest(
            "vae-knob-missing",
            model=model.id,
            knob=(given or ["vae_tiling"])[0],
            vae=_vae_class(model),
        )
    if model.vae.tiling_required and settings.vae_tiling is False:
        raise BadRequest("tiling-required", model=model.id, vae=_vae_class(model))
    if model.vae.tiling_required and given:
        raise BadRequest("tile-fixed", model=model.id, knob=given[0], vae=_vae_class(model))
    if given and settings.vae_tiling is False:
        raise BadRequest("tile-without-tiling", knob=given[0], found=getattr(settings, given[0]))
    tile = model.vae.tile_side if settings.vae_tile is None else settings.vae_tile
    overlap = model.vae.tile_overlap if settings.vae_overlap is None else settings.vae_overlap
    if given and tile is not None and overlap is not None and overlap >= tile:
        raise BadRequest("overlap-too-large", overlap=overlap, tile=tile)
