"""The answer to ``autopsy``: the saved schema, field by field.

Bytes are plain numbers with the unit in the key; what the text does not say is ``None``. Nothing here computes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.plan.answer import Said, Verdict
from cardfit.request import ExactRequest, Settings

SCHEMA = "cardfit.autopsy/1"

StageName = Literal[
    "load", "ingest", "encode_prompt", "encode_condition", "denoise", "decode", "post", "export"
]
CauseName = Literal[
    "decode_untiled",
    "decode",
    "attention",
    "fragmentation",
    "text_encoder_resident",
    "weights_do_not_fit",
    "activations",
    "load_on_card",
    "host_ram",
    "pinned_memory",
    "spill",
    "dtype",
    "other_process",
    "no_memory_error",
    "unknown",
]
Confidence = Literal["sure", "likely", "guess"]
CurePrice = Literal["free", "slower", "more_ram", "lossy", "other_job"]
Backend = Literal["cuda", "hip", "xpu", "mps", "cpu"]
Program = Literal["diffusers", "comfyui", "wan2gp", "a1111", "official"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Numbers(_Frozen):
    """What the message counts. Sizes are printed to two digits, so each is right to half of the last one.

    ``in_use_bytes`` is the whole process with its context, ``other_bytes`` what other processes hold: printed, or else
    capacity less free less in use.
    """

    backend: Backend | None = None
    device: int | None = None
    tried_bytes: int | None = None
    capacity_bytes: int | None = None
    free_bytes: int | None = None
    in_use_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    reserved_unallocated_bytes: int | None = None
    allowed_bytes: int | None = None
    other_bytes: int | None = None


class Evidence(_Frozen):
    """A line of the text, by its number (from 1; None where the figure was computed), and what it tells."""

    line: int | None
    text: str
    tells: Said


class Predicted(_Frozen):
    """What the planner says of one setting on this card."""

    reserved_bytes: int
    allocated_bytes: int
    host_bytes: int
    stage: str
    verdict: Verdict


class Cure(_Frozen):
    """One thing to change: cardfit's flags, the diffusers lines, ComfyUI's words; ``None`` predicted is not known."""

    code: str
    price: CurePrice
    text: str
    settings: Settings | None
    flags: str
    lines: tuple[str, ...]
    comfyui: str | None
    predicted: Predicted | None


class Match(_Frozen):
    """A tensor or workspace of the dry run that has exactly the size that was asked for."""

    stage: str
    component: str
    op: str
    site: str
    attention: str


class Planned(_Frozen):
    """The cheapest settings that hold the request on this card, if any do."""

    card: str
    card_name: str
    settings: Settings
    settings_text: str
    predicted: Predicted


class Autopsy(_Frozen):
    """The whole answer; ``line_of_error`` counts from 1."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    program: Program | None
    error: str | None
    line_of_error: int | None
    numbers: Numbers
    stage: StageName | None
    cause: CauseName
    confidence: Confidence
    why: Said
    evidence: tuple[Evidence, ...]
    cures: tuple[Cure, ...]
    request: ExactRequest | None
    settings: Settings | None
    card: str | None
    as_run: Predicted | None
    matches: tuple[Match, ...]
    planned: Planned | None
    next_step: Said
    notes: tuple[Said, ...]
