"""What repeats in a call: blocks are found wherever they begin, and only where they truly do the same."""

from __future__ import annotations

from cardfit.trace.repeats import LEAST_TURNS, Repeat, repeats, without_modules
from cardfit.trace.stream import Event, Op

_WIDTHS = (512, 1024, 2048, 4096)


def _block(events: list[Event], at: int, module: int, carried: int, *, wide: int = 0) -> int:
    """One block: four modules, each gives birth to a storage; the block before's result dies in it."""
    events.append((Op.ENTER, module, 0, 0))
    for place, size in enumerate(_WIDTHS):
        events.append((Op.ENTER, module + 1 + place, 0, 0))
        events.append((Op.BIRTH, at + place, size + wide, module))
        events.append((Op.EXIT, module + 1 + place, 0, 0))
    events.extend((Op.DEATH, at + place, 0, 0) for place in range(3))
    events.append((Op.DEATH, carried, 0, 0))
    events.append((Op.EXIT, module, 0, 0))
    return at + 4


def _call(blocks: int, *, wide_at: int | None = None) -> list[Event]:
    events: list[Event] = [(Op.ENTER, 0, 0, 0), (Op.BIRTH, 1, 7, 0), (Op.BIRTH, 2, 9, 0)]
    at = 3
    for number in range(blocks):
        wide = 512 if number == wide_at else 0
        at = _block(events, at, 1 + 5 * number, at - 1, wide=wide)
    events.append((Op.EXIT, 0, 0, 0))
    return events


def test_blocks_are_found_with_their_strides() -> None:
    events = _call(9)
    (found,) = repeats(events)
    assert (found.period, found.births, found.modules) == (18, 4, 5)
    assert found.count >= 8
    assert found.end <= len(events)
    births = [a for op, a, _, _ in events[found.start :] if op == Op.BIRTH]
    assert found.first == births[0]


def test_a_period_is_the_first_one_moved_on() -> None:
    """What a `Repeat` promises: each period's events are the first one's with ids and modules moved by its strides."""
    events = _call(9)
    for found in repeats(events):
        first = events[found.start : found.start + found.period]
        for turn in range(found.count):
            begin = found.start + turn * found.period
            for (op, a, b, _), (its_op, its_a, its_b, _) in zip(
                first, events[begin : begin + found.period], strict=True
            ):
                stride = found.modules if op in (Op.ENTER, Op.EXIT) else found.births
                assert (its_op, its_a, its_b) == (op, a + turn * stride, b)


def test_a_block_of_another_size_breaks_it() -> None:
    found = repeats(_call(12, wide_at=5))
    assert [each.count for each in found] in ([4, 5], [5, 5], [5, 6], [4, 6])
    assert found[0].end <= found[1].start


def test_too_few_blocks_are_not_worth_it() -> None:
    assert repeats(_call(LEAST_TURNS - 1)) == ()


def test_without_modules_the_period_is_shorter() -> None:
    call = _call(20)
    events = tuple(call[place] for place in without_modules(call))
    assert all(event[0] in (Op.BIRTH, Op.DEATH) for event in events)
    # eight events a block: fewer than a comparison costs, so two blocks make a period or none is found
    assert all(found.period >= 12 and found.modules == 0 for found in repeats(events))


def test_a_part_begins_where_its_period_does() -> None:
    whole = Repeat(start=10, period=4, count=9, births=2, modules=3, first=20, module=5)
    part = whole.part(2, 3)
    assert part == Repeat(start=18, period=4, count=3, births=2, modules=3, first=24, module=11)
    assert part.end == 30
