"""A record: one measured run, everything needed to repeat it and everything seen.

In: what `cardfit.measure` saw. Out: frozen values that become JSON. Bytes and seconds are plain numbers with the unit
in the key; what could not be read is ``None`` and stands in ``silent`` with its reason. A record holds hashes of
prompts and pictures, not themselves, unless the reader asked to keep them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import Note
from cardfit.records import scrub
from cardfit.request import ExactRequest, Settings

VERSION = 3  # raised with every change that an older cardfit could not read
SCHEMA = "cardfit.record"
_OF_A_STORE = "run-store-left"
FAKE = "fake"  # the device on which nothing runs (`cardfit.measure.fake`)

OutcomeKind = Literal["ok", "oom", "host_oom", "error", "timeout", "interrupted"]
PhaseName = Literal["load", "first", "steady", "memory", "resume", "own"]
WeightsKind = Literal["random", "folder", "own"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)


class Reason(_Frozen):
    """A sentence by code, with its arguments and its text as it was said."""

    code: str
    args: dict[str, Any] = {}
    text: str

    @classmethod
    def of(cls, code: str, /, **args: Any) -> Reason:
        """The sentence for ``code``."""
        return cls(code=code, args=args, text=Note(code, args).text)

    def scrubbed(self) -> Reason:
        """The same sentence without people's paths, addresses and the machine's name."""
        text = scrub.without(self.text, self.args)
        return Reason(code=self.code, args=scrub.scrubbed_args(self.args), text=text)


class Call(_Frozen):
    """One call of a component by the pipeline, as the dry run wraps it too.

    ``at_seconds`` counts from the begin of the repetition. Peaks are torch's, over the call and what the pipeline
    held beside it; ``None`` where torch's allocator counts nothing (see the repetition's ``silent``).
    """

    stage: str
    component: str
    method: str
    at_seconds: float
    seconds: float
    allocated_peak_bytes: int | None = None
    reserved_peak_bytes: int | None = None


class Stage(_Frozen):
    """One stage of a repetition: from the first call that belongs to it to the next stage's first call."""

    name: str
    component: str
    calls: int
    seconds: float
    allocated_peak_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    figures: dict[str, float | None] = {}


class Repetition(_Frozen):
    """One phase of a run: loading, the first call of the pipeline, or a later one.

    ``figures`` are what the samplers read in it, by names with units; ``silent`` says why a figure is ``None``.
    ``memory`` is a repetition under torch's memory profiler: its seconds are not a time to go by.
    """

    phase: PhaseName
    number: Annotated[int, Field(ge=0, description="from 0 within its phase")]
    seconds: float
    stages: tuple[Stage, ...] = ()
    calls: tuple[Call, ...] = ()
    step_seconds: tuple[float, ...] = ()
    figures: dict[str, float | None] = {}
    silent: dict[str, Reason] = {}
    output_sha256: str | None = None

    @property
    def allocated_peak_bytes(self) -> int | None:
        """torch's highest allocated bytes; ``None`` where nothing counted them."""
        return max(
            (s.allocated_peak_bytes for s in self.stages if s.allocated_peak_bytes is not None),
            default=None,
        )

    @property
    def reserved_peak_bytes(self) -> int | None:
        """torch's highest reserved bytes; ``None`` where nothing counted them."""
        return max(
            (s.reserved_peak_bytes for s in self.stages if s.reserved_peak_bytes is not None),
            default=None,
        )


class Outcome(_Frozen):
    """How the run ended. An out-of-memory error names where it was and what it asked for."""

    kind: OutcomeKind
    why: Reason | None = None
    phase: PhaseName | None = None
    stage: str | None = None
    component: str | None = None
    op: Annotated[str | None, Field(description="function and module path at the error")] = None
    tried_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    log: Annotated[str | None, Field(description="last lines of what the run wrote")] = None


class Picture(_Frozen):
    """An input picture by what it held."""

    sha256: str
    width: int
    height: int


class Inputs(_Frozen):
    """What went in: hashes, and the prompt itself only where it was to be kept."""

    prompt_sha256: str | None = None
    prompt_characters: int | None = None
    negative_prompt_sha256: str | None = None
    pictures: tuple[Picture, ...] = ()
    prompt: str | None = None
    negative_prompt: str | None = None


class Weights(_Frozen):
    """Where the weights came from; ``differs`` names components whose config is not the library's."""

    kind: WeightsKind
    name: Annotated[
        str | None, Field(description="last part of the folder's path, or repo@revision")
    ] = None
    differs: tuple[str, ...] = ()


class Machine(_Frozen):
    """The machine as found. ``link_gen`` and ``link_lanes`` are the card's live link, under load where it ran."""

    os: str
    processor: str | None = None
    cores: int | None = None
    ram_bytes: int | None = None
    ram_limit_bytes: int | None = None
    disk_free_bytes: int | None = None
    driver: str | None = None
    card: Annotated[str | None, Field(description="id in the catalog; None on a CPU")] = None
    card_name: str | None = None
    card_memory_bytes: int | None = None
    link_gen: int | None = None
    link_lanes: int | None = None


