"""Files that pack several weights into a byte: counted unpacked, and known by what stands beside the weights."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.errors import BadFile
from cardfit.library import load
from cardfit.library.headers import read_header
from cardfit.library.packed import packed
from cardfit.library.single_file import from_file
from cardfit.library.tensors import Tensor

ITEM = {"U8": 1, "I8": 1, "I32": 4, "F8_E4M3": 1, "BF16": 2, "F32": 4}
OUT, IN = 128, 256


def written(path, tensors):
    header, at = {}, 0
    for name, (dtype, *shape) in tensors.items():
        size = ITEM[dtype]
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + at)
    return path


NVFP4 = {
    "a.weight": ("U8", OUT, IN // 2),
    "a.weight_scale": ("F8_E4M3", OUT, IN // 16),
    "a.weight_scale_2": ("F32",),
    "a.input_scale": ("F32",),
    "a.comfy_quant": ("U8", 19),
}
BITSANDBYTES = {
    "a.weight": ("U8", OUT * IN // 2, 1),
    "a.weight.absmax": ("U8", OUT * IN // 64),
    "a.weight.quant_map": ("F32", 16),
    "a.weight.nested_absmax": ("F32", OUT * IN // 64 // 256),
    "a.weight.nested_quant_map": ("F32", 256),
}
NUNCHAKU = {
    "a.qweight": ("I8", OUT, IN // 2),
    "a.wscales": ("BF16", IN // 64, OUT),
    "a.smooth_factor": ("BF16", IN),
    "a.smooth_factor_orig": ("BF16", IN),
    "a.proj_down": ("BF16", IN, 32),
    "a.proj_up": ("BF16", OUT, 32),
}
AWQ = {
    "a.qweight": ("I32", OUT // 4, IN // 2),
    "a.wscales": ("BF16", IN // 64, OUT),
    "a.wzeros": ("BF16", IN // 64, OUT),
}


@pytest.mark.parametrize(
    ("tensors", "precision"),
    [
        (NVFP4, "fp4"),
        ({**BITSANDBYTES, "a.weight.quant_state.bitsandbytes__nf4": ("U8", 90)}, "nf4"),
        ({**BITSANDBYTES, "a.weight.quant_state.bitsandbytes__fp4": ("U8", 90)}, "fp4"),
        (NUNCHAKU, "svdq-int4"),
        ({**NUNCHAKU, "a.wscales": ("F8_E4M3", IN // 16, OUT)}, "svdq-nvfp4"),
        (AWQ, "svdq-int4"),
    ],
)
def test_a_packed_weight_counts_as_many_as_it_holds(tmp_path, tensors, precision):
    path = written(tmp_path / "a.safetensors", {**tensors, "a.bias": ("BF16", OUT)})
    found = read_header(path)
    assert found.elements == {precision: OUT * IN, "bf16": OUT}
    assert found.denoiser_elements == OUT * IN + OUT
    assert found.precision == precision
    data = sum(each.size_bytes for each in found.groups.values())
    assert (
        found.size_bytes == data < path.stat().st_size
    )  # the scales are bytes of the file all the same


@pytest.mark.parametrize(
    "tensors",
    [
        {"a.weight": ("U8", OUT, IN)},  # bytes, and nothing that says how to read them
        {"a.weight": ("U8", OUT, IN), "a.weight_scale": ("F32",)},
        {"a.weight": ("U8", OUT, IN), "b.weight_scale": ("F8_E4M3", OUT, IN // 8)},
        {"a.weight": ("U8", OUT, IN), "a.weight.absmax": ("F32", 4)},
        {"a.qweight": ("I8", OUT, IN)},
    ],
)
def test_what_nothing_explains_is_counted_as_it_is(tmp_path, tensors):
    found = read_header(written(tmp_path / "a.safetensors", tensors))
    assert found.denoiser_elements == OUT * IN and found.elements.keys() <= {"u8", "int8"}


def test_fp8_beside_its_scales_is_scaled_and_counts_once(tmp_path):
    tensors = {"a.weight": ("F8_E4M3", OUT, IN), "a.weight_scale": ("F32",)}
    found = read_header(written(tmp_path / "a.safetensors", tensors))
    assert (found.precision, found.denoiser_elements) == ("fp8-scaled", OUT * IN)


def whole(entry, qweight, scales, group):
    """A file of one packed weight as large as the entry's denoiser."""
    count = entry.components["transformer"].params
    name, dtype = qweight
    module = name.rpartition(".")[0]
    return {
        name: (dtype, count // 2),
        f"{module}.{scales[0]}": (scales[1], count // group),
    }


def test_a_nunchaku_file_is_its_model_in_its_scheme(tmp_path):
    entry = load("flux.1-dev")
    tensors = whole(entry, ("t.qweight", "I8"), ("wscales", "BF16"), 64)
    path = written(tmp_path / "svdq-int4_r32-flux.1-dev.safetensors", tensors)
    found = from_file(str(path), path)
    assert found.as_traced.id == "flux.1-dev"
    assert found.schemes == {"transformer": "svdq-int4"}
    held = found.stored["transformer"]
    assert held.elements == pytest.approx(entry.components["transformer"].params, abs=1)
    assert held.size_bytes == sum(ITEM[dtype] * count for dtype, count in tensors.values())


def test_a_comfy_fp4_file_is_known_and_refused_with_what_to_do(tmp_path):
    tensors = whole(load("flux.1-dev"), ("t.weight", "U8"), ("weight_scale", "F8_E4M3"), 16)
    path = written(tmp_path / "flux1-dev-nvfp4.safetensors", tensors)
    with pytest.raises(
        BadFile, match=r"fp4.*flux\.1-dev with --quantization transformer=svdq-nvfp4"
    ):
        from_file(str(path), path)


LEAVES = [
    "weight",
    "qweight",
    "weight_scale",
    "wscales",
    "weight.absmax",
    "weight.quant_state.bitsandbytes__nf4",
    "",
]


@given(
    st.lists(
        st.tuples(st.sampled_from(["a.", "b.", ""]), st.sampled_from(LEAVES), st.sampled_from(list(ITEM)),
                  st.integers(0, 9)),
        max_size=12,
    )
)  # fmt: skip
def test_any_mix_of_names_is_answered(made):
    tensors = [Tensor(a + b, dtype, (n,), n * ITEM[dtype]) for a, b, dtype, n in made]
    weights, beside = packed(tensors)
    assert not beside & set(weights)
    assert all(each.weights >= 0 for each in weights.values())
    assert set(weights) | beside <= {each.name for each in tensors}
