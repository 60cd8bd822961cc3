"""Loading by hand: what arrives, what is quantized on the card, what is moved; and what the host holds meanwhile."""

from __future__ import annotations

import pytest

from cardfit.predict.estimate import MemoryEstimate, StageMemory
from cardfit.predict.loading import load_host_bytes, warm_up_bytes
from cardfit.predict.memory import estimate
from cardfit.predict.weights import InPlace
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Binding, Component, Module, Op, Segment, Stream, Trace
from cardfit.units import MIB

ROWS = 1024


def layer(path: str, size_mib: int) -> Module:
    """A linear layer whose bf16 weight takes ``size_mib`` and has 1024 rows."""
    weight = ("weight", size_mib * MIB, "bfloat16")
    return Module(path, "Linear", (weight,), linear=True, rows=ROWS)


def part(name: str, *sizes_mib: int) -> Component:
    layers = [layer(f"layers.{number}", size) for number, size in enumerate(sizes_mib)]
    return Component(name, "Fake", "bfloat16", (Module("", "Fake", ()), *layers))


def trace(*parts: Component) -> Trace:
    """A pipeline that calls its last component once, with 1 MiB of work."""
    last = len(parts) - 1
    stream = Stream(
        last, "forward", "", 0, ((Op.BIRTH, 0, MIB, 0), (Op.DEATH, 0, 0, 0)), (), (), ()
    )
    events = tuple(
        (op, a, 0, 0) for op, a in ((Op.STAGE, 0), (Op.ON, last), (Op.CALL, 0), (Op.OFF, last))
    )
    return Trace(
        request=ExactRequest(
            model="tiny",
            task="text-to-image",
            width=64,
            height=64,
            num_frames=1,
            num_inference_steps=1,
            guidance_scale=1.0,
            prompt_tokens=8,
        ),
        settings=Settings(),
        versions={},
        pipeline="Tiny",
        offload_sequence=tuple(each.name for each in parts),
        components=parts,
        recasts=(),
        stages=(("denoise", parts[-1].name),),
        streams=(stream,),
        timeline=(Segment(events, (Binding((), ()),)),),
        sites=(("start", ""),),
    )


PARTS = (part("text_encoder", 32, 64), part("transformer", 128, 64))


def load_of(*parts: Component, **settings: object) -> StageMemory:
    found = loaded(*parts, **settings)
    assert found.stages[0].name == "load"
    return found.stages[0]


def loaded(*parts: Component, **settings: object) -> MemoryEstimate:
    return estimate(trace(*(parts or PARTS)), Settings.model_validate(settings))


def test_plain_weights_are_moved_tensor_by_tensor() -> None:
    load = load_of()
    assert (load.allocated_bytes, load.weights_bytes) == (288 * MIB, 288 * MIB)
    assert (load.calls, load.basis) == (1, "rule")
    assert (load.component, load.site) == ("transformer", "layers.1")


@pytest.mark.parametrize("offload", ["model", "sequential", "group-leaf", "group-block"])
@pytest.mark.parametrize("scheme", ["none", "torchao-int8", "quanto-int8", "fp8-layerwise"])
def test_offload_loads_on_the_host(offload: str, scheme: str) -> None:
    found = loaded(offload=offload, quantization={"transformer": scheme})
    assert "load" not in [stage.name for stage in found.stages]


NF4_MIB = 1 / 4 + 2 / 64  # half a byte and 4 per 64 weights, of two bytes each


def test_bitsandbytes_quantizes_on_the_card_one_weight_at_a_time() -> None:
    load = load_of(quantization={"transformer": "bnb-nf4"}, offload="model")
    first = 128 * NF4_MIB * MIB
    codes = 512  # the code is a tensor of its own
    assert load.allocated_bytes == 128 * MIB + first + codes
    assert load.activation_bytes == 128 * MIB
    assert (load.component, load.site) == ("transformer", "layers.0")


