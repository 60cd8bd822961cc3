"""The size arithmetic agrees with the code of the installed diffusers, size by size."""

from __future__ import annotations

import random

import pytest

from cardfit.library import SizeRule, load
from cardfit.library.sizes import FITS, made_size

RNG = random.Random(7)
SIZES = [(RNG.randrange(256, 2049), RNG.randrange(256, 2049)) for _ in range(400)]


def test_every_fit_is_a_function_of_the_table() -> None:
    assert set(FITS) == set(SizeRule.model_fields["fit"].annotation.__args__)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("model", "asked", "made"),
    [
        ("wan2.2-ti2v-5b", (1280, 720), (1280, 704)),  # 720 // 32 * 32
        ("flux.1-dev", (1000, 1000), (992, 992)),  # 2 * (1000 // 16) latents of 8 pixels
        ("hunyuanvideo-1.5-480p-t2v", (850, 490), (848, 480)),
        ("flux.1-kontext", (512, 512), (1024, 1024)),
        ("flux.1-kontext", (1280, 720), (1360, 768)),  # 1365 and 768, floored to 16
        ("hidream-i1", (2048, 2048), (1024, 1024)),
        ("hidream-i1", (1280, 720), (1360, 768)),
        ("kandinsky-5-t2i-lite", (1280, 720), (1280, 768)),  # 1.667 is nearer to 1.778 than 1.286
        ("pixart-sigma", (1000, 1000), (1024, 1024)),
        ("sana-1.6b", (512, 1024), (704, 1408)),  # height / width 2.0
        ("hunyuanvideo-1.5-720p-i2v", (1920, 1080), (1280, 720)),
        ("hunyuandit-v1.2", (1200, 1200), (1280, 1280)),  # 1.44 Mpx is nearer to 1.64 than 1.05
        ("hunyuandit-v1.2", (1920, 1080), (1280, 768)),
        ("pixart-alpha-512", (512, 512), (512, 512)),
    ],
)
def test_by_hand(model: str, asked: tuple[int, int], made: tuple[int, int]) -> None:
    assert made_size(load(model).rules.size, *asked) == made


def test_bins_are_those_of_diffusers() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    from diffusers.image_processor import PixArtImageProcessor
    from diffusers.pipelines.pixart_alpha.pipeline_pixart_alpha import ASPECT_RATIO_1024_BIN

    rule = load("pixart-sigma").rules.size
    for width, height in SIZES:
        binned = PixArtImageProcessor.classify_height_width_bin(
            height, width, ratios=ASPECT_RATIO_1024_BIN
        )
        assert made_size(rule, width, height)[::-1] == binned


def test_shapes_are_those_of_diffusers() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    from diffusers.pipelines.hunyuandit.pipeline_hunyuandit import (
        SUPPORTED_SHAPE,
        map_to_standard_shapes,
    )

    rule = load("hunyuandit-v1.2").rules.size
    assert {*rule.sizes} == {*SUPPORTED_SHAPE}
    for width, height in SIZES:
        assert made_size(rule, width, height) == map_to_standard_shapes(width, height)


def test_buckets_are_those_of_diffusers() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    from diffusers.pipelines.hunyuan_video1_5.image_processor import HunyuanVideo15ImageProcessor

    model = load("hunyuanvideo-1.5-720p-i2v")
    target = model.components["transformer"].config["target_size"]
    processor = HunyuanVideo15ImageProcessor()
    for width, height in SIZES:
        bucket = processor.calculate_default_height_width(height, width, target)
        assert made_size(model.rules.size, width, height)[::-1] == bucket


def test_a_fit_without_its_facts_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="area"):
        made_size(SizeRule(fit="area", why="no area given"), 512, 512)
    with pytest.raises(ValueError, match="buckets"):
        made_size(SizeRule(fit="buckets", why="no sizes given"), 512, 512)
