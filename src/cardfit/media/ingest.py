"""Footage for a video-to-video run: its first frames as pictures, decoded on the card where it can, else on the host.

In: a file or folder, how many frames are wanted. Out: RGB frames and the engine that made them. NVDEC is tried when it
is asked for or left open; what it cannot decode, and a machine without a card, is the processor's work. fps is never
changed: frame n of the file is frame n of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardfit.errors import BadFile, BadRequest
from cardfit.media import pixels, source
from cardfit.media.source import Footage, load_av

Engine = Literal["auto", "cpu", "nvdec"]


@dataclass(frozen=True, slots=True)
class Ingested:
    """Frames [height, width, 3] in levels of 0 to 255, and what decoded them."""

    frames: tuple[NDArray[np.uint8], ...]
    engine: Literal["cpu", "nvdec"]
    footage: Footage


def ingest(path: Path, count: int, engine: Engine = "auto") -> Ingested:
    """The first ``count`` frames at ``path``.

    Raises BadFile for what is no footage, BadRequest where it is shorter, or where NVDEC was asked for and cannot
    decode it; MissingExtra without PyAV.
    """
    footage = source.look(path)
    if footage.frames is not None and footage.frames < count:
        raise BadRequest("ingest-too-short", path=path, found=footage.frames, asked=count)
    if engine != "cpu" and footage.kind == "video":
        try:
            return Ingested(_taken(_on_card(footage), footage, count), "nvdec", footage)
        except (load_av().error.FFmpegError, BadFile, NotImplementedError, RuntimeError) as error:
            if engine == "nvdec":
                why = getattr(error, "strerror", None) or str(error)
                raise BadRequest("ingest-no-nvdec", path=path, why=why) from None
    elif engine == "nvdec":
        raise BadRequest("ingest-no-nvdec", path=path, why=footage.kind)
    return Ingested(_taken(source.frames(footage), footage, count), "cpu", footage)


def _taken(found: Iterator[Any], footage: Footage, count: int) -> tuple[NDArray[np.uint8], ...]:
    frames = tuple(pixels.bytes_of(pixels.rgb(frame)) for frame in islice(found, count))
    if len(frames) < count:
        raise BadRequest("ingest-too-short", path=footage.path, found=len(frames), asked=count)
    return frames


def _on_card(footage: Footage) -> Iterator[Any]:
    """The frames of ``footage`` as NVDEC decodes them, brought to the host. Raises FFmpeg's errors."""
    from av.codec.hwaccel import HWAccel, hwdevices_available

    if "cuda" not in hwdevices_available():
        raise NotImplementedError("cuda")
    with (
        footage.path.open("rb") as stream,
        load_av().open(
            stream, hwaccel=HWAccel("cuda", allow_software_fallback=False), options=source.OPTIONS
        ) as container,
    ):
        for number, frame in enumerate(container.decode(video=0)):
            source.check_frame(frame, footage.path, number, footage)
            yield frame
