"""Request and Settings: what a person asks for, as typed values.

In: fields from flags, a YAML file or Python. Out: frozen values whose form is right (positive sizes, known names).
Whether the model can make such a picture is the library's business (`cardfit.library.rules`).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Task = Literal[
    "text-to-image",
    "image-to-image",
    "inpainting",
    "image-editing",
    "text-to-video",
    "image-to-video",
    "video-to-video",
    "text-to-audio-video",
]
Dtype = Literal["float32", "float16", "bfloat16"]
Offload = Literal["none", "model", "group-block", "group-leaf", "sequential"]
Quantization = Literal[
    "none",
    "fp8-layerwise",
    "bnb-int8",
    "bnb-nf4",
    "torchao-int8",
    "torchao-int8dq",
    "torchao-fp8",
    "torchao-fp8dq",
    "torchao-int4",
    "quanto-int8",
    "quanto-fp8",
    "quanto-int4",
    "quanto-int2",
    "gguf-q8_0",
    "gguf-q6_k",
    "gguf-q5_k",
    "gguf-q5_1",
    "gguf-q5_0",
    "gguf-q4_k",
    "gguf-q4_1",
    "gguf-q4_0",
    "gguf-q3_k",
    "gguf-q2_k",
    "svdq-int4",
    "svdq-nvfp4",
]
# sdpa: the kernel that torch picks on the card; the others by name
Attention = Literal["sdpa", "flash", "efficient", "math"]

# the codec of the exported file; nvenc: the card's own encoder
Export = Literal["h264", "hevc", "av1", "nvenc-h264", "nvenc-hevc", "nvenc-av1"]
Upscaler = Literal[
    "realesrgan-x4plus",
    "realesrgan-x4plus-anime",
    "realesrgan-x2plus",
    "realesr-general-x4v3",
    "realesr-animevideov3",
    "swinir-real-x4",
]

Interpolator = Literal["rife-4.6"]

DTYPES: tuple[Dtype, ...] = get_args(Dtype)
OFFLOADS: tuple[Offload, ...] = get_args(Offload)
QUANTIZATIONS: tuple[Quantization, ...] = get_args(Quantization)
UPSCALERS: tuple[Upscaler, ...] = get_args(Upscaler)
INTERPOLATORS: tuple[Interpolator, ...] = get_args(Interpolator)

_Side = Annotated[int, Field(ge=16, le=16384)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_Name = Annotated[str, Field(min_length=1, max_length=120)]


class Lora(_Frozen):
    """A low-rank adapter: kept beside the weights it changes, or fused into them.

    Of a file or of a rank. A file says everything else itself; ``header_sha256`` is of the names, shapes and dtypes in
    it, and ``size_bytes`` of its tensors.
    """

    rank: Annotated[
        int | None, Field(ge=1, le=4096, description="rank of both factors; a file says it itself")
    ] = None
    file: Annotated[
        str | None, Field(min_length=1, max_length=4096, description="a safetensors file")
    ] = None
    targets: Annotated[
        tuple[_Name, ...],
        Field(max_length=64, description="names of the linear layers; attention's when left out"),
    ] = ()
    fused: Annotated[bool, Field(description="added into the weights before the run")] = False
    dtype: Annotated[
        Dtype | None, Field(description="of the factors; the component's own when left out")
    ] = None
    header_sha256: Annotated[
        str | None, Field(pattern="^[0-9a-f]{64}$", description="of what the file holds")
    ] = None
    size_bytes: Annotated[int | None, Field(ge=1, description="of the file's tensors")] = None


class ControlNet(_Frozen):
    """A ControlNet beside the denoiser, as wide as that and with its own number of layers."""

    model: Annotated[
        _Name | None,
        Field(description="a known one; the shape that the denoiser gives when left out"),
    ] = None
    num_layers: Annotated[
        int | None, Field(ge=1, le=64, description="double blocks of a transformer's ControlNet")
    ] = None
    num_single_layers: Annotated[
        int | None, Field(ge=0, le=64, description="single blocks of a FLUX ControlNet")
    ] = None


class Upscale(_Frozen):
    """An upscaler that every frame goes through, whole or in tiles."""

    model: Upscaler = "realesrgan-x4plus"
    factor: Annotated[
        int | None,
        Field(ge=1, le=4, description="of the output; the network's own when left out"),
    ] = None
    tile: Annotated[
        int | None, Field(ge=32, le=8192, description="tile side in pixels of its input")
    ] = None

    @property
    def own_factor(self) -> int:
        """What the network makes of a side; another ``factor`` is a resize on the host afterwards."""
        return 2 if "x2" in self.model else 4

    @property
    def factor_made(self) -> int:
        """How many times longer a side becomes."""
        return self.factor or self.own_factor


class Interpolate(_Frozen):
    """Frames put between every two of a clip."""

    model: Interpolator = "rife-4.6"
    times: Annotated[
        int, Field(ge=2, le=8, description="frames that each becomes: 2 puts one between two")
    ] = 2

    def made(self, frames: int) -> int:
        """Frames that come out of a clip of ``frames``: the last one has no next.

        >>> Interpolate(times=2).made(81)
        161
        """
        return (frames - 1) * self.times + 1


class Post(_Frozen):
    """One step after the pipeline: an upscaler or an interpolation."""

    upscale: Upscale | None = None
    interpolate: Interpolate | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.upscale is None) == (self.interpolate is None):
            raise ValueError("one of upscale and interpolate")
        return self


class Request(_Frozen):
    """The exact pipeline. A field left out takes the model's own default, and the answer says which."""

    model: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1000,
            description="library entry, alias, repo id, diffusers folder or model file",
        ),
    ]
    task: Annotated[Task | None, Field(description="what the pipeline makes from what")] = None
    width: Annotated[_Side | None, Field(description="pixels")] = None
    height: Annotated[_Side | None, Field(description="pixels")] = None
    num_frames: Annotated[
        int | None, Field(ge=1, le=4096, description="frames the model makes")
    ] = None
    fps: Annotated[
        float | None, Field(gt=0, le=240, description="playback rate; never changes num_frames")
    ] = None
    batch: Annotated[int, Field(ge=1, le=256, description="outputs made at once")] = 1
    num_inference_steps: Annotated[
        int | None, Field(ge=1, le=1000, description="denoising steps")
    ] = None
    guidance_scale: Annotated[
        float | None, Field(ge=0, le=100, description="classifier-free guidance")
    ] = None
    prompt_tokens: Annotated[
        int | None, Field(ge=1, le=4096, description="tokens in the prompt")
    ] = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    loras: Annotated[
        tuple[Lora, ...], Field(max_length=16, description="adapters laid over the denoiser")
    ] = ()
    controlnets: Annotated[
        tuple[ControlNet, ...],
        Field(max_length=8, description="networks that read a control picture at every step"),
    ] = ()
    t2i_adapters: Annotated[
        int, Field(ge=0, le=8, description="T2I-Adapters, which read a control picture once")
    ] = 0
    ip_adapters: Annotated[
        tuple[_Name, ...],
        Field(max_length=8, description="IP-Adapters by name: a picture as a prompt"),
    ] = ()
    reference_images: Annotated[
        int | None, Field(ge=1, le=16, description="pictures that the model is shown")
    ] = None
    components: Annotated[
        tuple[_Name, ...],
        Field(max_length=8, description="optional components that are loaded too: safety_checker"),
    ] = ()
    post: Annotated[
        tuple[Post, ...],
        Field(max_length=4, description="steps after the pipeline, in their order"),
    ] = ()
    export: Annotated[
        Export | None, Field(description="codec of the exported file; nvenc-: the card's encoder")
    ] = None
    runtime: Annotated[
        Literal["diffusers", "comfyui"], Field(description="which program runs it")
    ] = "diffusers"


