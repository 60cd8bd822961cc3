"""The same latents through real VAEs, tiny and with random weights, with several settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from cardfit import verbs
from cardfit.cli.main import run as command
from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.measure.decode import Decodes
from cardfit.measure.runner import latents, outputs
from cardfit.measure.vae_words import reference_words, usual_words, vae_settings
from cardfit.media import lossless, source
from cardfit.media.pixels import rgb
from cardfit.quality.recorded import where_of
from cardfit.records import files
from cardfit.records.models import Record
from cardfit.request import Request, Settings

SIDE = 192


@pytest.fixture(scope="module")
def lively(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny pipeline with a VAE whose pictures use the whole range: untrained weights paint grey."""
    import shutil

    made = tmp_path_factory.mktemp("lively") / "sd"
    shutil.copytree(folder, made)
    file = next((made / "vae").glob("*.safetensors"))
    tensors = load_file(file)
    generator = torch.Generator().manual_seed(1)
    for name, value in tensors.items():
        if name.startswith(("decoder", "post_quant")) and value.ndim == 4:
            fan = value[0].numel()
            tensors[name] = torch.randn(value.shape, generator=generator) * (2 / fan) ** 0.5
        elif name.startswith("decoder") and "norm" in name and name.endswith("weight"):
            tensors[name] = torch.ones_like(value)
    save_file(tensors, file, metadata={"format": "pt"})
    return made


