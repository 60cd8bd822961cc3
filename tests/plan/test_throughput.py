"""Throughput by hand, and the notes that a timed answer carries."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cardfit.plan.answer import Seconds
from cardfit.plan.bill import Use
from cardfit.plan.make import make
from cardfit.plan.throughput import batch_helps, cards_for, outputs_per_hour
from cardfit.plan.verdict import Host
from cardfit.predict.timing import Seconds as Span
from cardfit.predict.timing import StageTime, TimeEstimate
from cardfit.request import Settings


def stage(name="denoise", *, launch_bound=False, **parts):
    return StageTime(name, "transformer", 1, Span(1, 1, 1), 1.0, launch_bound, tuple(parts.items()))


def timed(likely, *stages):
    total = Span(0.5 * likely, likely, 2 * likely)
    return TimeEstimate(
        stages, total, None, None, Span(5, 10, 20), 1.0, 0.5, "published", 9, (), ()
    )


def test_an_hour_and_a_demand_by_hand():
    assert outputs_per_hour(30, 2) == 240
    assert cards_for(730 * 120, 30, 1) == 1
    assert cards_for(730 * 120 + 1, 30, 1) == 2
    assert cards_for(1, 30, 1) == 1


@pytest.mark.parametrize(
    ("stages", "helps"),
    [
        ((), None),
        ((stage("decode", matmul=1.0),), None),
        ((stage(matmul=3.0, elementwise=2.0),), False),
        ((stage(matmul=1.0, transfer=2.0),), True),
        ((stage(matmul=1.0, quantization=2.0),), True),
        ((stage(matmul=1.0, launch_bound=True),), True),
    ],
)
def test_a_batch_helps_where_arithmetic_is_not_what_takes_the_time(stages, helps):
    assert batch_helps(timed(9, *stages)) is helps


def test_a_timed_answer_has_seconds_costs_and_a_fastest_card(fakes: SimpleNamespace) -> None:
    seconds = {"slow": 90.0, "quick": 30.0}
    found = make(
        fakes.exact(),
        Settings(),
        (fakes.target("slow", 60, price=1.0), fakes.target("quick", 60, price=9.0)),
        Host(),
        fakes.knobs(),
        fakes.estimates(),
        fakes.facts(),
        use=Use(outputs_per_month=40 * 730 + 1),
        timer=lambda card, settings: timed(seconds[card], stage(matmul=1.0)),
    )
    rows = {row.card: row for row in found.cards}
    assert rows["slow"].seconds == Seconds(low=45, likely=90, high=180)
    assert rows["slow"].cost_per_output.amount == pytest.approx(1.0 * 100 / 3600)
    assert found.recommended.fastest.card == "quick"
    assert found.recommended.cheapest.card == "slow"
    notes = {note.code: note.text for note in found.notes}
    # 90 s of run and 10 s of export, in turn and side by side
    assert "about 36 outputs an hour, 864 a day" in notes["plan-throughput"]
    assert "40 an hour with the export" in notes["plan-throughput"]
    assert "2 cards side by side" in notes["plan-demand-many"]
    assert "plan-time-basis" in notes
