"""Folding: equal steps become one segment, different ones never do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from cardfit.trace.fold import fold  # noqa: E402
from cardfit.trace.frame import Frame  # noqa: E402
from cardfit.trace.stream import Binding, Event, Op, Segment  # noqa: E402


def frame(events: list[Event], bindings: list[Binding] | None = None) -> Frame:
    found = Frame(-1, "timeline")
    found.events = events
    found.bindings = bindings or []
    return found


def birth(identity: int, size: int = 100) -> Event:
    return (Op.BIRTH, identity, size, 0)


def death(identity: int) -> Event:
    return (Op.DEATH, identity, 0, 0)


def call(stream: int, binding: int) -> Event:
    return (Op.CALL, stream, binding, 0)


def unfolded(segments: tuple[Segment, ...]) -> list[tuple[int, ...]]:
    """The timeline that the segments stand for: ids move by what a turn makes."""
    out: list[tuple[int, ...]] = []
    for segment in segments:
        born = sum(1 for event in segment.events if event[0] == Op.BIRTH)
        born += sum(len(binding.outputs) for binding in segment.bindings)
        for turn in range(segment.repeat):
            shift = turn * born
            for op, a, b, _ in segment.events:
                if op == Op.CALL:
                    out.append((op, a, *(i + shift for i in segment.bindings[b].outputs)))
                elif op in (Op.BIRTH, Op.DEATH):
                    out.append((op, a + shift, b))
                else:
                    out.append((op, a, b))
    return out


def test_equal_steps_fold() -> None:
    # a result replaces the one before it
    events = [birth(0), birth(1), death(0), birth(2), death(1), birth(3), death(2)]
    segments = fold(frame(events), [1, 3, 5, 7])
    assert [segment.repeat for segment in segments] == [1, 3]
    assert segments[1].events == (birth(1), death(0))


def test_a_different_size_breaks_the_row() -> None:
    events = [birth(0), death(0), birth(1, 101), death(1), birth(2), death(2), birth(3), death(3)]
    segments = fold(frame(events), [2, 4, 6, 8])
    assert [segment.repeat for segment in segments] == [1, 1, 2]


def test_a_step_that_ends_something_old_is_its_own() -> None:
    events = [birth(0), birth(1), death(1), birth(2), death(2), death(0), birth(3), death(3)]
    segments = fold(frame(events), [1, 3, 6, 8])
    assert [segment.repeat for segment in segments] == [1, 1, 1, 1]


def test_calls_keep_their_outputs_and_bindings_start_anew() -> None:
    bindings = [Binding((), (0,)), Binding((), (1,)), Binding((), (2,))]
    events = [call(7, 0), death(0), call(7, 1), death(1), call(8, 2), death(2)]
    segments = fold(frame(events, bindings), [2, 4, 6])
    assert [segment.repeat for segment in segments] == [2, 1]
    assert segments[1].events[0] == call(8, 0)
    assert segments[1].bindings == (Binding((), (2,)),)


def test_steps_whose_calls_eat_different_storages_differ() -> None:
    """Both calls end an input: first the newest storage, then the one before it."""
    bindings = [Binding((2,), (3,)), Binding((4,), (5,)), Binding((1,), (7,))]
    events = [
        birth(0),
        birth(1),
        *(birth(2), call(0, 0), death(3)),
        *(birth(4), call(0, 1), death(5)),
        *(birth(6), call(0, 2), death(7)),
    ]
    segments = fold(frame(events, bindings), [2, 5, 8, 11])
    assert [segment.repeat for segment in segments] == [1, 2, 1]


def test_the_same_embedding_in_every_step_folds() -> None:
    bindings = [Binding((0, 1), (2,)), Binding((0, 3), (4,)), Binding((0, 5), (6,))]
    events = [
        birth(0),
        *(birth(1), call(0, 0), death(2)),
        *(birth(3), call(0, 1), death(4)),
        *(birth(5), call(0, 2), death(6)),
    ]
    segments = fold(frame(events, bindings), [1, 4, 7, 10])
    assert [segment.repeat for segment in segments] == [1, 3]


def test_nothing_folds_to_nothing() -> None:
    assert fold(frame([]), []) == ()
    assert fold(frame([birth(0)]), []) == (Segment((birth(0),), ()),)


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.booleans(), st.sampled_from([100, 200])),
        min_size=1,
        max_size=8,
    )
)
def test_unfolding_gives_the_timeline_back(steps: list[tuple[int, bool, int]]) -> None:
    events: list[Event] = []
    bindings: list[Binding] = []
    ends = []
    last: int | None = None
    identity = 0
    for births, calls, size in steps:
        made = list(range(identity, identity + births))
        events += [birth(each, size) for each in made]
        identity += births
        if calls:
            bindings.append(Binding((), (identity,)))
            events.append(call(5, len(bindings) - 1))
            made.append(identity)
            identity += 1
        events += [death(each) for each in made[:-1]]
        if last is not None:
            events.append(death(last))
        last = made[-1]
        ends.append(len(events))
    segments = fold(frame(events, bindings), ends)
    plain = fold(frame(events, bindings), [])
    assert unfolded(segments) == unfolded(plain)
    assert sum(segment.repeat for segment in segments) == len(steps)
    assert len(plain) == 1
