"""Weights of a repo on the hub, from a small server of the hub's own protocol: what is fetched, and what never is."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cardfit import verbs
from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.measure.hub import located, name_of
from cardfit.request import Request

REPO, COMMIT = "somebody/tiny-sd", "0123456789abcdef0123456789abcdef01234567"
SD = load("stable-diffusion-1.5")


class Hub:
    """A repo on a local server; ``asked`` are the files that somebody read."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        hub = self
        names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
        info = {"id": REPO, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
        tree = [
            {"type": "file", "path": n, "size": (folder / n).stat().st_size, "oid": COMMIT}
            for n in names
        ]

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self, *, body: bool) -> None:
                path = self.path.partition("?")[0]
                content, code = b"{}", 404
                headers = {"X-Error-Code": "RepoNotFound"}
                if path.startswith(f"/api/models/{REPO}"):
                    said = tree if path.startswith(f"/api/models/{REPO}/tree/") else info
                    content, code, headers = json.dumps(said).encode(), 200, {}
                elif path.startswith(f"/{REPO}/resolve/"):
                    name = path.removeprefix(f"/{REPO}/resolve/").partition("/")[2]
                    content, code = (folder / name).read_bytes(), 200
                    etag = hashlib.sha256(content).hexdigest()
                    headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}
                    if body:
                        hub.asked.append(name)
                self.send_response(code)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if body:
                    self.wfile.write(content)

            def do_GET(self) -> None:
                self.reply(body=True)

            def do_HEAD(self) -> None:
                self.reply(body=False)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def hub(folder: Path, tmp_path: Path) -> Iterator[Hub]:
    """The tiny pipeline as a repo, with a pickle, code and a second precision beside its weights."""
    repo = Path(shutil.copytree(folder, tmp_path / "repo"))
    (repo / "unet" / "diffusion_pytorch_model.bin").write_bytes(b"pickle")
    (repo / "unet" / "diffusion_pytorch_model.fp16.safetensors").write_bytes(b"half")
    (repo / "vae" / "modeling.py").write_text("raise SystemExit")
    (repo / "whole.safetensors").write_bytes(b"one file")
    found = Hub(repo)
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def here(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process asks the local hub, with a cache of the test's own."""
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "repo"


def test_a_repo_is_fetched_once_and_measured(
    hub: Hub, here: Path, data: Path, small: dict[str, Any]
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
    hub: Hub, here: Path
) -> None:
    index = here / "model_index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {"_class_name": "FluxPipeline"}))
    with pytest.raises(BadRequest, match="holds a FluxPipeline"):
        located(REPO, SD, "text-to-image")
    assert not [name for name in hub.asked if name.endswith(".safetensors")]


def test_a_repo_that_is_not_there_is_one_sentence(here: Path) -> None:
    with pytest.raises(BadRequest, match="nobody/nothing: no such folder here and no such repo"):
        located("nobody/nothing", SD, "text-to-image")


def test_a_hub_that_does_not_answer_is_one_sentence(hub: Hub, here: Path) -> None:
    hub.server.shutdown()
    hub.server.server_close()
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
