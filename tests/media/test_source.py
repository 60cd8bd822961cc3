"""Footage that can be read, and files that must not be."""

from __future__ import annotations

import av
import clips
import numpy as np
import pytest

from cardfit.errors import BadFile
from cardfit.media import pixels, source

SIZE = (96, 128)


def frames(count=12):
    return list(clips.CONTENT["shapes"](np.random.default_rng(1), count, SIZE))


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    clips.write(path, frames(), 4)
    return path


def test_what_a_file_says_of_itself(clip):
    found = source.look(clip)
    assert (found.kind, found.width, found.height, found.fps, found.frames) == (
        "video",
        128,
        96,
        24,
        12,
    )
    assert (found.codec, found.bit_depth, found.audio) == ("h264", 8, None)


def test_frames_come_back_in_order(clip):
    read = [pixels.luma(pixels.rgb(each)) for each in source.frames(source.look(clip))]
    assert len(read) == 12
    for mine, meant in zip(read, frames(), strict=True):
        assert np.abs(mine - meant).mean() < 2.5


def test_a_png_is_what_was_written_in_8_and_16_bits(tmp_path):
    random = np.random.default_rng(2)
    image = random.integers(0, 256, (40, 50, 3), dtype=np.uint8)
    pixels.write_png(tmp_path / "a.png", image)
    (back,) = (pixels.rgb(each) for each in source.frames(source.look(tmp_path / "a.png")))
    assert np.array_equal(back, image)
    deep = av.VideoFrame.from_ndarray(image.astype(np.uint16) * 257, format="rgb48le")
    assert pixels.rgb(deep).dtype == np.uint16
    assert np.abs(pixels.levels(pixels.rgb(deep)) - image).max() < 0.01
    assert not list(tmp_path.glob(".*"))


def test_a_folder_is_read_by_the_numbers_in_its_names(tmp_path):
    for at in (10, 2, 1):
        pixels.write_png(tmp_path / f"frame{at}.png", np.full((40, 40, 3), at, np.uint8))
    (tmp_path / "notes.txt").write_text("no picture")
    found = source.look(tmp_path)
    assert (found.kind, found.frames, found.fps) == ("frames", 3, None)
    read = [int(pixels.rgb(each)[0, 0, 0]) for each in source.frames(found)]
    assert read == [1, 2, 10]
    pixels.write_png(tmp_path / "frame3.png", np.zeros((40, 42, 3), np.uint8))
    with pytest.raises(BadFile, match="42x40 pixels"):
        list(source.frames(source.look(tmp_path)))


def test_what_is_not_footage_is_refused_in_a_sentence(tmp_path, clip):
    cases = {
        "empty.mp4": b"",
        "text.mp4": b"not a video\n" * 40,
        "list.m3u8": f"#EXTM3U\n#EXTINF:1,\n{clip}\n#EXT-X-ENDLIST\n".encode(),
        "list.ffconcat": f"ffconcat version 1.0\nfile '{clip}'\n".encode(),
        "cut.mp4": clip.read_bytes()[:200],
        "cut.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0",
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(BadFile):
            list(source.frames(source.look(tmp_path / name)))
    with pytest.raises(BadFile, match="cannot be read"):
        source.look(tmp_path / "missing.mp4")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(BadFile, match="no pictures"):
        source.look(tmp_path / "nothing")


def test_a_huge_picture_is_refused_before_it_is_decoded(tmp_path):
    import struct
    import zlib

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    body = b"IHDR" + head
    chunk = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + b"\0" * 64)
    with pytest.raises(BadFile):
        source.look(tmp_path / "bomb.png")


def test_a_file_that_ends_before_its_index_says_is_refused(tmp_path):
    path = tmp_path / "clip.mkv"
    clips.write(path, frames(40), 18, container="matroska")
    whole = source.look(path)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    path.write_bytes(data)
    try:
        count = len(list(source.frames(whole)))
    except BadFile as error:
        assert error.code in ("media-frame-broken", "media-truncated")
    else:
        assert count < 40  # Matroska states no number of frames


def test_a_cut_file_that_states_no_frames_is_found_by_its_duration(tmp_path):
    """Matroska states a duration and no number of frames."""
    import numpy as np

    from cardfit.media.lossless import write_video

    random = np.random.default_rng(4)
    images = [random.integers(0, 255, (64, 64, 3), np.uint8) for _ in range(12)]
    whole = tmp_path / "whole.mkv"
    write_video(whole, images, 16)
    footage = source.look(whole)
    assert footage.frames is None and len(list(source.frames(footage))) == 12
    cut = tmp_path / "cut.mkv"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(BadFile, match="states 12 frames and holds 5|6"):
        list(source.frames(source.look(cut)))
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(BadFile, match="neither a picture nor a video"):
        source.look(tmp_path / "empty.mp4")
