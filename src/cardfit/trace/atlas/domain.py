"""Where a variant of the atlas holds: sizes, frames, batch, steps; and the point of a request in its variables.

In: an exact request. Out: its point, or why it lies outside. Nothing is extrapolated: a formula is used between the
bounds it was checked in.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from cardfit.request import ExactRequest

Point = tuple[int, int, int, int, int]  # batch, height, width, frames, steps
_NO_STEPS = 0  # stands for "many" in a key


@dataclass(slots=True)
class Domain:
    """Bounds of a variant; sides are multiples of ``grid`` pixels, or one of ``sizes`` where the model lists them."""

    grid: int
    temporal: int
    smallest: int  # pixels, either side
    largest: int  # pixels, either side
    pixels: int  # width x height at most
    batch: int
    sizes: tuple[tuple[int, int], ...] = ()  # width, height
    frame_counts: tuple[int, ...] = (1,)
    prompt_tokens: int | None = None  # None: any
    many_from: int | None = 1  # steps from here on do alike
    steps: tuple[int, ...] = field(default=())  # fewer than that, looked at one by one
    whole: int = 1  # height times width in steps of the grid is a multiple of this

    def point(self, request: ExactRequest) -> Point:
        """The variables of ``request``."""
        frames = (request.num_frames - 1) // self.temporal
        height, width = request.height // self.grid, request.width // self.grid
        return (request.batch, height, width, frames, request.num_inference_steps)

    def outside(self, request: ExactRequest) -> str | None:
        """The field of ``request`` that lies outside, or None."""
        width, height = request.width, request.height
        if self.sizes:
            if (width, height) not in self.sizes:
                return "size"
        elif (
            width % self.grid
            or height % self.grid
            or not self.smallest <= min(width, height) <= max(width, height) <= self.largest
            or width * height > self.pixels
            or (width // self.grid) * (height // self.grid) % self.whole
        ):
            return "size"
        if request.num_frames not in self.frame_counts:
            return "num_frames"
        if request.batch > self.batch:
            return "batch"
        if self.prompt_tokens is not None and request.prompt_tokens != self.prompt_tokens:
            return "prompt_tokens"
        steps = request.num_inference_steps
        if (self.many_from is None or steps < self.many_from) and steps not in self.steps:
            return "num_inference_steps"
        return None

    def draw(self, source: random.Random) -> tuple[int, int]:
        """A size inside, in pixels: (width, height)."""
        if self.sizes:
            return source.choice(self.sizes)
        while True:
            area = self.smallest**2 * (self.pixels / self.smallest**2) ** source.random()
            ratio = 3 ** (2 * source.random() - 1)
            width = round((area * ratio) ** 0.5 / self.grid) * self.grid
            height = round((area / ratio) ** 0.5 / self.grid) * self.grid
            inside = self.smallest <= min(width, height) and max(width, height) <= self.largest
            inside = inside and (width // self.grid) * (height // self.grid) % self.whole == 0
            if inside and width * height <= self.pixels:
                return width, height

    def free(self, points: list[Point], features: tuple[str, ...], keys: set[Any]) -> bool:
        """Whether a piece with these keys is asked for at other points than those seen."""
        if len(self.sizes) != 1:
            return True
        few = features.index("few") if "few" in features else None
        single = self.batch == 1 or (few is not None and all(key[few] == 1 for key in keys))
        held = {
            "frames": len(self.frame_counts) == 1 or "frames" in features,
            "batch": single or "batch" in features,
        }
        return not all(held.values()) or len(keys) > 1

    def as_json(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Domain:
        """What `as_json` gave."""
        data = dict(data)
        data["sizes"] = tuple((w, h) for w, h in data["sizes"])
        data["frame_counts"] = tuple(data["frame_counts"])
        data["steps"] = tuple(data["steps"])
        return cls(**data)


def key_of(point: Point, features: tuple[str, ...], many_from: int | None) -> tuple[int, ...]:
    """The key of ``point`` in a table with these features.

    >>> key_of((3, 64, 64, 0, 28), ("steps", "few"), 8)
    (0, 2)
    """
    batch, height, width, frames, steps = point
    found = {
        "height": height,
        "width": width,
        "few": min(batch, 2),
        "batch": batch,
        "frames": frames,
        "steps": _NO_STEPS if many_from is not None and steps >= many_from else steps,
    }
    return tuple(found[name] for name in features)