def test_with_both_parts_quantized_the_largest_weight_comes_last() -> None:
    both = {"text_encoder": "bnb-nf4", "transformer": "bnb-nf4"}
    load = load_of(quantization=both, offload="model")
    encoder, first = 96 * NF4_MIB * MIB, 128 * NF4_MIB * MIB
    assert load.allocated_bytes == 128 * MIB + encoder + first + 3 * 512
    # once it is quantized and moved to the host, the card is empty again
    found = loaded(quantization=both, offload="model")
    assert found.stages[1].allocated_bytes < load.allocated_bytes
    assert found.peak_stage == "load"


def test_what_the_host_quantized_arrives_small() -> None:
    load = load_of(quantization={"transformer": "torchao-int8"})
    count = (128 + 64) * MIB // 2
    assert load.weights_bytes == 96 * MIB + count + 2 * (4 + 1) * ROWS
    assert load.activation_bytes == 0


def test_packing_for_the_int4_kernel_happens_on_the_card() -> None:
    load = load_of(part("transformer", 64), quantization={"transformer": "quanto-int4"})
    count = 64 * MIB // 2
    assert load.activation_bytes == 8 * count


def in_place(component: Component) -> Component:
    return InPlace(component.name, component.kind, component.dtype, component.modules)


def test_a_quantizer_called_on_the_card_has_everything_there_first() -> None:
    encoder, transformer = PARTS
    load = load_of(encoder, in_place(transformer), quantization={"transformer": "torchao-int8"})
    count = 128 * MIB // 2
    made = count + 5 * ROWS
    assert load.allocated_bytes == 288 * MIB + 7 * count + made
    assert (load.component, load.site) == ("transformer", "layers.0")
    after = loaded(encoder, in_place(transformer), quantization={"transformer": "torchao-int8"})
    assert after.stages[1].weights_bytes == 96 * MIB + (128 + 64) * MIB // 2 + 10 * ROWS


def test_loaders_ask_for_a_large_piece_first() -> None:
    encoder, transformer = part("text_encoder", 4096), part("transformer", 4096)
    assert warm_up_bytes(transformer, "bnb-nf4", 0) == 1024 * MIB  # a quarter of the elements
    assert warm_up_bytes(encoder, "bnb-nf4", 0) == 1024 * MIB  # half a byte an element
    assert warm_up_bytes(encoder, "bnb-int8", 0) == 2048 * MIB
    assert warm_up_bytes(encoder, "bnb-int8", 512 * MIB) == 1536 * MIB
    assert warm_up_bytes(encoder, "bnb-int8", 1536 * MIB) == 0  # little is missing
    assert warm_up_bytes(part("text_encoder", 8192), "bnb-int8", 2304 * MIB) == 2304 * MIB + 1


def test_a_card_too_small_to_load_on_says_what_was_arriving() -> None:
    nf4 = Settings(quantization={"transformer": "bnb-nf4"}, offload="model")
    found = estimate(trace(*PARTS), nf4, limit_bytes=100 * MIB).failure
    assert found is not None
    assert (found.stage, found.component, found.site) == ("load", "transformer", "layers.0")
    assert found.tried_bytes == 128 * MIB


def test_what_the_host_holds_beside_the_files() -> None:
    one = part("transformer", 64, 32)
    count = 48 * MIB
    assert load_host_bytes(one) == 0
    assert load_host_bytes(one, published="bfloat16") == 0
    assert load_host_bytes(one, published="float32") == 96 * MIB
    assert load_host_bytes(one, "bnb-nf4") == 0
    assert load_host_bytes(one, "bnb-nf4", "float32") == 64 * MIB
    assert load_host_bytes(one, "quanto-int8") == count + 2 * (2 * ROWS + 4)
    assert load_host_bytes(one, "torchao-int8") == count + 2 * 5 * ROWS + 7 * 32 * MIB
    assert load_host_bytes(one, "gguf-q8_0") == 0
