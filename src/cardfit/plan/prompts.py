"""Whether a longer prompt raises the peak: it does where a text encoder does not pad what it reads.

In: a trace. Out: yes or no. Seen from the calls of the text encoders: one that reads just the prompt's tokens, or
prompts of different lengths as they are, does not pad. Token ids are the whole numbers of shape [batch, tokens].
"""

from __future__ import annotations

import re

from cardfit.errors import Note
from cardfit.trace.stream import Trace

ENCODERS = ("text_encoder", "mllm")
# The begin and end signs that a tokenizer may add.
ENDS = 2
_IDS = re.compile(r"'torch\.int64', \((\d+), (\d+)\)")


def prompt_matters(trace: Trace) -> bool:
    """Whether the length of the prompt changes the shapes that ``trace`` was made of."""
    lengths: dict[str, set[int]] = {}
    for stream in trace.streams:
        name = trace.components[stream.component].name
        if name.startswith(ENCODERS):
            found = _IDS.search(stream.signature)
            if found is not None:
                lengths.setdefault(name, set()).add(int(found[2]))
    tokens = trace.request.prompt_tokens
    as_it_is = range(tokens, tokens + ENDS + 1)
    return any(len(seen) > 1 or any(each in as_it_is for each in seen) for seen in lengths.values())


def prompt_notes(model: str, trace: Trace) -> tuple[Note, ...]:
    """The caution that the length of the prompt counts, where it does."""
    if not prompt_matters(trace):
        return ()
    return (Note("plan-prompt-grows", {"model": model, "tokens": trace.request.prompt_tokens}),)
