"""Two records compared: their files, what else differs, and what is kept."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cardfit import verbs
from cardfit.cli.main import run
from cardfit.errors import BadFile, BadRequest
from cardfit.media.lossless import write_video
from cardfit.media.pixels import write_png
from cardfit.quality.where import Where
from cardfit.records import files
from cardfit.records.models import Inputs, Record, Weights
from cardfit.request import Settings

_path = Path(__file__).parents[1] / "records" / "make_record.py"
_spec = importlib.util.spec_from_file_location("make_record", _path)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path))
    return tmp_path


def scene(seed: int, shift: float = 0.0) -> np.ndarray:
    """Blocks of tone with grain, the same for the same seed."""
    random = np.random.default_rng(seed)
    tone = random.integers(30, 220, (12, 12)).repeat(16, 0).repeat(16, 1).astype(np.float32)
    grain = random.normal(0, 3, (192, 192))
    return np.clip(tone + grain + shift, 0, 255).astype(np.uint8)[..., None].repeat(3, 2)


def made(*images: np.ndarray, **fields: Any) -> Record:
    names = tuple(f"outputs/{number:03}.png" for number in range(len(images)))
    found = make_record.record(outputs=names, **fields)
    folder = files.records_folder() / found.id / "outputs"
    folder.mkdir(parents=True)
    for name, image in zip(names, images):
        write_png(folder.parent / name, image)
    files.write(found)
    return found  # type: ignore[no-any-return]


def test_the_same_request_and_what_a_setting_did_to_it() -> None:
    size = make_record.request(width=192, height=192)
    tiles = Settings(vae_tiling=True, vae_tile=64)
    one, other = made(scene(1), request=size), made(scene(1, 4.0), request=size, settings=tiles)
    found = verbs.compare(one, other.id)
    assert found.drift.diverged is False and found.totals.psnr_db == pytest.approx(36.1, abs=0.3)
    # the grid is the candidate's: tiles of 64 that overlap by a quarter
    assert found.seams is not None and found.seams.columns == (48, 96, 144)
    codes = {note.code for note in found.notes}
    assert not codes & {"quality-other-request", "quality-other-inputs", "quality-other-weights"}
    kept = files.read(files.records_folder() / other.id).quality
    assert kept is not None and kept.reference == one.id and kept.ssim == found.totals.ssim
    # said outright, a grid is the one that was said
    assert "quality-no-edges" not in codes
    asked = verbs.compare(one, other, where=Where(tile=96))
    assert asked.seams is not None and asked.seams.columns == (96,)


def test_drift_is_said_with_what_else_differs(capsys: pytest.CaptureFixture[str]) -> None:
    one = made(scene(1))
    apart = {"inputs": Inputs(prompt_sha256="1" * 64), "weights": Weights(kind="own")}
    other = made(scene(2), request=make_record.request(seed=7), **apart)
    assert run(["compare", one.id, other.id]) == 0
    shown = capsys.readouterr()
    text = " ".join(shown.err.split())
    assert "asked for different things (seed)" in text and "different prompts" in text
    assert "different weights" in text and "say nothing about quality" in text
    assert "another picture" in shown.out
    assert files.read(files.records_folder() / other.id).quality.diverged


def test_pictures_of_a_batch_are_compared_one_by_one_and_of_clips_the_first() -> None:
    one, other = made(scene(1), scene(2)), made(scene(1), scene(2, 3.0))
    assert verbs.compare(one, other).totals.identical_frames == 1
    clips = []
    for shift in (0.0, 2.0):
        record = make_record.record(outputs=("outputs/000.mkv", "outputs/001.mkv"))
        folder = files.records_folder() / record.id / "outputs"
        folder.mkdir(parents=True)
        for number in (0, 1):
            write_video(folder / f"{number:03}.mkv", [scene(3, shift)] * 3, 16)
        files.write(record)
        clips.append(record)
    found = verbs.compare(*clips)
    assert found.frames == 3
    assert [note.code for note in found.notes][0] == "quality-first-clip"


def test_a_record_against_a_file_and_what_is_gone(tmp_path: Path) -> None:
    one = made(scene(1))
    write_png(tmp_path / "other.png", scene(1, 2.0))
    found = verbs.compare(one.id, tmp_path / "other.png")
    assert json.loads(found.model_dump_json())["reference"]["path"].endswith("outputs/000.png")
    assert files.read(files.records_folder() / one.id).quality is None
    (files.records_folder() / one.id / "outputs" / "000.png").unlink()
    with pytest.raises(BadFile, match="is gone"):
        verbs.compare(one.id, tmp_path / "other.png")
    with pytest.raises(BadRequest, match="kept no output"):
        verbs.compare(make_record.record(), tmp_path / "other.png")
    with pytest.raises(BadRequest):
        verbs.compare("20991231t000000-00000000", tmp_path / "other.png")
