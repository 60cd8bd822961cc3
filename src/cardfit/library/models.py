"""The types of a library entry: what one model is, with where each fact comes from.

In: the JSON files under `library/data`, one a model. Out: frozen values. An entry holds the pipeline class, the exact
config of every component and of the scheduler, the defaults and the size and frame rules; no weights. It leaves out
how a rule is applied (`library.rules`) and how a module is made (`library.build`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.request import Dtype, Task

Basis = Literal["exact", "listing", "published", "rounded", "rounded-recalled", "recalled", "none"]
"""How strong the published parameter count is: ``exact`` (byte total or integer), ``listing`` (a rounded file size),
``published`` (3 to 4 digits), ``rounded`` (one or two digits), ``recalled`` (from memory, not looked up), ``none`` (no
published figure)."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ComponentSpec(_Frozen):
    """One module of a pipeline, as its class and exact config."""

    class_path: Annotated[str, Field(description="importable path of the module class")]
    config_class: Annotated[
        str | None, Field(description="transformers config class; None for diffusers")
    ] = None
    config: dict[str, Any]
    source: Annotated[
        str | None, Field(description="where the config comes from; None: not recorded")
    ] = None
    published_dtype: Annotated[Dtype, Field(description="dtype of the published weight files")]
    published_dtype_basis: str
    recommended_dtype: Annotated[Dtype, Field(description="dtype to load in")]
    params: Annotated[
        int, Field(gt=0, description="parameters as built from the config; tied ones once")
    ]
    persistent_buffers: Annotated[
        int, Field(ge=0, description="buffer elements inside the weight file")
    ] = 0
    expected_params: Annotated[
        int | None, Field(gt=0, description="parameters as published; None: no figure")
    ] = None
    expected_source: str
    basis: Basis
    keep_in_fp32_modules: tuple[str, ...] = ()
    optional: Annotated[bool, Field(description="the pipeline runs without it; off by default")] = (
        False
    )
    external: Annotated[
        bool, Field(description="the class is in no package that cardfit installs")
    ] = False
    merged_into: Annotated[
        str | None, Field(description="component that holds these weights already")
    ] = None
    verified: bool

    @property
    def counted(self) -> bool:
        """Whether the component's weights are loaded by default and counted on their own."""
        return not self.optional and self.merged_into is None


class Scheduler(_Frozen):
    """The scheduler of the published repository."""

    class_path: str
    config: dict[str, Any]
    source: str
    basis: Annotated[
        Literal["documented", "recalled"], Field(description="looked up, or from memory")
    ]


class Defaults(_Frozen):
    """What the model is asked for when the request leaves a field open."""

    width: Annotated[int, Field(gt=0, description="pixels")]
    height: Annotated[int, Field(gt=0, description="pixels")]
    num_frames: Annotated[int, Field(ge=1)]
    fps: Annotated[float | None, Field(gt=0, description="playback rate; None for images")]
    num_inference_steps: Annotated[int, Field(ge=1)]
    guidance_scale: Annotated[float, Field(ge=0, description="value of `guidance_argument`")]
    guidance_argument: Annotated[str, Field(description="the pipeline's name for it")]
    max_sequence_length: Annotated[
        int | None, Field(gt=0, description="text tokens at most; None without text")
    ]
    decode_chunk_size: Annotated[
        int | None, Field(gt=0, description="frames per VAE call; None: all")
    ] = None


class SizeRule(_Frozen):
    """How the pipeline turns an asked size into the size it makes.

    ``refuse_unless`` is the divisor below which the run ends in an error, ``floor_to`` the multiple that it takes
    instead. ``fit``: ``plain`` takes the size as asked; ``area`` and ``area-floor`` rescale to ``area_pixels`` at the
    asked aspect ratio (the second does not round before it floors); ``list`` takes the nearest aspect ratio of
    ``sizes``; ``shapes`` takes the nearest aspect ratio and of its ``sizes`` the nearest area; ``bins`` makes one of
    ``sizes`` and resizes the output to what was asked; ``buckets`` takes the nearest of ``sizes`` that is not longer
    than what was asked; ``fixed`` makes only ``sizes``.
    """

    fit: Literal["plain", "area", "area-floor", "list", "shapes", "bins", "buckets", "fixed"] = (
        "plain"
    )
    refuse_unless: Annotated[int, Field(ge=1)] = 1
    floor_to: Annotated[int, Field(ge=1)] = 1
    area_pixels: int | None = None
    sizes: tuple[tuple[int, int], ...] = ()  # width, height
    ratios: Annotated[
        tuple[float, ...],
        Field(
            description="ratio under which a size is filed; `bins` height / width, `shapes` width / height"
        ),
    ] = ()
    max_side: Annotated[int | None, Field(description="pixels; a position table ends there")] = None
    why: Annotated[str, Field(description="what in the pipeline does so")]


