"""The cache: a second question is answered from disk, and nothing on disk can break an answer."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cardfit.library.load import load
from cardfit.predict import store
from cardfit.predict.memory import estimate
from cardfit.records import cache as disk
from cardfit.request import ExactRequest, Settings
from cardfit.trace import cache
from cardfit.trace.coding import encode
from cardfit.trace.stream import Component, Module, Op, Segment, Stream, Trace

pytest.importorskip("torch")

import cardfit.trace.dryrun  # noqa: E402

MODEL = load("sdxl-base")
REQUEST = ExactRequest(
    model=MODEL.id,
    task="text-to-image",
    width=64,
    height=64,
    num_frames=1,
    num_inference_steps=2,
    guidance_scale=1.0,
    prompt_tokens=8,
)


def traced(settings: Settings) -> Trace:
    layer = Module("", "Linear", (("weight", 4096, "bfloat16"),), linear=True)
    return Trace(
        request=REQUEST,
        settings=settings,
        versions={"torch": "2.13.0"},
        pipeline="Tiny",
        offload_sequence=("unet",),
        components=(Component("unet", "Tiny", "bfloat16", (layer,)),),
        recasts=(),
        stages=(("denoise", "unet"),),
        streams=(Stream(0, "forward", "", 0, ((Op.WORKSPACE, 0, 512, 0),), (), (), ()),),
        timeline=(Segment(((Op.STAGE, 0, 0, 0), (Op.BIRTH, 0, 1024, 0)), ()),),
        sites=(("start", ""),),
    )


class Runs:
    """Counts the dry runs."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _model: Any, _request: Any, settings: Settings, **_: Any) -> Trace:
        self.count += 1
        return traced(settings)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    counted = Runs()
    monkeypatch.setenv("CARDFIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cardfit.trace.dryrun, "dry_run", counted)
    return counted


def files() -> list[Path]:
    return sorted(disk.folder().iterdir())


def test_the_second_question_is_answered_from_disk(runs: Runs) -> None:
    first, notes = cache.cached(MODEL, REQUEST, Settings())
    again, more = cache.cached(MODEL, REQUEST, Settings())
    assert (runs.count, notes, more) == (1, (), ())
    assert encode(again) == encode(first)
    assert len(files()) == 1


def test_where_weights_are_does_not_shape_a_trace_but_tiling_does(runs: Runs) -> None:
    cache.cached(MODEL, REQUEST, Settings())
    moved, _ = cache.cached(MODEL, REQUEST, Settings(offload="model"))
    assert moved.settings.offload == "model"
    assert runs.count == 1
    cache.cached(MODEL, REQUEST, Settings(vae_tiling=True))
    cache.cached(MODEL, REQUEST.model_copy(update={"width": 128}), Settings())
    cache.cached(MODEL, REQUEST.model_copy(update={"seed": 7}), Settings())
    assert runs.count == 3


def packed(content: object) -> bytes:
    return zlib.compress(json.dumps(content).encode())


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "not packed": lambda _: b"{}",
    "cut": lambda whole: whole[:-5],
    "cut in the middle": lambda whole: whole[: len(whole) // 2],
    "a flipped bit": lambda whole: whole[:20] + bytes([whole[20] ^ 1]) + whole[21:],
    "not JSON": lambda _: zlib.compress(b"{"),
    "not text": lambda _: zlib.compress(b"\xff\xfe\x00"),
    "a list": lambda _: packed([1, 2]),
    "a number": lambda _: packed(3),
    "a text": lambda _: packed("trace"),
    "an empty object": lambda _: packed({}),
    "wrong rows": lambda whole: packed(json.loads(zlib.decompress(whole)) | {"streams": [[1]]}),
    "wrong kinds": lambda whole: packed(json.loads(zlib.decompress(whole)) | {"timeline": 5}),
    "too deep": lambda _: zlib.compress(b"[" * 100_000),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_ignored_and_rewritten(runs: Runs, damage: str) -> None:
    cache.cached(MODEL, REQUEST, Settings())
    (path,) = files()
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[damage](whole))
    found, notes = cache.cached(MODEL, REQUEST, Settings())
    assert (runs.count, notes) == (2, ())
    assert encode(found) == encode(traced(Settings()))
    assert path.read_bytes() == whole


def test_a_huge_file_is_not_read(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.cached(MODEL, REQUEST, Settings())
    (path,) = files()
    with monkeypatch.context() as patch:
        patch.setattr(disk, "MAX_FILE_BYTES", path.stat().st_size - 1)
        assert disk.read(path.name) is None
    with monkeypatch.context() as patch:  # little on disk, much in memory
        patch.setattr(disk, "MAX_CONTENT_BYTES", 10_000)
        assert disk.read(path.name) is not None
        path.write_bytes(packed([0] * 10_000))
        assert disk.read(path.name) is None
    assert disk.read(path.name) == [0] * 10_000


def test_a_folder_that_cannot_be_made_gives_a_note_and_an_answer(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CARDFIT_CACHE", str(tmp_path / "file" / "cache"))
    found, (note,) = cache.cached(MODEL, REQUEST, Settings())
    assert encode(found) == encode(traced(Settings()))
    assert note.code == "cache-unwritable"
    assert note.args["folder"] == str(tmp_path / "file" / "cache")
    assert str(tmp_path) in note.text


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(30, "Read-only")]
)
def test_a_read_only_folder_gives_a_note_and_an_answer(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(**_: Any) -> None:
        raise error

    monkeypatch.setattr(disk.tempfile, "mkstemp", refuse)
    found, (note,) = cache.cached(MODEL, REQUEST, Settings())
    assert found.pipeline == "Tiny"
    assert note.args["reason"] == error.strerror
    assert files() == []


def test_a_full_disk_gives_a_note_and_leaves_nothing(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    _, (note,) = cache.cached(MODEL, REQUEST, Settings())
    assert note.args["reason"] == "No space left on device"
    assert files() == []


@pytest.mark.parametrize("step", ["packing", "moving"])
def test_an_interrupted_write_leaves_no_file(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    place = (disk.zlib, "compress") if step == "packing" else (Path, "replace")
    with monkeypatch.context() as patch:
        patch.setattr(*place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            cache.cached(MODEL, REQUEST, Settings())
    assert files() == []
    cache.cached(MODEL, REQUEST, Settings())
    assert len(files()) == 1


def test_names_depend_on_everything_that_shapes_the_content() -> None:
    name = cache.name_of("trace", {"a": 1, "b": 2})
    assert name == cache.name_of("trace", {"b": 2, "a": 1})
    assert name.startswith("trace-")
    assert (
        len({name, cache.name_of("trace", {"a": 1}), cache.name_of("estimate", {"a": 1, "b": 2})})
        == 3
    )


def test_estimates_are_kept_and_damaged_ones_replayed(runs: Runs) -> None:
    trace = traced(Settings())
    replays = 0

    def replay(*args: Any, **kwargs: Any) -> Any:
        nonlocal replays
        replays += 1
        return estimate(*args, **kwargs)

    def ask(limit: int | None = None) -> Any:
        return store.kept(replay, MODEL, trace, Settings(), architecture="Ada", limit_bytes=limit)

    first = ask()
    assert ask() == first
    assert replays == 1
    (path,) = files()
    for content in ([1], "text", 5, {}, {"stages": [{}], "failure": None, "left_out": []}):
        path.write_bytes(packed(content))
        assert ask() == first
    assert replays == 6
    failing = ask(100)
    assert failing.failure is not None
    assert ask(100) == failing
    assert replays == 7
