"""A trace survives being written as JSON and read back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.request import ExactRequest, Settings
from cardfit.trace.coding import decode, encode
from cardfit.trace.stream import (
    Binding,
    Component,
    Event,
    Module,
    Op,
    Segment,
    Stream,
    Trace,
    Work,
)

REQUEST = ExactRequest(
    model="tiny",
    task="text-to-image",
    width=64,
    height=64,
    num_frames=1,
    num_inference_steps=2,
    guidance_scale=1.0,
    prompt_tokens=8,
)
EMPTY = Trace(
    request=REQUEST,
    settings=Settings(),
    versions={"torch": "2.13.0"},
    pipeline="Tiny",
    offload_sequence=("transformer", "vae"),
    excluded=("safety_checker",),
    components=(),
    recasts=(),
    stages=(),
    streams=(),
    timeline=(),
    sites=(),
)

ids = st.integers(-1, 2**40)
texts = st.text(max_size=8)
events: st.SearchStrategy[Event] = st.tuples(st.sampled_from(Op), ids, ids, ids)
many_events = st.lists(events, max_size=6).map(tuple)
id_tuples = st.lists(ids, max_size=3).map(tuple)
bindings = st.lists(st.builds(Binding, id_tuples, id_tuples), max_size=3).map(tuple)
tensors = st.lists(st.tuples(texts, ids, texts), max_size=3).map(tuple)
modules = st.builds(Module, texts, texts, tensors, st.booleans(), st.booleans())
components = st.lists(
    st.builds(Component, texts, texts, texts, st.lists(modules, max_size=3).map(tuple)), max_size=2
).map(tuple)
numbers = st.floats(0, 1e18, allow_nan=False)
works = st.lists(st.builds(Work, texts, texts, numbers, numbers, ids), max_size=2).map(tuple)
streams = st.lists(
    st.builds(Stream, ids, texts, texts, ids, many_events, id_tuples, bindings, works), max_size=3
).map(tuple)
segments = st.lists(st.builds(Segment, many_events, bindings, st.integers(1, 99)), max_size=3).map(
    tuple
)
pairs = st.lists(st.tuples(texts, texts), max_size=3).map(tuple)
traces = st.builds(
    lambda c, r, stages, s, t, sites, notes: replace(
        EMPTY,
        components=c,
        recasts=r,
        stages=stages,
        streams=s,
        timeline=t,
        sites=sites,
        notes=notes,
    ),
    components,
    components,
    pairs,
    streams,
    segments,
    pairs,
    st.lists(st.tuples(texts, st.dictionaries(texts, ids, max_size=2)), max_size=2).map(tuple),
)


@given(traces)
def test_round_trip(trace: Trace) -> None:
    written = json.loads(json.dumps(encode(trace)))
    read = decode(written, trace.request, trace.settings)
    assert read == trace
    assert encode(read) == encode(trace)


def test_request_and_settings_are_the_readers_own() -> None:
    other = Settings(offload="model")
    assert decode(encode(EMPTY), REQUEST, other).settings == other
    assert "request" not in encode(EMPTY)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_cut_event_list_is_an_error(length: int) -> None:
    written = encode(EMPTY)
    written["timeline"] = [[[0] * length, [], 1]]
    with pytest.raises(ValueError, match="zip"):
        decode(written, REQUEST, Settings())


@pytest.mark.parametrize("key", sorted(encode(EMPTY)))
def test_a_missing_part_is_an_error(key: str) -> None:
    written = encode(EMPTY)
    del written[key]
    with pytest.raises(KeyError):
        decode(written, REQUEST, Settings())
