"""SwinIR, from its paper and published configuration, without weights.

In: the numbers of a configuration. Out: a module. Liang et al., arXiv 2108.10257: groups of shifted-window attention in
residuals between convolutions. Attention is written out (product, bias, softmax, product), as in the published code, so
the scores of all windows of a frame are alive at once. Rows and columns are added until windows divide the frame.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import interpolate, leaky_relu, pad

_SLOPE = 0.01  # torch's own, which SwinIR's upsampling keeps


def _split(given: torch.Tensor, side: int) -> torch.Tensor:
    """[batch, height, width, channels] to windows [batch x windows, side x side, channels]."""
    batch, height, width, channels = given.shape
    rows = given.view(batch, height // side, side, width // side, side, channels)
    return rows.transpose(2, 3).contiguous().view(-1, side * side, channels)


def _joined(windows: torch.Tensor, side: int, height: int, width: int) -> torch.Tensor:
    """What `_split` took apart."""
    channels = windows.shape[-1]
    rows = windows.view(-1, height // side, width // side, side, side, channels)
    return rows.transpose(2, 3).contiguous().view(-1, height, width, channels)


class _Attention(nn.Module):
    """Attention inside windows, with a learnt bias by relative place."""

    def __init__(self, channels: int, heads: int, side: int) -> None:
        super().__init__()
        self.heads, self.side = heads, side
        self.bias = nn.Parameter(torch.zeros((2 * side - 1) ** 2, heads))
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(
        self, given: torch.Tensor, places: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        count, tokens, channels = given.shape
        parts = self.qkv(given).view(count, tokens, 3, self.heads, channels // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = (query * (channels // self.heads) ** -0.5) @ key.transpose(-2, -1)
        bias = self.bias[places].view(tokens, tokens, self.heads).permute(2, 0, 1)
        scores = scores + bias.contiguous().unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            scores = scores.view(-1, windows, self.heads, tokens, tokens)
            scores = (scores + mask.unsqueeze(1).unsqueeze(0)).view(-1, self.heads, tokens, tokens)
        seen = scores.softmax(-1) @ value
        return self.out(seen.transpose(1, 2).reshape(count, tokens, channels))  # type: ignore[no-any-return]


class _Layer(nn.Module):
    """A transformer layer; every other one looks at windows shifted by half of one."""

    def __init__(self, channels: int, heads: int, side: int, shift: int) -> None:
        super().__init__()
        self.side, self.shift = side, shift
        self.first = nn.LayerNorm(channels)
        self.attention = _Attention(channels, heads, side)
        self.second = nn.LayerNorm(channels)
        self.grow = nn.Linear(channels, 2 * channels)
        self.shrink = nn.Linear(2 * channels, channels)

    def forward(
        self, given: torch.Tensor, places: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """[batch, height, width, channels] to the same."""
        height, width = given.shape[1:3]
        seen = self.first(given)
        if self.shift:
            seen = torch.roll(seen, (-self.shift, -self.shift), (1, 2))
        windows = self.attention(_split(seen, self.side), places, mask if self.shift else None)
        seen = _joined(windows, self.side, height, width)
        if self.shift:
            seen = torch.roll(seen, (self.shift, self.shift), (1, 2))
        given = given + seen
        more = nn.functional.gelu(self.grow(self.second(given)))
        return given + self.shrink(more)  # type: ignore[no-any-return]


class _Group(nn.Module):
    """Layers and a convolution in a residual."""

    def __init__(self, channels: int, depth: int, heads: int, side: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _Layer(channels, heads, side, side // 2 if at % 2 else 0) for at in range(depth)
        )
        self.last = nn.Conv2d(channels, channels, 3, 1, 1)

    def forward(
        self, given: torch.Tensor, places: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        seen = given
        for layer in self.layers:
            seen = layer(seen, places, mask)
        seen = self.last(seen.permute(0, 3, 1, 2).contiguous())
        return seen.permute(0, 2, 3, 1).contiguous() + given  # type: ignore[no-any-return]


class SwinIR(nn.Module):
    """Four times larger. ``shuffle`` ends as the networks for exact blur do, else as those for real pictures."""

    def __init__(
        self,
        channels: int = 180,
        groups: int = 6,
        depth: int = 6,
        heads: int = 6,
        side: int = 8,
        *,
        shuffle: bool = False,
    ) -> None:
        super().__init__()
        self.side = side
        self.first = nn.Conv2d(3, channels, 3, 1, 1)
        self.before = nn.LayerNorm(channels)
        self.groups = nn.ModuleList(_Group(channels, depth, heads, side) for _ in range(groups))
        self.after = nn.LayerNorm(channels)
        self.body = nn.Conv2d(channels, channels, 3, 1, 1)
        self.narrow = nn.Conv2d(channels, 64, 3, 1, 1)
        wide = 256 if shuffle else 64
        self.up = nn.ModuleList(nn.Conv2d(64, wide, 3, 1, 1) for _ in range(2))
        self.shuffle = nn.PixelShuffle(2) if shuffle else None
        self.high = None if shuffle else nn.Conv2d(64, 64, 3, 1, 1)
        self.last = nn.Conv2d(64, 3, 3, 1, 1)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """[batch, 3, height, width] to four times both sides."""
        height, width = given.shape[-2:]
        given = pad(given, (0, -width % self.side, 0, -height % self.side), mode="reflect")
        feature = self.first(given)
        places, mask = self._places(given), self._mask(given)
        seen = self.before(feature.permute(0, 2, 3, 1).contiguous())
        for group in self.groups:
            seen = group(seen, places, mask)
        seen = self.after(seen).permute(0, 3, 1, 2).contiguous()
        out = leaky_relu(self.narrow(self.body(seen) + feature), _SLOPE, inplace=True)
        for layer in self.up:
            out = self._larger(layer, out)
        if self.high is not None:
            out = leaky_relu(self.high(out), 0.2, inplace=True)
        return self.last(out)[..., : 4 * height, : 4 * width]  # type: ignore[no-any-return]

    def _larger(self, layer: nn.Module, given: torch.Tensor) -> torch.Tensor:
        if self.shuffle is not None:
            return self.shuffle(layer(given))  # type: ignore[no-any-return]
        larger = interpolate(given, scale_factor=2, mode="nearest")
        return leaky_relu(layer(larger), 0.2, inplace=True)

    def _places(self, given: torch.Tensor) -> torch.Tensor:
        """The row of the bias for every pair of places in a window: [side^4]."""
        at = torch.arange(self.side, device=given.device)
        rows, columns = (each.reshape(-1) for each in torch.meshgrid(at, at, indexing="ij"))
        down = rows[:, None] - rows[None, :] + self.side - 1
        across = columns[:, None] - columns[None, :] + self.side - 1
        return (down * (2 * self.side - 1) + across).view(-1)

    def _mask(self, given: torch.Tensor) -> torch.Tensor:
        """What a shifted window must not look at, across the frame's edges: [windows, side^2, side^2]."""
        height, width = given.shape[-2:]
        parts = [
            (torch.arange(size, device=given.device) >= size - self.side).to(given.dtype)
            + (torch.arange(size, device=given.device) >= size - self.side // 2).to(given.dtype)
            for size in (height, width)
        ]
        areas = (parts[0][:, None] * 3 + parts[1][None, :]).view(1, height, width, 1)
        windows = _split(areas, self.side).squeeze(-1)
        return (windows[:, None, :] != windows[:, :, None]).to(given.dtype) * -100