class PredictedStage(_Frozen):
    """What was predicted for one stage before the run."""

    name: str
    component: str
    calls: int
    weights_bytes: int
    activation_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    cpu_bytes: Annotated[int | None, Field(description="activations alone, for a CPU")] = None
    seconds: float | None = None
    kind_seconds: Annotated[
        dict[str, float], Field(description="by kind of kernel, launches and transfers beside them")
    ] = {}


class Predicted(_Frozen):
    """The prediction that stood before the run; ``cpu_bytes`` leave out what only a card's libraries take."""

    stages: tuple[PredictedStage, ...]
    allocated_bytes: int
    reserved_bytes: int
    host_bytes: int
    cpu_bytes: Annotated[int | None, Field(description="activations alone, for a CPU")] = None
    seconds: float | None = None


class Quality(_Frozen):
    """What the output lost against the output of another run, as `cardfit.quality` compares files.

    Scores are of all frames; ``seam_score`` and ``edge_score`` are the highest against the reference (robust
    deviations), ``None`` where the settings put no tiles or chunks there. ``diverged``: another picture, so that paired
    scores mean little.
    """

    reference: Annotated[str, Field(description="record of the output it was held against")]
    frames: int
    psnr_db: Annotated[float | None, Field(description="None: identical")]
    ssim: float
    ssim_lowest: float
    flip: float | None = None
    seam_score: float | None = None
    seam_found: bool = False
    edge_score: float | None = None
    edge_found: bool = False
    diverged: bool = False
    fine_energy_ratio: float | None = None


class Origin(_Frozen):
    """One step of the way that a record took: out of which store, and when."""

    store: Annotated[str | None, Field(description="id of the store; None: a file")]
    at: Annotated[datetime, Field(description="UTC")]


class Record(_Frozen):
    """One measured run."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    version: Annotated[int, Field(ge=1)] = VERSION
    id: Annotated[str, Field(pattern=r"^[0-9]{8}t[0-9]{6}-[0-9a-f]{8}$")]
    created: Annotated[datetime, Field(description="UTC")]
    finished: Annotated[bool, Field(description="False while it runs, or when it was cut off")]
    runtime: Annotated[
        Literal["diffusers", "comfyui"], Field(description="which program ran it")
    ] = "diffusers"
    model: str | None
    request: ExactRequest | None
    settings: Settings | None
    weights: Weights
    inputs: Inputs
    versions: dict[str, str]
    device: str
    machine: Machine
    predicted: Predicted | None
    repetitions: tuple[Repetition, ...]
    outcome: Outcome
    latents: tuple[str, ...] = ()
    outputs: Annotated[
        tuple[str, ...], Field(description="lossless files beside the record, where asked for")
    ] = ()
    quality: Quality | None = None
    sweep: str | None = None
    cell: Annotated[str | None, Field(description="key of the sweep's cell")] = None
    resumed: Annotated[str | None, Field(description="record whose latents were decoded")] = None
    notes: tuple[Reason, ...] = ()
    origin: Annotated[
        tuple[Origin, ...],
        Field(description="stores it came through, the machine's own first; empty: measured here"),
    ] = ()

    @property
    def fake(self) -> bool:
        """Whether nothing ran: the figures of the device ``fake`` are made up, and nobody may learn from them."""
        return self.device == FAKE or self.device.startswith(f"{FAKE}:")

    @property
    def ok(self) -> bool:
        """Whether the run ended and ended well."""
        return self.finished and self.outcome.kind == "ok"

    def of_phase(self, *phases: PhaseName) -> tuple[Repetition, ...]:
        """The repetitions of ``phases`` in their order."""
        return tuple(each for each in self.repetitions if each.phase in phases)

    def peak(self, name: str) -> float | None:
        """The highest ``name`` over all repetitions: a figure, or ``allocated_peak_bytes``, ``reserved_peak_bytes``."""
        found = [
            getattr(each, name) if hasattr(Repetition, name) else each.figures.get(name)
            for each in self.repetitions
        ]
        return max((value for value in found if value is not None), default=None)

    def without_inputs(self) -> Record:
        """The same record as others may see it: no prompts, latents, outputs, log; no paths or names of machines.

        What the store of its machine said is of no use to them either, and names servers and users.
        """
        inputs = self.inputs.model_copy(update={"prompt": None, "negative_prompt": None})
        ended = self.outcome
        outcome = ended.model_copy(
            update={"log": None, "why": ended.why.scrubbed() if ended.why else None}
        )
        repetitions = tuple(
            each.model_copy(
                update={"silent": {name: why.scrubbed() for name, why in each.silent.items()}}
            )
            for each in self.repetitions
        )
        without: dict[str, Any] = {"latents": (), "outputs": (), "repetitions": repetitions}
        notes = (note for note in self.notes if note.code != _OF_A_STORE)
        without["notes"] = tuple(note.scrubbed() for note in notes)
        return self.model_copy(update={"inputs": inputs, "outcome": outcome, **without})
