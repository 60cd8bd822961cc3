"""What is left out of a replay changes nothing: every figure is that of a replay that plays every event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from cardfit.plan.knobs import closed
from cardfit.predict import memory
from cardfit.predict.estimate import MemoryEstimate
from cardfit.predict.turns import Turns
from cardfit.request import Request, Settings
from cardfit.trace.stream import Event, Trace

_STEPS = {"flux.1-dev": 7, "stable-diffusion-1.5": 20, "wan2.1-t2v-1.3b": 7}
_LARGE = ("transformer", "unet", "text_encoder")
_OFFLOADS = ("none", "model", "group-block", "group-leaf", "sequential")
_SETTINGS: tuple[dict[str, Any], ...] = (
    *({"offload": offload} for offload in _OFFLOADS),
    *({"offload": o, "alloc_conf": "expandable_segments:True"} for o in ("none", "group-leaf")),
    *({"offload": o, "alloc_conf": "garbage_collection_threshold:0.6"} for o in ("none", "model")),
    *({"offload": o, "scheme": "bnb-nf4"} for o in ("none", "model")),
    {"offload": "none", "scheme": "torchao-int8dq"},
    {"offload": "group-block", "scheme": "fp8-layerwise"},
    {"offload": "group-block", "use_stream": False, "num_blocks_per_group": 3},
)


@cache
def _trace(model: str, **asked: int) -> Trace:
    """A trace from the atlas: what is installed does not matter here."""
    from cardfit.library import load
    from cardfit.library.rules import resolve
    from cardfit.trace import atlas

    entry = load(model)
    exact, _ = resolve(entry, Request(model=model, num_inference_steps=_STEPS[model], **asked))
    found = atlas.find(entry, exact, closed(Settings()))
    assert isinstance(found, Trace)
    return found


def _settings(trace: Trace, given: dict[str, Any]) -> Settings:
    scheme = given.get("scheme")
    names = [each.name for each in trace.components if each.name.startswith(_LARGE)]
    quantization = dict.fromkeys(names, scheme) if scheme else {}
    rest = {name: value for name, value in given.items() if name != "scheme"}
    return closed(Settings(quantization=quantization, **rest))


def _unrolled(trace: Trace, settings: Settings, limit_bytes: int | None) -> MemoryEstimate:
    """Every event played, no state compared."""

    def nothing(events: Sequence[Event]) -> tuple[()]:
        return ()

    def on(self: Turns, state: Callable[[], object]) -> int:
        self.at += 1
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "repeats", nothing)
        patch.setattr(
            memory, "only_moving", lambda events, placed, component: tuple(range(len(events)))
        )
        patch.setattr(Turns, "played", on)
        # a copy, whose memory of what repeats is empty
        streams = tuple(replace(stream, form=None) for stream in trace.streams)
        plain = replace(trace, streams=streams, shared={})
        return memory.estimate(plain, settings, limit_bytes=limit_bytes)


@pytest.mark.parametrize("given", _SETTINGS, ids=lambda given: "-".join(map(str, given.values())))
@pytest.mark.parametrize("model", list(_STEPS))
def test_the_estimate_is_that_of_every_event(model: str, given: dict[str, Any]) -> None:
    trace = _trace(model)
    settings = _settings(trace, given)
    free = memory.estimate(trace, settings)
    assert free == _unrolled(trace, settings, None)
    # between what is allocated and what is reserved a full card frees its cache, below it the run ends
    for limit in (
        (free.allocated_bytes + free.reserved_bytes) // 2,
        free.allocated_bytes * 9 // 10,
    ):
        assert memory.estimate(trace, settings, limit_bytes=limit) == _unrolled(
            trace, settings, limit
        )


def test_blocks_that_wait_on_the_host_come_back_as_often_as_they_are_used() -> None:
    trace = _trace("flux.1-dev")
    settings = closed(Settings(offload="model", blocks_to_swap=9))
    assert memory.estimate(trace, settings) == _unrolled(trace, settings, None)


@pytest.mark.parametrize("offload", _OFFLOADS)
def test_what_sizes_have_in_common_changes_none_of_them(offload: str) -> None:
    """Size after size out of one book, each against the same trace that shares nothing."""
    for model, sides in (
        ("flux.1-dev", ((1024, 1024), (512, 768), (1344, 768), (1024, 1024))),
        ("stable-diffusion-1.5", ((512, 512), (768, 512))),
    ):
        for width, height in sides:
            trace = _trace(model, width=width, height=height)
            settings = closed(Settings(offload=offload))
            alone = tuple(replace(stream, form=None) for stream in trace.streams)
            plain = replace(trace, streams=alone, shared={})
            assert memory.estimate(trace, settings) == memory.estimate(plain, settings)


def test_streams_that_no_size_decides_are_the_same_objects() -> None:
    first = _trace("flux.1-dev", width=1024, height=768)
    second = _trace("flux.1-dev", width=768, height=768)
    prompts = [
        n for n, s in enumerate(first.streams) if first.components[s.component].name[:4] == "text"
    ]
    assert len(prompts) == 2
    for n, (one, other) in enumerate(zip(first.streams, second.streams, strict=True)):
        assert (one is other) == (n in prompts)
        assert one.form is other.form


def test_most_events_are_left_out() -> None:
    """The point of it: a transformer of 57 blocks is played as a few."""
    trace = _trace("flux.1-dev")
    played = 0
    play = memory.Replay._play

    def counting(self: memory.Replay, events: Sequence[Event], *rest: Any) -> None:
        nonlocal played
        played += len(events)
        play(self, events, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory.Replay, "_play", counting)
        memory.estimate(trace, closed(Settings()))
    per_call = max(len(stream.events) for stream in trace.streams)
    assert 0 < played < 2 * per_call


def test_a_state_that_comes_back_leaves_whole_periods_out() -> None:
    turns = Turns(20)
    skipped = []
    while turns.left:
        now = turns.at % 3
        skipped.append(turns.played(lambda now=now: now))
    # seen after turns 1 to 3, again after 4: sixteen are left, of which fifteen are whole periods of three
    assert skipped == [0, 0, 0, 15, 0]
    assert turns.at == 20
