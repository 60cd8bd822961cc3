"""What a workflow says, as values: the requests in it, what it loads, what it leaves open.

In: nothing; these are types. Out: `Reading` with its `WorkflowRequest`s. Unknown is None, and the question that would
settle it stands in ``missing``. Every field of a request has its origins: ``title.input`` of the widgets that it really
comes from.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.comfy.nodes import Use
from cardfit.comfy.values import Missing
from cardfit.comfy.wanted import WantedFile
from cardfit.messages.said import Said
from cardfit.request import Quantization, Settings, Task

SCHEMA = "cardfit.comfy/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Part(_Frozen):
    """A file that a request loads, and what it is in the library's entry."""

    use: Use
    file: str
    folder: str
    precision: Annotated[
        str | None, Field(description="as its name or header says; None: not said")
    ] = None
    loader_dtype: Annotated[
        str | None, Field(description="what the loader casts it to; None: as stored")
    ] = None
    model: Annotated[str | None, Field(description="library entry whose weights it holds")] = None
    kin: Annotated[bool, Field(description="its shape, trained further or known by it alone")] = (
        False
    )
    size_bytes: Annotated[int | None, Field(description="of its tensors, where it is at hand")] = (
        None
    )
    components: Annotated[
        tuple[str, ...], Field(description="what it is in the request's model")
    ] = ()
    strength: float | None = None
    node: str
    id: str


class Pass(_Frozen):
    """One sampler: what it runs, at which size, with which model."""

    node: str
    id: str
    model: str | None
    file: str | None
    loras: tuple[str, ...] = ()
    width: int | None = None
    height: int | None = None
    num_frames: int | None = None
    batch: int | None = None
    steps: int | None = None
    cfg: float | None = None
    denoise: float | None = None
    continues: Annotated[bool, Field(description="goes on with the steps of the pass before")] = (
        False
    )


class Decoding(_Frozen):
    """The decoder: tiles in pixels and frames; None where it has none."""

    node: str
    id: str
    tiled: bool
    tile: int | None = None
    overlap: int | None = None
    temporal: int | None = None
    temporal_overlap: int | None = None


class Writes(_Frozen):
    """What the workflow writes of a request."""

    node: str
    id: str
    container: str | None = None
    codec: str | None = None
    fps: float | None = None


class WorkflowRequest(_Frozen):
    """One sampler chain: the fields of a request, then how the workflow makes it.

    ``width``, ``height`` and ``num_frames`` are of the largest pass; ``num_inference_steps`` are those of the first
    pass and of the passes that go on with its steps. ``model`` is None where no library entry has the weights; ``seen``
    says what stands there.
    """

    model: str | None
    kin: Annotated[bool, Field(description="the model's shape, trained further")] = False
    seen: Annotated[tuple[str, ...], Field(description="files of its denoisers")] = ()
    task: Task | None = None
    width: int | None = None
    height: int | None = None
    num_frames: int | None = None
    fps: float | None = None
    batch: int = 1
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    seed: int | None = None
    runtime: Literal["comfyui"] = "comfyui"
    settings: Settings = Settings()
    quantization_seen: dict[str, Quantization | str] = {}
    passes: tuple[Pass, ...]
    parts: tuple[Part, ...]
    decode: Decoding | None = None
    writes: tuple[Writes, ...] = ()
    origins: dict[str, tuple[str, ...]] = {}
    notes: tuple[Said, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether size, frames and steps are all known."""
        return None not in (self.width, self.height, self.num_frames, self.num_inference_steps)


class Reading(_Frozen):
    """A workflow file as read."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    file: str
    form: Annotated[Literal["ui", "api"], Field(description="editor's graph or server's prompt")]
    requests: tuple[WorkflowRequest, ...]
    missing: tuple[Missing, ...]
    unknown_nodes: Annotated[
        tuple[str, ...], Field(description="types that are listed, not guessed")
    ]
    files: list[WantedFile]
    notes: tuple[Said, ...] = ()
