"""Model files: what their names and headers say, and what they do not."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.comfy import models
from cardfit.comfy.headers import Header, read_header, shaped_like
from cardfit.comfy.reader import read_workflow
from cardfit.errors import BadFile
from cardfit.library import load
from cardfit.predict.schemes import SCHEMES as LIBRARY_SCHEMES

NAMES = [
    ("wan2.2_t2v_high_noise_14B_fp8_scaled.safetensors", "wan2.2-t2v-a14b", "fp8-scaled"),
    ("Wan2.2-T2V-A14B-LowNoise-Q4_K_M.gguf", "wan2.2-t2v-a14b", "gguf-q4_k"),
    ("Wan2_1-I2V-14B-480p_fp8_e4m3fn_scaled_KJ.safetensors", "wan2.1-i2v-14b-480p", "fp8-scaled"),
    ("flux1-dev-Q8_0.gguf", "flux.1-dev", "gguf-q8_0"),
    ("flux1-dev.safetensors", "flux.1-dev", None),
    ("flux1-dev-kontext_fp8_scaled.safetensors", "flux.1-kontext", "fp8-scaled"),
    ("qwen_image_edit_2511_int8_convrot.safetensors", "qwen-image-edit-2511", "int8"),
    ("sub/folder/z_image_turbo_bf16.safetensors", "z-image-turbo", "bf16"),
    ("flux2_dev_fp8mixed.safetensors", "flux.2-dev", "fp8-scaled"),
    # alike and something else
    ("wan2.2_s2v_14B_fp8_scaled.safetensors", None, "fp8-scaled"),
    ("flux1-canny-dev.safetensors", None, None),
    ("ltx-2.3-22b-dev-fp8.safetensors", None, "fp8"),
    ("qwen_image_layered_bf16.safetensors", None, "bf16"),
    ("realvisxlV50_v50.safetensors", None, None),
    ("", None, None),
]


@pytest.mark.parametrize(("name", "model", "precision"), NAMES)
def test_names(name, model, precision):
    found = models.seen(name)
    assert (found.model, found.precision) == (model, precision)


def test_the_data_names_entries_and_precisions_that_are_there():
    models.check()
    assert set(models.SCHEMES.values()) <= {*LIBRARY_SCHEMES, "fp8-layerwise", "none"}


def test_every_pattern_means_one_entry():
    """No two patterns of a list take the same name: each takes a name made from itself only."""
    for patterns in (models.names().denoiser, models.names().checkpoint):
        plain = [each for each in patterns if not set(each.match) & set("()[]?+*|")]
        for each in plain:
            found = [
                other.model for other in patterns if models.re.fullmatch(other.match, each.match)
            ]
            assert found == [each.model], each.match


@given(st.text(max_size=60))
def test_any_name_is_answered(name):
    found = models.seen(name)
    assert found.precision is None or found.bytes_a_weight > 0


def test_fewer_bits_take_fewer_bytes():
    sizes = models.BYTES_A_WEIGHT
    order = [
        "fp32",
        "bf16",
        "gguf-q8_0",
        "fp8",
        "gguf-q6_k",
        "gguf-q5_k",
        "gguf-q4_k",
        "gguf-q3_k",
        "gguf-q2_k",
    ]
    assert [sizes[each] for each in order] == sorted((sizes[each] for each in order), reverse=True)


# --- headers


def safetensors(path, tensors):
    """``tensors``: name -> (dtype, shape); the weights themselves are a hole in the file."""
    item = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape) in tensors.items():
        size = item[dtype]
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + at)
    return path


def test_a_safetensors_header(tmp_path):
    found = read_header(
        safetensors(
            tmp_path / "a.safetensors",
            {
                "model.diffusion_model.w": ("F8_E4M3", [64, 32]),
                "model.diffusion_model.w.scale_weight": ("F32", [1]),
                "model.diffusion_model.b": ("BF16", [64]),
                "first_stage_model.v": ("F16", [10]),
            },
        )
    )
    assert found.elements == {"fp8": 2048, "bf16": 64, "fp16": 10}
    assert (found.precision, found.denoiser_elements, found.size_bytes) == (
        "fp8-scaled",
        2112,
        2048 + 4 + 128 + 20,
    )


def test_a_gguf_header(tmp_path):
    gguf = pytest.importorskip("gguf")
    np = pytest.importorskip("numpy")
    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(path, "wan")
    writer.add_array("tags", ["one", "two"])
    writer.add_string("general.name", "something")
    writer.add_tensor("w", np.zeros((4, 144), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q4_K)
    writer.add_tensor("b", np.zeros((64,), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_header(path)
    assert found.elements == {"gguf-q4_k": 1024, "fp32": 64}
    assert (found.precision, found.size_bytes) == ("gguf-q4_k", 4 * 144 + 256)


@pytest.mark.parametrize(
    "content",
    [b"", b"GGUF", b"GGUF" + b"\xff" * 40, struct.pack("<Q", 1 << 60), struct.pack("<Q", 4) + b"{{{{",
     struct.pack("<Q", 2) + b"[]", b"\x80\x05pickle" * 9, struct.pack("<Q", 30) + b'{"a": {"dtype": "F32"}}       '],
)  # fmt: skip
def test_headers_that_cannot_be_true(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(BadFile, match="no safetensors or GGUF header"):
        read_header(path)


@given(st.binary(max_size=200), st.booleans())
def test_headers_of_anything(tmp_path_factory, content, gguf):
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes((b"GGUF" if gguf else b"") + content)
    try:
        found = read_header(path)
    except BadFile as refused:
        assert path.name in str(refused)
    else:  # whatever was read is counts that can be
        assert found.size_bytes >= 0 and found.tensors >= 0 and found.denoiser_elements >= 0


@pytest.mark.parametrize("model", ["ltx-2", "sd3.5-medium", "wan2.2-ti2v-5b", "mochi-1"])
def test_a_denoiser_is_known_by_its_number_of_weights(model):
    entry = load(model)
    part = entry.components["transformer"]
    assert shaped_like(Header(0, {}, part.params + part.persistent_buffers, None, 1)) == model
    assert shaped_like(Header(0, {}, part.params // 2 + 12345, None, 1)) is None


def test_a_file_at_hand_says_what_its_name_does_not(make, tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    params = load("mochi-1").components["transformer"].params
    safetensors(folder / "mine.safetensors", {"model.diffusion_model.w": ("F8_E4M3", [params])})
    raw = make.text_to_image()
    raw["nodes"][0]["widgets_values"] = ["mine.safetensors"]
    assert read_workflow(raw).requests[0].model is None
    found = read_workflow(raw, models=tmp_path)
    (request,) = found.requests
    assert (request.model, request.kin) == ("mochi-1", True)
    assert (request.parts[0].precision, found.files[0].size_bytes) == ("fp8", params)
