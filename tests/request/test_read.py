"""Plan files: read, written, and every way in which one can be wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from cardfit.errors import BadFile, BadRequest, InputError
from cardfit.request import PlanFile, Request, Settings
from cardfit.request.read import (
    MAX_FILE_BYTES,
    read_plan_file,
    schema,
    validate_request,
    validate_settings,
    write_plan_file,
)

BOMB = "l0: &l0 [a,a,a,a,a,a,a,a,a,a]\n" + "".join(
    f"l{i}: &l{i} [{','.join([f'*l{i - 1}'] * 10)}]\n" for i in range(1, 9)
)


def wrong(tmp_path: Path, text: str | bytes) -> InputError:
    path = tmp_path / "plan.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read_plan_file(path)
    assert str(path) in str(caught.value)
    return caught.value


def test_a_file_becomes_request_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "request:\n  model: wan2.1-t2v-14b\n  width: 1280\n  fps: 16\n"
        "settings:\n  offload: model\n  dtype: {vae: float32}\n"
    )
    plan = read_plan_file(path)
    assert plan.request == Request(model="wan2.1-t2v-14b", width=1280, fps=16)
    assert plan.settings == Settings(offload="model", dtype={"vae": "float32"})


def test_settings_may_be_absent_or_empty(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    for text in ("request: {model: svd}\n", "request: {model: svd}\nsettings:\n"):
        path.write_text(text)
        assert read_plan_file(path) == PlanFile(request=Request(model="svd"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "planfile-empty"),
        ("# nothing\n", "planfile-empty"),
        ("request: [1\n", "planfile-not-yaml-line"),
        ("a: b: c", "planfile-not-yaml-line"),
        ("- 1\n", "planfile-not-a-mapping"),
        ("just text", "planfile-not-a-mapping"),
        (b"\xff\xfe\x00\x01", "planfile-not-text"),
        (b"request: \x00", "planfile-not-yaml"),
        ("a: !!python/object/apply:os.system [ls]\n", "planfile-object-tag"),
        ("a: !mine 1\n", "planfile-object-tag"),
        ("request: {model: a, model: b}\n", "planfile-key-twice"),
        ("1: 2\n", "planfile-bad-key"),
        ("? [a]\n: b\n", "planfile-bad-key"),
        ("x: " + "[" * 50_000, "planfile-too-deep"),
        ("a: &x\n  b: *x\n", "planfile-too-deep"),
        (BOMB, "planfile-unfolds"),
        ("x: [" + "1," * 400_000 + "]", "planfile-unfolds"),
        ("x: " + "a" * MAX_FILE_BYTES, "planfile-too-large"),
    ],
)
def test_files_that_are_not_plan_files(tmp_path: Path, text: str | bytes, code: str) -> None:
    begun = time.perf_counter()
    error = wrong(tmp_path, text)
    assert isinstance(error, BadFile)
    assert error.code == code
    assert time.perf_counter() - begun < 5


def test_object_tags_are_refused_with_line_and_never_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    text = f"request:\n  model: !!python/object/apply:pathlib.Path.touch [{target}]\n"
    error = wrong(tmp_path, text)
    assert error.code == "planfile-object-tag" and "line 2" in str(error)
    assert not target.exists()


def test_unknown_keys_are_named_with_what_was_meant(tmp_path: Path) -> None:
    error = wrong(tmp_path, "request:\n  model: svd\n  widht: 3\n  frames: 1\n")
    text = str(error)
    assert isinstance(error, BadRequest)
    assert "line 3" in text and "request.widht, request.frames" in text
    assert "did you mean width" in text
    assert "num_inference_steps" in text


def test_an_unknown_key_of_the_settings_gets_the_settings_names(tmp_path: Path) -> None:
    text = str(wrong(tmp_path, "request: {model: svd}\nsettings: {vae_tilling: true}\n"))
    assert "did you mean vae_tiling" in text and "decode_chunk_size" in text


@pytest.mark.parametrize(
    ("field", "found", "code", "allowed"),
    [
        ("width", "abc", "field-whole-number", "whole number"),
        ("width", 3, "field-at-least", "16"),
        ("width", -1280, "field-at-least", "16"),
        ("width", 99999, "field-at-most", "16384"),
        ("num_frames", 8.5, "field-whole-number", "whole number"),
        ("num_frames", 0, "field-at-least", "1"),
        ("fps", 0, "field-more-than", "0"),
        ("fps", float("nan"), "field-at-most", "240"),
        ("batch", True, "field-not-yes-no", "True"),
        ("task", "text-to-vidoe", "field-one-of", "text-to-video"),
        ("seed", 2**63, "field-less-than", str(2**63)),
        ("model", 5, "field-text", "5"),
        ("guidance_scale", [1], "field-number", "number"),
    ],
)
def test_a_wrong_value_is_named_by_field(
    field: str, found: object, code: str, allowed: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        validate_request({"model": "svd", field: found})
    assert caught.value.code == code
    assert field in str(caught.value) and allowed in str(caught.value)


def test_fields_that_are_missing_or_unknown_without_a_file() -> None:
    with pytest.raises(BadRequest, match="model is missing"):
        validate_request({})
    with pytest.raises(BadRequest, match="did you mean width"):
        validate_request({"model": "svd", "widht": 1})
    with pytest.raises(BadRequest, match="one of: none, model"):
        validate_settings({"offload": "gpu"})
    with pytest.raises(BadRequest, match=r"dtype\.vae"):
        validate_settings({"dtype": {"vae": "int7"}})
    assert validate_settings({"vae_tiling": True}).vae_tiling is True


def test_a_path_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.yaml"):
        with pytest.raises(BadFile) as caught:
            read_plan_file(path)
        assert caught.value.code == "planfile-not-read"


def test_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    plan = PlanFile(
        request=Request(model="svd", num_frames=14, fps=7), settings=Settings(offload="model")
    )
    write_plan_file(path, plan)
    assert read_plan_file(path) == plan
    assert yaml.safe_load(path.read_text()) == {
        "request": {"model": "svd", "num_frames": 14, "fps": 7.0},
        "settings": {"offload": "model"},
    }
    assert [child.name for child in tmp_path.iterdir()] == ["plan.yaml"]


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("mine")
    plan = PlanFile(request=Request(model="svd"))
    with pytest.raises(BadFile) as caught:
        write_plan_file(path, plan)
    assert caught.value.code == "planfile-exists" and path.read_text() == "mine"
    write_plan_file(path, plan, force=True)
    assert read_plan_file(path) == plan


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadFile) as caught:
        write_plan_file(tmp_path / "no" / "plan.yaml", PlanFile(request=Request(model="svd")))
    assert caught.value.code == "planfile-not-written"


def test_the_schema_names_every_field() -> None:
    parts = schema()["$defs"]
    assert set(parts["Request"]["properties"]) == set(Request.model_fields)
    assert set(parts["Settings"]["properties"]) == set(Settings.model_fields)
    assert parts["Request"]["additionalProperties"] is False
