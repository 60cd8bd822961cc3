"""What to write: a file with its codec, encoder, quality and size; which pairs of codec and container exist.

In: words such as ``small.mp4,codec=hevc,crf=26,height=480``. Out: a `Variant`. Nothing is opened here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from cardfit.errors import BadRequest
from cardfit.media.source import MAX_SIDE

Codec = Literal["h264", "hevc", "av1"]
Engine = Literal["cpu", "nvenc"]

CODECS: tuple[Codec, ...] = ("h264", "hevc", "av1")
ENGINES: tuple[Engine, ...] = ("cpu", "nvenc")
# The file's ending: FFmpeg's name of the container, and the codecs that players expect in it.
CONTAINERS: dict[str, tuple[str, tuple[Codec, ...]]] = {
    ".mp4": ("mp4", ("h264", "hevc", "av1")),
    ".mov": ("mov", ("h264", "hevc")),
    ".mkv": ("matroska", ("h264", "hevc", "av1")),
    ".webm": ("webm", ("av1",)),
}
# Sound that may be copied as it is into a container, and what it is encoded to otherwise.
SOUND: dict[str, tuple[tuple[str, ...], str]] = {
    ".mp4": (("aac", "mp3", "ac3", "eac3", "opus"), "aac"),
    ".mov": (("aac", "mp3", "ac3", "alac", "pcm_s16le"), "aac"),
    ".mkv": (("aac", "mp3", "ac3", "eac3", "opus", "vorbis", "flac", "pcm_s16le"), "aac"),
    ".webm": (("opus", "vorbis"), "libopus"),
}
ENCODERS: dict[Engine, dict[Codec, str]] = {
    "cpu": {"h264": "libx264", "hevc": "libx265", "av1": "libsvtav1"},
    "nvenc": {"h264": "h264_nvenc", "hevc": "hevc_nvenc", "av1": "av1_nvenc"},
}
# Constant quality that looks alike; the lower the better the picture and the larger the file.
CRF: dict[Codec, int] = {"h264": 18, "hevc": 21, "av1": 28}
WORST_CRF: dict[Codec, int] = {"h264": 51, "hevc": 51, "av1": 63}
PRESETS: dict[Codec, str] = {"h264": "medium", "hevc": "medium", "av1": "8"}
_FIELDS = ("codec", "engine", "crf", "preset", "width", "height")


@dataclass(frozen=True, slots=True)
class Variant:
    """One file to write. ``width`` or ``height`` None follows the other, or the source."""

    path: Path
    codec: Codec
    engine: Engine = "cpu"
    crf: int = 18
    preset: str | None = None
    width: int | None = None
    height: int | None = None

    @property
    def encoder(self) -> str:
        """FFmpeg's name of the encoder."""
        return ENCODERS[self.engine][self.codec]

    @property
    def container(self) -> str:
        """FFmpeg's name of the container."""
        return CONTAINERS[self.path.suffix.lower()][0]


def parse(text: str) -> Variant:
    """The variant that ``text`` asks for: a path, then ``name=value`` after commas.

    >>> parse("small.mp4,codec=hevc,height=480")
    Variant(path=PosixPath('small.mp4'), codec='hevc', engine='cpu', crf=21, preset=None, width=None, height=480)

    Raises BadRequest for a field or value that is not known, and for a codec that the container cannot hold.
    """
    name, *parts = text.split(",")
    given: dict[str, str] = {}
    for part in parts:
        field, equals, value = part.partition("=")
        if not equals or field not in _FIELDS or field in given or not value:
            raise BadRequest("export-bad-field", asked=text, part=part, allowed=", ".join(_FIELDS))
        given[field] = value
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix not in CONTAINERS or not path.stem:
        raise BadRequest("export-bad-container", asked=name, allowed=", ".join(CONTAINERS))
    held = CONTAINERS[suffix][1]
    codec = cast(Codec, _one_of(text, "codec", given.get("codec", held[0]), CODECS))
    if codec not in held:
        others = [ending for ending, (_, codecs) in CONTAINERS.items() if codec in codecs]
        raise BadRequest(
            "export-bad-pair",
            path=name,
            codec=codec,
            container=suffix,
            allowed=", ".join(held),
            others=", ".join(others),
        )
    engine = cast(Engine, _one_of(text, "engine", given.get("engine", "cpu"), ENGINES))
    crf = _whole(text, "crf", given.get("crf"), 0, WORST_CRF[codec])
    return Variant(
        path=path,
        codec=codec,
        engine=engine,
        crf=CRF[codec] if crf is None else crf,
        preset=_preset(text, given.get("preset")),
        width=_whole(text, "width", given.get("width"), 2, MAX_SIDE),
        height=_whole(text, "height", given.get("height"), 2, MAX_SIDE),
    )


def sides(variant: Variant, width: int, height: int) -> tuple[int, int]:
    """The size that ``variant`` is written in: even, in the proportions of the source unless both sides are given.

    >>> sides(parse("a.mp4,height=480"), 1280, 720), sides(parse("a.mp4"), 257, 255)
    ((854, 480), (256, 254))
    """
    wanted_width, wanted_height = variant.width, variant.height
    if wanted_width is None and wanted_height is None:
        return width // 2 * 2, height // 2 * 2
    if wanted_width is None:
        assert wanted_height is not None
        wanted_width = 2 * round(width * wanted_height / height / 2)
    elif wanted_height is None:
        wanted_height = 2 * round(height * wanted_width / width / 2)
    return max(2, wanted_width // 2 * 2), max(2, wanted_height // 2 * 2)


def options(variant: Variant, threads: int) -> dict[str, str]:
    """The encoder's own options for the quality and preset of ``variant``, on ``threads`` threads.

    Fewer frames are looked ahead at than the encoders' defaults: they are what export holds in memory.
    """
    crf, preset = str(variant.crf), variant.preset
    if variant.engine == "nvenc":
        return {"preset": preset or "p5", "rc": "vbr", "cq": crf, "b": "0"}
    found = {"crf": crf, "preset": preset or PRESETS[variant.codec]}
    if variant.codec == "h264":
        found["rc-lookahead"] = "6"
    elif variant.codec == "hevc":
        own = f"log-level=error:pools={threads}:frame-threads={1 + threads // 4}"
        found["x265-params"] = f"{own}:rc-lookahead=4:bframes=2"
    elif variant.codec == "av1":
        found["svtav1-params"] = f"lp={1 + threads // 4}:hierarchical-levels=3:lookahead=0:scd=0"
    return found


def _one_of(text: str, field: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise BadRequest(
            "export-bad-value", asked=text, field=field, value=value, allowed=", ".join(allowed)
        )
    return value


def _whole(text: str, field: str, value: str | None, low: int, high: int) -> int | None:
    if value is None:
        return None
    if (
        not value.isascii()
        or not value.isdigit()
        or len(value) > 6
        or not low <= int(value) <= high
    ):
        raise BadRequest(
            "export-bad-value", asked=text, field=field, value=value, allowed=f"{low}..{high}"
        )
    return int(value)


def _preset(text: str, value: str | None) -> str | None:
    if value is not None and not (value.isascii() and value.isalnum() and len(value) <= 16):
        raise BadRequest(
            "export-bad-value", asked=text, field="preset", value=value, allowed="medium, 8, p5"
        )
    return value
