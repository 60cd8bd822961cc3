"""The answer to ``plan``: the saved schema, field by field, as the JSON contract names it.

Bytes and seconds are plain numbers with the unit in the key, money is amount and currency, unknown is ``None`` with a
note. Nothing here computes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.messages.said import Said as Said
from cardfit.predict.estimate import Basis, StageMemory
from cardfit.request import ExactRequest, Settings

Verdict = Literal["fits", "tight", "spills", "pages", "does_not_fit", "unknown"]
Grade = Literal["green", "amber", "red"]
Price = Literal["slower", "lossy", "more_ram"]
LineName = Literal[
    "machine",
    "boot",
    "download",
    "load",
    "generate",
    "export",
    "idle",
    "disk_running",
    "disk_stopped",
    "egress",
    "energy",
    "api",
    "wear",
]
SCHEMA = "cardfit.plan/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Money(_Frozen):
    """An amount in a currency (ISO 4217)."""

    amount: float
    currency: str


class Seconds(_Frozen):
    """Seconds as low / likely / high."""

    low: float
    likely: float
    high: float


class OfferRow(_Frozen):
    """The cheapest offer for a card: price for one card, per ``period`` (hour or month), and how old it is."""

    provider: str
    price: Money
    period: Literal["hour", "month"]
    spot: bool
    as_of: str
    age_days: int
    ram_bytes: int | None
    source: str
    disk_included_bytes: int | None = None
    disk_per_gb_month: float | None = None


class CostLine(_Frozen):
    """One line of a bill; ``hours`` of the machine where it is time, ``amount`` None where it is not known."""

    name: LineName
    hours: float | None
    amount: Money | None


class Cost(_Frozen):
    """What ``accepted_outputs`` cost: the known ``lines`` sum to ``total``, ``not_counted`` names the others."""

    lines: tuple[CostLine, ...]
    total: Money
    per_output: Money
    accepted_outputs: float
    energy_kwh: float | None
    not_counted: tuple[LineName, ...]


class Download(_Frozen):
    """Fetching the model's files to a fresh machine; ``assumed`` where nobody stated the rate."""

    size_bytes: int
    bytes_per_s: float
    seconds: float
    assumed: bool


class StageRow(_Frozen):
    """One stage for offload none, recommended dtypes unless settings were given."""

    name: str
    component: str
    calls: int
    weights_bytes: int
    activation_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    low_bytes: int
    high_bytes: int
    basis: Basis
    site: str

    @classmethod
    def of(cls, stage: StageMemory) -> StageRow:
        """The row for one predicted stage."""
        return cls(**{name: getattr(stage, name) for name in cls.model_fields})


class Peak(_Frozen):
    """The highest moment; ``device_bytes`` adds the CUDA context to the reserved bytes."""

    allocated_bytes: int
    reserved_bytes: int
    device_bytes: int
    stage: str


class CardRow(_Frozen):
    """One card: the verdict, the settings that make it true and what stands against what."""

    card: str
    name: str
    memory_bytes: int | None
    verdict: Verdict
    grade: Grade | None
    price_of_it: tuple[Price, ...]
    settings: Settings | None
    settings_text: str
    limiting_stage: str | None
    peak_reserved_bytes: int | None
    device_bytes: int | None
    usable_bytes: int | None
    headroom_bytes: int | None
    host_bytes: int | None
    disk_bytes: int | None
    seconds: Seconds | None
    cost_per_output: Money | None
    offer: OfferRow | None
    why: Said
    near_miss: Said | None
    offer_note: Said | None = None  # what the offer leaves open
    load_seconds: Seconds | None = None  # from disk, once; None where the disk's rate is not known
    export_seconds: Seconds | None = None  # the host's, after each run
    cost: Cost | None = None  # the bill behind ``cost_per_output``


class Pick(_Frozen):
    """One recommendation: a card of the table with its settings, and why."""

    card: str
    settings: Settings
    why: Said


class Recommended(_Frozen):
    """Three picks; ``None`` when none can be made (the notes say why)."""

    cheapest: Pick | None
    fastest: Pick | None
    safest: Pick | None


class ModelRow(_Frozen):
    """The model as the header shows it."""

    id: str
    title: str
    license: str
    verified: bool
    pipeline: str


class Answer(_Frozen):
    """The whole answer."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    model: ModelRow
    request: ExactRequest
    settings: Settings
    stages: tuple[StageRow, ...]
    peak: Peak
    one_at_a_time: Peak | None  # the same request with model offload
    one_at_a_time_host_bytes: int | None
    rule_bytes: int
    denoiser_rule_bytes: int
    cards: tuple[CardRow, ...]
    recommended: Recommended
    notes: tuple[Said, ...]
    download: Download | None = None
