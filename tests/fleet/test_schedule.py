"""The schedule on numbers: laws that every schedule keeps, and small ones worked out by hand or by trying all."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.fleet.schedule import Floor, Schedule, Slot, Task, Work, late_s, schedule

ALWAYS = ((0.0, math.inf),)


def slot(machine: int, kind: str = "a", rank: float = 1, spans=ALWAYS) -> Slot:
    return Slot(machine, kind, rank, spans)


def work(each: float, load: float = 0.0, host: int = 0, weights: str = "w") -> Work:
    return Work(load, each, load, each, host, weights)


def makespan(found: Schedule) -> float:
    return max(each.done_s for each in found.placed.values())


def test_the_longest_goes_first_and_to_where_it_is_done_first():
    tasks = [Task(1, {0: work(each), 1: work(each)}) for each in (2, 3, 3, 4, 4)]
    found = schedule(tasks, Floor((slot(0), slot(1)), {}))
    # LPT: 4 3 2 | 4 3 = 9, and 8 is the best there is (4 4 | 3 3 2)
    assert makespan(found) == 9


def test_of_slots_that_are_done_together_the_smaller_card_is_taken():
    found = schedule([Task(1, {0: work(5), 1: work(5)})], Floor((slot(0, rank=9), slot(1)), {}))
    assert found.placed[0].slot == 1


def test_weights_that_are_loaded_stay():
    tasks = [Task(2, {0: work(10, load=100)}), Task(1, {0: work(10, load=100)})]
    found = schedule(tasks, Floor((slot(0),), {}))
    assert makespan(found) == 100 + 30
    other = [tasks[0], Task(1, {0: work(10, load=100, weights="other")})]
    assert makespan(schedule(other, Floor((slot(0),), {}))) == 2 * 100 + 30


def test_work_pauses_between_runs_where_hours_end_and_loads_again():
    nights = ((0.0, 100.0), (1000.0, 1100.0))
    found = schedule([Task(5, {0: work(30, load=10)})], Floor((slot(0, spans=nights),), {}))
    first, second = found.placed[0].segments
    assert (first.begins_s, first.ends_s, first.runs) == (0.0, 100.0, 3)
    assert (second.begins_s, second.ends_s, second.runs) == (1000.0, 1070.0, 2)


def test_a_run_longer_than_all_hours_has_no_place():
    found = schedule([Task(1, {0: work(200)})], Floor((slot(0, spans=((0.0, 100.0),)),), {}))
    assert found.placed == {} and found.no_hours == (0,)


def test_cards_of_one_machine_share_its_ram():
    tasks = [Task(1, {0: work(10, host=40), 1: work(10, host=40)}) for _ in range(2)]
    slots = (slot(0), slot(0))
    together = schedule(tasks, Floor(slots, {0: 80}))
    assert makespan(together) == 10 and not together.short_of_ram
    waiting = schedule(tasks, Floor(slots, {0: 79}))
    assert makespan(waiting) == 20 and waiting.short_of_ram == {0}
    assert makespan(schedule(tasks, Floor((slot(0), slot(1)), {0: 79, 1: 79}))) == 10


def test_a_deadline_goes_before_length_and_priority_before_both():
    urgent = Task(1, {0: work(1)}, deadline_s=1.0)
    found = schedule([Task(1, {0: work(50)}), urgent], Floor((slot(0),), {}))
    assert found.placed[1].done_s == 1
    first = schedule([Task(1, {0: work(50)}, priority=1), urgent], Floor((slot(0),), {}))
    assert first.placed[0].done_s == 50 and late_s(urgent, first.placed[1].done_s) == 50


def test_a_kept_sequence_takes_one_kind_of_card():
    both = {0: work(10), 1: work(10)}
    kept = [Task(1, both, group="g"), Task(1, {0: work(30), 1: work(1)}, group="g")]
    found = schedule(kept, Floor((slot(0, "a"), slot(1, "b")), {}))
    assert {each.slot for each in found.placed.values()} == {1}
    apart = [Task(1, {0: work(1)}, group="g"), Task(1, {1: work(1)}, group="g")]
    none = schedule(apart, Floor((slot(0, "a"), slot(1, "b")), {}))
    assert none.placed == {} and none.no_kind == (0, 1)


def test_at_worst_follows_the_same_order():
    slow = Work(0.0, 10.0, 0.0, 15.0, 0, "w")
    found = schedule([Task(1, {0: slow}), Task(1, {0: slow})], Floor((slot(0),), {}))
    assert sorted(each.done_high_s for each in found.placed.values()) == [15, 30]
    night = Floor((slot(0, spans=((0.0, 25.0),)),), {})
    over = schedule([Task(1, {0: slow}), Task(1, {0: slow})], night)
    assert sorted(str(each.done_high_s) for each in over.placed.values()) == ["15.0", "None"]


def test_nothing_to_do():
    assert schedule([], Floor((slot(0),), {})).placed == {}
    assert schedule([Task(1, {})], Floor((slot(0),), {})).placed == {}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(1, 3),
)
def test_no_more_than_four_thirds_of_the_best_on_equal_cards(lengths, count):
    """Graham's bound for the longest first on m equal machines: 4/3 - 1/(3 m)."""
    slots = tuple(slot(at) for at in range(count))
    tasks = [Task(1, {at: work(each) for at in range(count)}) for each in lengths]
    best = min(
        max(sum(n for n, to in zip(lengths, where, strict=True) if to == at) for at in range(count))
        for where in itertools.product(range(count), repeat=len(lengths))
    )
    found = makespan(schedule(tasks, Floor(slots, {})))
    assert best <= found <= best * (4 / 3 - 1 / (3 * count)) + 1e-9


