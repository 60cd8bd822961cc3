"""A repo of the hub becomes a model: by its configs and the headers of its weights, a few kilobytes of gigabytes."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cardfit import api, verbs
from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.library.hub import MAX_READ_BYTES
from cardfit.library.sources import _of_repo
from cardfit.request import Request

REPO = "somebody/tiny-sd"
SMALL = {"width": 64, "height": 64, "num_inference_steps": 2}


@pytest.fixture
def repo(folder: Path, tmp_path: Path) -> Path:
    """The tiny pipeline, with a pickle, code and a second precision beside its weights."""
    found = Path(shutil.copytree(folder, tmp_path / "repo"))
    (found / "unet" / "diffusion_pytorch_model.bin").write_bytes(b"pickle")
    (found / "unet" / "diffusion_pytorch_model.fp16.safetensors").write_bytes(b"half")
    (found / "vae" / "modeling.py").write_text("raise SystemExit")
    return found


@pytest.fixture
def hub(
    repo: Path, fake_hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """This process asks a hub on this machine, with a cache of the test's own."""
    found = fake_hub.Hub(repo)
    monkeypatch.setenv("HF_ENDPOINT", found.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    _of_repo.cache_clear()
    yield found
    found.close()
    _of_repo.cache_clear()


def large(file: Path, shards: int, layers: int) -> None:
    """Replace ``file`` by shards of some gigabytes each; the weights are holes."""
    file.unlink()
    for shard in range(shards):
        at, found = 0, {}
        for layer in range(layers):
            name = f"transformer_blocks.{shard}.{layer}.attention.to_query.weight"
            found[name] = {"dtype": "BF16", "shape": [4096, 4096], "data_offsets": [at, at + 2**25]}
            at += 2**25
        text = json.dumps(found).encode()
        path = file.with_name(f"{file.stem}-{shard + 1:05}-of-{shards:05}.safetensors")
        with path.open("wb") as stream:
            stream.write(struct.pack("<Q", len(text)) + text)
            stream.truncate(8 + len(text) + at)


def test_a_repo_is_read_by_its_configs_and_headers(hub: Any, repo: Path) -> None:
    found: Any = load(REPO)
    assert (found.id, found.kind, found.title) == (REPO, "repo", REPO)
    assert (found.license, found.released) == ("apache-2.0", "2025-03")
    assert found.verified  # the files hold as many weights as the configs make
    assert found.components["unet"].published_dtype == "float32"
    assert not [name for name in hub.asked if name.endswith((".bin", ".py")) or "fp16" in name]
    local: Any = load(str(repo))
    assert found.stored == local.stored
    assert {n: p.config for n, p in found.components.items()} == {
        n: p.config for n, p in local.components.items()
    }


def test_gigabytes_cost_kilobytes(hub: Any, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = (repo / "unet").glob("*model.safetensors")
    large(name, shards=15, layers=40)
    again = type(hub)(repo)  # which lists the shards
    monkeypatch.setenv("HF_ENDPOINT", again.url)
    found: Any = load(REPO)
    again.close()
    assert found.stored["unet"].size_bytes == 15 * 40 * 2**25  # 20 GB
    assert found.stored["unet"].elements == 15 * 40 * 2**24
    for part in ("unet", "vae", "text_encoder"):
        sent = sum(size for file, size in again.sent.items() if file.startswith(f"{part}/"))
        assert 0 < sent <= MAX_READ_BYTES == 2_000_000, part


def test_a_header_beyond_the_limit_is_not_fetched(hub: Any, repo: Path) -> None:
    (name,) = (repo / "unet").glob("*model.safetensors")
    with name.open("wb") as stream:
        stream.write(struct.pack("<Q", 30_000_000))
        stream.truncate(60_000_000)
    with pytest.raises(BadFile, match="takes more than the 2000000 bytes"):
        load(REPO)
    assert sum(hub.sent.values()) < 500_000


def test_plan_trace_and_add_take_a_repo(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path / "data"))
    answer = api.plan(Request(model=REPO, **SMALL), cards=["l4"])
    assert answer.model.id == REPO and answer.cards[0].verdict == "fits"
    added = verbs.add_model(REPO)
    assert added.model.id == "tiny-sd" and added.model.license == "apache-2.0"
    assert load("tiny-sd").id == "tiny-sd"


def test_offline_the_cache_answers_and_nothing_else(
    hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadFile, match="HF_HUB_OFFLINE is set.*local folder"):
        load(REPO)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    online: Any = load(REPO)
    asked = len(hub.asked)
    _of_repo.cache_clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    found: Any = load(REPO)
    assert len(hub.asked) == asked
    assert found.components["unet"].params == online.components["unet"].params
    assert "source-no-weights" in [note.code for note in found.said]


def test_no_repo_and_no_hub_are_one_sentence(hub: Any) -> None:
    with pytest.raises(BadRequest, match="no such repo on the hub"):
        load("nobody/nothing")
    with pytest.raises(BadRequest, match=r"did you mean wan2\.1-t2v-14b"):
        load("wan-ai/wan2.1-t2v-14b")
    hub.close()
    with pytest.raises(BadFile, match=f"{REPO} could not be fetched"):
        load(REPO)


def test_the_librarys_own_repos_are_not_asked_for(hub: Any) -> None:
    assert load("black-forest-labs/FLUX.1-dev").id == "flux.1-dev"
    assert not hub.asked
