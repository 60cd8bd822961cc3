"""A local folder is looked at before anything of it is loaded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.measure.folder import with_folder

SD = load("stable-diffusion-1.5")


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """The folder, to be spoilt."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def index(folder: Path, **changes: Any) -> None:
    path = folder / "model_index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_its_configs_stand_for_the_librarys(folder: Path) -> None:
    model, differs = with_folder(SD, folder, "text-to-image", weights=True)
    assert differs == ("unet", "text_encoder", "vae")
    assert model.components["unet"].config["block_out_channels"] == [8, 8, 16, 16]
    assert model.scheduler.class_path == "diffusers.PNDMScheduler"


def test_the_librarys_own_config_does_not_differ(copy: Path) -> None:
    for name in ("unet", "text_encoder", "vae"):
        (copy / name / "config.json").write_text(json.dumps(SD.components[name].config))
    assert with_folder(SD, copy, "text-to-image", weights=True)[1] == ()


@pytest.mark.parametrize(("changes", "words"), [
    ({"_class_name": "FluxPipeline"}, "holds a FluxPipeline, and stable-diffusion-1.5 is a StableDiffusionPipeline"),
    ({"unet": ["diffusers", "UNet1DModel"]}, "unet is a UNet1DModel; expected UNet2DConditionModel"),
    ({"unet": ["my_pipeline", "UNet2DConditionModel"]}, "unet comes from my_pipeline.*never runs"),
    ({"unet": [None, None]}, "has no unet"),
    ({"unet": "text"}, "has no unet"),
])  # fmt: skip
def test_another_model_is_said(copy: Path, changes: dict[str, Any], words: str) -> None:
    index(copy, **changes)
    with pytest.raises(BadRequest, match=words):
        with_folder(SD, copy, "text-to-image", weights=True)


def test_pickles_and_missing_weights_are_said(copy: Path) -> None:
    for path in (copy / "vae").glob("*.safetensors"):
        path.rename(path.with_suffix(".bin"))
    with pytest.raises(BadFile, match="a pickle, and no safetensors"):
        with_folder(SD, copy, "text-to-image", weights=True)
    with_folder(SD, copy, "text-to-image", weights=False)
    for path in (copy / "vae").glob("*.bin"):
        path.unlink()
    with pytest.raises(BadFile, match="holds no safetensors"):
        with_folder(SD, copy, "text-to-image", weights=True)


def test_no_folder_no_index_and_a_damaged_config(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="is not there"):
        with_folder(SD, tmp_path / "none", "text-to-image", weights=True)
    with pytest.raises(BadFile, match=r"has no model_index\.json"):
        with_folder(SD, tmp_path, "text-to-image", weights=True)
    (copy / "vae" / "config.json").write_text("[1, 2")
    with pytest.raises(BadFile, match="is not a JSON object"):
        with_folder(SD, copy, "text-to-image", weights=True)