def test_tiles_are_told_from_what_changes_nothing(
    lively: Path, data: Path, tmp_path: Path, small: dict[str, Any], capsys: Any
) -> None:
    asked = Request(**{**small, "width": SIDE, "height": SIDE, "num_inference_steps": 1})
    more: dict[str, Any] = {"weights": lively, "device": "cpu", "repeats": 0}
    record = verbs.run(asked, keep_outputs=True, predict=False, memory=False, **more)
    report = tmp_path / "report"
    words = f"decode {record.id} --weights {lively} --vae tile=64,overlap=0 --vae sliced,bfloat16 --device cpu"
    assert command([*words.split(), "--repeats", "0", "--report", str(report)]) == 0
    shown = capsys.readouterr()
    assert "reference" in shown.out and "tile=64" in shown.out
    found = Decodes.model_validate_json((report / "decodes.json").read_text())
    full, tiled, half = found.rows
    assert [row.words for row in found.rows] == ["full", "tile=64,overlap=0", "sliced,bfloat16"]
    assert full.reference and full.quality is None and full.outcome == "ok"
    # the reference is what the run itself decoded
    kept = [
        data / "records" / each / "outputs" / "000.png" for each in (record.id, full.record or "")
    ]
    assert kept[0].read_bytes() == kept[1].read_bytes()
    # tiles without overlap leave seams on a grid that the settings tell; half precision leaves none
    assert tiled.quality is not None and tiled.quality.ssim < 0.99
    assert tiled.quality.seam_found and (tiled.quality.seam_score or 0) > 6
    assert half.quality is not None and tiled.quality.ssim < half.quality.ssim < 1
    assert half.quality.seam_score is None and half.settings.dtype == {"vae": "bfloat16"}
    # tiles hold less, and every decode is a record that carries its quality
    assert full.peak_bytes and tiled.peak_bytes and tiled.peak_bytes < 0.6 * full.peak_bytes
    candidate = files.read(data / "records" / (tiled.record or ""))
    assert candidate.quality == tiled.quality and candidate.resumed == record.id
    assert "data:image/png" in (report / "index.html").read_text()
    assert (report / "00" / "seam.png").is_file()
    # two records are compared by their ids, with the grid of the candidate's settings
    assert command(["compare", record.id, candidate.id, "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["seams"]["columns"] == [64, 128] and compared["seams"]["new"]
    # a latents' file alone, with its model
    latents_file = data / "records" / record.id / record.latents[0]
    alone = verbs.decode(latents_file, ["full"], model="stable-diffusion-1.5", **more)
    assert [row.outcome for row in alone.rows] == ["ok"]
    again = data / "records" / (alone.rows[0].record or "") / "outputs" / "000.png"
    assert again.read_bytes() == kept[0].read_bytes()


def test_a_clip_of_a_video_vae_comes_back_as_it_was(tmp_path: Path, tiny: Any) -> None:
    """A real video VAE: kept latents, decoded in tiles and in one piece, kept without loss."""
    from cardfit.library.build import build
    from cardfit.measure.runner.assemble import filled

    part = tiny.shrunk("wan2.1-t2v-14b").components["vae"]
    vae: Any = filled(build(part, "float32"), torch.device("cpu"), 0)
    drawn = torch.Generator().manual_seed(5)
    torch.nn.init.normal_(vae.decoder.conv_out.weight, std=2.0, generator=drawn)
    z = torch.randn(1, 16, 2, 8, 8, generator=torch.Generator().manual_seed(3)) * 4
    with torch.no_grad():
        outs = [vae.decode(z)]
    (clip,) = outputs.of_decodes(outs, video=True, batch=1)
    assert clip.shape == (5, 3, 64, 64)
    (name,) = outputs.save([clip], tmp_path, 16)
    footage = source.look(tmp_path / name)
    assert (footage.kind, footage.fps, footage.width) == ("video", 16, 64)
    frames = torch.stack([torch.from_numpy(rgb(frame).copy()) for frame in source.frames(footage)])
    wanted = clip.clamp(0, 1).mul(255).round().to(torch.uint8).movedim(1, -1)
    assert torch.equal(frames, wanted) and wanted.float().std() > 3
    latents.save(vae, (z,), {"return_dict": False}, tmp_path / "latents-000.safetensors")
    given = [latents.load(tmp_path / "latents-000.safetensors", torch.device("cpu"))]
    assert latents.matched(vae, given, "bfloat16").dtype == given[0]["z"].dtype == torch.bfloat16


def test_frames_that_are_a_batch_are_decoded_in_chunks() -> None:
    class Temporal:
        def decode(self, z: Any, num_frames: int, return_dict: bool = True) -> None: ...

    given = [
        {"z": torch.arange(8.0).reshape(8, 1, 1, 1), "num_frames": 8},
        {"z": torch.ones(6, 1, 1, 1), "num_frames": 6},
    ]
    found = latents.in_chunks(Temporal(), given, 4)
    assert [each["num_frames"] for each in found] == [4, 4, 4, 2]
    assert torch.cat([each["z"] for each in found])[:8].flatten().tolist() == list(range(8))
    assert latents.in_chunks(Temporal(), given, None) is given


def test_outputs_of_pipelines_become_clips() -> None:
    class Result:
        images = torch.zeros(2, 3, 8, 8)

    class Video:
        frames = torch.zeros(2, 5, 3, 8, 8)

    assert [each.shape for each in outputs.of_pipeline(Result())] == [(1, 3, 8, 8)] * 2
    assert [each.shape for each in outputs.of_pipeline(Video())] == [(5, 3, 8, 8)] * 2
    with pytest.raises(ValueError, match="list"):
        outputs.of_pipeline(["a picture"])
    decoded = outputs.of_decodes([(torch.full((6, 3, 8, 8), -1.0),)], video=True, batch=2)
    assert [each.shape for each in decoded] == [(3, 3, 8, 8)] * 2 and decoded[0].max() == 0


def test_nothing_is_left_of_a_clip_that_cannot_be_written(tmp_path: Path) -> None:
    import numpy as np

    frames = [np.zeros((16, 16, 3), np.uint8)] * 2
    with pytest.raises(BadFile):
        lossless.write_video(tmp_path / "gone" / "clip.mkv", frames, 8)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "reference", "usual"),
    [
        ("sdxl-base", "full", ("full", "tiled", "tile=512", "float32")),
        ("allegro", "tiled", ("tiled",)),
        ("svd", "full", ("full", "chunk=8", "chunk=2", "float32")),
    ],
)
def test_the_reference_is_what_the_vae_was_trained_for(
    model: str, reference: str, usual: tuple[str, ...]
) -> None:
    entry = load(model)
    request, _ = resolve(entry, Request(model=model))
    assert reference_words(entry) == reference
    assert usual_words(entry, request)[: len(usual)] == usual
    for words in usual:
        vae_settings(words, entry, request)


def record_of(model: str, **settings: Any) -> Any:
    from datetime import UTC, datetime

    from cardfit.records.models import Inputs, Machine, Outcome, Weights

    request, _ = resolve(load(model), Request(model=model))
    return Record(
        id=files.new_id(), created=datetime.now(UTC), finished=True, model=model, request=request,
        settings=Settings(**settings), weights=Weights(kind="random"), inputs=Inputs(), versions={}, device="cpu",
        machine=Machine(os="linux"), predicted=None, repetitions=(), outcome=Outcome(kind="ok"),
    )  # fmt: skip


