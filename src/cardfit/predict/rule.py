"""The rule of thumb that rental guides print, to check an answer against: weights x 1.15."""

from __future__ import annotations

from cardfit.trace.stream import Trace

GUIDE_FACTOR = 1.15  # "weights plus 15 %", as printed in rental guides
_DENOISERS = ("transformer", "unet")


def rule_of_thumb_bytes(trace: Trace) -> int:
    """Weights of every component x 1.15."""
    return round(GUIDE_FACTOR * sum(c.weights_bytes for c in trace.components))


def denoiser_rule_bytes(trace: Trace) -> int:
    """Weights of the largest denoiser alone x 1.15, as guides print it for a model's name."""
    sizes = [c.weights_bytes for c in trace.components if c.name.startswith(_DENOISERS)]
    return round(GUIDE_FACTOR * max(sizes, default=0))
