"""The network of a step after the pipeline, and one call of it.

In: a step of `request.post`. Out: its module without weights, and what one frame (or the gap between two) runs through.
"""

from __future__ import annotations

import torch
from torch import nn

from cardfit.request import Post
from cardfit.trace import interpolators, upscalers


def network_of(step: Post) -> tuple[str, nn.Module]:
    """The network's name and module; on meta inside ``with torch.device("meta")``."""
    if step.upscale is not None:
        return step.upscale.model, upscalers.NETWORKS[step.upscale.model]()
    assert step.interpolate is not None
    return step.interpolate.model, interpolators.NETWORKS[step.interpolate.model]()


def dtype_of(step: Post) -> torch.dtype:
    """What the network runs in."""
    if step.upscale is not None and step.upscale.model in upscalers.SINGLE:
        return torch.float32
    return torch.float16


def once(step: Post, network: nn.Module, size: tuple[int, int]) -> torch.Tensor:
    """One call at ``size`` (height, width): a frame upscaled, or one made between two."""
    frame = torch.zeros((1, 3, *size), dtype=dtype_of(step))
    if step.upscale is not None:
        return upscalers.upscaled(network, frame, step.upscale.own_factor, step.upscale.tile)
    return interpolators.between(network, frame, torch.zeros_like(frame), 0.5)
