"""A trace made by hand: counts, FLOPs and the activation peak."""

from __future__ import annotations

import pytest

from cardfit.report import trace as page
from cardfit.report.style import Style
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Binding, Component, Module, Op, Segment, Stream, Trace, Work


@pytest.fixture
def trace() -> Trace:
    """A denoiser called six times whose block is a stream of its own, and one decode."""
    block = Stream(
        component=0,
        method="forward",
        signature="block",
        inputs=1,
        events=((Op.BIRTH, 1, 400, 1), (Op.BIRTH, 2, 100, 1), (Op.DEATH, 1, 0, 1)),
        outputs=(2,),
        bindings=(),
        work=(Work("matmul", "half", 1e12, 1e6, 4),),
    )
    whole = Stream(
        component=0,
        method="forward",
        signature="whole",
        inputs=1,
        events=(
            (Op.BIRTH, 1, 50, 0),
            (Op.CALL, 0, 0, 0),
            (Op.CALL, 0, 1, 0),
            (Op.DEATH, 2, 0, 0),
        ),
        outputs=(3,),
        bindings=(Binding((1,), (2,)), Binding((2,), (3,))),
        work=(Work("elementwise", "half", 5e9, 1e6, 2), Work("matmul", "half", 2e12, 2e6, 8)),
    )
    decode = Stream(
        component=1,
        method="decode",
        signature="z",
        inputs=1,
        events=((Op.BIRTH, 1, 1000, 2), (Op.WORKSPACE, 0, 700, 2)),
        outputs=(1,),
        bindings=(),
        work=(Work("convolution", "fp32", 2e12, 1e6, 9),),
    )
    part = Module("", "Linear", (("weight", 2**30, "bfloat16"),))
    request = ExactRequest(
        model="m",
        task="text-to-video",
        width=64,
        height=64,
        num_frames=5,
        num_inference_steps=3,
        guidance_scale=1.0,
        prompt_tokens=8,
    )
    step = Segment(((Op.CALL, 1, 0, 0), (Op.CALL, 1, 0, 0)), (Binding((0,), (1,)),), repeat=3)
    return Trace(
        request=request,
        settings=Settings(),
        versions={"torch": "2.13.0"},
        pipeline="SomePipeline",
        offload_sequence=("transformer", "vae"),
        components=(
            Component("transformer", "T", "bfloat16", (part,)),
            Component("vae", "V", "float32", (part,)),
        ),
        recasts=(),
        stages=(("denoise", "transformer"), ("decode", "vae")),
        streams=(block, whole, decode),
        timeline=(
            Segment(((Op.STAGE, 0, 0, 0),), ()),
            step,
            Segment(((Op.STAGE, 1, 0, 0), (Op.CALL, 2, 0, 0)), (Binding((0,), (1,)),)),
        ),
        sites=(("", ""), ("linear", "blocks.0"), ("conv", "decoder.up")),
    )


def test_calls_and_flops_count_every_repetition(trace):
    denoise, decode = page.rows(trace)
    assert (denoise.stage, denoise.component, denoise.calls) == ("denoise", "transformer", 6)
    assert denoise.flop == {"matmul": 6 * 2 * 1e12, "elementwise": 6 * 5e9}
    assert (decode.calls, decode.flop) == (1, {"convolution": 2e12})


def test_the_activation_peak_counts_what_nested_calls_leave_behind(trace):
    denoise, decode = page.rows(trace)
    # 50 of the owner, 100 left by the first block, 500 within the second
    assert denoise.activation_bytes == 650
    assert denoise.site == ("linear", "blocks.0")
    # an output of 1000 and a workspace of 700 beside it
    assert decode.activation_bytes == 1700
    assert decode.site == ("conv", "decoder.up")


def test_the_page_names_it_all_within_its_width(trace):
    lines = page.lines(trace, Style())
    text = "\n".join(lines)
    assert max(map(len, lines)) <= 100
    for part in (
        "SomePipeline",
        "denoise",
        "matmul 12.00 TFLOP",
        "denoise, transformer: linear in blocks.0",
        "bf16, vae fp32",
    ):
        assert part in text
    assert "14.03 TFLOP in all, 3 distinct calls traced, torch 2.13.0" in text


def test_facts_are_plain_values(trace):
    facts = page.facts(trace)
    assert facts["request"]["width"] == 64
    assert facts["streams"] == 3