class ExactRequest(Request):
    """A request after the model's rules: nothing left open."""

    task: Task
    width: int
    height: int
    num_frames: int
    fps: float | None = None
    num_inference_steps: int
    guidance_scale: float
    prompt_tokens: int

    @property
    def size_after_post(self) -> tuple[int, int]:
        """Width and height of what is exported, in pixels."""
        times = 1
        for step in self.post:
            times *= step.upscale.factor_made if step.upscale else 1
        return self.width * times, self.height * times

    @property
    def frames_after_post(self) -> int:
        """Frames of one output that are exported."""
        frames = self.num_frames
        for step in self.post:
            frames = step.interpolate.made(frames) if step.interpolate else frames
        return frames


class Settings(_Frozen):
    """The knobs. ``None`` means open: the plan may choose. An empty ``dtype`` means the model's recommended dtypes."""

    dtype: Annotated[
        dict[str, Dtype], Field(description="component -> dtype; '*' sets every component")
    ] = {}
    quantization: Annotated[
        dict[str, Quantization], Field(description="component -> weight scheme")
    ] = {}
    offload: Annotated[
        Offload | None, Field(description="where weights wait while they are not used")
    ] = None
    vae_tiling: Annotated[bool | None, Field(description="decode in overlapping tiles")] = None
    vae_tile: Annotated[int | None, Field(ge=32, le=8192, description="tile side in pixels")] = None
    vae_overlap: Annotated[
        int | None, Field(ge=0, le=4096, description="tile overlap in pixels")
    ] = None
    vae_slicing: Annotated[
        bool | None, Field(description="decode one output of the batch at a time")
    ] = None
    decode_chunk_size: Annotated[
        int | None, Field(ge=1, le=4096, description="frames decoded per call")
    ] = None
    attention: Annotated[Attention, Field(description="attention kernel")] = "sdpa"
    prompt_embeds: Annotated[
        bool | None,
        Field(description="prompts arrive encoded: no text encoder on this card"),
    ] = None
    forward_chunking: Annotated[
        int | None,
        Field(ge=1, le=1_048_576, description="tokens per chunk of a feed-forward layer"),
    ] = None
    fuse_qkv: Annotated[
        bool | None, Field(description="fuse_qkv_projections: one layer for query, key and value")
    ] = None
    compile: Annotated[bool | None, Field(description="torch.compile on the denoiser")] = None
    use_stream: Annotated[
        bool | None, Field(description="group offload: copy the next group on a stream of its own")
    ] = None
    num_blocks_per_group: Annotated[
        int | None, Field(ge=1, le=1024, description="group-block offload: blocks moved together")
    ] = None
    low_cpu_mem_usage: Annotated[
        bool | None, Field(description="group offload: pin memory only while copying")
    ] = None
    offload_to_disk: Annotated[
        bool | None, Field(description="group offload: weights wait on disk instead of in RAM")
    ] = None
    blocks_to_swap: Annotated[
        int | None, Field(ge=1, le=1024, description="denoiser blocks that wait in host RAM")
    ] = None
    alloc_conf: Annotated[
        str | None,
        Field(
            max_length=200,
            description="PYTORCH_CUDA_ALLOC_CONF: expandable_segments, max_split_size_mb, "
            "garbage_collection_threshold",
        ),
    ] = None


class PlanFile(_Frozen):
    """What a YAML file holds: the request and, if any, the settings."""

    request: Request
    settings: Settings = Settings()
