"""Footage to read: a picture, a folder of frames, or a video, one frame at a time.

In: a path. Out: `Footage`, what the file says of itself, and an iterator of decoded frames. Memory does not grow with
the length. A file is opened through its descriptor and only as one of `FORMATS`, so that a playlist in disguise reaches
no other file and no network. Alpha is left out; the first video stream counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cardfit.errors import BadFile, MissingExtra

Kind = Literal["image", "frames", "video"]

MAX_SIDE = 16_384
MAX_PIXELS = 16_384 * 8_192
MAX_FRAMES = 1_000_000
STILLS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"})
# What FFmpeg calls them; formats that name further files (hls, dash, concat, image2) are not among them.
FORMATS = frozenset(
    "mov mp4 matroska webm avi gif apng mpegts mpeg flv ogg nut ivf asf yuv4mpegpipe h264 hevc obu "
    "png_pipe jpeg_pipe webp_pipe bmp_pipe tiff_pipe".split()
)
OPTIONS = {"protocol_whitelist": "file", "max_streams": "64"}
# One frame more or less than the header says is common: edit lists hide some.
_SLACK_FRAMES = 2
_SLACK_S = 0.1  # beside those frames, where a file states no frames and a duration


@dataclass(frozen=True, slots=True)
class Footage:
    """What a file or folder says of itself.

    ``fps`` is None for pictures and folders; ``frames`` is None where the file does not say. ``width`` and ``height``
    are pixels, ``bit_depth`` bits of a component. ``audio`` names the codec of the first sound track.
    """

    path: Path
    kind: Kind
    width: int
    height: int
    fps: float | None
    frames: int | None
    pixel_format: str
    bit_depth: int
    codec: str
    audio: str | None = None


def load_av() -> Any:
    """PyAV. Raises MissingExtra where it is not installed."""
    try:
        import av
        import av.video.reformatter
    except ModuleNotFoundError as missing:
        raise MissingExtra("media-needs-av", package=missing.name or "av") from missing
    return av


def look(path: Path) -> Footage:
    """What is at ``path``, from its header only.

    Raises BadFile for what is missing, empty, hostile or not footage; MissingExtra without PyAV.
    """
    if path.is_dir():
        files = frame_files(path)
        first = look(files[0])
        return Footage(
            path,
            "frames",
            first.width,
            first.height,
            None,
            len(files),
            first.pixel_format,
            first.bit_depth,
            first.codec,
        )
    with opened(path) as container:
        stream = container.streams.video[0]
        context = stream.codec_context
        still = container.format.name.endswith("_pipe") and container.format.name in FORMATS
        sound = container.streams.audio
        components = context.format.components if context.format else ()
        return Footage(
            path,
            "image" if still else "video",
            context.width,
            context.height,
            None if still or not stream.average_rate else float(stream.average_rate),
            1 if still else (stream.frames or None),
            context.pix_fmt or "",
            max((each.bits for each in components), default=8),
            context.name,
            sound[0].codec_context.name if sound else None,
        )


def frame_files(folder: Path) -> list[Path]:
    """The pictures of ``folder`` in the order of the numbers in their names. Raises BadFile when there are none."""
    found = [each for each in folder.iterdir() if each.suffix.lower() in STILLS]
    found = [each for each in found if each.is_file()]
    if not found:
        raise BadFile("media-no-frames", path=folder, allowed=", ".join(sorted(STILLS)))
    if len(found) > MAX_FRAMES:
        raise BadFile("media-too-many-frames", path=folder, found=len(found), limit=MAX_FRAMES)
    return sorted(found, key=lambda each: _natural(each.name))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that puts ``2.png`` before ``10.png``."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), 0, "") if part.isdigit() else (0, 1, part.lower()) for part in parts]


def frames(footage: Footage) -> Iterator[Any]:
    """The decoded `av.VideoFrame` values of ``footage`` in order.

    Raises BadFile for a frame that cannot be decoded, one of another size, or a file that ends before its header says.
    """
    if footage.kind == "frames":
        for file in frame_files(footage.path):
            for frame in _decoded(file, footage):
                yield frame
                break
        return
    count = 0
    for frame in _decoded(footage.path, footage):
        count += 1
        yield frame
    if footage.frames is not None and count < footage.frames - _SLACK_FRAMES:
        raise BadFile("media-truncated", path=footage.path, stated=footage.frames, found=count)
    if count == 0:
        raise BadFile("media-truncated", path=footage.path, stated="?", found=0)


def _decoded(path: Path, footage: Footage) -> Iterator[Any]:
    av = load_av()
    count = 0
    end_s: float | None = None
    with opened(path) as container:
        try:
            for frame in container.decode(video=0):
                check_frame(frame, path, count, footage)
                end_s = frame.time
                yield frame
                count += 1
        except av.error.FFmpegError as error:
            raise BadFile("media-frame-broken", path=path, frame=count, why=_why(error)) from None
        stated_s = _stated_s(container)
    if footage.frames is None and footage.fps and stated_s is not None and end_s is not None:
        short_s = stated_s - end_s - 1 / footage.fps
        if short_s > _SLACK_FRAMES / footage.fps + _SLACK_S:
            stated = round(stated_s * footage.fps)
            raise BadFile("media-truncated", path=path, stated=stated, found=count)


def _stated_s(container: Any) -> float | None:
    """The seconds that the header states of the pictures; None where it does not, or means the sound too."""
    stream = container.streams.video[0]
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    if container.duration is None or container.streams.audio:
        return None
    return float(container.duration) / 1_000_000


def check_frame(frame: Any, path: Path, number: int, footage: Footage) -> None:
    """Raise BadFile for a damaged frame or one of another size than the first."""
    if frame.is_corrupt:
        raise BadFile("media-frame-broken", path=path, frame=number, why="?")
    if (frame.width, frame.height) != (footage.width, footage.height):
        raise BadFile(
            "media-frame-size",
            path=path,
            frame=number,
            found=f"{frame.width}x{frame.height}",
            first=f"{footage.width}x{footage.height}",
        )


def versions() -> dict[str, str]:
    """The versions that decide what is read and written. Raises MissingExtra."""
    av = load_av()
    return {"av": av.__version__, "ffmpeg": str(av.ffmpeg_version_info)}


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The PyAV container of one file, checked. Raises BadFile."""
    av = load_av()
    try:
        if path.stat().st_size == 0:
            raise BadFile("media-not-footage", path=path, why="0 B")
        with path.open("rb") as stream:
            try:
                container = av.open(stream, mode="r", options=OPTIONS)
            except (av.error.FFmpegError, ValueError) as error:
                raise BadFile("media-not-footage", path=path, why=_why(error)) from None
            with container:
                _check(path, container)
                container.streams.video[0].thread_type = "AUTO"
                yield container
    except OSError as error:
        if isinstance(error, av.error.FFmpegError):
            raise
        raise BadFile("media-unreadable", path=path, why=error.strerror or "?") from None


def _check(path: Path, container: Any) -> None:
    names = set(container.format.name.split(","))
    if not names & FORMATS:
        raise BadFile("media-format", path=path, found=container.format.name)
    if not container.streams.video:
        raise BadFile("media-no-video", path=path)
    context = container.streams.video[0].codec_context
    width, height = context.width, context.height
    if not width or not height:
        raise BadFile("media-not-footage", path=path, why="0x0")
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise BadFile("media-too-large", path=path, found=f"{width}x{height}", side=MAX_SIDE)


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
