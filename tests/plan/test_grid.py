"""Verdicts on arrays are those of the rules, pair by pair, and the front holds what nothing beats."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit import Request, api
from cardfit.plan.front import dominated
from cardfit.plan.grid import UNSURE, on_targets, verdict_of, verdicts
from cardfit.plan.knobs import candidates, closed
from cardfit.plan.place import place_of
from cardfit.plan.search import judge_on
from cardfit.plan.target import Band
from cardfit.plan.verdict import Host, judge
from cardfit.predict.estimate import HostMoment, MemoryEstimate

_MIB = 2**20
_SIZES = st.integers(0, 200_000).map(lambda mib: mib * _MIB)


def _estimate(reserved: int, above: int, host: int, more: int, disk: int) -> MemoryEstimate:
    moment = HostMoment("run", host, host, host + more, more // 2, (("weights", host),))
    return MemoryEstimate(
        stages=(),
        peak_stage="denoise",
        allocated_bytes=reserved,
        reserved_bytes=reserved,
        reserved_low_bytes=reserved,
        reserved_high_bytes=reserved + above,
        host_bytes=host,
        failure=None,
        left_out=(),
        host=(moment,),
        offload_disk_bytes=disk,
    )


_ESTIMATES = st.builds(_estimate, _SIZES, _SIZES, _SIZES, _SIZES, _SIZES)
_BANDS = st.tuples(_SIZES, _SIZES, _SIZES).map(lambda three: Band(*sorted(three)))
_HOSTS = st.builds(
    Host,
    ram_bytes=st.none() | _SIZES,
    os=st.sampled_from(["linux", "windows"]),
    disk_bytes=st.none() | _SIZES,
    files_bytes=_SIZES,
)


@given(
    st.lists(_ESTIMATES, min_size=1, max_size=6), st.lists(_BANDS, min_size=1, max_size=6), _HOSTS
)
def test_every_pair_has_the_verdict_of_the_rules(
    estimates: list[MemoryEstimate], usable: list[Band], host: Host
) -> None:
    codes = verdicts(estimates, usable, host)
    assert codes.shape == (len(estimates), len(usable))
    for row, estimate in enumerate(estimates):
        for column, band in enumerate(usable):
            said = verdict_of(int(codes[row, column]))
            assert said == judge(estimate, band, host).verdict


@pytest.mark.parametrize("seed", range(4))
def test_real_requests_on_every_card(seed: int) -> None:
    """The whole catalog, random requests and hosts: codes are the search's own verdicts, or ask for its replay."""
    rng = random.Random(seed)
    model = rng.choice(["flux.1-dev", "sdxl-base", "ltx-video-2b", "sd3.5-medium"])
    side = 32 * rng.randrange(16, 40)
    request = Request(model=model, width=side, height=32 * rng.randrange(16, 40))
    if model == "ltx-video-2b":
        request = request.model_copy(update={"num_frames": 8 * rng.randrange(4, 16) + 1})
    host = Host(ram_bytes=rng.choice([None, 32, 64]) and 64 * 2**30)
    entry, exact, given, _ = api._resolved(request, closed(api.Settings()))
    estimates = api._estimates(entry, exact, None, [])
    knobs = api.turned(entry, estimates.trace(given), given)
    options = estimates.traceable(candidates(api.Settings(), knobs))
    place = place_of(api.load_cards(None), (), None, host)
    targets = [each for each in place.targets if each.unverified is None and each.usable]
    codes = on_targets([estimates.of(each.settings) for each in options], targets, host)
    decided = 0
    for row, candidate in enumerate(options):
        for column, target in enumerate(targets):
            if codes[row, column] == UNSURE:
                continue
            decided += 1
            judged = judge_on(candidate, target, host, estimates)
            assert verdict_of(int(codes[row, column])) == judged.verdict
    assert decided > 0.9 * codes.size


def test_a_card_without_facts_has_no_verdict() -> None:
    place = place_of(api.load_cards(None), (), ["rtx-4090"], Host())
    bare = replace(place.targets[0], total=None)
    with pytest.raises(ValueError, match="without facts"):
        on_targets([_estimate(1, 1, 1, 0, 0)], [bare], Host())


def test_what_another_row_beats_is_found() -> None:
    table = np.array([[1.0, 5.0, 0.0], [1.0, 6.0, 0.0], [2.0, 1.0, 3.0], [1.0, 5.0, 0.0]])
    # the second is slower at the same price; the first and the last are equal: neither beats the other
    assert dominated(table).tolist() == [False, True, False, False]


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12))
def test_dominated_is_the_definition(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, dtype=np.float64)
    for at, beaten in enumerate(dominated(table)):
        by_hand = any(
            all(other[k] <= rows[at][k] for k in range(3)) and other != rows[at] for other in rows
        )
        assert bool(beaten) == by_hand


def test_a_front_is_what_no_pair_beats() -> None:
    found = api.front(
        Request(model="sdxl-base"), cards=["rtx-4090", "rtx-3090", "h100-sxm", "rtx-3060-12gb"]
    )
    assert found.rows
    assert found.holding > len(found.rows)
    figures = [
        (row.cost_per_output.amount, row.seconds.likely, row.quality_rank)
        for row in found.rows
        if row.cost_per_output is not None
    ]
    assert len(figures) == len(found.rows)
    assert not dominated(np.array(figures)).any()
    assert [row.seconds.likely for row in found.rows] == sorted(
        r.seconds.likely for r in found.rows
    )
    # each row is a plan's: the same card with the same settings holds it with the same peak
    row = found.rows[0]
    (same,) = api.plan(found.request, row.settings, cards=[row.card]).cards
    assert (same.verdict, same.peak_reserved_bytes) == (row.verdict, row.peak_reserved_bytes)
