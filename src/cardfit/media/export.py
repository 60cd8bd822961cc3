"""Export: footage in, one or more checked files out, in one pass.

In: a path, variants and frames per second. Out: an `Exported`. Every frame is decoded once and handed to every encoder;
memory does not grow with the length. Pictures of a folder play at the fps asked for. A video keeps its duration: with
another fps frames are repeated or left out, by their times. Sound is copied where the container takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadFile, BadRequest
from cardfit.media import source
from cardfit.media.encode import Writer
from cardfit.media.source import Footage, load_av
from cardfit.media.variant import Variant
from cardfit.media.verify import Written, verify
from cardfit.messages import say
from cardfit.messages.said import Said

SCHEMA = "cardfit.export/1"
MAX_FPS = 1000
Progress = Callable[[str, float | None], None]


class Exported(BaseModel):
    """What was written: ``frames`` and ``fps`` of the files, the seconds they play, and what should be said."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: str = Field(default=SCHEMA, alias="schema")
    versions: dict[str, str]
    source: str
    source_frames: int
    source_fps: float | None
    frames: int
    fps: float
    seconds: float
    files: tuple[Written, ...]
    notes: tuple[Said, ...]


@dataclass
class _Counts:
    decoded: int = 0
    written: int = 0


def export(
    path: Path,
    wanted: Sequence[Variant],
    *,
    fps: float | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write every variant of the footage at ``path``.

    Raises BadRequest without ``fps`` for pictures, for two variants of one name or an encoder that cannot be opened;
    BadFile for footage that cannot be read, a file that exists (unless ``force``), a disk that is full. Then no file
    is left under a final name.
    """
    footage = source.look(path)
    _check(footage, wanted, fps, force)
    rate = Fraction(fps if fps is not None else footage.fps or 1).limit_denominator(1001)
    counts = _Counts()
    with ExitStack() as stack:
        writers = [
            stack.enter_context(Writer(each, footage.width, footage.height, rate))
            for each in wanted
        ]
        if footage.kind == "video":
            stream = _video(footage, writers, rate, counts)
        else:
            stream = _stills(footage, counts)
        total = _total(footage, rate)
        for frame in stream:
            for writer in writers:
                writer.picture(frame)
            counts.written += 1
            if progress is not None and counts.written % 8 == 0:
                share = None if not total else min(counts.written / total, 1.0)
                progress(say("export-progress", {"frames": counts.written}), share)
        parts = [writer.finish() for writer in writers]
        if progress is not None:
            progress(say("export-progress-check"), None)
        files = tuple(
            verify(part, writer.variant, (writer.width, writer.height), counts.written, rate)
            for part, writer in zip(parts, writers, strict=True)
        )
        for writer in writers:
            writer.done()
    return Exported(
        versions=source.versions(),
        source=str(path),
        source_frames=counts.decoded,
        source_fps=footage.fps,
        frames=counts.written,
        fps=float(rate),
        seconds=round(float(counts.written / rate), 4),
        files=files,
        notes=tuple(_notes(footage, writers, rate, counts)),
    )


def _check(footage: Footage, wanted: Sequence[Variant], fps: float | None, force: bool) -> None:
    if fps is not None and not 0 < fps <= MAX_FPS:
        raise BadRequest("export-bad-fps", asked=fps, most=MAX_FPS)
    if fps is None and footage.fps is None:
        raise BadRequest("export-needs-fps", path=footage.path)
    seen: set[Path] = set()
    for each in wanted:
        final = each.path.resolve()
        if final in seen or final == footage.path.resolve():
            raise BadRequest("export-same-name", path=each.path)
        if final.exists() and not force:
            raise BadFile("export-exists", path=each.path)
        if not final.parent.is_dir():
            raise BadFile("export-no-folder", path=each.path, folder=final.parent)
        seen.add(final)


def _total(footage: Footage, rate: Fraction) -> float | None:
    if not footage.frames or footage.fps is None:
        return footage.frames
    return footage.frames * float(rate) / footage.fps


def _stills(footage: Footage, counts: _Counts) -> Iterator[Any]:
    for frame in source.frames(footage):
        counts.decoded += 1
        yield frame


def _video(
    footage: Footage, writers: Sequence[Writer], rate: Fraction, counts: _Counts
) -> Iterator[Any]:
    """Frames at a constant ``rate``; the sound goes to the writers on the way."""
    av = load_av()
    with source.opened(footage.path) as container:
        picture = container.streams.video[0]
        sound = container.streams.audio[0] if container.streams.audio else None
        copied = [writer.add_sound(sound) for writer in writers] if sound is not None else []
        timer = _Timer(rate, picture)
        try:
            streams = [each for each in (picture, sound) if each is not None]
            for packet in container.demux(streams):
                if packet.stream is sound:
                    _sound(packet, writers, copied)
                    continue
                for frame in packet.decode():
                    source.check_frame(frame, footage.path, counts.decoded, footage)
                    counts.decoded += 1
                    yield from timer.next(frame)
        except av.error.FFmpegError as error:
            raise BadFile(
                "media-frame-broken",
                path=footage.path,
                frame=counts.decoded,
                why=error.strerror or "?",
            ) from None
        yield from timer.rest()
        for writer, plain in zip(writers, copied, strict=False):
            if not plain:
                writer.sound_frame(None)
    stated = footage.frames
    if not counts.decoded or (stated and counts.decoded < stated - 2):
        raise BadFile(
            "media-truncated", path=footage.path, stated=stated or "?", found=counts.decoded
        )


def _sound(packet: Any, writers: Sequence[Writer], copied: Sequence[bool]) -> None:
    """Hand one packet of sound to every writer: as it is, or decoded."""
    if not all(copied):
        for frame in packet.decode():
            for writer, plain in zip(writers, copied, strict=True):
                if not plain:
                    frame.pts = None
                    writer.sound_frame(frame)
    if packet.dts is None:
        return
    # the muxer rewrites the times of a packet in place
    stream, times = packet.stream, (packet.pts, packet.dts, packet.duration, packet.time_base)
    for writer, plain in zip(writers, copied, strict=True):
        if plain:
            packet.pts, packet.dts, packet.duration, packet.time_base = times
            writer.sound_packet(packet)
            packet.stream = stream


class _Timer:
    """Repeats or leaves out frames so that they come at a constant rate, by their times."""

    def __init__(self, rate: Fraction, stream: Any) -> None:
        self._rate = rate
        self._own = Fraction(stream.average_rate) if stream.average_rate else rate
        self._start: Fraction | None = None
        self._held: Any = None
        self._slot = self._next = 0
        self._end = Fraction(0)  # when the last frame ceases to show

    def next(self, frame: Any) -> Iterator[Any]:
        """Take in a frame; what is due before it."""
        time = None if frame.pts is None else frame.pts * Fraction(frame.time_base)
        if self._start is None and time is not None:
            self._start = time
        if time is None or self._start is None:
            slot = self._slot + 1 if self._held is not None else 0
            self._end = slot / self._rate + 1 / self._own
        else:
            slot = round((time - self._start) * self._rate)
            self._end = time - self._start + 1 / self._own
        yield from self._until(slot)
        self._held, self._slot = frame, max(slot, self._slot)

    def rest(self) -> Iterator[Any]:
        """The last frame, for as long as it shows."""
        yield from self._until(max(1, round(self._end * self._rate)))

    def _until(self, slot: int) -> Iterator[Any]:
        while self._held is not None and self._next < slot:
            yield self._held
            self._next += 1


def _notes(
    footage: Footage, writers: Sequence[Writer], rate: Fraction, counts: _Counts
) -> Iterator[Said]:
    if footage.fps is not None and abs(float(rate) / footage.fps - 1) > 0.001:
        yield Said.of(
            "export-refitted",
            source_fps=f"{footage.fps:g}",
            fps=f"{float(rate):g}",
            decoded=counts.decoded,
            written=counts.written,
        )
    for writer in writers:
        plain = writer.variant.width is None and writer.variant.height is None
        if plain and (footage.width % 2 or footage.height % 2):
            size, source_size = (
                f"{writer.width}x{writer.height}",
                f"{footage.width}x{footage.height}",
            )
            yield Said.of(
                "export-even", path=str(writer.variant.path), source=source_size, size=size
            )
    if footage.bit_depth > 8:
        yield Said.of("export-eight-bits", bits=footage.bit_depth)
