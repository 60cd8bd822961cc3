"""What a script says, as values: the requests in it, how it loads and places things, what it leaves open.

In: nothing; these are types. Out: `ScriptReading` with its `ScriptRequest`s. Unknown is None, and the question that
would settle it stands in ``missing``. Every field says where it comes from (`Origin`): lines of the script, the
pipeline's signature, the library, or an answer.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.messages.said import Said
from cardfit.request import Dtype, Quantization, Settings, Task

SCHEMA = "cardfit.script/1"
Basis = Literal["script", "signature", "model", "answer", "assumed"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Missing(_Frozen):
    """A question: the name that ``--set`` takes, the line that raises it, and why the script does not say."""

    line: int
    input: str
    why: str


class Origin(_Frozen):
    """Where a field comes from.

    ``signature``: the default of the pipeline's call; ``model``: what the library says that such a pipeline does;
    ``assumed``: taken as so, and said.
    """

    field: str
    value: Any
    lines: tuple[int, ...] = ()
    basis: Basis = "script"


class Grouped(_Frozen):
    """Group offload of one component, as the script asks for it."""

    type: Literal["block_level", "leaf_level"]
    num_blocks_per_group: int | None = None
    use_stream: bool = False
    low_cpu_mem_usage: bool = False
    to_disk: bool = False
    lines: tuple[int, ...] = ()


class Loaded(_Frozen):
    """A component that the script loads on its own or changes."""

    name: str
    class_: Annotated[str | None, Field(alias="class")] = None
    source: Annotated[str | None, Field(description="repository or file; None: the pipeline's")] = (
        None
    )
    dtype: Dtype | None = None
    quantization: Quantization | None = None
    group: Grouped | None = None
    left_out: Annotated[bool, Field(description="handed over as None")] = False
    lines: tuple[int, ...] = ()


class ScriptLora(_Frozen):
    """An adapter that is loaded; its rank stands in its file, not in the script."""

    source: str | None
    name: str | None = None
    scale: float | None = None
    fused: bool = False
    line: int


class ScriptRequest(_Frozen):
    """One call of a pipeline: the fields of a request, then how the script makes it.

    ``model`` is None where the library has no entry; ``repo`` says what stands there. ``calls`` is how often the script
    makes it, None where nobody knows.
    """

    line: int
    calls: int | None = 1
    pipeline: str
    repo: str | None = None
    variant: str | None = None
    model: str | None = None
    kin: Annotated[bool, Field(description="another repository of the model's shape")] = False
    task: Task | None = None
    width: int | None = None
    height: int | None = None
    num_frames: int | None = None
    fps: float | None = None
    batch: int | None = 1
    num_inference_steps: int | None = None
    effective_steps: Annotated[int | None, Field(description="that a strength below 1 leaves")] = (
        None
    )
    guidance_scale: float | None = None
    seed: int | None = None
    max_sequence_length: int | None = None
    runtime: Literal["diffusers"] = "diffusers"
    device: Annotated[str | None, Field(description="None: never moved off the host")] = None
    autocast: Dtype | None = None
    scheduler: str | None = None
    settings: Settings = Settings()
    components: tuple[Loaded, ...] = ()
    loras: tuple[ScriptLora, ...] = ()
    lora_rank: Annotated[int | None, Field(description="of all adapters, as somebody said")] = None
    inputs: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    not_modelled: tuple[Said, ...] = ()
    notes: tuple[Said, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether model, size, frames, steps and batch are all known."""
        needed = (self.model, self.width, self.height, self.num_frames)
        return None not in (*needed, self.num_inference_steps, self.batch)


class ScriptReading(_Frozen):
    """A script as read."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    file: str
    form: Literal["script"] = "script"
    requests: tuple[ScriptRequest, ...]
    missing: tuple[Missing, ...]
    notes: tuple[Said, ...] = ()
