"""Weights of a repo on the hub, from a small server of the hub's own protocol: what is fetched, and what never is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cardfit import verbs
from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.library.folder import name_of
from cardfit.measure.hub import located
from cardfit.request import Request

REPO, COMMIT = "somebody/tiny-sd", "0123456789abcdef0123456789abcdef01234567"
SD = load("stable-diffusion-1.5")


@pytest.fixture
def hub(fake_hub: Any, folder: Path, tmp_path: Path) -> Iterator[Any]:
    """The tiny pipeline as a repo, with a pickle, code and a second precision beside its weights."""
    repo = Path(shutil.copytree(folder, tmp_path / "repo"))
    (repo / "unet" / "diffusion_pytorch_model.bin").write_bytes(b"pickle")
    (repo / "unet" / "diffusion_pytorch_model.fp16.safetensors").write_bytes(b"half")
    (repo / "vae" / "modeling.py").write_text("raise SystemExit")
    (repo / "whole.safetensors").write_bytes(b"one file")
    found = fake_hub.Hub(repo)
    yield found
    found.close()


@pytest.fixture
def here(hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process asks the local hub, with a cache of the test's own."""
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "repo"


def test_a_repo_is_fetched_once_and_measured(
    hub: Any, here: Path, data: Path, small: dict[str, Any]
) -> None:
    record = verbs.run(
        Request(**small), weights=REPO, device="cpu", repeats=0, memory=False, predict=False
    )
    assert record.ok and record.weights.kind == "folder"
    assert record.weights.name == f"{REPO}@{COMMIT[:12]}"
    fetched = set(hub.asked)
    assert {"model_index.json", "unet/config.json", "tokenizer/tokenizer.json"} <= fetched
    assert sum(name.endswith(".safetensors") for name in fetched) == 3
    assert not [name for name in fetched if name.endswith((".bin", ".py")) or "fp16" in name]
    assert "whole.safetensors" not in fetched
    assert len(hub.asked) == len(fetched)  # each once
    again = located(REPO, SD, "text-to-image")
    assert (again / "unet" / "config.json").is_file() and len(hub.asked) == len(fetched)


def test_another_models_repo_is_refused_before_its_weights_are_fetched(
    hub: Any, here: Path
) -> None:
    index = here / "model_index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {"_class_name": "FluxPipeline"}))
    with pytest.raises(BadRequest, match="holds a FluxPipeline"):
        located(REPO, SD, "text-to-image")
    assert not [name for name in hub.asked if name.endswith(".safetensors")]


def test_a_repo_that_is_not_there_is_one_sentence(here: Path) -> None:
    with pytest.raises(BadRequest, match="nobody/nothing: no such folder here and no such repo"):
        located("nobody/nothing", SD, "text-to-image")


def test_a_hub_that_does_not_answer_is_one_sentence(hub: Any, here: Path) -> None:
    hub.close()
    with pytest.raises(BadFile, match=f"{REPO} could not be fetched from the hub"):
        located(REPO, SD, "text-to-image")


def test_a_folder_is_itself(folder: Path) -> None:
    assert located(folder, SD, "text-to-image") == folder
    assert located("./no/such/folder", SD, "text-to-image") == Path("./no/such/folder")
    assert name_of(folder) == folder.name


def test_an_id_that_is_none_is_a_folder(data: Path) -> None:
    for asked in ("/a/b", "a/b/c", "-x/y", "just-a-name"):
        with pytest.raises(BadFile, match="is not there"):
            verbs.run("stable-diffusion-1.5", weights=asked, device="cpu")
