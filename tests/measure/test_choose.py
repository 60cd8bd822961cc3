"""The choice among what was measured, and what the repetitions allow to say of a demand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from cardfit.errors import BadRequest
from cardfit.measure.choose import Limits, choose
from cardfit.measure.samples import interval, repeats_for
from cardfit.records.models import Machine, Outcome, Quality, Record
from cardfit.request import Settings
from cardfit.units import GIB

_path = Path(__file__).parents[1] / "records" / "make_record.py"
_spec = importlib.util.spec_from_file_location("make_record", _path)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)


def measured(peak_gib: float, *seconds: float, **fields: Any) -> Record:
    rows = tuple(make_record.repetition(each, round(peak_gib * GIB)) for each in seconds)
    given = {"machine": Machine(os="linux", card="l4"), "repetitions": rows}
    return make_record.record(**{**given, **fields})  # type: ignore[no-any-return]


TILED, OFFLOADED = Settings(vae_tiling=True), Settings(offload="model")


def test_the_smallest_that_passed_with_headroom() -> None:
    records = [
        measured(21.9, 10.0),
        measured(12.0, 11.0, settings=TILED),
        measured(6.0, 30.0, settings=OFFLOADED, outcome=Outcome(kind="oom")),
    ]
    found = choose(records, usable=lambda _: 22 * GIB)
    assert found.chosen == 0 and found.candidates[0].settings == TILED
    assert [each.passed for each in found.candidates] == [True, False, False]
    assert [each.why.code for each in found.candidates] == [
        "choose-fits",
        "choose-failed",
        "choose-too-near",
    ]
    assert (
        choose(records, usable=lambda _: 22 * GIB, by="seconds", headroom=0.0)
        .candidates[0]
        .settings
        == Settings()
    )


def test_price_decides_by_the_output() -> None:
    records = [
        measured(10.0, 10.0),
        measured(10.0, 4.0, machine=Machine(os="linux", card="h200-sxm")),
    ]
    found = choose(records, by="price", price_per_hour={"l4": 0.5, "h200-sxm": 2.0}.get)
    assert found.candidates[0].on == "l4"
    assert found.candidates[0].cost_per_output == pytest.approx(0.5 / 360)
    dearer = choose(records, by="price", price_per_hour={"l4": 0.9, "h200-sxm": 2.0}.get)
    assert dearer.candidates[0].on == "h200-sxm"


def test_one_failure_among_many_does_not_pass_and_a_stopped_run_says_nothing() -> None:
    bad = [measured(1.0, 1.0), measured(1.0, outcome=Outcome(kind="oom"))]
    assert choose(bad).chosen is None
    stopped = [measured(1.0, 1.0), measured(1.0, outcome=Outcome(kind="interrupted"))]
    assert choose(stopped).chosen == 0


def test_more_cards_only_where_the_measurement_says_so() -> None:
    steady = measured(1.0, 10.0, 10.1, 9.9, 10.0, 10.05)
    one = choose([steady], demand_per_hour=300).demand
    assert one is not None and (one.cards, one.missing_repeats) == (1, 0)
    two = choose([steady], demand_per_hour=600).demand
    assert two is not None and two.cards == 2 and "2 cards" in two.why.text
    # 10 s a run make 360 an hour: whether one card holds 359 cannot be told from this spread
    edge = choose([steady], demand_per_hour=359).demand
    assert edge is not None and edge.cards is None and (edge.cards_low, edge.cards_high) == (1, 2)
    assert edge.missing_repeats is not None and edge.missing_repeats > 0
    assert "more repeats" in edge.why.text


@pytest.mark.parametrize("seconds", [(10.0,), ()])
def test_it_says_how_many_repeats_are_missing(seconds: tuple[float, ...]) -> None:
    found = choose([measured(1.0, *seconds)], demand_per_hour=100).demand
    assert found is not None and found.cards is None
    assert found.missing_repeats == 3 - len(seconds)


def test_the_interval_is_students() -> None:
    found = interval([9.0, 10.0, 11.0, 10.0])  # s = 0.8165, t(3) = 3.182
    assert found.half == pytest.approx(3.182 * 0.816496 / 2, rel=1e-4)
    more = repeats_for([9.0, 10.0, 11.0, 10.0], found.half or 0)
    assert more == 4
    assert repeats_for([9.0, 10.0, 11.0, 10.0], 0.1) > 200


def test_what_cannot_be_chosen_among_is_said() -> None:
    with pytest.raises(BadRequest, match="nothing was measured"):
        choose([])
    with pytest.raises(BadRequest, match="2 different requests"):
        choose([measured(1.0, 1.0), measured(1.0, 1.0, request=make_record.request(width=128))])
    choose([measured(1.0, 1.0), measured(1.0, 1.0, request=make_record.request(seed=7))])
    with pytest.raises(BadRequest, match="share from 0"):
        choose([measured(1.0, 1.0)], headroom=1.5)
    with pytest.raises(BadRequest, match="above zero"):
        choose([measured(1.0, 1.0)], demand_per_hour=0)
    with pytest.raises(BadRequest, match="own code"):
        choose([measured(1.0, 1.0, request=None, settings=None)])


def lost(ssim: float, seam: float | None = None, **fields: Any) -> Quality:
    return Quality(
        reference=REFERENCE.id,
        frames=1,
        psnr_db=30.0,
        ssim=ssim,
        ssim_lowest=ssim,
        seam_score=seam,
        **fields,
    )


REFERENCE = measured(12.0, 10.0)


def test_an_output_may_lose_so_much_and_no_more() -> None:
    tiles = [Settings(vae_tiling=True, vae_tile=side) for side in (64, 128, 256, 512)]
    records = [
        REFERENCE,
        measured(4.0, 10.0, settings=tiles[0], quality=lost(0.999, seam=9.0)),
        measured(5.0, 10.0, settings=tiles[1], quality=lost(0.93, seam=2.0)),
        measured(6.0, 10.0, settings=tiles[2], quality=lost(0.98, seam=5.0)),
        measured(3.0, 10.0, settings=tiles[3]),
        measured(2.0, 10.0, settings=OFFLOADED, quality=lost(0.4, diverged=True)),
    ]
    free = choose(records)
    assert free.candidates[0].settings == OFFLOADED and free.candidates[0].quality is not None
    found = choose(records, limits=Limits(min_ssim=0.97, max_seam=6))
    assert found.chosen == 0 and found.candidates[0].settings == tiles[2]
    assert [each.settings for each in found.candidates if each.passed] == [tiles[2], Settings()]
    why = {each.settings.model_dump_json(): each.why.code for each in found.candidates}
    assert [why[each.model_dump_json()] for each in (*tiles[:2], tiles[3], OFFLOADED)] == [
        "choose-seam", "choose-low-ssim", "choose-not-compared", "choose-diverged",
    ]  # fmt: skip
    # the worst of several runs counts
    again = measured(6.0, 10.0, settings=tiles[2], quality=lost(0.9, seam=5.0))
    assert (
        choose([*records, again], limits=Limits(min_ssim=0.97)).candidates[0].settings == tiles[0]
    )


@pytest.mark.parametrize(
    "limits", [Limits(min_ssim=1.01), Limits(max_seam=-1.0), Limits(min_ssim=float("nan"))]
)
def test_limits_that_cannot_be_meant(limits: Limits) -> None:
    with pytest.raises(BadRequest, match="--min-ssim|--max-seam"):
        choose([REFERENCE], limits=limits)
