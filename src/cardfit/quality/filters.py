"""FFmpeg's own comparing filters, through PyAV: xpsnr and vif.

In: two decoded frames of the same size. Out: one number. Both are brought to 8-bit yuv420p first.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cardfit.errors import MissingExtra
from cardfit.media.source import load_av

_FORMAT = "yuv420p"
# Where each filter writes what it found; several values are averaged as given: name -> weight.
KEYS: dict[str, dict[str, float]] = {
    "xpsnr": {"lavfi.xpsnr.xpsnr.y": 1.0},
    "vif": {f"lavfi.vif.scale.{scale}": 0.25 for scale in range(4)},
}


class Filter:
    """One filter over a pair of streams."""

    def __init__(self, name: str, width: int, height: int) -> None:
        av = load_av()
        if name not in av.filter.filters_available:
            raise MissingExtra("quality-no-filter", name=name, version=av.ffmpeg_version_info)
        self._keys = KEYS[name]
        self._size = (width, height)
        graph = av.filter.Graph()
        more = {"width": width, "height": height, "format": _FORMAT, "time_base": "1/1000"}
        self._inputs = [graph.add_buffer(**more) for _ in range(2)]
        node, self._sink = graph.add(name), graph.add("buffersink")
        for at, each in enumerate(self._inputs):
            each.link_to(node, 0, at)
        node.link_to(self._sink)
        graph.configure()
        self._graph = graph
        self._count = 0

    def of(self, reference: Any, candidate: Any) -> float | None:
        """The number for one pair; None where the filter states none (identical pictures)."""
        # the filters compare their first input, the distorted one, with the second
        for entry, frame in zip(self._inputs, (candidate, reference), strict=True):
            width, height = self._size
            plain = frame.reformat(width=width, height=height, format=_FORMAT)
            plain.pts, plain.time_base = self._count, Fraction(1, 1000)
            entry.push(plain)
        self._count += 1
        stated = self._sink.pull().metadata
        values = [
            float(stated[key]) * weight for key, weight in self._keys.items() if key in stated
        ]
        total = sum(values) if len(values) == len(self._keys) else float("nan")
        return total if abs(total) < 1e6 else None
