"""A text encoder that pads reads the same number of tokens whatever the prompt."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from cardfit.plan.prompts import prompt_matters
from cardfit.trace.stream import Stream, Trace


def reading(fakes: SimpleNamespace, *lengths: int, prompt_tokens: int = 64) -> Trace:
    """A trace whose text encoder, component 0, is called once with each of ``lengths``."""
    streams = tuple(
        Stream(
            0,
            "forward",
            f"((('torch.int64', (1, {each}), ({each}, 1), 'a'),), ())",
            1,
            (),
            (),
            (),
            (),
        )
        for each in lengths
    )
    return replace(fakes.trace(prompt_tokens=prompt_tokens), streams=streams)


@pytest.mark.parametrize(
    ("lengths", "matters"),
    [
        ((512,), False),
        ((77, 77), False),
        ((64,), True),
        ((66, 3), True),
        ((98, 35), True),
        ((), False),
    ],
)
def test_only_an_encoder_that_does_not_pad_grows(
    fakes: SimpleNamespace, lengths: tuple[int, ...], matters: bool
) -> None:
    assert prompt_matters(reading(fakes, *lengths)) is matters
