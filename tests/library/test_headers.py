"""Model files: what their names and headers say, and what they do not."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.errors import BadFile
from cardfit.library import filenames as models
from cardfit.library import load
from cardfit.library.headers import Header, read_header, shaped_like
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
     struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 30) + b'{"a": {"dtype": "F32"}}       '],
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


def header(**tensors):
    """The bytes of a safetensors header: name -> (dtype, shape, start, end)."""
    found = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
        for name, (dtype, shape, start, end) in tensors.items()
    }
    text = json.dumps(found).encode()
    return struct.pack("<Q", len(text)) + text


def gguf(*tensors, pairs=b"", many=None, count=0, version=3):
    """The bytes of a GGUF header: tensors of (name, sides, type, offset)."""
    found = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if many is None else many, count)
    found += pairs
    for name, sides, kind, offset in tensors:
        found += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(sides))
        found += struct.pack(f"<{len(sides)}Q", *sides) + struct.pack("<IQ", kind, offset)
    return found + b"\0" * (-len(found) % 32)


TRUE = {"a": ("F32", [4], 0, 16), "b": ("F16", [2], 16, 20)}


def test_a_header_that_is_true_is_read(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(header(**TRUE) + bytes(20))
    assert read_header(path).size_bytes == 20
    path.write_bytes(gguf(("a", [4], 0, 0), ("b", [3], 1, 32)) + bytes(64))
    assert read_header(path).elements == {"fp32": 4, "fp16": 3}


@pytest.mark.parametrize(
    "content",
    [
        header(a=("F32", [4], 0, 16), b=("F16", [2], 12, 16)) + bytes(20),  # one over the other
        header(a=("F32", [4], 0, 16), b=("F16", [2], 20, 24)) + bytes(24),  # a hole
        header(a=("F32", [4], 4, 20)) + bytes(20),  # begins late
        header(a=("F32", [4], -16, 0)),
        header(a=("F32", [4], 16, 0)),
        header(a=("F32", [-4], 0, 16)) + bytes(16),
        header(a=("F32", [True], 0, 4)) + bytes(4),
        header(a=("F32", [1.0], 0, 4)) + bytes(4),
        header(a=("F32", [1], 0.0, 4.0)) + bytes(4),
        header(a=("F32", [1] * 99, 0, 4)) + bytes(4),
        header(a=("F32", [2**62, 2**62], 0, 2**126)),
        header(**TRUE) + bytes(40),  # more than it says
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 9) + b"{}",
        struct.pack("<Q", 60_000) + b"[" * 60_000,  # deep
        gguf(("a", [4], 0, 0), ("b", [4], 0, 0)) + bytes(64),
        gguf(("a", [4], 0, 4096)) + bytes(64),
        gguf(("a", [2**62, 2**62], 0, 0)),
        gguf(("a", [100], 12, 0)) + bytes(64),  # no whole block
        gguf(("a", [4] * 99, 0, 0)),
        gguf(many=2**60),
        gguf(many=199_999),
        gguf(count=2**60),
        gguf(version=1),
        gguf(count=1, pairs=struct.pack("<Q", 2**40)),
        gguf(count=1, pairs=struct.pack("<QcI", 1, b"k", 99)),
        gguf(count=1, pairs=struct.pack("<QcIIQ", 1, b"k", 9, 4, 2**60)),  # an array of numbers
        gguf(count=1, pairs=struct.pack("<QcIIQ", 1, b"k", 9, 9, 2**60)),  # an array of arrays
    ],
)
def test_hostile_headers_are_refused_at_once(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    start = time.perf_counter()
    with pytest.raises(BadFile, match="no safetensors or GGUF header that could be true"):
        read_header(path)
    assert time.perf_counter() - start < 1


def test_a_download_that_was_cut_off_is_said(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(header(a=("F32", [4096], 0, 16384)) + bytes(100))
    with pytest.raises(BadFile, match="promises 16.0 KiB of weights and 100 B are there"):
        read_header(path)


def test_pickles_and_zip_files_are_never_opened(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"\x80\x05pickle" * 9)
    with pytest.raises(BadFile, match="a pickle"):
        read_header(path)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("archive/data.pkl", b"cos\nsystem\n")
    with pytest.raises(BadFile, match="never loaded"):
        read_header(path)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["F32", "F16", "F8_E4M3", "I64", "F4", ""]),
                "shape": st.lists(st.integers(-2, 2**40) | st.booleans(), max_size=4),
                "data_offsets": st.lists(st.integers(-8, 2**40), max_size=3),
            }
        )
        | st.none()
        | st.lists(st.integers()),
        max_size=4,
    ),
    st.integers(0, 64),
)
def test_any_safetensors_header_is_read_or_refused(tmp_path_factory, found, more):
    text = json.dumps(found).encode()
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(more))
    _read_or_refused(path)


@settings(deadline=None)
@given(st.data())
def test_any_gguf_header_is_read_or_refused(tmp_path_factory, data):
    whole = gguf(
        ("blk.0.w", [256, 2], 12, 0),
        ("b", [3], 1, 288),
        pairs=struct.pack("<QcI", 1, b"k", 9) + struct.pack("<IQQcQc", 8, 2, 1, b"x", 1, b"y"),
        count=1,
    )
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + data.draw(st.binary(min_size=1, max_size=9)) + whole[at + 1 :]
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes(changed + bytes(data.draw(st.integers(0, 400))))
    _read_or_refused(path)


def _read_or_refused(path):
    try:
        found = read_header(path)
    except BadFile as refused:
        assert path.name in str(refused)
    else:  # what is said to be there is there
        assert 0 <= found.size_bytes <= path.stat().st_size
        assert sum(group.size_bytes for group in found.groups.values()) == found.size_bytes


def test_the_header_of_thirty_gigabytes_takes_no_time_and_no_memory(tmp_path):
    """One file of a transformer as large, and the same in shards; the weights are holes."""
    layers = {
        f"transformer_blocks.{n}.linear.weight": ("BF16", [12_000, 12_500]) for n in range(100)
    }
    whole = safetensors(tmp_path / "whole.safetensors", layers)
    names = list(layers)
    shards = [
        safetensors(tmp_path / f"{n}.safetensors", {key: layers[key] for key in names[n::10]})
        for n in range(10)
    ]
    assert whole.stat().st_size > 30e9
    for paths in ([whole], shards):
        tracemalloc.start()
        start = time.perf_counter()
        sizes = [read_header(path).size_bytes for path in paths]
        seconds = time.perf_counter() - start
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert sum(sizes) == 100 * 12_000 * 12_500 * 2
        assert seconds < 1 and peak < 100 * 2**20


def test_a_gguf_file_says_what_it_was_made_for(tmp_path):
    word = b"general.architecture"
    pair = struct.pack("<Q", len(word)) + word + struct.pack("<IQ", 8, 4) + b"flux"
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf(("a", [4], 0, 0), pairs=pair, count=1) + bytes(16))
    assert read_header(path).architecture == "flux"


def test_adapters_are_known_as_such(tmp_path):
    path = safetensors(tmp_path / "a.safetensors", {"blocks.0.to_q.lora_A.weight": ("F16", [4, 8])})
    assert read_header(path).adapter