def test_the_grid_comes_from_the_settings() -> None:
    where = where_of(record_of("wan2.1-t2v-14b", vae_tiling=True))
    assert (where.tile, where.overlap, where.chunk) == (256, 64, None)
    where = where_of(record_of("wan2.1-t2v-14b", vae_tiling=True, vae_tile=128, vae_overlap=16))
    assert (where.tile, where.overlap) == (128, 16)
    # temporal tiles meet every 12 frames, the first a frame later
    where = where_of(record_of("hunyuanvideo", vae_tiling=True))
    assert (where.chunk, where.first_chunk) == (12, 13)
    # tiles of CogVideoX are wider than high: 360 x 240 with overlaps of 72 and 40
    where = where_of(record_of("cogvideox-5b", vae_tiling=True))
    assert (where.lines_x, where.lines_y) == ((288, 576), (200, 400))
    # nobody is asked to tile what is no larger than a tile
    assert where_of(record_of("sdxl-base", vae_tiling=True)).tile is None
    assert where_of(record_of("svd", decode_chunk_size=4)).chunk == 4
    for model in ("wan2.1-t2v-14b", "cogvideox-5b", "allegro"):
        where_of(record_of(model, vae_tiling=True)).check()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ("tiles", "tiles is not known"),
        ("tile=0x20", "is not known"),
        ("tile=8", "tile: Input should be greater"),
        ("tile=64,overlap=64", "smaller than its tile"),
        ("", "is not known"),
    ],
)
def test_words_that_mean_nothing(words: str, match: str) -> None:
    entry = load("sdxl-base")
    request, _ = resolve(entry, Request(model="sdxl-base"))
    with pytest.raises(BadRequest, match=match):
        vae_settings(words, entry, request)


def test_what_cannot_be_decoded(data: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.safetensors"
    save_file({"z": torch.zeros(1, 4, 8, 8)}, foreign)
    hostile = tmp_path / "hostile.safetensors"
    hostile.write_bytes(b"\xff" * 64)
    with pytest.raises(BadRequest, match="--model"):
        verbs.decode(foreign)
    with pytest.raises(BadFile, match="not written by cardfit"):
        verbs.decode(foreign, model="sdxl-base")
    with pytest.raises(BadFile, match="cannot be read"):
        verbs.decode(hostile, model="sdxl-base")
    with pytest.raises(BadFile, match="cannot be read"):
        verbs.decode(tmp_path / "none.safetensors", model="sdxl-base")
    ours = tmp_path / "ours.safetensors"
    save_file({"z": torch.zeros(1, 16, 8, 8)}, ours, metadata={"schema": "cardfit.latents/1"})
    with pytest.raises(BadFile, match="1x16x8x8.*4 channels"):
        verbs.decode(ours, model="sdxl-base")
    with pytest.raises(BadRequest, match="no latents"):
        verbs.decode(record_of("sdxl-base"))
    with pytest.raises(BadRequest, match="names its model itself"):
        verbs.decode("2026", model="sdxl-base")
    with pytest.raises(BadRequest, match="kept no output"):
        verbs.compare(record_of("sdxl-base"), record_of("sdxl-base"))


def test_footage_goes_into_a_real_run(
    data: Path, tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    weights = tiny.save("wan2.1-vace-1.3b", tmp_path / "vace")
    random = np.random.default_rng(5)
    clip = tmp_path / "clip.mkv"
    lossless.write_video(
        clip, [random.integers(0, 255, (64, 64, 3), np.uint8) for _ in range(6)], 16
    )
    asked = Request(
        model="wan2.1-vace-1.3b", task="video-to-video", width=64, height=64, num_frames=5, num_inference_steps=1
    )  # fmt: skip
    more: dict[str, Any] = {"weights": weights, "device": "cpu", "repeats": 0, "predict": False}
    found = verbs.run(asked, video=clip, memory=False, keep_outputs=True, **more)
    assert found.ok, found.outcome
    said = {note.code: note.text for note in found.notes}
    assert said["run-ingested"].startswith("5 frames of footage read by cpu")
    assert [(p.width, p.height) for p in found.inputs.pictures] == [(64, 64)]
    (name,) = found.outputs
    kept = source.look(data / "records" / found.id / name)
    assert kept.kind == "video" and len(list(source.frames(kept))) == 5
    with pytest.raises(BadRequest, match="has 6 frames and the run takes 9"):
        verbs.run(asked.model_copy(update={"num_frames": 9}), video=clip, **more)
    with pytest.raises(BadRequest, match="takes no footage"):
        verbs.run(Request(model="sdxl-base"), video=clip, device="cpu")


def test_without_a_reference_nothing_is_compared_and_the_next_step_is_said(
    data: Path, tmp_path: Path, lively: Path, capsys: Any
) -> None:
    path = tmp_path / "latents.safetensors"
    save_file({"z": torch.zeros(1, 4, 8, 8)}, path, metadata={"schema": "cardfit.latents/1"})
    words = f"decode {path} --model stable-diffusion-1.5 --weights {lively} --vae tiled --device cpu --timeout 0.05"
    assert command(words.split()) == 1
    shown = capsys.readouterr()
    assert "too long" in shown.out or "timeout" in shown.out or "limit" in shown.out
    assert "--reference-device cpu" in " ".join(shown.err.split())
    kept = [each for each in files.each() if isinstance(each, Record)]
    assert [each.outcome.kind for each in kept] == ["timeout", "timeout"]
    assert all(each.quality is None and each.outputs == () for each in kept)
