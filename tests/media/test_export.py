"""Export: files that hold what they should, one pass for several, and no half file after a failure."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction

import av
import clips
import numpy as np
import pytest

import cardfit
from cardfit.cli.main import run
from cardfit.errors import BadFile, BadRequest
from cardfit.media import pixels
from cardfit.media.variant import CONTAINERS, parse, sides

SIZE = (144, 256)


def frames(count=20, size=SIZE):
    return list(clips.CONTENT["photo"](np.random.default_rng(3), count, size))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("frames")
    for at, frame in enumerate(frames(9)):
        pixels.write_png(place / f"{at}.png", np.stack([frame] * 3, axis=-1))
    return place


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A clip with a second of sound."""
    path = tmp_path_factory.mktemp("spoken") / "spoken.mp4"
    with av.open(str(path), "w") as output:
        picture = output.add_stream("libx264", rate=20)
        picture.width, picture.height, picture.pix_fmt = 256, 144, "yuv420p"
        sound = output.add_stream("aac", rate=48_000, layout="mono")
        for at, frame in enumerate(frames()):
            shown = av.VideoFrame.from_ndarray(frame, format="gray").reformat(format="yuv420p")
            shown.pts = at
            output.mux(picture.encode(shown))
        output.mux(picture.encode(None))
        wave = np.sin(np.arange(48_000) / 20).astype(np.float32)[None] / 4
        for at in range(0, 48_000 - 1023, 1024):
            heard = av.AudioFrame.from_ndarray(
                wave[:, at : at + 1024].copy(), format="fltp", layout="mono"
            )
            heard.sample_rate, heard.pts, heard.time_base = 48_000, at, Fraction(1, 48_000)
            output.mux(sound.encode(heard))
        output.mux(sound.encode(None))
    return path


def test_three_codecs_in_one_pass_hold_what_was_meant(folder, tmp_path):
    names = ["a.mp4", "b.mp4,codec=hevc", "c.webm", "d.mkv,codec=av1,height=72,crf=40"]
    found = cardfit.export(folder, [str(tmp_path / name) for name in names], fps=16)
    assert (found.frames, found.fps, found.seconds) == (9, 16, 9 / 16)
    assert [each.codec for each in found.files] == ["h264", "hevc", "av1", "av1"]
    assert [(each.width, each.height) for each in found.files][-1] == (128, 72)
    assert {each.pixel_format for each in found.files} == {"yuv420p"}
    assert [each.faststart for each in found.files] == [True, True, None, None]
    assert found.files[1].tag == "hvc1"
    warned = [each.code for file in found.files for each in file.warnings]
    assert warned == ["export-warn-hevc", "export-warn-mkv"]
    with av.open(str(tmp_path / "a.mp4")) as container:
        context = container.streams.video[0].codec_context
        assert (context.colorspace, context.color_primaries, context.color_trc) == (1, 1, 1)
        assert context.color_range == 1
        shown = [pixels.luma(pixels.rgb(each)) for each in container.decode(video=0)]
    for mine, meant in zip(shown, frames(9), strict=True):
        assert np.abs(mine - meant).mean() < 3
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.mp4", "b.mp4", "c.webm", "d.mkv"]


def test_colours_survive(tmp_path):
    colours = np.array([[200, 40, 30], [30, 180, 60], [40, 60, 210], [128, 128, 128]], np.uint8)
    image = colours.repeat(32, axis=0)[None].repeat(64, axis=0)
    (tmp_path / "in").mkdir()
    pixels.write_png(tmp_path / "in" / "0.png", image)
    cardfit.export(tmp_path / "in", [str(tmp_path / "out.mp4,crf=4")], fps=10)
    with av.open(str(tmp_path / "out.mp4")) as container:
        back = pixels.rgb(next(container.decode(video=0)))
    for at in range(4):
        middle = back[32, 32 * at + 16].astype(int)
        assert np.abs(middle - colours[at]).max() <= 4


def test_odd_sides_lose_a_line_and_are_told(tmp_path):
    (tmp_path / "in").mkdir()
    pixels.write_png(tmp_path / "in" / "0.png", np.full((65, 131, 3), 90, np.uint8))
    found = cardfit.export(tmp_path / "in", [str(tmp_path / "out.mp4")], fps=10)
    assert (found.files[0].width, found.files[0].height) == (130, 64)
    assert [note.code for note in found.notes] == ["export-even"]


def test_sound_is_copied_or_encoded_and_the_duration_kept(spoken, tmp_path):
    names = [str(tmp_path / name) for name in ("a.mp4", "b.webm", "c.mov")]
    found = cardfit.export(spoken, names)
    assert [each.audio for each in found.files] == ["aac", "opus", "aac"]
    for name in names:
        with av.open(name) as container:
            heard = sum(each.samples for each in container.decode(audio=0))
        assert heard == pytest.approx(48_000, rel=0.06)
    assert found.seconds == 1


