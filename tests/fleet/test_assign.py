"""Shots over machines on paper: who may go where, what the sum says, and that nothing goes where it does not fit."""

from __future__ import annotations

import csv
import io
import json
import time
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.fleet.assign import Rules, make_assignment
from cardfit.fleet.result import Assignment
from cardfit.fleet.shots import Sequence, Shot, ShotsFile
from cardfit.plan.answer import Money
from cardfit.plan.make import make
from cardfit.plan.verdict import Host
from cardfit.report import assign as page
from cardfit.report import assign_chart
from cardfit.report.style import Style
from cardfit.request import Settings

from .conftest import Paper, kind, machine, on_paper, timed

MONDAY = datetime(2026, 12, 7, 18)
FULL = Settings(offload="none", vae_tiling=False, quantization={"transformer": "none"})


def shot(name: str, **more: object) -> Shot:
    return Shot.model_validate({"id": name, "model": "fake", **more})


def assigned(
    shots: list[Shot],
    machines: list,
    *,
    rentable=(),
    sequences: dict[str, Sequence] | None = None,
    ask: Paper | None = None,
    **rules: bool,
) -> Assignment:
    return make_assignment(
        ShotsFile(shots=tuple(shots), sequences=sequences or {}),
        machines,
        rentable,
        ask or Paper(),
        start=MONDAY,
        rules=Rules(**rules),
        versions={"cardfit": "0"},
    )


def codes(found: Assignment) -> list[str]:
    return [each.code for each in (*found.said, *found.notes)]


def test_a_shot_goes_where_it_is_done_first():
    machines = [machine("a", "small", 80), machine("b", "large", 80)]
    found = assigned([shot("one", count=3)], machines)
    (row,) = found.shots
    assert row.place is not None
    assert (row.place.machine, row.place.card) == ("b", "large")
    # 20 s of loading and three runs of 60 s; at worst 40 and 90
    assert row.place.done == MONDAY + timedelta(seconds=200)
    assert row.place.done_at_worst == MONDAY + timedelta(seconds=310)
    assert found.done == row.place.done
    idle = {slot.machine: (slot.busy_seconds, slot.idle_seconds) for slot in found.slots}
    assert idle == {"a": (0.0, 200.0), "b": (200.0, 0.0)}


def test_settings_are_those_of_the_card():
    machines = [machine("a", "small", 30, ram_gib=64), machine("b", "large", 80)]
    found = assigned([shot("one")], machines)
    texts = {each.card: each.settings for each in found.planned[0].options}
    assert texts["large"] is not None and texts["large"].offload == "none"
    assert texts["small"] is not None and texts["small"].offload != "none"


def test_alike_requests_are_planned_once_whatever_their_seed():
    ask = Paper()
    shots = [shot(f"s{n}", seed=n) for n in range(9)] + [shot("x", num_frames=41)]
    found = assigned(shots, [machine("a", "large", 80), machine("b", "large", 80)], ask=ask)
    assert len(ask.asked) == len(found.planned) == 2
    assert {row.seed for row in found.shots} == set(range(9))
    assert len(found.planned[0].options) == 1  # the two machines are alike
    assert found.planned[0].options[0].machines == ("a", "b")


def test_what_fits_nowhere_says_what_is_nearest():
    found = assigned(
        [shot("big", settings=FULL)], [machine("a", "large", 24), machine("b", "small", 30)]
    )
    (row,) = found.shots
    assert row.place is None and row.why_not is not None
    assert row.why_not.code == "assign-nowhere"
    assert row.why_not.args["card"] == "SMALL"
    assert not found.kept and "assign-no-place" in codes(found)
    assert "assign-rent-none" in codes(found)


def test_tight_and_lossy_are_for_those_who_say_so():
    # 54 GiB with a band of 2 %: tight on 54.5, and lossless only so
    tight = [machine("a", "large", 54.5)]
    asked = [shot("one", settings=FULL)]
    refused = assigned(asked, tight)
    assert refused.shots[0].place is None
    assert refused.planned[0].options[0].why.code == "assign-tight-refused"
    placed = assigned(asked, tight, allow_tight=True).shots[0].place
    assert placed is not None and placed.verdict == "tight"
    lossy = [machine("a", "large", 41.5)]
    tiled = [
        shot(
            "one",
            settings=Settings(
                offload="none", vae_tiling=True, quantization={"transformer": "none"}
            ),
        )
    ]
    assert assigned(tiled, [machine("a", "large", 60)]).shots[0].place is not None
    none = assigned(tiled, lossy + [machine("b", "large", 60)], lossless=True)
    assert none.shots[0].place is None
    assert {o.why.code for o in none.planned[0].options} >= {"assign-lossy-refused"}


