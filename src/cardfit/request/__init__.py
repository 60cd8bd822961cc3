"""The exact pipeline (`Request`) and the knobs (`Settings`): form only, no model knowledge."""

from cardfit.request.models import (
    DTYPES,
    OFFLOADS,
    QUANTIZATIONS,
    UPSCALERS,
    ControlNet,
    Dtype,
    ExactRequest,
    Lora,
    Offload,
    PlanFile,
    Post,
    Quantization,
    Request,
    Settings,
    Task,
    Upscale,
)

__all__ = [
    "DTYPES",
    "OFFLOADS",
    "QUANTIZATIONS",
    "UPSCALERS",
    "ControlNet",
    "Dtype",
    "ExactRequest",
    "Lora",
    "Offload",
    "PlanFile",
    "Post",
    "Quantization",
    "Request",
    "Settings",
    "Task",
    "Upscale",
]
