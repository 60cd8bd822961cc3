"""The networks of common upscalers, from their published configurations, without weights.

In: a name of `UPSCALERS`. Out: a module. Families: RRDBNet of ESRGAN (Wang et al., arXiv 1809.00219, section 3.1)
as Real-ESRGAN configures it (arXiv 2107.10833; numbers of blocks and channels from inference_realesrgan.py of
xinntao/Real-ESRGAN v0.3.0), and its compact SRVGG: a stack of 3 x 3 convolutions with PReLU and one pixel shuffle,
which adds to the picture enlarged by repetition. `upscaled` walks over tiles as that project's RealESRGANer does:
with 10 pixels of padding, the result put together on the card. SwinIR for real pictures (`swinir`) beside them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import interpolate, leaky_relu, pixel_unshuffle

from cardfit.request.models import Upscaler
from cardfit.trace.swinir import SwinIR

TILE_PAD = 10  # pixels around a tile, RealESRGANer's default
_SLOPE = 0.2


class _Dense(nn.Module):
    """Five convolutions, each of which sees everything before it."""

    def __init__(self, features: int, growth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv2d(features + at * growth, growth if at < 4 else features, 3, 1, 1)
            for at in range(5)
        )

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        seen = [given]
        for layer in list(self.layers)[:-1]:
            seen.append(leaky_relu(layer(torch.cat(seen, 1)), _SLOPE, inplace=True))
        last: torch.Tensor = self.layers[-1](torch.cat(seen, 1))
        return last * 0.2 + given


class _Block(nn.Module):
    def __init__(self, features: int, growth: int) -> None:
        super().__init__()
        self.dense = nn.ModuleList(_Dense(features, growth) for _ in range(3))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        out = given
        for part in self.dense:
            out = part(out)
        return out * 0.2 + given


class RRDBNet(nn.Module):
    """Blocks in a residual at the picture's size, then twice a doubling. ``factor`` 2 folds 2 x 2 pixels first."""

    def __init__(self, blocks: int, features: int = 64, growth: int = 32, factor: int = 4) -> None:
        super().__init__()
        self.fold = 4 // factor
        self.first = nn.Conv2d(3 * self.fold**2, features, 3, 1, 1)
        self.blocks = nn.ModuleList(_Block(features, growth) for _ in range(blocks))
        self.body = nn.Conv2d(features, features, 3, 1, 1)
        self.up = nn.ModuleList(nn.Conv2d(features, features, 3, 1, 1) for _ in range(2))
        self.high = nn.Conv2d(features, features, 3, 1, 1)
        self.last = nn.Conv2d(features, 3, 3, 1, 1)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """[batch, 3, height, width] to the same, larger."""
        feature = self.first(pixel_unshuffle(given, self.fold) if self.fold > 1 else given)
        out = feature
        for block in self.blocks:
            out = block(out)
        out = feature + self.body(out)
        for layer in self.up:
            larger = interpolate(out, scale_factor=2, mode="nearest")
            out = leaky_relu(layer(larger), _SLOPE, inplace=True)
        return self.last(leaky_relu(self.high(out), _SLOPE, inplace=True))  # type: ignore[no-any-return]


class SRVGG(nn.Module):
    """Real-ESRGAN's compact network: everything happens at the small size."""

    def __init__(self, convolutions: int, features: int = 64, factor: int = 4) -> None:
        super().__init__()
        self.factor = factor
        layers: list[nn.Module] = [nn.Conv2d(3, features, 3, 1, 1), nn.PReLU(features)]
        for _ in range(convolutions):
            layers += [nn.Conv2d(features, features, 3, 1, 1), nn.PReLU(features)]
        layers.append(nn.Conv2d(features, 3 * factor**2, 3, 1, 1))
        self.layers = nn.ModuleList(layers)
        self.shuffle = nn.PixelShuffle(factor)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """[batch, 3, height, width] to the same, larger."""
        out = given
        for layer in self.layers:
            out = layer(out)
        larger: torch.Tensor = self.shuffle(out)
        larger += interpolate(given, scale_factor=self.factor, mode="nearest")
        return larger


NETWORKS: dict[Upscaler, Callable[[], nn.Module]] = {
    "realesrgan-x4plus": lambda: RRDBNet(23),
    "realesrgan-x4plus-anime": lambda: RRDBNet(6),
    "realesrgan-x2plus": lambda: RRDBNet(23, factor=2),
    "realesr-general-x4v3": lambda: SRVGG(32),
    "realesr-animevideov3": lambda: SRVGG(16),
    "swinir-real-x4": SwinIR,
}
# attention's mask is made in single precision, and half of it would not multiply with that
SINGLE: frozenset[Upscaler] = frozenset({"swinir-real-x4"})


def upscaled(
    network: nn.Module, frame: torch.Tensor, factor: int, tile: int | None
) -> torch.Tensor:
    """``frame`` [1, 3, height, width] through ``network``, whole or tile by tile with a padded border."""
    if tile is None:
        return network(frame)  # type: ignore[no-any-return]
    height, width = frame.shape[-2:]
    out = frame.new_zeros(1, 3, height * factor, width * factor)
    for top in range(0, height, tile):
        for left in range(0, width, tile):
            bottom, right = min(top + tile, height), min(left + tile, width)
            above, before = max(top - TILE_PAD, 0), max(left - TILE_PAD, 0)
            part = frame[
                ...,
                above : min(bottom + TILE_PAD, height),
                before : min(right + TILE_PAD, width),
            ]
            made = network(part)
            y, x = (top - above) * factor, (left - before) * factor
            out[..., top * factor : bottom * factor, left * factor : right * factor] = made[
                ...,
                y : y + (bottom - top) * factor,
                x : x + (right - left) * factor,
            ]
    return out
