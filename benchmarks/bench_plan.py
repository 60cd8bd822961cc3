"""What a plan is made of, each measured alone in one warm process, with pytest-benchmark.

    pytest benchmarks/bench_plan.py [--benchmark-json FILE]

Whole processes and dry runs: `benchmarks/speed.py`.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from cardfit import api
from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.plan.grid import on_targets
from cardfit.plan.knobs import closed
from cardfit.plan.place import place_of
from cardfit.plan.verdict import Host
from cardfit.predict.memory import estimate
from cardfit.request import Request, Settings
from cardfit.trace import atlas
from cardfit.trace.stream import Trace

_WIDTHS = count(1024, 16)  # every call another size: nothing was seen before


def composed(width: int = 1024) -> Trace:
    """FLUX.1-dev from the shipped traces."""
    model = load("flux.1-dev")
    found = atlas.find(
        model, resolve(model, Request(model=model.id, width=width))[0], closed(Settings())
    )
    assert isinstance(found, Trace)
    return found


def test_compose_a_trace(benchmark: Any) -> None:
    assert benchmark.pedantic(lambda: composed(next(_WIDTHS)), rounds=20).streams


@pytest.mark.parametrize("offload", ["none", "model", "group-block", "group-leaf", "sequential"])
def test_replay(benchmark: Any, offload: Any) -> None:
    settings = closed(Settings(offload=offload))
    # a trace afresh each time: what repeats in it is looked for again
    found = benchmark.pedantic(estimate, setup=lambda: ((composed(), settings), {}), rounds=10)
    assert found.reserved_bytes > 0


def test_plan_a_request_not_seen_before(benchmark: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("CARDFIT_CACHE", str(tmp_path))
    api.plan(Request(model="flux.1-dev"))
    found = benchmark.pedantic(
        lambda: api.plan(Request(model="flux.1-dev", height=944, width=next(_WIDTHS))), rounds=5
    )
    assert found.cards


def test_compare_settings_with_cards(benchmark: Any) -> None:
    trace = composed()
    estimates = [
        estimate(trace, closed(Settings(offload=o))) for o in ("none", "model", "sequential")
    ]
    place = place_of(api.load_cards(None), (), None, Host())
    targets = [each for each in place.targets if each.unverified is None and each.usable]
    codes = benchmark(on_targets, estimates * 20, targets, Host())
    benchmark.extra_info["comparisons"] = codes.size
    assert codes.shape == (60, len(targets))
    if benchmark.stats is not None:
        rate = codes.size / benchmark.stats.stats.median
        benchmark.extra_info["comparisons_per_second"] = round(rate)
        print(f"\n{rate / 1e6:.1f} million comparisons a second")
