"""Decoded frames as arrays, and arrays as PNG files.

In: `av.VideoFrame`. Out: RGB [height, width, 3] and luma [height, width], in levels of 0 to 255 whatever the bit depth.
A video without colour tags is read as players do: BT.709 from 720 lines up, BT.601 below.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardfit.errors import BadFile
from cardfit.media.source import load_av

Rgb = NDArray[np.uint8] | NDArray[np.uint16]
Levels = NDArray[np.float32]

LUMA = np.array([0.2126, 0.7152, 0.0722], np.float32)  # ITU-R BT.709
_UNTAGGED = 2
_HD_LINES = 720
_DEEP = 257.0  # 65535 / 255


def colorspace(frame: Any) -> Any:
    """The matrix that ``frame`` was made with: its tag, or what a player would take."""
    spaces = load_av().video.reformatter.Colorspace
    known = {each.value: each for each in spaces}
    tagged = known.get(int(frame.colorspace))
    if tagged is not None and int(frame.colorspace) != _UNTAGGED:
        return tagged
    return spaces.ITU709 if frame.height >= _HD_LINES else spaces.ITU601


def rgb(frame: Any, width: int | None = None, height: int | None = None) -> Rgb:
    """``frame`` as RGB [height, width, 3]: uint8, or uint16 where it holds more than 8 bits.

    With ``width`` and ``height`` it is scaled (bicubic).
    """
    deep = max((each.bits for each in frame.format.components), default=8) > 8
    wanted = "rgb48le" if deep else "rgb24"
    source = None if frame.format.is_rgb else colorspace(frame)
    same = (width, height) in ((None, None), (frame.width, frame.height))
    scaled = frame.reformat(
        width=width,
        height=height,
        format=wanted,
        src_colorspace=source,
        interpolation=None if same else "BICUBIC",
    )
    array: Rgb = scaled.to_ndarray()
    return array


def levels(image: Rgb) -> Levels:
    """``image`` as float32 in levels of 0 to 255."""
    found = image.astype(np.float32)
    return found / np.float32(_DEEP) if image.dtype == np.uint16 else found


def luma(image: Rgb) -> Levels:
    """The BT.709 luma [height, width] of ``image`` in levels of 0 to 255."""
    return levels(image) @ LUMA


def bytes_of(image: Levels | Rgb) -> NDArray[np.uint8]:
    """``image`` as 8 bit levels."""
    if image.dtype == np.uint8:
        return image  # type: ignore[return-value]
    found = levels(image) if image.dtype == np.uint16 else image  # type: ignore[arg-type]
    return np.clip(np.rint(found), 0, 255).astype(np.uint8)


def write_png(path: Path, image: Levels | Rgb) -> None:
    """Write ``image`` ([height, width] or [height, width, 3]) as PNG, whole or not at all. Raises BadFile."""
    write_whole(path, png(image))


def png(image: Levels | Rgb) -> bytes:
    """``image`` ([height, width] or [height, width, 3]) as the bytes of a PNG. Raises MissingExtra."""
    av = load_av()
    array = np.ascontiguousarray(bytes_of(image))
    frame = av.VideoFrame.from_ndarray(array, format="gray" if array.ndim == 2 else "rgb24")
    context = av.CodecContext.create("png", "w")
    context.width, context.height, context.pix_fmt = frame.width, frame.height, frame.format.name
    context.time_base = Fraction(1)
    frame.pts, frame.time_base = 0, context.time_base
    packets = [*context.encode(frame), *context.encode(None)]
    return b"".join(bytes(packet) for packet in packets)


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` or leave nothing there that was not there before. Raises BadFile."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise BadFile("media-not-written", path=path, why=error.strerror or "?") from None
