"""Copies of activations by hand: where they go among a call's events, and what they add to the peak."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cardfit.predict.activations import with_copies
from cardfit.predict.weights import ModuleWeights, PerToken
from cardfit.trace.stream import Event, Op

PLAIN = ModuleWeights((8,))
QUANTIZED = ModuleWeights((8,), tokens=PerToken(output=100, before=30, beside=12.5))


def enter(module: int) -> Event:
    return (Op.ENTER, module, 0, 0)


def leave(module: int) -> Event:
    return (Op.EXIT, module, 0, 0)


def birth(number: int, size: int) -> Event:
    return (Op.BIRTH, number, size, 7)


def test_copies_stand_before_and_beside_the_output() -> None:
    events = (enter(0), enter(1), birth(0, 400), leave(1), birth(1, 400), leave(0))
    assert with_copies(events, (PLAIN, QUANTIZED)) == (
        enter(0),
        enter(1),
        (Op.WORKSPACE, 0, 120, 7),  # four tokens
        birth(0, 400),
        (Op.WORKSPACE, 0, 50, 7),
        leave(1),
        birth(1, 400),
        leave(0),
    )


def test_a_layer_without_an_output_of_whole_tokens_makes_none() -> None:
    events = (enter(1), birth(0, 401), leave(1))
    assert with_copies(events, (PLAIN, QUANTIZED)) == events


def test_nothing_before_where_only_the_packed_activation_is_kept() -> None:
    packed = ModuleWeights((8,), tokens=PerToken(output=100, before=0, beside=1))
    found = with_copies((enter(0), birth(0, 200), leave(0)), (packed,))
    assert [event[2] for event in found if event[0] == Op.WORKSPACE] == [2]


@given(st.lists(st.tuples(st.sampled_from((0, 1)), st.integers(0, 900)), max_size=12))
def test_no_event_is_lost_or_reordered(layers: list[tuple[int, int]]) -> None:
    events: list[Event] = []
    for number, (module, size) in enumerate(layers):
        events += [enter(module), birth(number, size), leave(module)]
    found = with_copies(tuple(events), (PLAIN, QUANTIZED))
    assert [event for event in found if event[0] != Op.WORKSPACE] == events
