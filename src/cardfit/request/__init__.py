"""The exact pipeline (`Request`) and the knobs (`Settings`): form only, no model knowledge."""

from cardfit.request.models import (
    DTYPES,
    OFFLOADS,
    QUANTIZATIONS,
    Dtype,
    ExactRequest,
    Lora,
    Offload,
    PlanFile,
    Quantization,
    Request,
    Settings,
    Task,
)

__all__ = [
    "DTYPES",
    "OFFLOADS",
    "QUANTIZATIONS",
    "Dtype",
    "ExactRequest",
    "Lora",
    "Offload",
    "PlanFile",
    "Quantization",
    "Request",
    "Settings",
    "Task",
]
