"""Replays by hand, then the laws every estimate keeps, on small random traces."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.host import PIL_COPIES, PROCESS_LIKELY_BYTES, frames_bytes
from cardfit.predict.memory import (
    CUBLAS_WORKSPACE_BYTES,
    CUBLAS_WORKSPACE_HOPPER_BYTES,
    bands,
    estimate,
)
from cardfit.predict.rule import denoiser_rule_bytes, rule_of_thumb_bytes
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import (
    Binding,
    Component,
    Event,
    Module,
    Op,
    Segment,
    Stream,
    Trace,
)
from cardfit.units import KIB, MIB

REQUEST = ExactRequest(
    model="tiny",
    task="text-to-image",
    width=64,
    height=32,
    num_frames=1,
    num_inference_steps=2,
    guidance_scale=1.0,
    batch=3,
    prompt_tokens=8,
)
NAMES = ("text_encoder", "transformer", "vae")
STAGES = (("encode_prompt", "text_encoder"), ("denoise", "transformer"), ("decode", "vae"))


def part(name: str, *sizes: int) -> Component:
    """A component whose layers weigh ``sizes``; the second and later ones are blocks."""
    layers = [
        Module(f"blocks.{n}", "Linear", (("weight", size, "bfloat16"),), linear=True, block=True)
        for n, size in enumerate(sizes)
    ]
    return Component(name, "Fake", "bfloat16", (Module("", "Fake", ()), *layers))


def call(component: int, *events: Event, inputs: int = 0, outputs: tuple[int, ...] = ()) -> Stream:
    return Stream(component, "forward", "", inputs, events, outputs, (), ())


def trace(
    parts: tuple[Component, ...],
    streams: tuple[Stream, ...],
    *timeline: Segment,
    recasts: tuple[Component, ...] = (),
) -> Trace:
    return Trace(
        request=REQUEST,
        settings=Settings(),
        versions={},
        pipeline="Fake",
        offload_sequence=NAMES,
        components=parts,
        recasts=recasts,
        stages=STAGES,
        streams=streams,
        timeline=timeline,
        sites=(("start", ""), ("mm", "blocks.0"), ("conv", "decoder")),
    )


def ev(op: Op, a: int = 0, b: int = 0, site: int = 0) -> Event:
    return (op, a, b, site)


def calls(component: int, stream: int, binding: int = 0) -> tuple[Event, ...]:
    """The timeline's events around one call."""
    return (
        ev(Op.STAGE, component),
        ev(Op.ON, component),
        ev(Op.CALL, stream, binding),
        ev(Op.OFF, component),
    )


PARTS = (
    part("text_encoder", 30 * MIB),
    part("transformer", 40 * MIB, 20 * MIB),
    part("vae", 12 * MIB),
)
NOTHING = Binding((), ())


def by_hand() -> Trace:
    """Text: 12 MiB at work. Denoise, twice: 16 MiB of work and 10 of workspace. Decode: 64 MiB."""
    streams = (
        call(0, ev(Op.BIRTH, 0, 12 * MIB), ev(Op.DEATH, 0)),
        call(
            1,
            ev(Op.ENTER, 1),
            ev(Op.BIRTH, 0, 16 * MIB, 1),
            ev(Op.WORKSPACE, 0, 10 * MIB, 1),
            ev(Op.EXIT, 1),
            ev(Op.ENTER, 2),
            ev(Op.EXIT, 2),
            ev(Op.DEATH, 0),
        ),
        call(2, ev(Op.BIRTH, 0, 64 * MIB, 2), ev(Op.DEATH, 0)),
    )
    return trace(
        PARTS,
        streams,
        Segment(calls(0, 0), (NOTHING,)),
        Segment(calls(1, 1), (NOTHING,), repeat=2),
        Segment(calls(2, 2), (NOTHING,)),
    )


def row(found: MemoryEstimate, name: str) -> tuple[int, int, int]:
    stage = next(stage for stage in found.stages if stage.name == name)
    return stage.weights_bytes, stage.activation_bytes, stage.allocated_bytes


