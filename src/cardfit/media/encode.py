"""One file while it is written: the encoder, the container, the sound, and the place it goes to when it is whole.

In: a `Variant` and decoded frames in order. Out: a file under a hidden name that becomes the final one in `done`. The
picture is brought to yuv420p with BT.709 tags. An error of the encoder is told from one of the disk.
"""

from __future__ import annotations

import os
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from cardfit.errors import BadFile, BadRequest
from cardfit.media import variant as variants
from cardfit.media.pixels import colorspace
from cardfit.media.source import load_av
from cardfit.media.variant import SOUND, Variant

PIXEL_FORMAT = "yuv420p"
_BT709, _LIMITED = 1, 1  # the numbers of ISO/IEC 23091-2 and of FFmpeg for a limited range
_MOST_THREADS = 8  # more cost memory and hardly save time at these sizes


class Writer:
    """Writes one variant. Use as a context: what is not `done` when it ends is removed."""

    def __init__(self, variant: Variant, width: int, height: int, rate: Fraction) -> None:
        self.variant = variant
        self.width, self.height = variants.sides(variant, width, height)
        self.rate = rate
        self.frames = 0
        # an odd side loses its last line instead of being scaled by a pixel
        self._crop = (width - width % 2, height - height % 2) == (self.width, self.height)
        final = variant.path.absolute()
        self._part = final.with_name(f".{final.name}.part")
        self._stream: Any = None
        self._sound: Any = None
        self._resampler: Any = None
        self._container: Any = None

    def __enter__(self) -> Writer:
        av = load_av()
        quick = {"movflags": "+faststart"} if self.variant.container in ("mp4", "mov") else {}
        try:
            self._container = av.open(
                str(self._part), "w", format=self.variant.container, options=quick
            )
        except OSError as error:
            raise self._disk(error) from None
        os.environ.setdefault("SVT_LOG", "1")  # errors only: SVT-AV1 greets on stderr
        try:
            self._stream = self._opened()
        except BaseException:
            self._drop()
            raise
        return self

    def _opened(self) -> Any:
        av = load_av()
        threads = max(1, min(os.cpu_count() or 1, _MOST_THREADS))
        options = variants.options(self.variant, threads)
        try:
            stream = self._container.add_stream(self.variant.encoder, rate=self.rate)
            stream.width, stream.height, stream.pix_fmt = self.width, self.height, PIXEL_FORMAT
            stream.options = options
            context = stream.codec_context
            context.time_base = 1 / self.rate
            context.thread_count = threads
            context.color_primaries = context.color_trc = context.colorspace = _BT709
            context.color_range = _LIMITED
            if self.variant.codec == "hevc" and self.variant.container in ("mp4", "mov"):
                context.codec_tag = "hvc1"  # the tag that Apple's players know
            context.open()
        except (av.error.FFmpegError, ValueError) as error:
            raise BadRequest(
                "export-no-encoder",
                path=self.variant.path,
                encoder=self.variant.encoder,
                why=_why(error),
            ) from None
        return stream

    def add_sound(self, template: Any) -> bool:
        """Make room for the sound of ``template``; True where its packets can be copied as they are."""
        allowed, fallback = SOUND[self.variant.path.suffix.lower()]
        codec = template.codec_context
        if codec.name in allowed:
            self._sound = self._container.add_stream_from_template(template)
            return True
        av = load_av()
        rate = 48_000 if fallback == "libopus" else codec.sample_rate
        self._sound = self._container.add_stream(fallback, rate=rate)
        self._sound.codec_context.layout = (
            codec.layout.name if codec.layout.nb_channels else "stereo"
        )
        self._sound.codec_context.open()
        own = self._sound.codec_context
        self._resampler = av.AudioResampler(own.format, own.layout, rate, own.frame_size or None)
        return False

    def sound_packet(self, packet: Any) -> None:
        """Copy one packet of sound."""
        packet.stream = self._sound
        self._mux([packet])

    def sound_frame(self, frame: Any | None) -> None:
        """Encode one frame of sound; None ends it."""
        for ready in self._resampler.resample(frame):
            self._mux(self._sound.encode(ready))
        if frame is None:
            self._mux(self._sound.encode(None))

    def picture(self, frame: Any) -> None:
        """Encode one frame as the next."""
        av = load_av()
        plain = frame
        if self._crop and (frame.width, frame.height) != (self.width, self.height):
            plain = _cropped(frame, self.width, self.height)
        spaces = av.video.reformatter.Colorspace
        plain = plain.reformat(
            width=self.width,
            height=self.height,
            format=PIXEL_FORMAT,
            src_colorspace=None if frame.format.is_rgb else colorspace(frame),
            dst_colorspace=spaces.ITU709,
            dst_color_range=av.video.reformatter.ColorRange.MPEG,  # a PNG is full range by its tag
            interpolation="BICUBIC",
        )
        plain.pts, plain.time_base = self.frames, 1 / self.rate
        plain.pict_type = 0
        self.frames += 1
        try:
            packets = self._stream.encode(plain)
        except av.error.FFmpegError as error:
            raise self._failed(error) from None
        self._mux(packets)

    def finish(self) -> Path:
        """Write what the encoder holds back and the index; the path of the hidden file."""
        av = load_av()
        try:
            packets = self._stream.encode(None)
        except av.error.FFmpegError as error:
            raise self._failed(error) from None
        self._mux(packets)
        container, self._container = self._container, None
        self._stream = self._sound = self._resampler = None  # their memory is free for reading back
        try:
            container.close()
        except OSError as error:
            raise self._disk(error) from None
        return self._part

    def done(self) -> None:
        """Give the file its final name."""
        try:
            self._part.replace(self.variant.path)
        except OSError as error:
            raise self._disk(error) from None

    def __exit__(self, *raised: object) -> None:
        self._drop()

    def _drop(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            with suppress(OSError, ValueError):  # the file is thrown away
                container.close()
        self._part.unlink(missing_ok=True)

    def _mux(self, packets: Any) -> None:
        try:
            self._container.mux(packets)
        except OSError as error:
            raise self._disk(error) from None

    def _disk(self, error: OSError) -> BadFile:
        return BadFile("media-not-written", path=self.variant.path, why=_why(error))

    def _failed(self, error: Exception) -> BadFile:
        return BadFile(
            "export-encoder-failed",
            path=self.variant.path,
            encoder=self.variant.encoder,
            frame=self.frames,
            why=_why(error),
        )


def _cropped(frame: Any, width: int, height: int) -> Any:
    """``frame`` without its last column or row where a side is odd."""
    av = load_av()
    array = frame.reformat(
        format="rgb24", src_colorspace=None if frame.format.is_rgb else colorspace(frame)
    ).to_ndarray()
    return av.VideoFrame.from_ndarray(array[:height, :width].copy(), format="rgb24")


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
