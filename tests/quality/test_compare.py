"""Whole comparisons of files: figures, refusals, the report."""

from __future__ import annotations

import json
import re

import clips
import numpy as np
import pytest

import cardfit
from cardfit.cli.main import run
from cardfit.errors import BadFile, BadRequest
from cardfit.media import pixels
from cardfit.quality.where import Where

SIZE = (192, 320)
WHERE = Where(tile=128, overlap=32, chunk=8)


def frames(count=25, seed=4, name="photo"):
    return list(clips.CONTENT[name](np.random.default_rng(seed), count, SIZE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("clips")
    own = frames()
    clips.write(place / "reference.mp4", own, 6)
    clips.write(place / "clean.mp4", own, 14)
    marked = [clips.with_tone(each, (96, 192, 288), (96,), 4) for each in own]
    clips.write(place / "marked.mp4", clips.with_gain(marked, 8, 0.03), 10)
    clips.write(place / "other.mp4", frames(seed=11, name="shapes"), 14)
    clips.write(place / "short.mp4", own[:20], 14)
    clips.write(place / "fast.mp4", own, 14, rate=30)
    clips.write(place / "small.mp4", [each[:160] for each in own], 14)
    for at, each in enumerate(own[:3]):
        pixels.write_png(place / f"still{at}.png", np.stack([each] * 3, axis=-1))
    return place


def test_a_clip_against_itself(folder):
    found = cardfit.compare(folder / "clean.mp4", folder / "clean.mp4", where=WHERE)
    assert found.frames == 25 == found.totals.identical_frames
    assert found.totals.psnr_db is None and found.totals.ssim == pytest.approx(1, abs=1e-4)
    assert not found.edges.found and not found.seams.new and not found.drift.diverged
    assert found.drift.fine_energy_ratio == 1
    assert found.versions["cardfit"] == cardfit.__version__


def test_a_marked_clip_shows_its_seam_and_its_chunks(folder):
    found = cardfit.compare(folder / "reference.mp4", folder / "marked.mp4", where=WHERE)
    assert found.seams.new and found.seams.columns == (96, 192, 288)
    best = next(each for each in found.edges.scores if each.found)
    assert best.frame in (8, 16, 24) and best.size == pytest.approx(0.03, rel=0.3)
    assert [each.frame for each in found.per_frame] == list(range(25))
    lowest = min(found.per_frame, key=lambda each: each.ssim)
    assert (found.worst.frame, found.worst.ssim) == (lowest.frame, lowest.ssim)
    assert found.worst.x + found.worst.side <= SIZE[1]
    assert found.worst.y + found.worst.side <= SIZE[0]


def test_a_coded_clip_is_near_and_has_neither(folder):
    found = cardfit.compare(folder / "reference.mp4", folder / "clean.mp4", where=WHERE)
    assert found.totals.psnr_db > 35 and 0.9 < found.totals.ssim < 1
    assert not found.seams.found and not found.edges.found
    assert found.drift.composition > 0.99


def test_another_composition_is_called_so(folder):
    found = cardfit.compare(folder / "clean.mp4", folder / "other.mp4")
    assert found.drift.diverged
    codes = [note.code for note in found.notes]
    assert "quality-diverged" in codes and "quality-no-grid" in codes
    assert found.seams is None and found.edges is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("short.mp4", "has 20 frames.*has 25"),
        ("fast.mp4", "plays at 30 frames a second.*at 24"),
        ("small.mp4", "is 320x160.*is 320x192"),
    ],
)
def test_what_differs_is_named_and_aligned_only_when_asked(folder, name, words):
    with pytest.raises(BadRequest, match=words):
        cardfit.compare(folder / "clean.mp4", folder / name)
    found = cardfit.compare(folder / "clean.mp4", folder / name, align=True)
    assert found.aligned and found.frames in (20, 25)
    assert any(note.code.startswith("quality-aligned-") for note in found.notes)


