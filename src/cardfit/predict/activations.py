"""Copies of activations that quantized layers make, put among the events of a call.

In: the events of a stream and its component's weights under their scheme. Out: the same events with a workspace before
and beside the output of every layer that quantizes its activation. How many tokens a layer sees is read from its
output, the only storage of the right size that is born while the layer is entered.
"""

from __future__ import annotations

from collections.abc import Sequence

from cardfit.predict.weights import ModuleWeights, PerToken
from cardfit.trace.stream import Event, Op


def with_copies(events: Sequence[Event], weights: Sequence[ModuleWeights]) -> tuple[Event, ...]:
    """``events`` with the copies that layers of ``weights`` make; unchanged where none does."""
    found: list[Event] = []
    entered: list[tuple[int, int]] = []  # module, where its events begin in `found`
    for event in events:
        op, a, _, _ = event
        found.append(event)
        if op == Op.ENTER:
            entered.append((a, len(found)))
        elif op == Op.EXIT and entered:
            module, start = entered.pop()
            tokens = weights[module].tokens if module < len(weights) else None
            if tokens is not None:
                found[start:] = _layer(found[start:], tokens)
    return tuple(found)


def _layer(events: list[Event], tokens: PerToken) -> list[Event]:
    """One layer's events with its copies: its output is the largest birth that is whole tokens."""
    births = [
        (size, place)
        for place, (op, _, size, _) in enumerate(events)
        if op == Op.BIRTH and size and size % tokens.output == 0
    ]
    if not births:
        return events
    size, place = max(births)
    count = size // tokens.output
    site = events[place][3]
    before = (Op.WORKSPACE, 0, round(tokens.before * count), site)
    beside = (Op.WORKSPACE, 0, round(tokens.beside * count), site)
    first = [before] if before[2] else []
    return [*first, *events[: place + 1], beside, *events[place + 1 :]]