@pytest.mark.parametrize(("fps", "count"), [(10, 10), (40, 40), (30, 30)])
def test_another_fps_keeps_the_duration(spoken, tmp_path, fps, count):
    found = cardfit.export(spoken, [str(tmp_path / "out.mp4")], fps=fps)
    assert abs(found.frames - count) <= 1 and found.source_frames == 20
    assert found.seconds == pytest.approx(1, abs=0.06)
    assert [note.code for note in found.notes] == ["export-refitted"]


def test_lossless_is_called_unplayable(folder, tmp_path):
    found = cardfit.export(folder, [str(tmp_path / "out.mp4,crf=0")], fps=8)
    assert [each.code for each in found.files[0].warnings] == ["export-warn-profile"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.webm,codec=h264", "does not hold h264"),
        ("a.mov,codec=av1", "goes into .mp4, .mkv, .webm"),
        ("a.avi", "must end in one of"),
        ("a.mp4,crf=52", "0..51"),
        ("a.mp4,crf=-1", "0..51"),
        ("a.mp4,colour=red", "not understood"),
        ("a.mp4,codec=vp9", "allowed: h264, hevc, av1"),
        ("a.mp4,preset=x;y", "preset cannot be"),
        ("a.mp4,width=1", "2..16384"),
        (".mp4", "must end in"),
    ],
)
def test_words_that_cannot_be(text, words):
    with pytest.raises(BadRequest, match=words):
        parse(text)


def test_every_container_writes_each_of_its_codecs(folder, tmp_path):
    names = [
        str(
            tmp_path
            / f"{codec}{ending},codec={codec},preset={'10' if codec == 'av1' else 'ultrafast'}"
        )
        for ending, (_, codecs) in CONTAINERS.items()
        for codec in codecs
    ]
    found = cardfit.export(folder, names, fps=8)
    assert len(found.files) == len(names) == 9


def test_sides_are_even():
    for width in (64, 333):
        for height in (64, 77):
            assert all(side % 2 == 0 for side in sides(parse("a.mp4,width=101"), width, height))


def test_what_is_there_is_kept(folder, tmp_path):
    out = tmp_path / "out.mp4"
    out.write_bytes(b"mine")
    with pytest.raises(BadFile, match="--force"):
        cardfit.export(folder, [str(out)], fps=8)
    with pytest.raises(BadRequest, match="--fps 16"):
        cardfit.export(folder, [str(tmp_path / "other.mp4")])
    with pytest.raises(BadRequest, match="written twice"):
        cardfit.export(folder, [str(tmp_path / "x.mp4")] * 2, fps=8)
    with pytest.raises(BadFile, match="no folder"):
        cardfit.export(folder, [str(tmp_path / "no" / "x.mp4")], fps=8)
    with pytest.raises(BadRequest, match="above 0"):
        cardfit.export(folder, [str(tmp_path / "x.mp4")], fps=-1)
    assert [each.name for each in tmp_path.iterdir()] == ["out.mp4"]
    assert out.read_bytes() == b"mine"


def test_a_clip_is_not_written_over_itself(spoken):
    before = spoken.read_bytes()
    with pytest.raises(BadRequest, match="over its own source"):
        cardfit.export(spoken, [str(spoken)], force=True)
    assert spoken.read_bytes() == before


def test_an_encoder_without_its_card_is_one_sentence(folder, tmp_path, capsys):
    out = str(tmp_path / "out.mp4")
    if "h264_nvenc" in (cardfit.codecs().use["h264"] or ""):
        pytest.skip("this machine has the card")
    assert run(["export", str(folder), f"{out},engine=nvenc", "--fps", "8"]) == 2
    assert "cardfit codecs" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_source_leaves_no_file(folder, tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    for each in folder.iterdir():
        (place / each.name).write_bytes(each.read_bytes())
    data = (place / "5.png").read_bytes()
    (place / "5.png").write_bytes(data[: len(data) // 3])
    with pytest.raises(BadFile):
        cardfit.export(place, [str(tmp_path / "a.mp4"), str(tmp_path / "b.webm")], fps=8)
    assert [each.name for each in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("limit", [200, 4_000, 9_000])
@pytest.mark.parametrize("name", ["out.mp4", "out.mkv"])
def test_a_full_disk_leaves_no_file(folder, tmp_path, name, limit):
    """A limit on the size of files stands in for the disk; it holds for a process, so a child has it."""
    program = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "from cardfit.cli.main import run\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    words = ["export", str(folder), str(tmp_path / f"{name},crf=1"), "--fps", "8"]
    ran = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert ran.returncode == 2, ran.stderr
    assert "Nothing was left under that name" in ran.stderr and "Traceback" not in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_and_speaks_json(folder, tmp_path, capsys):
    words = ["export", str(folder), str(tmp_path / "out.mp4"), "--fps", "16"]
    assert run(words) == 0
    assert "9 frames at 16 a second, 0.56 s" in capsys.readouterr().out
    assert run([*words, "--force", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.export/1" and body["files"][0]["frames"] == 9
    assert run(["export", str(folder)]) == 2
