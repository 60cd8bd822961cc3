"""Differences of one frame to another: PSNR, SSIM, FLIP, composition, sharpness.

In: RGB [height, width, 3] and luma [height, width] in levels of 0 to 255. Out: numbers, higher is nearer except FLIP.
SSIM is Wang et al. 2004 in the form of scikit-image's default (7 x 7 uniform window, sample covariance, luma); the
tests hold it to scikit-image. It is written out here because four window sums by shifted additions take a quarter of
the time. FLIP is NVIDIA's own package (LDR, 67 pixels per degree).
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from cardfit.errors import MissingExtra
from cardfit.media.pixels import Levels, Rgb, levels

PEAK = 255.0
WINDOW = 7
CELL = 16  # pixels: composition is compared on means of such squares
LEAST_SIDE = 2 * CELL
_C1, _C2 = (0.01 * PEAK) ** 2, (0.03 * PEAK) ** 2
_ROOM = 9  # cells: what is wider than this is light, not composition
_FLAT = 1.0  # squared levels: a picture with less structure has no composition to compare


def mean_square(reference: Rgb, candidate: Rgb) -> float:
    """The mean squared difference over all components, in squared levels."""
    if reference.dtype == candidate.dtype == np.uint8:
        apart = np.subtract(reference, candidate, dtype=np.int16).astype(np.float32)
    else:
        apart = levels(reference) - levels(candidate)
    rows = apart.reshape(len(apart), -1)
    return float(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64) / apart.size)


def psnr_db(mean_square_levels: float) -> float | None:
    """Peak signal to noise in dB; None where the pictures are identical.

    >>> round(psnr_db(1.0), 2), psnr_db(0.0)
    (48.13, None)
    """
    return float(10 * np.log10(PEAK**2 / mean_square_levels)) if mean_square_levels else None


def ssim_map(reference: Levels, candidate: Levels) -> Levels:
    """SSIM of every 7 x 7 window [height - 6, width - 6]."""
    count = WINDOW * WINDOW
    mean_x, mean_y = _windows(reference), _windows(candidate)
    both = reference * candidate
    cross = _windows(both)
    np.multiply(reference, reference, out=both)
    both += candidate * candidate
    squares = _windows(both)
    product = mean_x * mean_y
    mean_x *= mean_x
    mean_x += mean_y * mean_y  # the sum of squared means from here on
    unbiased = np.float32(count / (count - 1))
    cross -= product
    cross *= 2 * unbiased
    cross += np.float32(_C2)
    squares -= mean_x
    squares *= unbiased
    squares += np.float32(_C2)
    product *= 2
    product += np.float32(_C1)
    mean_x += np.float32(_C1)
    product *= cross
    mean_x *= squares
    product /= mean_x
    return product


def _windows(values: Levels) -> Levels:
    """The mean of every window, by shifted sums of 2, 4 and 7."""
    for axis in (0, 1):
        turned = values if axis == 0 else values.T
        two = turned[:-1] + turned[1:]
        four = two[:-2] + two[2:]
        seven = four[:-3] + two[4:-1]
        seven += turned[WINDOW - 1 :]
        values = seven if axis == 0 else seven.T
    values *= np.float32(1 / WINDOW**2)
    return values


def cells(luma: Levels) -> Levels:
    """Means of 16 x 16 squares; a rest at the right and the bottom is left out."""
    rows, columns = (side // CELL for side in luma.shape)
    cut = luma[: rows * CELL, : columns * CELL]
    found: Levels = cut.reshape(rows, CELL, columns, CELL).mean(axis=(1, 3), dtype=np.float32)
    return found


def composition(reference: Levels, candidate: Levels) -> float | None:
    """How alike two pictures are laid out, from their `cells`: 1 the same, 0 unrelated; None where both are flat.

    It is the correlation after wide differences of light are taken out, so that tone, noise, blur and compression
    hardly count and a moved or another subject does.
    """
    one, other = (each - uniform_filter(each, _ROOM) for each in (reference, candidate))
    power = [float(np.square(each).mean()) for each in (one, other)]
    if min(power) < _FLAT:
        return None if max(power) < _FLAT else 0.0
    return float((one * other).mean() / (power[0] * power[1]) ** 0.5)


def fine_energy(luma: Levels) -> float:
    """The mean square of what stands above the mean of its four neighbours: the finest detail and the grain."""
    inner = luma[1:-1, 1:-1]
    around = luma[:-2, 1:-1] + luma[2:, 1:-1] + luma[1:-1, :-2] + luma[1:-1, 2:]
    return float(np.square(inner - around / 4).mean(dtype=np.float64))


def flip(reference: Rgb, candidate: Rgb) -> tuple[float, Levels]:
    """The mean FLIP (0 alike, 1 as far as can be seen) and its map. Raises MissingExtra."""
    try:
        import flip_evaluator
    except ModuleNotFoundError as missing:
        raise MissingExtra("quality-needs-flip", package=missing.name or "?") from missing
    unit = np.float32(1 / PEAK)
    found, mean, _ = flip_evaluator.evaluate(
        levels(reference) * unit, levels(candidate) * unit, "LDR", applyMagma=False
    )
    return float(mean), cast("NDArray[np.float32]", np.asarray(found)[..., 0])
