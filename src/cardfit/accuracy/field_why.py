"""Why a field case is not scored: a closed list of general causes, and the exception that carries one.

A cause that `rebuild.Why` has too keeps its value, so that both share their words.
"""

from __future__ import annotations

from enum import StrEnum


class FieldWhy(StrEnum):
    """Why a case is not scored."""

    MULTI_GPU = "multi_gpu"
    OTHER_RUNTIME = "other_runtime"
    SCRIPT_UNKNOWN = "script_unknown"
    MODEL_UNKNOWN = "model_unknown"
    PART_ONLY = "part_only"
    NO_CARD = "no_card"
    CARD_UNKNOWN = "card_unknown"
    NO_HOST_RAM = "no_host_ram"
    OTHER_OUTCOME = "other_outcome"
    SCHEME_UNKNOWN = "scheme_unknown"
    OFFLOAD_UNKNOWN = "offload_unknown"
    TILE_UNKNOWN = "tile_unknown"
    BAD_VALUE = "bad_value"
    DRY_RUN_FAILED = "dry_run_failed"


class NotScored(Exception):
    """The case cannot be scored; ``detail`` is what stood in the way, as written."""

    def __init__(self, why: FieldWhy, detail: str = "") -> None:
        self.why, self.detail = why, detail
        super().__init__(why)
