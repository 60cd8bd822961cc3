"""What the encoders and decoders here can really do: each is opened and given a few frames.

In: the PyAV that is installed, the card and driver that are found. Out: `Codecs`. That a build lists an encoder proves
nothing, so every one of `TRIED` is run on moving pictures and its output is counted. A failure has a cause of a closed
list; software encoders carry their measured speed, which is what is left on a card without an encoder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from fractions import Fraction
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from cardfit.cards import codecs as facts
from cardfit.cards import detect
from cardfit.cards.card import Card
from cardfit.errors import MissingExtra
from cardfit.media.diagnose import Cause, diagnose
from cardfit.media.source import load_av, versions
from cardfit.messages import say
from cardfit.messages.said import Said

SCHEMA = "cardfit.codecs/1"
Role = Literal["encode", "decode"]
Engine = Literal["cpu", "nvenc", "nvdec"]
Progress = Callable[[str, float | None], None]

WIDTH, HEIGHT, FRAMES = 1280, 720, 24


class _Trial(NamedTuple):
    role: Role
    engine: Engine
    codec: str
    name: str  # FFmpeg's


TRIED: tuple[_Trial, ...] = tuple(
    _Trial(*each)
    for each in (
        ("encode", "cpu", "h264", "libx264"),
        ("encode", "cpu", "hevc", "libx265"),
        ("encode", "cpu", "av1", "libsvtav1"),
        ("encode", "nvenc", "h264", "h264_nvenc"),
        ("encode", "nvenc", "hevc", "hevc_nvenc"),
        ("encode", "nvenc", "av1", "av1_nvenc"),
        ("decode", "cpu", "h264", "h264"),
        ("decode", "cpu", "hevc", "hevc"),
        ("decode", "cpu", "av1", "libdav1d"),
        ("decode", "nvdec", "h264", "h264_cuvid"),
        ("decode", "nvdec", "hevc", "hevc_cuvid"),
        ("decode", "nvdec", "av1", "av1_cuvid"),
    )
)
_OPTIONS = {"libx265": {"x265-params": "log-level=error"}, "libsvtav1": {"preset": "8"}}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CodecRow(_Frozen):
    """One encoder or decoder: whether it ran, how fast on 1280x720, and if not, why.

    ``expected`` is what the table of codecs says of the card, None where it says nothing. ``why`` says the cause and
    the next step; ``detail`` is FFmpeg's own line.
    """

    role: Role
    engine: Engine
    codec: str
    name: str
    works: bool
    frames_per_s: float | None
    expected: bool | None
    cause: Cause | None
    why: Said | None
    detail: str | None
    needs_api: str | None = None
    found_api: str | None = None
    needs_driver: str | None = None


class Codecs(_Frozen):
    """What works here; ``use`` names the encoder to take for each codec."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    versions: dict[str, str]
    card: str | None
    driver: str | None
    rows: tuple[CodecRow, ...]
    use: dict[str, str | None]
    notes: tuple[Said, ...]