class FrameRule(_Frozen):
    """How the pipeline turns an asked number of frames into the number it makes.

    ``image``: one picture. ``any``: as asked. ``round``: n unless n % step == 1, else n // step * step + 1.
    ``floor``: (n - 1) // step * step + 1, silently, through the number of latent frames. ``cogvideox`` and ``allegro``:
    as `library.rules` says.
    """

    kind: Literal["image", "any", "round", "floor", "cogvideox", "allegro"]
    step: Annotated[int, Field(ge=1)] = 1
    max_frames: Annotated[int | None, Field(description="more ends in an error")] = None
    max_why: str | None = None
    made_for: Annotated[
        int | None, Field(description="frames the model was trained or recommended up to")
    ] = None


class Rules(_Frozen):
    """Sizes and frames."""

    size: SizeRule
    frames: FrameRule
    native_sizes: tuple[tuple[int, int], ...] = ()  # width, height
    output_size_from_input: bool = False


class VaeFacts(_Frozen):
    """What the VAE does and offers."""

    component: str = "vae"
    spatial_compression: int
    temporal_compression: int
    latent_channels: int
    tiling: Annotated[bool, Field(description="enable_tiling exists")]
    slicing: Annotated[bool, Field(description="enable_slicing exists")]
    tiling_required: bool = False
    tile_defaults: dict[str, Any] = {}
    tile_side: Annotated[
        int | None, Field(description="pixels, default tile side or its smaller one")
    ] = None
    tile_overlap: Annotated[int | None, Field(description="pixels between default tiles")] = None
    decode_chunk_size: Annotated[
        bool, Field(description="the pipeline takes decode_chunk_size")
    ] = False
    chunking: str | None = None


class CfgFacts(_Frozen):
    """How classifier-free guidance runs: ``batched`` in one forward, or separate forwards."""

    batched: bool
    how: str


class Model(_Frozen):
    """A library entry."""

    schema_: Annotated[int, Field(alias="schema")]
    id: str
    title: str
    family: str
    tasks: tuple[Task, ...]
    pipeline: Annotated[str, Field(description="class name in diffusers")]
    pipeline_in_diffusers: bool = True
    task_pipelines: Annotated[
        dict[Task, str], Field(description="tasks that another class does")
    ] = {}
    pipeline_config: Annotated[
        dict[str, Any], Field(description="constructor arguments beside components")
    ] = {}
    call: Annotated[
        dict[str, Any], Field(description="call arguments the model's own documentation sets")
    ] = {}
    repo_id: str
    license: str
    released: str
    verified: bool
    unverified_parts: tuple[str, ...] = ()
    components: dict[str, ComponentSpec]
    scheduler: Scheduler
    defaults: Defaults
    rules: Rules
    vae: VaeFacts
    cfg: CfgFacts
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...]

    @property
    def as_traced(self) -> Model:
        """The entry whose traces speak for this one: itself."""
        return self

    @property
    def is_own(self) -> bool:
        """Whether it is the reader's own entry and not the library's."""
        return False

    def stored_bytes(self, component: str) -> int | None:
        """Bytes of the component's files as somebody has them; None where they are as published."""
        return None

    def pipeline_for(self, task: Task) -> str:
        """The diffusers class that does ``task`` with these components."""
        return self.task_pipelines.get(task, self.pipeline)

    def latent_shape(
        self, width: int, height: int, num_frames: int = 1, batch: int = 1
    ) -> tuple[int, ...]:
        """Shape of the VAE's latent: ``[batch, channels, height, width]``, for video ``[..., frames, ...]`` too.

        >>> from cardfit.library import load
        >>> load("sdxl-base").latent_shape(1024, 1024)
        (1, 4, 128, 128)
        >>> load("wan2.1-t2v-14b").latent_shape(1280, 720, 81)
        (1, 16, 21, 90, 160)
        """
        side = self.vae.spatial_compression
        frames = ((num_frames - 1) // self.vae.temporal_compression + 1,) if self.is_video else ()
        return (batch, self.vae.latent_channels, *frames, height // side, width // side)

    @property
    def is_video(self) -> bool:
        """Whether the model makes more than one frame."""
        return self.rules.frames.kind != "image"

    @property
    def params(self) -> int:
        """Parameters of all components loaded by default; tied ones once."""
        return sum(part.params for part in self.components.values() if part.counted)
