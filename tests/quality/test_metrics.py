"""Metrics against hand-computed numbers and against the packages that define them."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.metrics import structural_similarity

from cardfit.media import pixels
from cardfit.quality import metrics


@pytest.fixture
def pair():
    random = np.random.default_rng(1)
    one = random.integers(0, 256, (96, 130, 3), dtype=np.uint8)
    noise = random.integers(-12, 13, one.shape)
    return one, np.clip(one + noise, 0, 255).astype(np.uint8)


def test_psnr_by_hand():
    dark, light = np.zeros((40, 40, 3), np.uint8), np.full((40, 40, 3), 5, np.uint8)
    assert metrics.mean_square(dark, light) == 25
    assert metrics.psnr_db(25) == pytest.approx(20 * np.log10(255 / 5))
    assert metrics.psnr_db(metrics.mean_square(dark, dark)) is None


def test_deep_pictures_are_compared_in_levels_of_255():
    deep = np.full((40, 40, 3), 5 * 257, np.uint16)
    assert metrics.mean_square(np.zeros((40, 40, 3), np.uint8), deep) == pytest.approx(25)


@pytest.mark.parametrize("shift", [0, 1, 40])
def test_ssim_is_scikit_images(pair, shift):
    one, other = pixels.luma(pair[0]), pixels.luma(np.roll(pair[1], shift, 1))
    wanted = structural_similarity(one.astype(np.float64), other.astype(np.float64), data_range=255)
    assert metrics.ssim_map(one, other).mean(dtype=np.float64) == pytest.approx(wanted, abs=2e-5)


def test_ssim_of_the_same_is_one_everywhere(pair):
    luma = pixels.luma(pair[0])
    found = metrics.ssim_map(luma, luma)
    assert found.shape == (90, 124)
    assert np.abs(found - 1).max() < 1e-4


def test_flip_is_zero_for_the_same_and_bounded(pair):
    value, shown = metrics.flip(*pair)
    assert 0 < value < 1
    assert shown.shape == pair[0].shape[:2]
    assert metrics.flip(pair[0], pair[0])[0] == 0


def test_composition_ignores_tone_noise_and_blur_and_sees_another_picture():
    from skimage import data
    from skimage.filters import gaussian

    one = data.astronaut()[..., 0].astype(np.float32)
    other = data.camera().astype(np.float32)
    cells = metrics.cells(one)
    random = np.random.default_rng(2)
    harmless = [
        0.9 * one + 15,
        one + random.normal(0, 12, one.shape).astype(np.float32),
        gaussian(one, 2).astype(np.float32),
    ]
    for each in harmless:
        assert metrics.composition(cells, metrics.cells(each)) > 0.95
    assert metrics.composition(cells, metrics.cells(other)) < 0.3
    assert metrics.composition(cells, metrics.cells(np.roll(one, 90, 1))) < 0.5
    flat = np.full_like(cells, 80)
    assert metrics.composition(flat, flat) is None
    assert metrics.composition(cells, flat) == 0


def test_fine_energy_falls_with_blur_and_rises_with_grain(pair):
    from skimage.filters import gaussian

    luma = pixels.luma(pair[0])
    own = metrics.fine_energy(luma)
    assert metrics.fine_energy(gaussian(luma, 1).astype(np.float32)) < own / 2
    grain = np.random.default_rng(3).normal(0, 30, luma.shape).astype(np.float32)
    assert metrics.fine_energy(luma + grain) > own
