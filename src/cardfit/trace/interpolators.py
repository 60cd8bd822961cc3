"""The network of a common frame interpolation, from its published configuration, without weights.

In: a name of `INTERPOLATORS`. Out: a module. IFNet of RIFE (Huang et al., arXiv 2011.06294) as Practical-RIFE sets
its version 4.6 up: four blocks of 192, 128, 96 and 64 channels (5.3 million parameters) that look at the two frames at
an eighth, a quarter, half and full size, each a correction of the flow both ways and of the mask that blends the two
warped frames.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import grid_sample, interpolate, leaky_relu, pad

from cardfit.request.models import Interpolator

MULTIPLE = 128  # sides are padded to it, as that project's inference_video.py does at scale 1
_SLOPE = 0.2
_SCALES = (8, 4, 2, 1)


class _Residual(nn.Module):
    """A convolution, scaled by channel, beside what it was given."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layer = nn.Conv2d(channels, channels, 3, 1, 1)
        self.beta = nn.Parameter(torch.ones(1, channels, 1, 1))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return leaky_relu(self.layer(given) * self.beta + given, _SLOPE, inplace=True)


class _Block(nn.Module):
    """A correction of flow and mask at one scale."""

    def __init__(self, given: int, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(given, channels // 2, 3, 2, 1)
        self.second = nn.Conv2d(channels // 2, channels, 3, 2, 1)
        self.body = nn.Sequential(*(_Residual(channels) for _ in range(8)))
        self.last = nn.ConvTranspose2d(channels, 24, 4, 2, 1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(
        self, given: torch.Tensor, flow: torch.Tensor | None, scale: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        seen = _resized(given, 1 / scale)
        if flow is not None:
            seen = torch.cat((seen, _resized(flow, 1 / scale) / scale), 1)
        seen = leaky_relu(self.first(seen), _SLOPE, inplace=True)
        seen = leaky_relu(self.second(seen), _SLOPE, inplace=True)
        found = _resized(self.shuffle(self.last(self.body(seen))), scale)
        return found[:, :4] * scale, found[:, 4:5]


class IFNet(nn.Module):
    """Two frames and a moment between them to the frame there."""

    def __init__(self) -> None:
        super().__init__()
        # two frames and the moment; then the mask and a flow both ways too
        self.blocks = nn.ModuleList(
            [_Block(7, 192), _Block(12, 128), _Block(12, 96), _Block(12, 64)]
        )

    def forward(self, before: torch.Tensor, after: torch.Tensor, moment: float) -> torch.Tensor:
        """[batch, 3, height, width] twice to one of the same; sides are multiples of 32."""
        when = torch.full_like(before[:, :1], moment)
        flow, mask = self.blocks[0](torch.cat((before, after, when), 1), None, _SCALES[0])
        grid = _grid(before)
        left, right = _warped(before, flow[:, :2], grid), _warped(after, flow[:, 2:], grid)
        for block, scale in zip(self.blocks[1:], _SCALES[1:], strict=True):
            more, change = block(torch.cat((left, right, when, mask), 1), flow, scale)
            flow, mask = flow + more, mask + change
            left, right = _warped(before, flow[:, :2], grid), _warped(after, flow[:, 2:], grid)
        mask = torch.sigmoid(mask)
        return left * mask + right * (1 - mask)


def _resized(given: torch.Tensor, factor: float) -> torch.Tensor:
    if factor == 1:
        return given
    return interpolate(given, scale_factor=factor, mode="bilinear", align_corners=False)


def _grid(like: torch.Tensor) -> torch.Tensor:
    """Where every pixel lies, from -1 to 1: [1, 2, height, width]."""
    height, width = like.shape[-2:]
    across = torch.linspace(-1, 1, width, device=like.device, dtype=like.dtype)
    down = torch.linspace(-1, 1, height, device=like.device, dtype=like.dtype)
    columns = across.view(1, 1, 1, width).expand(1, 1, height, width)
    rows = down.view(1, 1, height, 1).expand(1, 1, height, width)
    return torch.cat((columns, rows), 1)


def _warped(frame: torch.Tensor, flow: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    """``frame`` as ``flow`` (pixels across, down) moves it."""
    height, width = frame.shape[-2:]
    moved = torch.cat((flow[:, :1] / ((width - 1) / 2), flow[:, 1:] / ((height - 1) / 2)), 1)
    at = (grid + moved).permute(0, 2, 3, 1)
    return grid_sample(frame, at, mode="bilinear", padding_mode="border", align_corners=True)


NETWORKS: dict[Interpolator, Callable[[], nn.Module]] = {"rife-4.6": IFNet}


def between(
    network: nn.Module, before: torch.Tensor, after: torch.Tensor, moment: float
) -> torch.Tensor:
    """The frame at ``moment`` (0 to 1) between two of [1, 3, height, width], padded for the network and cut again."""
    height, width = before.shape[-2:]
    more = (0, -width % MULTIPLE, 0, -height % MULTIPLE)
    made = network(pad(before, more), pad(after, more), moment)
    return made[..., :height, :width]  # type: ignore[no-any-return]
