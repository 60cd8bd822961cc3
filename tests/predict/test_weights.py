"""Quantized sizes by hand on one layer, and the tables of exceptions against diffusers and transformers themselves."""

from __future__ import annotations

import importlib

import pytest

from cardfit.library.load import all_models
from cardfit.predict import weights
from cardfit.predict.schemes import SCHEMES
from cardfit.predict.weights import elements, module_weights
from cardfit.trace.stream import Component, Module

ROWS, COLUMNS = 256, 1024
COUNT = ROWS * COLUMNS
WEIGHT = ("weight", 2 * COUNT, "bfloat16")
BIAS = ("bias", 2 * ROWS, "bfloat16")


def linear(path: str = "block.to_q", *tensors: tuple[str, int, str]) -> Module:
    return Module(path, "Linear", tensors or (WEIGHT, BIAS), linear=True)


def part(
    *modules: Module, kind: str = "FluxTransformer2DModel", dtype: str = "bfloat16"
) -> Component:
    return Component("transformer", kind, dtype, modules)


@pytest.mark.parametrize(
    ("scheme", "weight", "scratch_bytes", "burst_bytes"),
    [
        ("none", (2 * COUNT,), 0, 0),
        ("bnb-int8", (COUNT, 4 * ROWS), 0, 0),  # int8 and one fp32 scale per row
        ("bnb-nf4", (COUNT // 2, 4 * COUNT // 64, 64), 2 * COUNT, 0),
        ("torchao-int8", (COUNT, 4 * ROWS, ROWS), 2 * COUNT, 0),
        ("torchao-fp8", (COUNT, 4 * ROWS), 2 * COUNT, 8 * COUNT),  # through two fp32 copies
        ("torchao-int4", (COUNT // 2, COUNT // 64, COUNT // 64), 0, 0),
        ("quanto-fp8", (COUNT, 2 * ROWS, 2, 2), 2 * COUNT, 2 * COUNT),
        ("gguf-q8_0", (COUNT // 32 * 34,), 2 * COUNT, 2 * COUNT),  # fp16 first, then bf16
        ("gguf-q5_1", (COUNT // 32 * 24,), 2 * COUNT, 8 * COUNT),
    ],
)
def test_one_linear(
    scheme: str, weight: tuple[int, ...], scratch_bytes: int, burst_bytes: int
) -> None:
    (found,) = module_weights(part(linear()), scheme)
    assert found.tensors == (*weight, 2 * ROWS)
    assert (found.scratch_bytes, found.burst_bytes) == (scratch_bytes, burst_bytes)
    assert found.half_bytes == (0 if scheme == "none" else 2 * COUNT)


def test_a_cast_layer_comes_back_whole_with_its_bias() -> None:
    (found,) = module_weights(part(linear()), "fp8-layerwise")
    assert found.tensors == (COUNT, ROWS)
    assert found.scratch_bytes == 2 * COUNT + 2 * ROWS


def test_in_fp16_a_dequantized_block_is_not_cast_again() -> None:
    module = linear("a", ("weight", 2 * COUNT, "float16"), ("bias", 2 * ROWS, "float16"))
    (found,) = module_weights(part(module, dtype="float16"), "gguf-q8_0")
    assert (found.scratch_bytes, found.burst_bytes) == (2 * COUNT, 0)


@pytest.mark.parametrize(
    ("scheme", "dtype", "before", "beside"),
    [
        # fp16 copy, magnitudes, mask and int8; then int8 in, int32 and fp16 out
        ("bnb-int8", "bfloat16", 6 * COLUMNS, COLUMNS + 6 * ROWS),
        ("bnb-int8", "float16", 4 * COLUMNS, COLUMNS + 4 * ROWS),
        ("torchao-int8dq", "bfloat16", 8 * COLUMNS, COLUMNS + 6 * ROWS),
        ("torchao-fp8dq", "bfloat16", 15 * COLUMNS, COLUMNS),
    ],
)
def test_a_quantized_activation_takes_bytes_a_token(
    scheme: str, dtype: str, before: int, beside: int
) -> None:
    module = linear("a", ("weight", 2 * COUNT, dtype), ("bias", 2 * ROWS, dtype))
    (found,) = module_weights(part(module, dtype=dtype), scheme)
    assert found.tokens == weights.PerToken(2 * ROWS, before, beside)


def test_rows_that_were_noted_go_before_the_bias_and_the_square() -> None:
    noted = Module("a", "Linear", (WEIGHT,), linear=True, rows=ROWS)
    (found,) = module_weights(part(noted), "torchao-int8")
    assert found.tensors == (COUNT, 4 * ROWS, ROWS)


def test_svdq_takes_linears_of_blocks_and_makes_modulations_otherwise() -> None:
    block = Module("transformer_blocks.0", "FluxTransformerBlock", (), block=True)
    inside = linear("transformer_blocks.0.attn.to_q")
    modulation = linear("transformer_blocks.0.norm1.linear")
    outside = linear("x_embedder")
    found = module_weights(part(block, inside, modulation, outside), "svdq-int4")
    assert sum(found[1].tensors[:-1]) == COUNT // 2 + COUNT // 32 + 2 * 33 * COLUMNS + 64 * ROWS
    assert found[2].tensors == (COUNT // 2, COUNT // 32, COUNT // 32, 2 * ROWS)
    assert found[3].tensors == (2 * COUNT, 2 * ROWS)
    assert found[2].tokens is None


def test_a_quantizer_called_in_place_takes_what_a_class_keeps() -> None:
    wo = linear("encoder.block.0.layer.1.DenseReluDense.wo", WEIGHT)
    loaded = part(wo, linear("lm_head", WEIGHT), kind="T5EncoderModel")
    called = weights.InPlace(loaded.name, loaded.kind, loaded.dtype, loaded.modules)
    plain = weights.ModuleWeights((2 * COUNT,))
    square = round(COUNT**0.5)  # a layer without bias tells no rows
    taken = weights.ModuleWeights(
        (COUNT, 4 * square, square),
        2 * COUNT,
        half_bytes=2 * COUNT,
        quantizing_bytes=7 * COUNT,
    )
    assert module_weights(loaded, "torchao-int8") == (plain, plain)
    assert module_weights(called, "torchao-int8") == (taken, taken)
    assert module_weights(called) == (plain, plain)


def test_nf4_rounds_a_last_odd_block_up() -> None:
    (found,) = module_weights(
        part(linear("a", ("weight", 2 * 65, "float16")), dtype="float16"), "bnb-nf4"
    )
    assert found.tensors == (33, 2 * 4, 64)


def test_rows_of_a_square_layer_without_bias_are_known() -> None:
    (found,) = module_weights(part(linear("a", ("weight", 2 * 512 * 512, "bfloat16"))), "bnb-int8")
    assert found.tensors == (512 * 512, 4 * 512)


def test_elements_of_a_tensor() -> None:
    assert (elements(8, "float32"), elements(8, "bfloat16"), elements(8, "int8")) == (2, 4, 8)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_only_half_precision_linears_are_quantized(scheme: str) -> None:
    kept = linear("time_embedder.linear_1", ("weight", 4 * COUNT, "float32"))
    norm = Module("norm", "LayerNorm", (("weight", 64, "bfloat16"),))
    found = module_weights(part(linear(), kept, norm), scheme)
    assert found[1:] == (weights.ModuleWeights((4 * COUNT,)), weights.ModuleWeights((64,)))
    whole = module_weights(part(kept, dtype="float32"), scheme)
    assert whole == (weights.ModuleWeights((4 * COUNT,)),)


def test_wo_of_t5_and_output_layers_stay_whole_when_quantized() -> None:
    wo, wi = (
        linear("encoder.block.0.layer.1.DenseReluDense.wo", WEIGHT),
        linear("encoder.wi", WEIGHT),
    )
    t5 = module_weights(part(wo, wi, kind="T5EncoderModel"), "bnb-int8")
    assert t5[0].tensors == (2 * COUNT,)
    assert sum(t5[1].tensors) < 2 * COUNT
    llm = module_weights(part(linear("lm_head", WEIGHT), kind="Qwen3ForCausalLM"), "bnb-nf4")
    assert llm[0] == weights.ModuleWeights((2 * COUNT,))


def cast(path: str, kind: str = "Linear", of: str = "FluxTransformer2DModel") -> bool:
    module = Module(path, kind, (WEIGHT,), linear=kind == "Linear")
    (found,) = module_weights(part(module, kind=of), "fp8-layerwise")
    return found.tensors == (COUNT,)


def test_layerwise_casting_skips_what_diffusers_skips() -> None:
    assert cast("single_transformer_blocks.0.proj_out")
    assert not cast("proj_out")
    assert not cast("transformer_blocks.0.norm1.linear")
    assert not cast("pos_embed.proj", "Conv2d")
    assert cast("down_blocks.0.conv", "Conv2d")
    assert cast("text_embedding", "Embedding")
    assert not cast("transformer_blocks.0", "WanTransformerBlock")  # its own scale_shift_table
    assert not cast("condition_embedder.text_embedder.linear_1", of="WanTransformer3DModel")
    assert cast("condition_embedder.text_embedder.linear_1")


def library_classes() -> dict[str, type]:
    found = {}
    for model in all_models():
        for spec in model.components.values():
            module, _, kind = spec.class_path.rpartition(".")
            if module.split(".")[0] in ("diffusers", "transformers"):
                found[kind] = getattr(importlib.import_module(module), kind)
    return found


def test_tables_say_what_the_installed_classes_say() -> None:
    pytest.importorskip("diffusers")
    from diffusers.hooks._common import _GO_LC_SUPPORTED_PYTORCH_LAYERS
    from diffusers.hooks.layerwise_casting import DEFAULT_SKIP_MODULES_PATTERN

    assert weights.LAYERWISE_SKIPPED == DEFAULT_SKIP_MODULES_PATTERN
    assert {kind.__name__ for kind in _GO_LC_SUPPORTED_PYTORCH_LAYERS} == weights._CASTABLE | {
        "Linear"
    }
    for name, kind in library_classes().items():
        library = kind.__module__.split(".")[0]
        if library == "diffusers" and hasattr(kind, "enable_layerwise_casting"):
            asked = {
                *(kind._skip_layerwise_casting_patterns or ()),
                *(kind._keep_in_fp32_modules or ()),
            }
            mine = {*weights.LAYERWISE_SKIPPED, *weights.LAYERWISE_SKIPPED_BY_CLASS.get(name, ())}
            # a pattern within a longer one says the same; embedders' parts and tables stand within skipped ones
            missing = {p for p in asked if not any(m.strip("^$") in p for m in mine)}
            assert missing <= {"time_embedder", "scale_shift_table"}, name
        elif library == "transformers":
            kept = kind._keep_in_fp32_modules or ()
            assert set(kept) == set(weights.NOT_CONVERTED_BY_CLASS.get(name, ())), name