@st.composite
def floors(draw) -> tuple[list[Task], Floor]:
    slots = []
    for machine in range(draw(st.integers(1, 3))):
        begins = draw(st.sampled_from([0.0, 7.0]))
        spans = draw(st.sampled_from([((begins, math.inf),), ((begins, 40.0), (60.0, 200.0))]))
        kinds = draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=3))
        slots += [slot(machine, kind, draw(st.integers(1, 3)), spans) for kind in kinds]
    ram = {at: 10 for at in {each.machine for each in slots} if draw(st.booleans())}
    tasks = []
    for _ in range(draw(st.integers(0, 8))):
        able = draw(st.lists(st.integers(0, len(slots) - 1), unique=True, max_size=4))
        works = {
            at: Work(
                draw(st.sampled_from([0.0, 3.0])),
                each := draw(st.floats(0.5, 12)),
                4.0,
                1.5 * each,
                draw(st.integers(0, 10)),
                draw(st.sampled_from("xy")),
            )
            for at in able
        }
        tasks.append(
            Task(
                draw(st.integers(1, 5)),
                works,
                draw(st.integers(0, 1)),
                draw(st.sampled_from([None, 10.0, 50.0])),
                draw(st.sampled_from([None, None, "g", "h"])),
            )
        )
    return tasks, Floor(tuple(slots), ram)


@settings(max_examples=80, deadline=None)
@given(floors())
def test_every_schedule_keeps_the_laws(asked):
    tasks, floor = asked
    found = schedule(tasks, floor)
    able = {at for at, task in enumerate(tasks) if task.works}
    gone = {*found.placed, *found.no_hours, *found.no_kind}
    assert gone == able and len(found.placed) + len(found.no_hours) + len(found.no_kind) == len(
        able
    )
    busy: dict[int, list[tuple[float, float]]] = {}
    held: dict[int, list[tuple[float, float, int]]] = {}
    for at, place in found.placed.items():
        task, here = tasks[at], floor.slots[place.slot]
        assert place.slot in task.works
        assert sum(each.runs for each in place.segments) == task.runs
        for each in place.segments:
            assert any(a <= each.begins_s and each.ends_s <= b + 1e-6 for a, b in here.spans)
            assert each.ends_s - each.begins_s >= each.runs * task.works[place.slot].each_s - 1e-6
            busy.setdefault(place.slot, []).append((each.begins_s, each.ends_s))
            took = (each.begins_s, each.ends_s, task.works[place.slot].host_bytes)
            held.setdefault(here.machine, []).append(took)
    for spans in busy.values():
        ordered = sorted(spans)
        assert all(a[1] <= b[0] + 1e-6 for a, b in itertools.pairwise(ordered))
    for machine, ram in floor.ram_bytes.items():
        for moment, _, _ in held.get(machine, []):
            now = sum(size for a, b, size in held[machine] if a <= moment < b)
            assert now <= ram
    for group in ("g", "h"):
        members = [at for at in found.placed if tasks[at].group == group]
        assert len({floor.slots[found.placed[at].slot].kind for at in members}) <= 1
