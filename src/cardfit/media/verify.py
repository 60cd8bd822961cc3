"""Read a written file back: does it hold what was meant, and who will not play it.

In: the file, the variant and what should be in it. Out: `Written`, or BadFile where the file is not whole. Packets are
counted without decoding; the first and the last group of pictures are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ConfigDict

from cardfit.errors import BadFile
from cardfit.media import source
from cardfit.media.source import load_av
from cardfit.media.variant import Variant
from cardfit.messages.said import Said

# Profiles that every browser with the codec decodes, by its name in FFmpeg.
_PLAYED = {
    "h264": ("Constrained Baseline", "Baseline", "Main", "High"),
    "hevc": ("Main",),
    "av1": ("Main",),
}


class Written(BaseModel):
    """A file as it was read back: sizes in pixels, ``faststart`` None where the container has no such thing.

    ``warnings`` name the players that refuse it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    size_bytes: int
    container: str
    codec: str
    encoder: str
    profile: str | None
    tag: str
    width: int
    height: int
    pixel_format: str
    frames: int
    fps: float
    seconds: float
    faststart: bool | None
    audio: str | None
    warnings: tuple[Said, ...]


def verify(
    part: Path, variant: Variant, size: tuple[int, int], frames: int, rate: Fraction
) -> Written:
    """What ``part``, still under its hidden name, holds. Raises BadFile where that is not what was meant."""
    av = load_av()
    try:
        with source.opened(part) as container:
            picture = container.streams.video[0]
            context = picture.codec_context
            count = _count(container, picture)
            found: list[tuple[str, object, object]] = [
                ("codec", variant.codec, _codec(context.name)),
                ("size", "{}x{}".format(*size), f"{context.width}x{context.height}"),
                ("pixel format", "yuv420p", context.pix_fmt),
                ("frames", frames, count),
            ]
            stated = float(picture.average_rate or 0)
            seconds = _seconds(container, picture)
            wanted = frames / rate
            if seconds is None or abs(seconds - wanted) > max(0.1, 1.5 / rate):
                found.append(("seconds", f"{float(wanted):.3f}", seconds))
            for what, meant, there in found:
                if meant != there:
                    raise _bad(variant, what, meant, there)
            sound = container.streams.audio
            more: dict[str, Any] = {
                "profile": context.profile,
                "tag": _printable(context.codec_tag),
                "pixel_format": context.pix_fmt,
                "audio": sound[0].codec_context.name if sound else None,
            }
    except av.error.FFmpegError as error:
        raise _bad(variant, "frames", frames, error.strerror) from None
    except BadFile as error:
        if error.code == "export-not-whole":
            raise
        raise _bad(variant, "frames", frames, str(error)) from None
    with part.open("rb") as stream:
        quick = _index_first(stream) if variant.container in ("mp4", "mov") else None
    return Written(
        path=str(variant.path),
        size_bytes=part.stat().st_size,
        container=variant.container,
        codec=variant.codec,
        encoder=variant.encoder,
        width=size[0],
        height=size[1],
        frames=frames,
        fps=stated,
        seconds=round(seconds or 0.0, 4),
        faststart=quick,
        warnings=tuple(_warnings(variant, more, quick)),
        **more,
    )


def _count(container: Any, picture: Any) -> int:
    """Packets of the picture; the first and the last group of pictures are decoded on the way."""
    count = keys = 0
    last: list[Any] = []
    for packet in container.demux(picture):
        if packet.size == 0:
            continue
        count += 1
        if packet.is_keyframe:
            keys += 1
            last = []
        if keys == 1:
            packet.decode()
        else:
            last.append(packet)
    context = picture.codec_context
    context.flush_buffers()
    for packet in last:
        context.decode(packet)
    context.decode(None)
    return count


def _seconds(container: Any, picture: Any) -> float | None:
    if picture.duration is not None and picture.time_base is not None:
        return float(picture.duration * picture.time_base)
    return None if container.duration is None else container.duration / 1e6


def _index_first(stream: BinaryIO) -> bool | None:
    """Whether the index (moov) stands before the data (mdat), so that a browser plays before it has the whole file."""
    for _ in range(64):
        head = stream.read(8)
        if len(head) < 8:
            return None
        size, kind = int.from_bytes(head[:4], "big"), head[4:]
        if kind in (b"moov", b"mdat"):
            return kind == b"moov"
        if size == 1:
            size = int.from_bytes(stream.read(8), "big") - 8
        if size < 8:
            return None
        stream.seek(size - 8, 1)
    return None


def _warnings(variant: Variant, facts: dict[str, Any], quick: bool | None) -> Iterator[Said]:
    name = str(variant.path)
    if variant.codec == "hevc":
        yield Said.of("export-warn-hevc", path=name)
    if variant.codec == "av1" and variant.container == "mp4":
        yield Said.of("export-warn-av1", path=name)
    if variant.container == "matroska":
        yield Said.of("export-warn-mkv", path=name)
    if variant.container == "mov":
        yield Said.of("export-warn-mov", path=name)
    if facts["profile"] is not None and facts["profile"] not in _PLAYED[variant.codec]:
        yield Said.of("export-warn-profile", path=name, profile=facts["profile"])
    if quick is False:
        yield Said.of("export-warn-index", path=name)


def _codec(name: str) -> str:
    """The codec that a decoder's name stands for."""
    return "av1" if name in ("libdav1d", "libaom-av1") else name


def _printable(tag: str) -> str:
    return tag if tag.isprintable() and tag.isascii() else ""


def _bad(variant: Variant, what: str, meant: object, found: object) -> BadFile:
    return BadFile("export-not-whole", path=variant.path, what=what, meant=meant, found=found)