def test_a_card_that_nobody_can_time_is_allowed_and_not_scheduled():
    (row,) = assigned([shot("one")], [machine("a", "mystery", 80)]).shots
    assert row.place is None and row.why_not is not None
    assert row.why_not.code == "assign-no-time"


def test_late_shots_and_the_one_card_that_would_help():
    due = MONDAY + timedelta(seconds=400)
    farm = [machine("a", "small", 80)]
    shots = [shot("one", count=2, deadline=due), shot("two", deadline=due)]
    rentable = (
        kind("middle", 80, price=3.6),  # 20 + 3 x 120 s: in time
        kind("large", 80, price=36.0),  # in time, dearer
        kind("small", 80, price=0.1),  # too slow
    )
    found = assigned(shots, farm, rentable=rentable)
    assert [bool(row.place and row.place.late_seconds) for row in found.shots] == [True, False]
    assert "assign-late" in codes(found) and not found.kept
    rented = found.rented
    assert rented is not None
    assert (rented.card, rented.shots, rented.late) == ("middle", ("one",), ())
    assert rented.hours * 3600 == pytest.approx(20 + 2 * 120)
    assert rented.cost.amount == pytest.approx(3.6 * rented.hours)
    slow = assigned(shots, farm, rentable=rentable[2:])
    assert slow.rented is not None and slow.rented.late == ("one",)
    assert "assign-rent-late" in codes(slow)


def test_in_time_nobody_rents():
    ask = Paper()
    found = assigned(
        [shot("one")], [machine("a", "large", 80)], rentable=(kind("large", 80, price=1),), ask=ask
    )
    assert found.rented is None and found.kept and len(ask.asked) == 1


def test_a_band_that_reaches_over_the_deadline_is_a_caution():
    due = MONDAY + timedelta(seconds=90)  # likely 80, at worst 130
    found = assigned([shot("one", deadline=due)], [machine("a", "large", 80)])
    place = found.shots[0].place
    assert place is not None and place.may_be_late and not place.late_seconds
    assert found.kept and "assign-may-be-late" in codes(found)


def test_a_sequence_stays_on_one_kind_of_card():
    kept = {"q": Sequence(keep_same_card=True)}
    shots = [shot("one", sequence="q"), shot("two", sequence="q", settings=FULL)]
    machines = [machine("a", "large", 30, ram_gib=64), machine("b", "middle", 80)]
    found = assigned(shots, machines, sequences=kept)
    assert {row.place.card for row in found.shots if row.place} == {"middle"}
    free = assigned(shots, machines)
    assert {row.place.card for row in free.shots if row.place} == {"large", "middle"}
    rentable = (kind("large", 80, price=1.0),)
    apart = assigned(shots, machines[:1], sequences=kept, rentable=rentable)
    assert apart.rented is not None and apart.rented.shots == ("one", "two")  # not torn apart
    assert {row.why_not.code for row in apart.shots if row.why_not} == {
        "assign-no-one-kind",
        "assign-nowhere",
    }


def test_costs_are_by_currency_and_only_where_prices_are_known():
    machines = [
        machine("a", "large", 80, price=Money(amount=3.6, currency="EUR")),
        machine("b", "small", 80),
    ]
    found = assigned([shot("one", count=10)], machines)
    place = found.shots[0].place
    assert place is not None and place.cost is not None
    assert place.cost.amount == pytest.approx(0.62)  # 620 s at 3.6 an hour
    assert found.costs == (place.cost,)


def test_the_ram_of_a_machine_is_shared():
    farm = [machine("a", "large", 30, ram_gib=64, count=2)]
    found = assigned([shot("one"), shot("two")], farm)
    one, two = (row.place for row in found.shots)
    assert one is not None and two is not None
    assert max(one.begins, two.begins) >= min(one.done, two.done)
    assert "assign-ram-shared" in codes(found)
    unknown = assigned([shot("one"), shot("two")], [machine("a", "large", 30, count=2)])
    assert "assign-ram-unknown" in codes(unknown)


def test_the_page_keeps_to_the_screen_and_says_it_all():
    due = MONDAY + timedelta(seconds=10)
    shots = [shot(f"shot_{n:03}", count=n + 1) for n in range(7)]
    shots += [shot("late", deadline=due), shot("big", settings=FULL, num_frames=41)]
    machines = [
        machine("alpha", "large", 30, ram_gib=64, price=Money(amount=1, currency="EUR")),
        machine("beta", "small", 30, spans=((3600.0, 7200.0),)),
    ]
    found = assigned(shots, machines)
    for style in (Style(), Style(width=60), Style(shapes=False)):
        lines = page.lines(found, style)
        assert max(map(len, lines)) <= style.width
    text = "\n".join(page.lines(found, Style(shapes=False)))
    assert "9 shots on 2 cards from 2026-12-07 18:00" in text
    assert "shot_006" in text and "alpha LARGE" in text and "late" in text
    assert "No place" in text and "big" in text
    assert "█" not in text


