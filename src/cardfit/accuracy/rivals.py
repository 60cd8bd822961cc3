"""What simpler estimates say about the same rows: weights x 1.15, and the weights alone.

In: a trace and its settings. Out: bytes. The rule of thumb is `predict.rule`'s, as rental guides print it; the weights
alone are what size calculators report. Neither knows a stage, a size or an offload, so they speak of whole runs and of
a denoiser by itself, not of a decode's working set.
"""

from __future__ import annotations

from cardfit.predict.rule import GUIDE_FACTOR
from cardfit.predict.weights import module_weights
from cardfit.request import Settings
from cardfit.trace.stream import Component, Trace


def component_bytes(component: Component, settings: Settings) -> int:
    """Weights of one component under the scheme that ``settings`` give it."""
    scheme = settings.quantization.get(component.name, "none")
    return sum(sum(module.tensors) for module in module_weights(component, scheme))


def weights_only_bytes(trace: Trace, settings: Settings, *, denoiser_only: bool = False) -> int:
    """Weights of all components, or of the denoiser alone."""
    return sum(
        component_bytes(each, settings)
        for each in trace.components
        if not denoiser_only or is_denoiser(each)
    )


def rule_bytes(trace: Trace, settings: Settings, *, denoiser_only: bool = False) -> int:
    """Weights x 1.15."""
    return round(GUIDE_FACTOR * weights_only_bytes(trace, settings, denoiser_only=denoiser_only))


def is_denoiser(component: Component) -> bool:
    """Whether the component is what denoises."""
    return component.name.startswith(("transformer", "unet"))
