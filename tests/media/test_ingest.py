"""Footage for a video-to-video run: the first frames as they are, by the processor where there is no card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.media.ingest import ingest
from cardfit.media.lossless import write_video
from cardfit.media.pixels import write_png
from cardfit.predict.host import footage_bytes, host_moments
from cardfit.predict.offload import Waiting
from cardfit.request import Request, Settings
from cardfit.trace.stream import Trace


def frames(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(2)
    return [random.integers(0, 255, (48, 64, 3), np.uint8) for _ in range(count)]


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    write_video(tmp_path / "clip.mkv", frames(6), 16)
    return tmp_path / "clip.mkv"


def test_the_first_frames_come_as_they_are(clip: Path, tmp_path: Path) -> None:
    found = ingest(clip, 4)
    assert found.engine == "cpu" and len(found.frames) == 4
    assert all((one == other).all() for one, other in zip(found.frames, frames(6)))
    folder = tmp_path / "frames"
    folder.mkdir()
    for number, image in enumerate(frames(3)):
        write_png(folder / f"{number}.png", image)
    assert (ingest(folder, 3).frames[2] == frames(3)[2]).all()


def test_what_is_too_short_or_no_footage(clip: Path, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="has 6 frames and the run takes 7"):
        ingest(clip, 7)
    with pytest.raises(BadFile):
        ingest(tmp_path / "none.mp4", 1)
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n/etc/passwd\n")
    with pytest.raises(BadFile):
        ingest(tmp_path / "list.m3u8", 1)
    # asked for outright, the card's decoder is no wish: without one it is an error
    with pytest.raises(BadRequest, match="cannot be decoded on a card here"):
        ingest(clip, 1, "nvdec")


def test_footage_counts_on_the_host() -> None:
    exact, _ = resolve(
        load("wan2.1-vace-1.3b"), Request(model="wan2.1-vace-1.3b", task="video-to-video")
    )
    trace = Trace(exact, Settings(), {}, "", (), (), (), (), (), (), ())
    held = 4 * exact.width * exact.height * exact.num_frames
    assert footage_bytes(trace) == held
    moments = {each.name: each for each in host_moments(trace, Settings(), Waiting())}
    assert list(moments) == ["load", "ingest", "run", "export"]
    assert dict(moments["ingest"].parts)["arrays"] == 2 * 3 * held
    assert all(dict(moments[name].parts)["footage"] == held for name in ("ingest", "run", "export"))
    for each in moments.values():
        assert sum(size for _, size in each.parts) == each.likely_bytes
        assert each.low_bytes <= each.likely_bytes <= each.high_bytes
    text = exact.model_copy(update={"task": "text-to-video"})
    plain = Trace(text, Settings(), {}, "", (), (), (), (), (), (), ())
    assert [each.name for each in host_moments(plain, Settings(), Waiting())] == [
        "load",
        "run",
        "export",
    ]
