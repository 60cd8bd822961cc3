"""Parts of a VAE are traced once per distinct call; the peak is that of tracing every call."""

from __future__ import annotations

from typing import Any

import pytest

from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.predict.memory import estimate
from cardfit.request import Request, Settings
from cardfit.trace.dryrun import DryRun
from cardfit.trace.stream import Trace


def decode(name: str, shape: tuple[int, ...], *, tiling: bool, once: bool) -> Trace:
    """A decode of ``shape``, with or without remembering parts."""
    model = load(name)
    request, _ = resolve(model, Request(model=name))
    run = DryRun(model, request, Settings(vae_tiling=tiling), None)
    if not once:
        run._wrap_part = lambda *_: None  # type: ignore[method-assign]
    return run.run_part("vae", "decode", shape)


@pytest.mark.parametrize(
    ("name", "shape", "tiling"),
    [
        ("wan2.1-t2v-1.3b", (1, 16, 5, 16, 16), False),  # a cache that each frame replaces
        ("wan2.1-t2v-1.3b", (1, 16, 4, 48, 48), True),
        ("stable-diffusion-1.5", (1, 4, 160, 160), True),
        ("hunyuanvideo", (1, 16, 9, 40, 40), True),
    ],
)
def test_remembered_parts_change_nothing(name: str, shape: Any, tiling: bool) -> None:
    once = decode(name, shape, tiling=tiling, once=True)
    every = decode(name, shape, tiling=tiling, once=False)
    assert len(once.streams) > len(every.streams) == 1
    left, right = estimate(once, Settings()), estimate(every, Settings())
    assert left.allocated_bytes == right.allocated_bytes
    assert left.reserved_bytes == right.reserved_bytes
    whole = [next(s for s in t.streams if s.method == "decode") for t in (once, every)]
    flop = [{w.kind: w.flop for w in s.work if w.flop} for s in whole]
    assert flop[0] == pytest.approx(flop[1])