def test_the_table_for_another_queue_has_a_row_for_each_card_that_a_shot_may_use():
    machines = [machine("a", "small", 80), machine("b", "large", 80), machine("c", "tiny", 5)]
    found = assigned([shot("one", count=2), shot("two", num_frames=41)], machines)
    rows = list(csv.DictReader(io.StringIO(page.table(found))))
    assert [(row["shot"], row["card"]) for row in rows] == [
        ("one", "small"),
        ("one", "large"),
        ("two", "small"),
        ("two", "large"),
    ]
    assert [row["machine"] for row in rows if row["shot"] == "one"] == ["", "b"]
    assert float(rows[1]["seconds_per_run"]) == 60
    assert int(rows[1]["min_vram_bytes"]) == on_paper.gib(54 + 0.5)
    assert "--offload none" in rows[1]["settings"]
    again = json.loads(found.model_dump_json(by_alias=True))
    assert again["schema"] == "cardfit.assign/1"
    assert len(again["requirements"]) == len(rows)


@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_the_chart_is_a_file_that_opens(tmp_path, ending):
    found = assigned(
        [shot("one", count=3), shot("two", sequence="q", deadline=MONDAY)],
        [machine("a", "large", 80), machine("b", "small", 80)],
    )
    file = tmp_path / f"chart{ending}"
    assign_chart.write(found, file)
    raw = file.read_bytes()
    assert raw.startswith({".svg": b"<svg", ".png": b"\x89PNG"}[ending])
    if ending == ".svg":
        assert b"one" in raw and b"a 0 LARGE" in raw
    values = assign_chart.stretches(found)
    assert {value["shot"] for value in values} == {"one", "two"}


usable = st.floats(3, 80)
rams = st.sampled_from([None, 8.0, 36.0, 40.0, 80.0])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["large", "middle", "small"]), usable, rams),
        min_size=1,
        max_size=4,
    ),
    st.lists(
        st.tuples(
            st.sampled_from([None, "none", "model", "group-leaf", "sequential"]),
            st.sampled_from([None, True, False]),
            st.integers(1, 4),
        ),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
    st.booleans(),
)
def test_never_a_shot_on_a_card_that_it_does_not_fit(cards, asked, allow_tight, lossless):
    """Held against the rows that a plan of the same request gives for the same card and RAM."""
    machines = [
        machine(f"m{at}", card, size, ram_gib=ram) for at, (card, size, ram) in enumerate(cards)
    ]
    shots = [
        shot(f"s{at}", count=count, settings=Settings(offload=offload, vae_tiling=tiling))
        for at, (offload, tiling, count) in enumerate(asked)
    ]
    found = assigned(shots, machines, allow_tight=allow_tight, lossless=lossless)
    allowed = {"fits", "tight"} if allow_tight else {"fits"}
    for row, one in zip(found.shots, shots, strict=True):
        plans = {}
        for each in machines:
            target = each.kinds[0].target
            answer = make(
                on_paper.exact(),
                one.settings,
                [target],
                Host(),
                on_paper.knobs(),
                on_paper.estimates(),
                on_paper.facts(),
                timer=timed,
            )
            plans[each.name] = answer.cards[0]
        fit = {
            name
            for name, plan in plans.items()
            if plan.verdict in allowed and not (lossless and "lossy" in plan.price_of_it)
        }
        if row.place is None:
            assert not fit
        else:
            assert row.place.machine in fit
            assert row.place.settings == plans[row.place.machine].settings
            assert row.place.verdict == plans[row.place.machine].verdict


def test_two_hundred_shots_on_twenty_machines_are_laid_out_within_two_seconds():
    names = ["large", "middle", "small"]
    machines = [
        machine(f"m{n}", names[n % 3], 24 + n, ram_gib=48 + n, count=1 + n % 3) for n in range(20)
    ]
    shots = [
        shot(
            f"s{n}",
            count=1 + n % 17,
            num_frames=(41, 81)[n % 2],
            priority=n % 2,
            deadline=MONDAY + timedelta(hours=1 + n % 5) if n % 3 else None,
            **({"sequence": f"q{n // 25}"} if n % 4 == 0 else {}),
        )
        for n in range(200)
    ]
    kept = {f"q{n}": Sequence(keep_same_card=True) for n in range(8)}
    began = time.process_time()
    found = assigned(shots, machines, sequences=kept)
    assert time.process_time() - began < 2.0
    assert all(row.place is not None for row in found.shots)