def probe_codecs(
    *,
    environment: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Codecs:
    """Open every encoder and decoder of `TRIED` and use it. Raises MissingExtra without PyAV."""
    av = load_av()
    card, driver, notes = _card()
    variables = os.environ if environment is None else environment
    os.environ.setdefault("SVT_LOG", "1")
    level = av.logging.get_level()
    av.logging.set_level(av.logging.ERROR)  # without a level the reason of a failure is not told
    rows: list[CodecRow] = []
    streams: dict[str, list[bytes]] = {}
    try:
        for at, trial in enumerate(TRIED):
            if progress is not None:
                progress(say("codecs-progress", {"name": trial.name}), at / len(TRIED))
            driver_loads = all(row.cause not in ("no_driver", "no_runtime") for row in rows)
            rows.append(_tried(trial, streams, card, driver_loads, variables))
    finally:
        av.logging.set_level(level)
    return Codecs(
        versions=versions(),
        card=None if card is None else card.name,
        driver=driver,
        rows=tuple(rows),
        use={codec: _use(rows, codec) for codec in ("h264", "hevc", "av1")},
        notes=(*notes, *_remarks(rows)),
    )


def _card() -> tuple[Card | None, str | None, list[Said]]:
    try:
        machine = detect.here()
    except MissingExtra:
        return None, None, [Said.of("codecs-no-nvml")]
    if machine is None:
        return None, None, [Said.of("codecs-no-card")]
    return machine.cards[0], machine.driver, []


def _tried(
    trial: _Trial,
    streams: dict[str, list[bytes]],
    card: Card | None,
    driver_loads: bool,
    environment: Mapping[str, str],
) -> CodecRow:
    av = load_av()
    role, engine, codec, name = trial
    known = engine != "cpu" and card is not None
    expected = facts.supports(card, engine, codec) if known else None  # type: ignore[arg-type]
    rate, log = None, ""
    with av.logging.Capture() as lines:
        try:
            if role == "encode":
                packets, rate = _encode(name)
                if engine == "cpu":
                    streams[codec] = packets
            elif codec in streams:
                rate = _decode(name, streams[codec])
            else:
                log = say("codecs-no-stream")
        except (av.error.FFmpegError, ValueError, RuntimeError) as error:
            log = str(error)
    row = {"role": role, "engine": engine, "codec": codec, "name": name, "expected": expected}
    if rate is not None:
        nothing = dict.fromkeys(("cause", "why", "detail"))
        return CodecRow(works=True, frames_per_s=round(rate, 1), **row, **nothing)
    text = "\n".join([*(line for _, _, line in lines), log])
    if name not in av.codec.codecs_available:
        text = f"unknown {role}r {name}"
    engines = None if card is None else getattr(card, f"{engine}_count", None)
    found = diagnose(text, engines=engines, driver=driver_loads, environment=environment)
    args = {key: value or "?" for key, value in asdict(found).items() if key != "cause"}
    args |= {"name": name, "codec": codec, "card": "?" if card is None else card.name}
    return CodecRow(
        works=False,
        frames_per_s=None,
        cause=found.cause,
        why=Said.of(f"codecs-why-{found.cause}", **args),
        detail=found.detail,
        needs_api=found.needs_api,
        found_api=found.found_api,
        needs_driver=found.needs_driver,
        **row,
    )


def _pictures() -> Iterator[Any]:
    """A grey gradient with a bright square that moves: enough for an encoder to have work."""
    av = load_av()
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    base = ((rows + columns) // 12 % 200 + 20).astype(np.uint8)
    for at in range(FRAMES):
        image = np.roll(base, 5 * at, axis=1)
        image[200:360, 20 * at : 20 * at + 200] = 230
        yield av.VideoFrame.from_ndarray(image, format="gray").reformat(format="yuv420p")


def _encode(name: str) -> tuple[list[bytes], float]:
    """The packets of a few pictures and the frames a second. Raises what PyAV raises."""
    av = load_av()
    pictures = list(_pictures())
    context = av.CodecContext.create(name, "w")
    context.width, context.height, context.pix_fmt = WIDTH, HEIGHT, "yuv420p"
    context.time_base, context.framerate = Fraction(1, FRAMES), Fraction(FRAMES)
    context.options = _OPTIONS.get(name, {})
    start = perf_counter()
    packets: list[bytes] = []
    for at, picture in enumerate(pictures):
        picture.pts, picture.time_base = at, context.time_base
        packets += [bytes(packet) for packet in context.encode(picture)]
    packets += [bytes(packet) for packet in context.encode(None)]
    rate = FRAMES / (perf_counter() - start)
    if not packets:
        raise RuntimeError("0")
    return packets, rate


def _decode(name: str, packets: list[bytes]) -> float:
    """Frames a second. Raises what PyAV raises, RuntimeError where frames are missing."""
    av = load_av()
    context = av.CodecContext.create(name, "r")
    start = perf_counter()
    count = sum(len(context.decode(av.Packet(packet))) for packet in packets)
    count += len(context.decode(None))
    if count != FRAMES:
        raise RuntimeError(str(count))
    return FRAMES / (perf_counter() - start)


def _use(rows: list[CodecRow], codec: str) -> str | None:
    """The fastest encoder that works."""
    able = [row for row in rows if row.role == "encode" and row.codec == codec and row.works]
    return max(able, key=lambda row: row.frames_per_s or 0.0).name if able else None


def _remarks(rows: list[CodecRow]) -> Iterator[Said]:
    for row in rows:
        if row.engine != "cpu" and row.expected is True and not row.works:
            yield Said.of("codecs-unexpected", name=row.name)
    encoders = {(row.engine, row.codec): row for row in rows if row.role == "encode"}
    card, software = encoders["nvenc", "h264"], encoders["cpu", "h264"]
    speed = software.frames_per_s
    if not card.works and speed is not None:
        yield Said.of("codecs-software", name=software.name, speed=f"{speed:.0f}")
    elif card.frames_per_s is not None and speed is not None:
        ratio = card.frames_per_s / speed
        args = {"ratio": f"{ratio:.1f}", "name": card.name, "software": software.name}
        yield Said.of("codecs-faster" if ratio > 1 else "codecs-slower", **args)