def test_the_filters_of_ffmpeg_agree_that_more_coding_is_worse(folder):
    near = cardfit.compare(folder / "clean.mp4", folder / "clean.mp4", also=("vif", "xpsnr")).totals
    far = cardfit.compare(
        folder / "reference.mp4", folder / "marked.mp4", also=("vif", "xpsnr")
    ).totals
    assert near.vif == pytest.approx(1) and near.xpsnr_db is None
    assert 0.2 < far.vif < 1 and 20 < far.xpsnr_db < 60


def test_stills_and_folders(folder, tmp_path):
    one, other = folder / "still0.png", folder / "still1.png"
    found = cardfit.compare(one, other, where=Where(lines_x=(96,)))
    assert found.reference.kind == "image" and found.worst.flip > 0
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for at in range(3):
            data = (folder / f"still{at}.png").read_bytes()
            (tmp_path / name / f"{at + 8}.png").write_bytes(data)  # 8, 9, 10: by number
    found = cardfit.compare(tmp_path / "a", tmp_path / "b")
    assert (found.frames, found.totals.psnr_db) == (3, None)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tile": 8}, "at least 16"),
        ({"tile": 64, "overlap": 64}, "more than its overlap"),
        ({"overlap": 8}, "needs --tile"),
        ({"chunk": 0}, "at least 1"),
        ({"lines_x": (0,)}, "above 0"),
        ({"tile": 64, "lines_y": (9,)}, "leave one out"),
    ],
)
def test_places_that_cannot_be(folder, fields, words):
    with pytest.raises(BadRequest, match=words):
        cardfit.compare(folder / "clean.mp4", folder / "clean.mp4", where=Where(**fields))


def test_the_report_holds_its_pictures_and_loads_nothing(folder, tmp_path, capsys):
    words = ["compare", str(folder / "reference.mp4"), str(folder / "marked.mp4")]
    words += ["--tile", "128", "--overlap", "32", "--chunk", "8", "-o", str(tmp_path / "report")]
    assert run(words) == 0
    said = capsys.readouterr()
    assert "SEAM at" in said.out and "STEP of brightness" in said.out
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|src=\"(?!data:)", page)
    for name in ("reference", "candidate", "ssim", "spot", "seam"):
        data = (tmp_path / "report" / f"{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
    body = json.loads((tmp_path / "report" / "comparison.json").read_text(encoding="utf-8"))
    assert body["schema"] == "cardfit.compare/1" and body["seams"]["found"]
    assert run(words) == 2  # not over a report that is there
    assert "--force" in capsys.readouterr().err
    assert run([*words, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["frames"] == 25


def test_bad_words_are_one_sentence(folder, capsys):
    clip = str(folder / "clean.mp4")
    for more in (["--metric", "lpips"], ["--edges", "a,b"], ["--lines-x", "1.5"]):
        assert run(["compare", clip, clip, *more]) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_a_truncated_clip_is_refused(folder, tmp_path):
    data = (folder / "clean.mp4").read_bytes()
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(data[: len(data) // 2])
    with pytest.raises(BadFile):
        cardfit.compare(folder / "clean.mp4", cut)


def test_ten_bits_are_compared_in_the_same_levels(folder, tmp_path):
    import av

    deep = tmp_path / "deep.mkv"
    with av.open(str(deep), "w") as output:
        stream = output.add_stream("libx265", rate=24, options={"x265-params": "log-level=error"})
        stream.width, stream.height, stream.pix_fmt = SIZE[1], SIZE[0], "yuv420p10le"
        for at, frame in enumerate(frames()):
            shown = av.VideoFrame.from_ndarray(frame, format="gray").reformat(format="yuv420p10le")
            shown.pts = at
            output.mux(stream.encode(shown))
        output.mux(stream.encode(None))
    found = cardfit.compare(folder / "reference.mp4", deep)
    assert found.candidate.bit_depth == 10 and found.totals.psnr_db > 30
    assert found.drift.composition > 0.99
