"""Frames kept without any loss: a PNG for one frame, FFV1 in Matroska for more.

In: 8 bit RGB frames [height, width, 3]. Out: files that `cardfit.media.source` reads back as they were. They are for
comparing, not for showing: few players know FFV1.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cardfit.errors import BadFile
from cardfit.media import pixels
from cardfit.media.source import load_av

_PLAIN = 1  # frames a second where nobody says: the file needs a rate, comparing does not


def write_video(path: Path, frames: Iterable[NDArray[np.uint8]], fps: float | None) -> None:
    """Write ``frames`` to ``path`` (.mkv), whole or not at all. Raises BadFile, MissingExtra."""
    av = load_av()
    part = path.with_name(f".{path.name}.part")
    try:
        with av.open(str(part), "w", format="matroska") as container:
            stream = container.add_stream("ffv1", rate=Fraction(fps or _PLAIN).limit_denominator())
            stream.pix_fmt = "bgr0"
            for number, image in enumerate(frames):
                if number == 0:
                    stream.height, stream.width = image.shape[:2]
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
                frame.pts = number
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        part.replace(path)
    except (OSError, av.error.FFmpegError) as error:
        raise BadFile("media-not-written", path=path, why=error.strerror or "?") from None
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, frames: Iterable[NDArray[np.uint8]], fps: float | None, *, one: bool) -> Path:
    """Write ``frames`` beside ``path`` with the ending of their kind and return the file. Raises BadFile."""
    if one:
        file = path.with_suffix(".png")
        pixels.write_png(file, next(iter(frames)))
        return file
    file = path.with_suffix(".mkv")
    write_video(file, frames, fps)
    return file
