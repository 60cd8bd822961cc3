"""The size that a pipeline makes when another is asked for.

In: a `SizeRule` and a width and height in pixels. Out: the size that diffusers (0.42) makes, by the arithmetic of the
pipeline's own ``__call__``; refusals are the business of `library.rules`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cardfit.library.models import SizeRule

Size = tuple[int, int]


def _plain(rule: SizeRule, width: int, height: int) -> Size:
    return width, height


def _area(rule: SizeRule, width: int, height: int) -> Size:
    """FluxKontextPipeline: both sides rounded from area and aspect ratio."""
    area = _area_pixels(rule)
    return round((area * (width / height)) ** 0.5), round((area / (width / height)) ** 0.5)


def _area_floor(rule: SizeRule, width: int, height: int) -> Size:
    """HiDreamImagePipeline: both sides scaled by one factor."""
    scale = math.sqrt(_area_pixels(rule) / (width * height))
    return int(width * scale), int(height * scale)


def _area_pixels(rule: SizeRule) -> int:
    if rule.area_pixels is None:
        raise ValueError(rule.fit)
    return rule.area_pixels


def _list(rule: SizeRule, width: int, height: int) -> Size:
    """Kandinsky5T2IPipeline: the listed size, else the first with the nearest width / height."""
    if (width, height) in rule.sizes:
        return width, height
    return min(rule.sizes, key=lambda size: abs(size[0] / size[1] - width / height))


def _shapes(rule: SizeRule, width: int, height: int) -> Size:
    """HunyuanDiT's `map_to_standard_shapes`: the nearest width / height, then the nearest area; a listed size stays."""
    if (width, height) in rule.sizes:
        return width, height
    ranked = zip(rule.ratios, rule.sizes, strict=True)
    asked = (width / height, width * height)
    return min(
        ranked, key=lambda row: (abs(row[0] - asked[0]), abs(row[1][0] * row[1][1] - asked[1]))
    )[1]


def _bins(rule: SizeRule, width: int, height: int) -> Size:
    """`VaeImageProcessor.classify_height_width_bin`: the bin filed under the nearest height / width."""
    ranked = zip(rule.ratios, rule.sizes, strict=True)
    return min(ranked, key=lambda row: abs(row[0] - height / width))[1]


def _buckets(rule: SizeRule, width: int, height: int) -> Size:
    """HunyuanVideo15ImageProcessor: the nearest aspect ratio that is not longer than the picture's."""
    ratio = height / width
    upright = ratio >= 1
    near: tuple[float, Size] | None = None
    for size in rule.sizes:
        difference = round(size[1] / size[0], 5) - ratio
        shorter = difference <= 0 if upright else difference >= 0
        if shorter and (near is None or abs(difference) < near[0]):
            near = (abs(difference), size)
    if near is None:
        raise ValueError(rule.fit)
    return near[1]


FITS: dict[str, Callable[[SizeRule, int, int], Size]] = {
    "plain": _plain,
    "area": _area,
    "area-floor": _area_floor,
    "list": _list,
    "shapes": _shapes,
    "bins": _bins,
    "buckets": _buckets,
    "fixed": _plain,
}
"""How each `SizeRule.fit` turns the asked size into the made one, before flooring."""


def made_size(rule: SizeRule, width: int, height: int) -> Size:
    """Width and height in pixels that the pipeline makes for the asked ones.

    >>> made_size(SizeRule(floor_to=32, why="VAE factor 16 x patch 2"), 1280, 720)
    (1280, 704)
    """
    made = FITS[rule.fit](rule, width, height)
    return made[0] // rule.floor_to * rule.floor_to, made[1] // rule.floor_to * rule.floor_to