def test_everything_on_the_card() -> None:
    found = estimate(by_hand(), Settings())
    assert row(found, "encode_prompt") == (102 * MIB, 12 * MIB, 114 * MIB)
    assert row(found, "denoise") == (102 * MIB, 26 * MIB, 128 * MIB)
    assert row(found, "decode") == (102 * MIB, 64 * MIB, 166 * MIB)
    assert [(stage.name, stage.calls) for stage in found.stages] == [
        ("load", 1),
        ("encode_prompt", 1),
        ("denoise", 2),
        ("decode", 1),
    ]
    assert row(found, "load") == (102 * MIB, 0, 102 * MIB)
    # 12 of the encoder, 16 and 10 of the denoiser (12 serves the 10), 64 of the decoder stay reserved
    assert found.reserved_bytes == (102 + 12 + 16 + 64) * MIB
    assert found.peak_stage == "decode"
    assert found.stages[3].site == "conv in decoder"
    assert (found.stages[0].component, found.stages[0].site) == ("vae", "blocks.0")
    assert found.failure is None


def test_model_offload_has_one_component_at_a_time() -> None:
    found = estimate(by_hand(), Settings(offload="model"))
    assert row(found, "encode_prompt") == (30 * MIB, 12 * MIB, 42 * MIB)
    assert row(found, "denoise") == (60 * MIB, 26 * MIB, 86 * MIB)
    assert row(found, "decode") == (12 * MIB, 64 * MIB, 76 * MIB)
    # the cache is emptied in between: denoising reserves 60 + 16 + 10, decoding 12 + 64
    assert [stage.reserved_bytes // MIB for stage in found.stages] == [42, 86, 76]
    assert found.host_bytes == PROCESS_LIKELY_BYTES + 102 * MIB + PIL_COPIES * frames_bytes(
        by_hand()
    )


def test_sequential_has_one_layer_at_a_time() -> None:
    found = estimate(by_hand(), Settings(offload="sequential"))
    assert row(found, "denoise") == (40 * MIB, 26 * MIB, 66 * MIB)
    assert row(found, "decode") == (0, 64 * MIB, 64 * MIB)  # its layers are never entered here


def test_a_streamed_group_waits_beside_the_one_at_work() -> None:
    found = estimate(by_hand(), Settings(offload="group-block"))
    # in the second step block 1 (20 MiB) is there while block 0 works
    assert row(found, "denoise") == (60 * MIB, 26 * MIB, 86 * MIB)


def test_rules_of_thumb() -> None:
    assert rule_of_thumb_bytes(by_hand()) == round(102 * MIB * 1.15)
    assert denoiser_rule_bytes(by_hand()) == round(60 * MIB * 1.15)


@pytest.mark.parametrize(
    ("architecture", "size"),
    [
        (None, CUBLAS_WORKSPACE_BYTES),
        ("Ampere", CUBLAS_WORKSPACE_BYTES),
        ("Hopper", CUBLAS_WORKSPACE_HOPPER_BYTES),
        ("Blackwell", CUBLAS_WORKSPACE_HOPPER_BYTES),
    ],
)
def test_the_first_matmul_brings_a_workspace_that_stays(
    architecture: str | None, size: int
) -> None:
    stream = call(1, ev(Op.MATMUL), ev(Op.BIRTH, 0, MIB), ev(Op.DEATH, 0), ev(Op.MATMUL))
    one = trace(PARTS, (stream,), Segment(calls(1, 0), (NOTHING,), repeat=3))
    found = estimate(one, Settings(), architecture=architecture)
    assert row(found, "denoise")[1] == size + MIB
    assert CUBLAS_WORKSPACE_BYTES == 8 * MIB + 128 * KIB


def test_a_limit_says_where_the_run_ends() -> None:
    found = estimate(by_hand(), Settings(), limit_bytes=150 * MIB)
    assert found.failure is not None
    assert (found.failure.stage, found.failure.component) == ("decode", "vae")
    assert found.failure.site == "conv in decoder"
    assert found.failure.tried_bytes == 64 * MIB
    assert found.failure.allocated_bytes == 102 * MIB
    loading = estimate(by_hand(), Settings(), limit_bytes=50 * MIB)
    assert loading.failure is not None
    assert loading.failure.stage == "load"


def test_an_input_that_dies_in_a_call_is_gone_afterwards() -> None:
    eater = call(1, ev(Op.DEATH, 0), ev(Op.BIRTH, 1, 50 * MIB), inputs=1, outputs=(1,))
    events = (
        ev(Op.STAGE, 1),
        ev(Op.BIRTH, 0, 70 * MIB),
        *calls(1, 0),
        ev(Op.BIRTH, 2, 30 * MIB),
        ev(Op.DEATH, 1),
        ev(Op.DEATH, 2),
    )
    found = estimate(trace(PARTS, (eater,), Segment(events, (Binding((0,), (1,)),))), Settings())
    assert row(found, "denoise") == (102 * MIB, 80 * MIB, 182 * MIB)


def test_what_a_cache_emptied_later_held_is_not_forgotten() -> None:
    """Between calls the pipeline lets 200 MiB go; the next component's entry empties the cache."""
    idle = call(1)
    events = (
        *calls(0, 0),
        *(ev(Op.STAGE, 0), ev(Op.BIRTH, 0, 200 * MIB), ev(Op.DEATH, 0)),
        *calls(1, 1),
    )
    found = estimate(
        trace(PARTS, (call(0), idle), Segment(events, (NOTHING,))), Settings(offload="model")
    )
    assert found.stages[0].reserved_bytes == 230 * MIB
    assert found.stages[1].reserved_bytes == 60 * MIB


def test_a_recast_weighs_from_then_on() -> None:
    heavy = part("vae", 24 * MIB)
    stream = call(2, ev(Op.BIRTH, 0, 10 * MIB), ev(Op.DEATH, 0))
    events = (ev(Op.STAGE, 2), ev(Op.RECAST, 2, 0), *calls(2, 0))
    one = trace(PARTS, (stream,), Segment(events, (NOTHING,)), recasts=(heavy,))
    assert row(estimate(one, Settings()), "decode")[0] == 114 * MIB


def test_bands_widen_both_ways() -> None:
    found = estimate(by_hand(), Settings())
    assert 0 < bands()["low"] < 1
    assert found.reserved_low_bytes <= found.reserved_bytes <= found.reserved_high_bytes
    assert found.reserved_low_bytes >= found.allocated_bytes


# -- laws ----------------------------------------------------------------------------------------

size = st.one_of(st.integers(1, 3 * MIB), st.integers(1, 60 * MIB))
OFFLOADED = ("model", "group-block", "group-leaf", "sequential")


@st.composite
def streams_of(draw: st.DrawFn, component: int, layers: int) -> Stream:
    """A call that enters its layers in turn, works, and hands one storage out."""
    events: list[Event] = []
    alive: list[int] = []
    born = 1  # 0 is the input
    for layer in range(1, layers + 1):
        events.append(ev(Op.ENTER, layer))
        for _ in range(draw(st.integers(0, 3))):
            events.append(ev(Op.BIRTH, born, draw(size)))
            alive.append(born)
            born += 1
        if draw(st.booleans()):
            events.append(ev(Op.WORKSPACE, 0, draw(size)))
        if alive and draw(st.booleans()):
            events.append(ev(Op.DEATH, alive.pop(draw(st.integers(0, len(alive) - 1)))))
        if draw(st.booleans()):
            events.append(ev(Op.MATMUL))
        events.append(ev(Op.EXIT, layer))
    events += [ev(Op.DEATH, each) for each in alive]
    events.append(ev(Op.BIRTH, born, draw(size)))
    return call(component, *events, inputs=1, outputs=(born,))


def written_out(one: Trace, steps: int) -> Trace:
    """``one`` with its denoising step written out ``steps`` times instead of repeated."""
    first, step, end = one.timeline
    turns = []
    for turn in range(steps):
        last = 1 + 2 * turn
        born = ev(Op.BIRTH, last + 1, step.events[0][2])
        died = (ev(Op.DEATH, last), ev(Op.DEATH, last + 1))
        turns.append(Segment((born, *step.events[1:5], *died), (Binding((), (last + 2,)),)))
    return replace(one, timeline=(first, *turns, ending(end, steps)))


def ending(end: Segment, steps: int) -> Segment:
    return replace(end, bindings=(Binding((), (2 + 2 * steps,)),))


def repeated(one: Trace, steps: int) -> Trace:
    """``one`` with its denoising step repeated ``steps`` times."""
    first, step, end = one.timeline
    return replace(one, timeline=(first, replace(step, repeat=steps), ending(end, steps)))


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Encode, denoise, decode; a step's result replaces that of the step before."""
    parts = tuple(
        part(name, *draw(st.lists(st.integers(1, 30 * MIB), min_size=1, max_size=4)))
        for name in NAMES
    )
    streams = tuple(draw(streams_of(n, len(p.modules) - 1)) for n, p in enumerate(parts))
    first = Segment((ev(Op.BIRTH, 0, draw(size)), *calls(0, 0)), (Binding((), (1,)),))
    # a temporary of the pipeline lives across the call
    step = (ev(Op.BIRTH, 2, draw(size)), *calls(1, 1), ev(Op.DEATH, 1), ev(Op.DEATH, 2))
    middle = Segment(step, (Binding((), (3,)),))
    end = Segment((*calls(2, 2), ev(Op.DEATH, 0)), (Binding((), (4,)),))
    one = trace(parts, streams, first, middle, end)
    return repeated(one, draw(st.integers(1, 9)))


def replayed(one: Trace, offload: str, limit: int | None = None) -> MemoryEstimate:
    return estimate(one, Settings.model_validate({"offload": offload}), limit_bytes=limit)


@given(traces(), st.sampled_from(("none", *OFFLOADED)))
@settings(max_examples=60, deadline=None)
def test_parts_sum_and_reserved_holds_allocated(one: Trace, offload: str) -> None:
    found = replayed(one, offload)
    for stage in found.stages:
        assert stage.weights_bytes + stage.activation_bytes == stage.allocated_bytes
        assert stage.weights_bytes >= 0
        assert stage.activation_bytes >= 0
        assert stage.allocated_bytes <= stage.reserved_bytes <= found.reserved_bytes
        assert stage.low_bytes <= stage.high_bytes
    assert found.allocated_bytes <= found.reserved_bytes


@given(traces(), st.sampled_from(OFFLOADED))
@settings(max_examples=60, deadline=None)
def test_offload_never_raises_the_devices_weights(one: Trace, offload: str) -> None:
    resident, moved = replayed(one, "none"), replayed(one, offload)
    loaded, *stages = resident.stages
    assert loaded.name == "load"
    for before, after in zip(stages, moved.stages, strict=True):
        # a block of the allocator may be up to 1 MiB larger than what it was asked for
        slack = MIB * sum(len(part.modules) for part in one.components)
        assert after.weights_bytes <= before.weights_bytes + slack
        assert after.allocated_bytes <= before.allocated_bytes + slack
    weights = sum(part.weights_bytes for part in one.components)
    assert moved.host_bytes >= weights
    assert resident.host_bytes <= moved.host_bytes


@given(traces(), st.sampled_from(("none", *OFFLOADED)))
@settings(max_examples=60, deadline=None)
def test_a_limit_at_the_reserved_peak_is_enough(one: Trace, offload: str) -> None:
    free = replayed(one, offload)
    assert replayed(one, offload, free.reserved_bytes) == free
    tight = replayed(one, offload, free.allocated_bytes // 2)
    assert tight.failure is not None
    assert tight.failure.limit_bytes == free.allocated_bytes // 2


@given(traces(), st.integers(1, 24), st.sampled_from(("none", *OFFLOADED)), st.booleans())
@settings(max_examples=80, deadline=None)
def test_folded_steps_replay_like_written_out_ones(
    one: Trace, steps: int, offload: str, full: bool
) -> None:
    """The same steps written out and as one segment that repeats; peaks, sites, calls and failures are the same."""
    folded, plain = repeated(one, steps), written_out(one, steps)
    limit = replayed(plain, offload).reserved_bytes - 1 if full else None
    assert replayed(folded, offload, limit) == replayed(plain, offload, limit)
    if limit is None:
        calls = {stage.name: stage.calls for stage in replayed(folded, offload).stages}
        assert calls["denoise"] == steps
