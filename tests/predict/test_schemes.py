"""Stored sizes by hand, and the tables against the libraries' own tensors where they are installed."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

from cardfit.predict import schemes
from cardfit.predict.schemes import SCHEMES, awq_parts, quanto_group
from cardfit.request import QUANTIZATIONS

ROWS, COLUMNS = 256, 1024
COUNT = ROWS * COLUMNS


def test_every_scheme_of_a_request_is_in_the_table_but_casting() -> None:
    assert set(QUANTIZATIONS) - set(SCHEMES) == {"none", "fp8-layerwise"}
    assert set(SCHEMES) <= set(QUANTIZATIONS)


@pytest.mark.parametrize(
    ("scheme", "parts"),
    [
        ("bnb-int8", (COUNT, 4 * ROWS)),  # one fp32 scale a row
        ("bnb-nf4", (COUNT // 2, 4 * COUNT // 64, 64)),  # one fp32 absmax per 64, and the code
        ("torchao-int8", (COUNT, 4 * ROWS, ROWS)),  # fp32 scale, int8 zero point
        ("torchao-int8dq", (COUNT, 4 * ROWS, ROWS)),
        ("torchao-fp8", (COUNT, 4 * ROWS)),
        ("torchao-fp8dq", (COUNT, 4)),  # one scale a tensor
        ("torchao-int4", (COUNT // 2, 2 * COUNT // 128, 2 * COUNT // 128)),
        ("quanto-int8", (COUNT, 2 * ROWS, 2, 2)),  # bf16 scales, two buffers
        ("quanto-fp8", (COUNT, 2 * ROWS, 2, 2)),
        ("quanto-int4", (COUNT // 2, 4 * COUNT // 128, 2, 2)),
        ("quanto-int2", (COUNT // 4, 2 * COUNT // 128, 2 * COUNT // 128, 2, 2)),
        ("gguf-q8_0", (COUNT // 32 * 34,)),
        ("gguf-q4_k", (COUNT // 256 * 144,)),
        (
            "svdq-int4",
            (COUNT // 2, 2 * COUNT // 64, 2 * COLUMNS, 2 * 32 * COLUMNS, 2 * 32 * ROWS),
        ),
        (
            "svdq-nvfp4",
            (COUNT // 2, COUNT // 16, 2 * COLUMNS, 2 * 32 * COLUMNS, 2 * 32 * ROWS, 2 * ROWS, 2),
        ),
    ],
)
def test_what_is_stored(scheme: str, parts: tuple[int, ...]) -> None:
    assert SCHEMES[scheme].parts(COUNT, ROWS, 2) == parts


def test_modulations_of_svdq_have_scales_and_zeros() -> None:
    assert awq_parts(COUNT, ROWS, 2) == (COUNT // 2, 2 * COUNT // 64, 2 * COUNT // 64)


def test_columns_that_no_block_divides_stay_as_they_are() -> None:
    assert SCHEMES["gguf-q4_k"].parts(ROWS * 64, ROWS, 2) == (2 * ROWS * 64,)
    assert SCHEMES["gguf-q4_0"].parts(ROWS * 64, ROWS, 2) == (ROWS * 64 // 32 * 18,)


def test_groups_of_quanto_shrink_until_they_divide() -> None:
    assert [quanto_group(n) for n in (128, 192, 320, 3072, 131)] == [None, 96, 64, 128, None]


def test_fewer_bits_store_less() -> None:
    def whole(scheme: str) -> int:
        return sum(SCHEMES[scheme].parts(COUNT, ROWS, 2))

    ordered = ["gguf-q8_0", "gguf-q6_k", "gguf-q5_k", "gguf-q4_k", "gguf-q3_k", "gguf-q2_k"]
    sizes = [whole(each) for each in ordered]
    assert sizes == sorted(sizes, reverse=True)
    assert whole("quanto-int2") < whole("quanto-int4") < whole("quanto-int8")
    assert all(whole(each) < 2 * COUNT for each in SCHEMES)


# -- the libraries themselves ----------------------------------------------------------------------------------------


def test_block_sizes_are_those_of_gguf() -> None:
    gguf = pytest.importorskip("gguf")
    theirs = {
        name: tuple(gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name.upper()]])
        for name in schemes.GGUF_BLOCKS
    }
    assert theirs == schemes.GGUF_BLOCKS


@pytest.mark.parametrize("name", schemes.GGUF_BLOCKS)
def test_dequantizing_holds_what_the_table_says(name: str) -> None:
    gguf = pytest.importorskip("gguf")
    pytest.importorskip("diffusers")
    import torch
    from diffusers.quantizers.gguf import utils

    kind = gguf.GGMLQuantizationType[name.upper()]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rows, columns = 256, 2048
    data = torch.zeros((rows, columns // block * size), dtype=torch.uint8)
    weight = utils.GGUFParameter(data, quant_type=kind)
    with torch.no_grad():
        peak = peak_bytes(lambda: utils.dequantize_gguf_tensor(weight)) / (rows * columns)
    assert peak == pytest.approx(schemes.GGUF_MAKING[name], rel=0.02)


def peak_bytes(work: Any) -> int:
    """Bytes of new storages that are alive at once while ``work`` runs."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Count(TorchDispatchMode):
        live = peak = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            held = {
                t.untyped_storage()._cdata for t in tree_leaves(args) if isinstance(t, torch.Tensor)
            }
            out = func(*args, **(kwargs or {}))
            for tensor in tree_leaves(out):
                if isinstance(tensor, torch.Tensor):
                    self._born(tensor.untyped_storage(), held)
            return out

        def _born(self, storage: Any, held: set[int]) -> None:
            if storage._cdata in held or not storage.nbytes():
                return
            size = storage.nbytes()
            self.live += size
            self.peak = max(self.peak, self.live)
            weakref.finalize(storage, self._died, size)

        def _died(self, size: int) -> None:
            self.live -= size

    with Count() as count:
        work()
    return count.peak


def test_layers_of_quanto_weigh_what_the_table_says() -> None:
    pytest.importorskip("optimum.quanto")
    import torch
    from optimum import quanto

    for scheme, kind in {
        "quanto-int8": quanto.qint8,
        "quanto-fp8": quanto.qfloat8,
        "quanto-int4": quanto.qint4,
        "quanto-int2": quanto.qint2,
    }.items():
        model = torch.nn.Sequential(torch.nn.Linear(COLUMNS, ROWS, bias=False).bfloat16())
        quanto.quantize(model, weights=kind)
        quanto.freeze(model)
        buffers = sum(b.numel() * b.element_size() for b in model.buffers())
        assert stored(model[0].weight) + buffers == sum(SCHEMES[scheme].parts(COUNT, ROWS, 2))


def test_layers_of_torchao_weigh_what_the_table_says() -> None:
    quantization = pytest.importorskip("torchao.quantization")
    import torch

    for scheme, config in {
        "torchao-int8": "Int8WeightOnlyConfig",
        "torchao-int8dq": "Int8DynamicActivationInt8WeightConfig",
        "torchao-fp8": "Float8WeightOnlyConfig",
    }.items():
        model = torch.nn.Sequential(torch.nn.Linear(COLUMNS, ROWS, bias=False).bfloat16())
        quantization.quantize_(model, getattr(quantization, config)())
        assert stored(model[0].weight) == sum(SCHEMES[scheme].parts(COUNT, ROWS, 2))


def stored(tensor: Any) -> int:
    """Bytes of a tensor, or of those that a subclass is made of."""
    if hasattr(tensor, "__tensor_flatten__"):
        return sum(stored(getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0])
    return int(tensor.untyped_storage().nbytes())
