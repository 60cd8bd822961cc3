"""Clips of known content for the quality benchmark and its tests: generators, and defects of known strength.

In: a random generator and a number of frames. Out: luma frames, uint8 [height, width]. Some clips stand still, some
move; `photo` pans over the photographs that ship inside scikit-image. `coded` encodes and decodes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Frame = NDArray[np.uint8]
HEIGHT, WIDTH = 720, 1280
_PHOTOS = (
    "astronaut camera coffee chelsea rocket brick grass gravel coins moon page text clock".split()
)


def _bytes(levels: NDArray[Any]) -> Frame:
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8)


def _still(random: np.random.Generator) -> bool:
    return bool(random.random() < 0.25)


def gradient(
    random: np.random.Generator, frames: int, size: tuple[int, int] = (HEIGHT, WIDTH)
) -> Iterator[Frame]:
    """Light that changes slowly over the picture, without or with grain: what bands when it is coded."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    angle, base, reach = random.uniform(0, 6.3), random.uniform(40, 120), random.uniform(20, 110)
    along = (columns * np.cos(angle) + rows * np.sin(angle)) / 1000
    speed, bend = random.uniform(-0.02, 0.02), random.uniform(-1, 1)
    grain = random.choice([0, 0, 0.5, 1.0])
    for at in range(frames):
        place = along + speed * at
        light = base + reach * (place + 0.3 * bend * place * place)
        yield _bytes(light + random.normal(0, grain, light.shape) if grain else light)


def _noise(random: np.random.Generator, height: int, width: int, slope: float) -> NDArray[Any]:
    """Noise with the power of ``frequency ** -slope``, mean 0, deviation 1."""
    rate = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    rate[0, 0] = 1
    turned = rate ** (-slope / 2) * np.exp(2j * np.pi * random.random(rate.shape))
    found = np.fft.irfft2(turned, s=(height, width))
    return (found - found.mean()) / found.std()


def texture(
    random: np.random.Generator, frames: int, size: tuple[int, int] = (HEIGHT, WIDTH)
) -> Iterator[Frame]:
    """Noise from rough to cloudy that drifts."""
    height, width = size
    speed = np.zeros(2) if _still(random) else random.uniform((-3, -6), (3, 6))
    room = np.ceil(np.abs(speed) * frames).astype(int) + 2
    slope, contrast = random.uniform(1.2, 2.6), random.uniform(15, 50)
    field = 120 + contrast * _noise(random, height + room[0], width + room[1], slope)
    start = np.where(speed < 0, room - 1, 0)
    for at in range(frames):
        y, x = np.maximum(start + speed * at, 0)
        cut = field[int(y) : int(y) + height + 1, int(x) : int(x) + width + 1]
        moved = ndimage.shift(cut, (-(y % 1), -(x % 1)), order=1, mode="nearest")
        yield _bytes(moved[:height, :width])


def shapes(
    random: np.random.Generator, frames: int, size: tuple[int, int] = (HEIGHT, WIDTH)
) -> Iterator[Frame]:
    """Rectangles and ellipses with sharp edges over clouds."""
    height, width = size
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    clouds = _noise(random, height, width, 3) * random.uniform(5, 25) + random.uniform(70, 160)
    things = [
        (
            random.uniform((0, 0), (width, height)),
            random.uniform((-10, -6), (10, 6)),
            random.uniform((30, 20), (200, 150)),
            random.uniform(-80, 80),
            random.random() < 0.5,
        )
        for _ in range(8)
    ]
    still = _still(random)
    for at in range(frames):
        picture = clouds.copy()
        for place, speed, radius, tone, square in things:
            x, y = place + speed * (0 if still else at)
            across, down = np.abs(columns - x) / radius[0], np.abs(rows - y) / radius[1]
            inside = np.maximum(across, down) < 1 if square else across**2 + down**2 < 1
            picture[inside] = 0.3 * picture[inside] + 0.7 * (120 + tone)
        yield _bytes(ndimage.gaussian_filter(picture, 0.7))


