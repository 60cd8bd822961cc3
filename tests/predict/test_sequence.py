"""Requests one after another in one process, by hand on small traces, and the law that a state is all that counts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.predict.memory import CUBLAS_WORKSPACE_BYTES, estimate
from cardfit.predict.sequence import MAX_REPLAYS, Line, Planned, Process, State, served, worst
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Binding, Component, Event, Module, Op, Segment, Stream, Trace
from cardfit.units import MIB

REQUEST = ExactRequest(
    model="tiny",
    task="text-to-image",
    width=64,
    height=32,
    num_frames=1,
    num_inference_steps=2,
    guidance_scale=1.0,
    prompt_tokens=8,
)


def layer(path: str, *sizes_mib: int) -> Module:
    tensors = tuple((f"t{n}", size * MIB, "bfloat16") for n, size in enumerate(sizes_mib))
    return Module(path, "Linear", tensors, linear=True)


def work(*sizes_mib: int, weights: tuple[Module, ...], matmul: bool = False) -> Trace:
    """One denoiser that makes tensors of these sizes one after another, each dead before the next."""
    events: list[Event] = [(int(Op.MATMUL), 0, 0, 0)] if matmul else []
    for number, size in enumerate(sizes_mib):
        events.append((int(Op.BIRTH), number, size * MIB, 1))
        events.append((int(Op.DEATH), number, 0, 0))
    stream = Stream(0, "forward", "", 0, tuple(events), (), (), ())
    call: tuple[Event, ...] = (
        (int(Op.STAGE), 0, 0, 0),
        (int(Op.ON), 0, 0, 0),
        (int(Op.CALL), 0, 0, 0),
        (int(Op.OFF), 0, 0, 0),
    )
    return Trace(
        request=REQUEST,
        settings=Settings(),
        versions={},
        pipeline="Fake",
        offload_sequence=("transformer",),
        components=(
            Component("transformer", "Fake", "bfloat16", (Module("", "Fake", ()), *weights)),
        ),
        recasts=(),
        stages=(("denoise", "transformer"),),
        streams=(stream,),
        timeline=(Segment(call, (Binding((), ()),)),),
        sites=(("start", ""), ("mm", "layer")),
    )


WEIGHTS = (layer("a", 30), layer("b", 40))


def line(*traces: Trace, offload: str = "none", **more: object) -> Line:
    chosen = Settings.model_validate({"offload": offload} | dict(more.pop("settings", {})))  # type: ignore[call-overload]
    planned = [Planned("tiny", one) for one in traces]
    return Line(Process(chosen, **more), planned)  # type: ignore[arg-type]


def test_the_first_request_takes_what_it_takes_alone() -> None:
    one = work(16, 50, weights=WEIGHTS, matmul=True)
    alone = estimate(one, Settings(offload="none"))
    took = line(one).alone(0)
    assert took.reserved_bytes == alone.reserved_bytes
    assert took.allocated_bytes == alone.allocated_bytes == 120 * MIB + CUBLAS_WORKSPACE_BYTES
    assert took.stage == "denoise" and took.failure is None


def test_weights_stay_and_what_one_left_in_the_cache_stands_beside_the_next() -> None:
    """70 of weights; 50 alone is 120, 60 alone is 130. After 50 comes 60: its segment of 50 is too small and stays."""
    served_ = line(work(50, weights=WEIGHTS), work(60, weights=WEIGHTS))
    assert [served_.alone(n).reserved_bytes // MIB for n in (0, 1)] == [120, 130]
    found = served_.serve([0, 1, 0, 1])
    assert [took.reserved_bytes // MIB for took in found] == [120, 180, 180, 180]
    assert [took.stage for took in found] == ["denoise", "denoise", "before", "before"]
    assert worst(found) == 1
    assert [took.allocated_bytes // MIB for took in found] == [120, 130, 120, 130]


def test_the_same_state_and_request_are_replayed_once() -> None:
    served_ = line(work(50, weights=WEIGHTS), work(60, weights=WEIGHTS))
    assert len(served_.serve([0, 1] * 500)) == 1000
    assert served_.replays <= 4


def test_a_full_card_ends_it_at_a_request_and_not_before() -> None:
    full = line(work(50, weights=WEIGHTS), work(60, weights=WEIGHTS), limit_bytes=125 * MIB)
    found = full.serve([0, 0, 1, 0])
    assert len(found) == 3
    failure = found[-1].failure
    assert failure is not None
    assert (failure.stage, failure.site) == ("denoise", "mm in layer")
    assert failure.tried_bytes == 60 * MIB
    assert failure.limit_bytes == 125 * MIB


def test_an_emptied_cache_starts_every_request_with_weights_alone() -> None:
    traces = work(50, weights=WEIGHTS), work(60, weights=WEIGHTS)
    found = line(*traces, empty_cache=True).serve([0, 1, 0])
    assert [took.reserved_bytes // MIB for took in found] == [120, 130, 120]


def test_a_swapped_adapter_moves_alone() -> None:
    """The base stays where it is under another path; the old adapter goes before the new one comes."""
    wrapped = (layer("a.base_layer", 30), layer("a", *()), layer("a.lora_A", 12), layer("b", 40))
    other = (layer("a.base_layer", 30), layer("a", *()), layer("a.lora_A", 14), layer("b", 40))
    found = line(
        work(11, weights=WEIGHTS), work(11, weights=wrapped), work(11, weights=other)
    ).serve([0, 1, 2, 1])
    # 12 of adapter take a segment of 12 (11 of work lie in one of 12 already, which is free again, so it is taken)
    assert [took.allocated_bytes // MIB for took in found] == [82, 94, 96, 94]
    assert found[0].reserved_bytes == 82 * MIB
    assert [took.reserved_bytes // MIB for took in found[1:]] == [94, 108, 108]


def test_another_model_replaces_or_stays() -> None:
    small = Planned("small", work(10, weights=(layer("x", 20),)))
    large = Planned("large", work(10, weights=WEIGHTS))
    replaced = Line(Process(Settings(offload="none")), [large, small])
    found = replaced.serve([0, 1])
    assert [took.allocated_bytes // MIB for took in found] == [80, 30]
    assert found[1].reserved_bytes == 80 * MIB  # the cache is not emptied
    kept = Line(Process(Settings(offload="none"), keep=True), [large, small])
    assert [took.allocated_bytes // MIB for took in kept.serve([0, 1, 0])] == [80, 100, 100]


def test_model_offload_leaves_nothing_behind() -> None:
    one = line(work(50, weights=WEIGHTS), work(60, weights=WEIGHTS), offload="model")
    found = one.serve([0, 1, 0, 1])
    assert [took.reserved_bytes // MIB for took in found] == [120, 130, 120, 130]
    assert one.replays == 2


def test_a_pipeline_that_never_comes_to_rest_is_given_up_and_said() -> None:
    """A cache that is emptied by nobody and sizes that always grow: no state comes back."""
    traces = [work(20 + 2 * n, weights=(layer("a", 12),)) for n in range(MAX_REPLAYS + 5)]
    assert len(line(*traces).serve(range(len(traces)))) == MAX_REPLAYS


CONFS = (None, "expandable_segments:True", "max_split_size_mb:30")
pieces = st.lists(st.integers(1, 60), min_size=1, max_size=5)


@given(
    st.lists(pieces, min_size=1, max_size=3),
    st.lists(st.integers(0, 2), min_size=1, max_size=8),
    st.sampled_from(("none", "model", "sequential", "group-leaf")),
    st.sampled_from(CONFS),
)
@settings(max_examples=60, deadline=None)
def test_laws_of_a_sequence(
    sizes: list[list[int]], order: list[int], offload: str, conf: str | None
) -> None:
    """Reserved holds allocated; with the worst peak as the limit nothing fails and nothing changes."""
    traces = [work(*each, weights=WEIGHTS, matmul=True) for each in sizes]
    order = [number % len(traces) for number in order]
    chosen = Settings.model_validate({"offload": offload, "alloc_conf": conf})
    planned = [Planned("tiny", one) for one in traces]
    free = Line(Process(chosen), planned)
    found = free.serve(order)
    most = max(took.reserved_bytes for took in found)
    for took in found:
        assert took.allocated_bytes <= took.reserved_bytes
    if conf == "expandable_segments:True" and offload != "group-leaf":
        # every rest is split off there, so what lives is what was asked for, whatever came before
        for number, took in zip(order, found, strict=True):
            assert took.allocated_bytes == free.alone(number).allocated_bytes
    assert Line(Process(chosen, limit_bytes=most), planned).serve(order) == found


def test_a_state_is_everything_that_counts() -> None:
    """Two ways to one state: equal states serve the same request alike."""
    process = Process(Settings(offload="none"))
    one = Planned("tiny", work(16, weights=WEIGHTS))
    other = Planned("tiny", work(12, 16, 12, weights=WEIGHTS))
    _, first = served(State(), one, process)
    took, second = served(first, other, process)
    again, third = served(second, other, process)
    assert second == third
    assert took.reserved_bytes == again.reserved_bytes == 86 * MIB


@pytest.mark.parametrize("offload", ["group-leaf", "sequential"])
def test_hooks_remember_across_requests(offload: str) -> None:
    one = line(work(16, weights=WEIGHTS), offload=offload)
    found = one.serve([0] * 6)
    assert one.replays <= 3
    assert found[-1].reserved_bytes >= found[0].allocated_bytes