def photo(
    random: np.random.Generator, frames: int, size: tuple[int, int] = (HEIGHT, WIDTH)
) -> Iterator[Frame]:
    """A photograph that pans or zooms, with a little grain."""
    from skimage import data

    picture = np.asarray(getattr(data, str(random.choice(_PHOTOS)))(), np.float32)
    if picture.ndim == 3:
        picture = picture[..., :3] @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    height, width = size
    scale = max(height / picture.shape[0], width / picture.shape[1]) * random.uniform(1.05, 1.5)
    zoom, speed = random.choice([0, 0, 0.002, -0.002]), random.uniform((-1.5, -2.5), (1.5, 2.5))
    if _still(random):
        zoom, speed = 0.0, np.zeros(2)
    middle = np.array(picture.shape) / 2
    for at in range(frames):
        now = scale * (1 + zoom * at)
        corner = middle - (np.array([height, width]) / 2 + speed * at) / now
        moved = ndimage.affine_transform(
            picture, [1 / now, 1 / now], offset=corner, output_shape=size, order=1, mode="mirror"
        )
        yield _bytes(moved + random.normal(0, 0.7, size))


CONTENT = {"gradient": gradient, "texture": texture, "shapes": shapes, "photo": photo}


def with_tone(frame: Frame, columns: Sequence[int], rows: Sequence[int], step: float) -> Frame:
    """Every second tile, as on a chessboard, lighter by ``step`` levels."""
    across = np.searchsorted(columns, np.arange(frame.shape[1]), side="right")
    down = np.searchsorted(rows, np.arange(frame.shape[0]), side="right")
    return _bytes(frame + step * ((across[None] + down[:, None]) % 2))


def with_lines(frame: Frame, columns: Sequence[int], rows: Sequence[int], step: float) -> Frame:
    """A line of one pixel, lighter by ``step`` levels, at every place where tiles meet."""
    found = frame.astype(np.float32)
    found[:, list(columns)] += step
    found[list(rows), :] += step
    return _bytes(found)


def with_gain(
    frames: Sequence[Frame], chunk: int, share: float, *, once: bool = False
) -> list[Frame]:
    """Every second chunk (or all from one edge on) brighter by ``share``.

    What is below a level is kept by dithering: before it was rounded the picture had it too.
    """
    middle = len(frames) // 2 // chunk
    random = np.random.default_rng(0)
    found = []
    for at, frame in enumerate(frames):
        brighter = at // chunk >= middle if once else (at // chunk) % 2 == 1
        dither = random.uniform(-0.5, 0.5, frame.shape)
        found.append(_bytes(frame * (1 + share) + dither) if brighter else frame)
    return found


def write(
    path: Path | io.BytesIO,
    frames: Sequence[Frame] | Iterator[Frame],
    crf: int = 18,
    codec: str = "libx264",
    container: str = "mp4",
    rate: int = 24,
) -> None:
    """Encode luma frames as grey yuv420p."""
    with av.open(
        path if isinstance(path, io.BytesIO) else str(path), "w", format=container
    ) as output:
        stream: Any = None
        for at, frame in enumerate(frames):
            picture = av.VideoFrame.from_ndarray(frame, format="gray").reformat(format="yuv420p")
            if stream is None:
                options = {"crf": str(crf), "preset": "veryfast", "threads": "1"}
                stream = output.add_stream(codec, rate=rate, options=options)
                stream.width, stream.height, stream.pix_fmt = (
                    picture.width,
                    picture.height,
                    "yuv420p",
                )
            picture.pts = at
            output.mux(stream.encode(picture))
        output.mux(stream.encode(None))


def coded(frames: Sequence[Frame], crf: int) -> list[Frame]:
    """``frames`` encoded with x264 and decoded again."""
    held = io.BytesIO()
    write(held, frames, crf, container="matroska")
    held.seek(0)
    with av.open(held) as container:
        return [frame.reformat(format="gray").to_ndarray() for frame in container.decode(video=0)]
