"""The allocator's settings: documented rules by hand, then event by event against a reference of lists and pages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.predict.alloc_conf import AllocConf, parse_alloc_conf
from cardfit.predict.allocator import Allocator, Block, DeviceFull, layout, rounded
from cardfit.predict.tuned import ExpandableAllocator, TunedAllocator, allocator_of, power2_rounded
from cardfit.units import KIB, MIB

EXPANDABLE = "expandable_segments:True"


def made(text: str, limit_mib: int | None = None) -> Allocator:
    return allocator_of(parse_alloc_conf(text), None if limit_mib is None else limit_mib * MIB)


def test_nothing_set_is_the_plain_allocator() -> None:
    assert type(made("")) is Allocator
    assert type(made("max_split_size_mb:64")) is TunedAllocator
    assert type(made(EXPANDABLE)) is ExpandableAllocator


# -- rounding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "divisions", "expected"),
    [
        (1200, 4, 1280),  # 1024, 1280, 1536, 1792, 2048
        (2048, 4, 2048),
        (5 * MIB + 1, 2, 6 * MIB),
        (6 * MIB + 1, 2, 8 * MIB),
    ],
)
def test_power_of_two_divisions(size: int, divisions: int, expected: int) -> None:
    assert power2_rounded(size, divisions) == expected


def test_rounding_by_size_and_not_where_one_division_is_left() -> None:
    allocator = made("roundup_power2_divisions:[4:2,8:1,>:4]")
    assert allocator.allocate(5 * MIB + 1).size == 6 * MIB
    assert allocator.allocate(9 * MIB + 1).size == 9 * MIB + 512  # one division: no rounding
    # 16 MiB in four steps: 20; and of the segment of 20 nothing is split off
    assert allocator.allocate(17 * MIB).size == 20 * MIB
    assert allocator.allocate(1).size == 512


# -- max_split_size_mb ---------------------------------------------------------------------------


def test_a_block_over_the_split_size_serves_no_small_request() -> None:
    allocator = made("max_split_size_mb:64")
    allocator.free(allocator.allocate(64 * MIB))
    allocator.allocate(30 * MIB)  # the plain allocator would split the 64
    assert allocator.reserved_bytes == 94 * MIB


def test_a_block_over_the_split_size_is_never_split_and_wastes_less_than_20_mib() -> None:
    allocator = made("max_split_size_mb:64")
    allocator.free(allocator.allocate(100 * MIB))
    block = allocator.allocate(81 * MIB)
    assert block.size == allocator.allocated_bytes == 100 * MIB
    allocator.free(block)
    allocator.allocate(80 * MIB)  # 20 MiB would be left over
    assert allocator.reserved_bytes == 180 * MIB


def test_a_rest_of_1_mib_is_not_split_off() -> None:
    allocator = made("max_split_size_mb:64")
    assert allocator.allocate(31 * MIB).size == 32 * MIB
    assert allocator.allocate(31 * MIB - 512).size == 31 * MIB - 512


def test_a_full_card_first_lets_go_of_one_large_block() -> None:
    allocator = made("max_split_size_mb:64", 400)
    large, small, other = (allocator.allocate(n * MIB) for n in (150, 40, 100))
    for block in (large, small, other):
        allocator.free(block)
    # 290 reserved, 120 wanted, 130 would serve: 150 is the smallest that suffices; 40 and 100 stay
    allocator.allocate(125 * MIB)
    assert allocator.reserved_bytes == (40 + 100 + 126) * MIB


def test_a_full_card_lets_go_of_several_when_none_suffices() -> None:
    allocator = made("max_split_size_mb:64", 400)
    for block in [allocator.allocate(n * MIB) for n in (70, 80, 90, 40)]:
        allocator.free(block)
    allocator.allocate(160 * MIB)  # 280 reserved: 90 and 80 make 170
    assert allocator.reserved_bytes == (70 + 40 + 160) * MIB


# -- garbage_collection_threshold ----------------------------------------------------------------


def test_blocks_unused_for_longer_than_the_average_are_reclaimed_over_the_threshold() -> None:
    allocator = made("garbage_collection_threshold:0.5", 200)
    old, new = allocator.allocate(60 * MIB), allocator.allocate(50 * MIB)
    allocator.free(old)
    allocator.free(allocator.allocate(12 * MIB))  # out of the 60
    allocator.free(new)
    # 110 reserved are over 100; ages 1 and 1 at this call: both are as old as the average
    allocator.allocate(80 * MIB)
    assert allocator.reserved_bytes == 80 * MIB


def test_what_was_used_just_now_stays() -> None:
    allocator = made("garbage_collection_threshold:0.5", 200)
    old, new = allocator.allocate(60 * MIB), allocator.allocate(50 * MIB)
    allocator.free(old)
    allocator.allocate(70 * MIB)  # 110 reserved: over 100, and the 60 go
    assert allocator.reserved_bytes == 120 * MIB
    allocator.free(new)
    before = allocator.reserved_bytes
    allocator.allocate(40 * MIB)  # fits into the 50: nothing is asked of the driver, nothing goes
    assert allocator.reserved_bytes == before


def test_nothing_is_reclaimed_without_a_limit() -> None:
    allocator = made("garbage_collection_threshold:0.1")
    allocator.free(allocator.allocate(60 * MIB))
    allocator.allocate(70 * MIB)
    assert allocator.reserved_bytes == 130 * MIB


def test_ages_decide_later_requests_so_they_are_part_of_the_state() -> None:
    one, other = (made("garbage_collection_threshold:0.5", 200) for _ in range(2))
    for allocator in (one, other):
        allocator.free(allocator.allocate(60 * MIB))
    assert one.fingerprint() == other.fingerprint()
    held = [one.allocate(60 * MIB), other.allocate(60 * MIB)]
    taken = one.allocate(30 * MIB)  # a request more to the large pool, and its segment goes again
    for allocator, block in zip((one, other), held, strict=True):
        allocator.free(block)
    one.free(taken)
    one.empty_cache()
    other.empty_cache()
    one.free(one.allocate(60 * MIB))
    other.free(other.allocate(60 * MIB))
    assert one.fingerprint()[1] == other.fingerprint()[1] == (0,)
    one.allocate(30 * MIB)
    assert layout(one)[0][0][1][1].age == 0  # the rest of the 60 was put there just now


# -- expandable_segments -------------------------------------------------------------------------


def test_pages_are_mapped_as_they_are_needed() -> None:
    allocator = made(EXPANDABLE)
    allocator.allocate(512)
    assert allocator.reserved_bytes == 2 * MIB
    first = allocator.allocate(30 * MIB)
    assert allocator.reserved_bytes == 42 * MIB  # two pages of 20
    second = allocator.allocate(15 * MIB)  # the 10 that are left and one page more
    assert second.address == first.address + 30 * MIB
    assert allocator.reserved_bytes == 62 * MIB
    assert allocator.allocated_bytes == 45 * MIB + 512


def test_a_free_end_grows_instead_of_a_second_segment() -> None:
    plain, grown = made(""), made(EXPANDABLE)
    for allocator in (plain, grown):
        for size in range(100, 200, 20):  # a little more each time
            allocator.free(allocator.allocate(size * MIB))
    assert plain.reserved_bytes == (100 + 120 + 140 + 160 + 180) * MIB
    assert grown.reserved_bytes == 180 * MIB


def test_any_rest_is_split_off() -> None:
    allocator = made(EXPANDABLE)
    assert allocator.allocate(31 * MIB).size == 31 * MIB
    allocator.free(allocator.allocate(32 * MIB - 512))
    assert allocator.allocated_bytes == 31 * MIB


def test_pages_in_the_middle_are_unmapped_and_mapped_again() -> None:
    allocator = made(EXPANDABLE, 140)
    first, middle, last = (allocator.allocate(n * MIB) for n in (30, 60, 30))
    assert allocator.reserved_bytes == 120 * MIB
    allocator.free(middle)  # from 30 to 90: pages 40 to 80 hold nothing else
    allocator.empty_cache()
    assert allocator.reserved_bytes == 80 * MIB
    # at 30 there are 10 free, 40 unmapped, 10 free: 60 in a row, and only 40 of them are mapped anew
    again = allocator.allocate(60 * MIB)
    assert again.address == middle.address
    assert allocator.reserved_bytes == 120 * MIB
    for block in (first, again, last):
        allocator.free(block)
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0


def test_a_full_card_unmaps_what_no_plain_segment_could_return() -> None:
    """110 MiB: B pins A's segment of 40 in the plain allocator; here its other page goes."""

    def play(allocator: Allocator) -> None:
        a = allocator.allocate(40 * MIB)
        allocator.free(a)
        c = allocator.allocate(60 * MIB)
        allocator.allocate(12 * MIB)
        allocator.free(c)
        allocator.allocate(66 * MIB)

    with pytest.raises(DeviceFull) as full:
        play(made("", 105))
    assert full.value.tried_bytes == 66 * MIB
    play(made(EXPANDABLE, 105))


def test_the_error_of_an_expandable_segment_asks_for_the_same_bytes() -> None:
    allocator = made(EXPANDABLE, 30)
    allocator.allocate(12 * MIB)
    with pytest.raises(DeviceFull) as full:
        allocator.allocate(15 * MIB + 1)
    assert full.value.tried_bytes == 16 * MIB
    assert (full.value.allocated_bytes, full.value.reserved_bytes) == (12 * MIB, 20 * MIB)


# -- laws ----------------------------------------------------------------------------------------

CONFS = (
    "",
    "max_split_size_mb:21",
    "max_split_size_mb:30",
    "max_split_size_mb:24,max_non_split_rounding_mb:40",
    "garbage_collection_threshold:0.4",
    "garbage_collection_threshold:0.7,max_split_size_mb:30",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[4:2,16:8,>:1],max_split_size_mb:22",
    EXPANDABLE,
    EXPANDABLE + ",max_split_size_mb:30",
    EXPANDABLE + ",roundup_power2_divisions:2",
)
LARGE, PAGE = 20 * 2**20, {True: 2 * 2**20, False: 20 * 2**20}

sizes = st.one_of(
    st.integers(1, 4 * KIB),
    st.integers(1, 3 * MIB),
    st.integers(1, 70 * MIB),
    st.integers(5, 35).map(lambda n: n * 2 * MIB),
    st.sampled_from([MIB, MIB + 512, 10 * MIB, 20 * MIB, 21 * MIB, 21 * MIB - 512, 31 * MIB]),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("a"), sizes),
        st.tuples(st.just("a"), sizes),
        st.tuples(st.just("f"), st.integers(0, 50)),
        st.tuples(st.just("e"), st.just(0)),
    ),
    max_size=40,
)
limits = st.one_of(st.none(), st.integers(0, 300 * MIB))


def ceil(size: int, step: int) -> int:
    return -(-size // step) * step


class Plain:
    """Segments of fixed size as lists of [address, size, taken, freed at call]; everything is searched whole."""

    def __init__(self, conf: AllocConf, limit: int | None) -> None:
        self.conf, self.limit = conf, limit
        self.segments: list[tuple[bool, list[list[int]]]] = []
        self.next = self.calls = 0

    def stretch(self, size: int) -> int:
        divisions = 0
        for interval, number in enumerate(self.conf.roundup_power2_divisions):
            if size >= 2**20 << interval or interval == 0:
                divisions = number
        if divisions > 1 and size > 512 * divisions:
            power = 1
            while power * 2 <= size:
                power *= 2
            return next(
                n for n in range(power, 2 * power + 1, max(1, power // divisions)) if n >= size
            )
        return ceil(size, 512)

    def reserved(self) -> int:
        return sum(block[1] for _, blocks in self.segments for block in blocks)

    def whole(self) -> list[tuple[bool, list[list[int]]]]:
        return [each for each in self.segments if len(each[1]) == 1 and not each[1][0][2]]

    def drop(self, gone: list[tuple[bool, list[list[int]]]]) -> None:
        self.segments = [each for each in self.segments if not any(each is one for one in gone)]

    def empty(self) -> None:
        self.drop(self.whole())

    def allocate(self, asked: int) -> int | None:
        size = self.stretch(asked)
        small, most = size <= 2**20, self.conf.max_split_size_bytes
        self.calls += not small
        free = sorted(
            (block[1], block[0], number, place)
            for number, (pool, blocks) in enumerate(self.segments)
            if pool == small
            for place, block in enumerate(blocks)
            if not block[2] and block[1] >= size
        )
        found = free[0] if free else None
        if found and most is not None:
            rest = self.conf.max_non_split_rounding_bytes
            if found[0] >= most if size < most else found[0] >= size + rest:
                found = None
        if found is None:
            found = self.new(size, small)
            if found is None:
                return None
        _, address, number, place = found
        blocks = self.segments[number][1]
        rest = blocks[place][1] - size
        may = small or most is None or size < most
        if may and (rest >= 512 if small else rest > 2**20):
            blocks[place : place + 1] = [
                [address, size, 1, 0],
                [address + size, rest, 0, self.calls],
            ]
        else:
            blocks[place][2] = 1
        return address

    def new(self, size: int, small: bool) -> tuple[int, int, int, int] | None:
        wanted = 2**21 if small else LARGE if size < 10 * 2**20 else ceil(size, 2**21)
        self.collect()
        for attempt in range(3):
            if attempt == 1:
                self.oversize(size, small)
            elif attempt == 2:
                self.empty()
            if self.limit is None or self.reserved() + wanted <= self.limit:
                self.segments.append((small, [[self.next, wanted, 0, self.calls]]))
                self.next += wanted + KIB
                return wanted, self.next - wanted - KIB, len(self.segments) - 1, 0
        return None

    def oversize(self, size: int, small: bool) -> None:
        most = self.conf.max_split_size_bytes
        if most is None or small:
            return
        wanted = max(size, most)
        whole = [each for each in self.whole() if each[0] == small and each[1][0][1] >= most]
        whole.sort(key=lambda each: (each[1][0][1], each[1][0][0]))
        enough = [each for each in whole if each[1][0][1] >= wanted]
        if enough:
            self.drop(enough[:1])
            return
        released = 0
        while whole and released < wanted:
            released += whole[-1][1][0][1]
            self.drop([whole.pop()])

    def collect(self) -> None:
        share = self.conf.garbage_collection_threshold
        if share is None or self.limit is None:
            return
        over = int(share * self.limit)
        target = self.reserved() - over
        while target > 0:
            old = [each for each in self.whole() if not each[0]]
            if not old:
                return
            ages = [self.calls - each[1][0][3] for each in old]
            gone = [e for e, age in zip(old, ages, strict=True) if age * len(ages) >= sum(ages)]
            target -= sum(each[1][0][1] for each in gone)
            self.drop(gone)

    def free(self, address: int) -> None:
        for _, blocks in self.segments:
            for place, block in enumerate(blocks):
                if block[0] == address and block[2]:
                    block[2] = 0
                    if place + 1 < len(blocks) and not blocks[place + 1][2]:
                        block[1] += blocks.pop(place + 1)[1]
                    if place and not blocks[place - 1][2]:
                        blocks[place - 1][1] += blocks.pop(place)[1]
                        block = blocks[place - 1]
                    block[3] = self.calls
                    return


class Pages(Plain):
    """Expandable segments as a set of mapped pages and a list of living spans for each pool; nothing else is kept."""

    def __init__(self, conf: AllocConf, limit: int | None) -> None:
        super().__init__(conf, limit)
        self.pages: dict[bool, set[int]] = {}
        self.spans: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self.starts: dict[bool, int] = {}

    def reserved(self) -> int:
        return sum(len(pages) * PAGE[pool] for pool, pages in self.pages.items())

    def free_runs(self, small: bool) -> list[tuple[int, int]]:
        """(begin, end) of mapped bytes that no span holds, in order of address."""
        page, runs = PAGE[small], list[tuple[int, int]]()
        for number in sorted(self.pages.get(small, ())):
            begin, end = number * page, (number + 1) * page
            if runs and runs[-1][1] == begin:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((begin, end))
        for low, high in self.spans[small]:
            cut = []
            for begin, end in runs:
                cut += [(begin, min(end, low)), (max(begin, high), end)]
            runs = [(begin, end) for begin, end in cut if begin < end]
        return runs

    def gaps(self, small: bool) -> list[tuple[int, int]]:
        """(begin, end) of what is not mapped; the last one has no end."""
        page, at, found = PAGE[small], 0, list[tuple[int, int]]()
        for number in sorted(self.pages.get(small, ())):
            if number * page > at:
                found.append((at, number * page))
            at = (number + 1) * page
        return [*found, (at, 2**60)]

    def allocate(self, asked: int) -> int | None:
        size = self.stretch(asked)
        small = size <= 2**20
        if small not in self.pages:
            self.pages[small] = set()
        begin = self.best(size, small)
        if begin is None:
            begin = self.grown(size, small)
        if begin is None:
            self.empty()
            begin = self.grown(size, small)
        if begin is None:
            return None
        self.starts.setdefault(small, len(self.starts) * 20 * 2**20 * 2**18)
        self.spans[small].append((begin, begin + size))
        return self.starts[small] + begin

    def best(self, size: int, small: bool) -> int | None:
        gaps, most = dict(self.gaps(small)), self.conf.max_split_size_bytes
        ordered = sorted((end - begin, begin) for begin, end in self.free_runs(small))
        fits = [(run, begin) for run, begin in ordered if run >= size]
        if not fits:
            return None
        grows = [gaps.get(begin + run, begin + run) - begin for run, begin in fits]
        at = 0
        while at + 1 < len(fits) and grows[at + 1] < grows[at]:
            at += 1
        run, begin = fits[at]
        if most is not None:
            limit = self.conf.max_non_split_rounding_bytes
            if run >= most if size < most else run >= size + limit:
                return None
        return begin

    def grown(self, size: int, small: bool) -> int | None:
        """Map from the first gap, or from the free run right before it, where ``size`` bytes in a row are not alive."""
        page = PAGE[small]
        before = {end: begin for begin, end in self.free_runs(small)}
        for gap, _ in self.gaps(small):
            begin = before.get(gap, gap)
            if all(high <= begin or low >= begin + size for low, high in self.spans[small]):
                break
        while True:
            have = next((e - b for b, e in self.free_runs(small) if b == begin), 0)
            if have >= size:
                return begin
            low, high = next(gap for gap in self.gaps(small) if gap[0] == begin + have)
            new = ceil(min(high - low, size - have), page)
            if self.limit is not None and self.reserved() + new > self.limit:
                return None
            self.pages[small] |= set(range(low // page, (low + new) // page))

    def empty(self) -> None:
        for small, pages in self.pages.items():
            page = PAGE[small]
            for begin, end in self.free_runs(small):
                pages -= set(range(ceil(begin, page) // page, end // page))

    def free(self, address: int) -> None:
        for small, start in self.starts.items():
            kept = [span for span in self.spans[small] if start + span[0] != address]
            if len(kept) < len(self.spans[small]) and address >= start:
                self.spans[small] = kept
                return


def overlaps(blocks: list[Block]) -> bool:
    spans = sorted((block.address, block.address + block.size) for block in blocks)
    return any(end > start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


@given(steps, limits, st.sampled_from(CONFS))
@settings(max_examples=400, deadline=None)
def test_it_does_what_the_reference_does(
    moves: list[tuple[str, int]], limit: int | None, text: str
) -> None:
    conf = parse_alloc_conf(text)
    allocator = allocator_of(conf, limit)
    reference = Pages(conf, limit) if conf.expandable_segments else Plain(conf, limit)
    alive: list[Block] = []
    for kind, value in moves:
        if kind == "a":
            expected = reference.allocate(value)
            if expected is None:
                with pytest.raises(DeviceFull):
                    allocator.allocate(value)
                return
            alive.append(allocator.allocate(value))
            assert alive[-1].address == expected
            assert alive[-1].size >= value
        elif kind == "f" and alive:
            block = alive.pop(value % len(alive))
            reference.free(block.address)
            allocator.free(block)
        elif kind == "e":
            allocator.empty_cache()
            reference.empty()
        assert not overlaps(alive)
        assert allocator.allocated_bytes == sum(b.size for b in alive)
        assert allocator.reserved_bytes == reference.reserved() >= allocator.allocated_bytes
        assert limit is None or allocator.reserved_bytes <= limit
    for block in alive:
        allocator.free(block)
    allocator.empty_cache()  # frees merged, so nothing stays
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (0, 0)


def ends(
    moves: list[tuple[str, int]], text: str, limit: int | None, turn: int = -1
) -> tuple[bool, int, int]:
    """Whether the moves end well, the most that lived and the most reserved; laid out anew before move ``turn``."""
    allocator, alive, peak = allocator_of(parse_alloc_conf(text), limit), list[Block](), 0
    try:
        for number, (kind, value) in enumerate(moves):
            if number == turn:
                allocator, alive = laid_anew(allocator, alive, text, limit)
            if kind == "a":
                alive.append(allocator.allocate(value))
            elif kind == "f" and alive:
                allocator.free(alive.pop(value % len(alive)))
            elif kind == "e":
                allocator.empty_cache()
            peak = max(peak, allocator.allocated_bytes)
    except DeviceFull:
        return False, peak, allocator.reserved_peak_bytes
    return True, peak, allocator.reserved_peak_bytes


def laid_anew(
    old: Allocator, alive: list[Block], text: str, limit: int | None
) -> tuple[Allocator, list[Block]]:
    """The same state in an allocator that has no past."""
    found, taken = layout(old)
    new = allocator_of(parse_alloc_conf(text), limit)
    blocks = [block for pool, parts in found for block in new.lay(pool, parts)]
    new.reserved_peak_bytes = old.reserved_peak_bytes
    assert layout(new)[0] == found
    assert (new.allocated_bytes, new.reserved_bytes) == (old.allocated_bytes, old.reserved_bytes)
    other = {id(before): after for before, after in zip(taken, blocks, strict=True)}
    return new, [other[id(block)] for block in alive]


@given(steps, st.sampled_from(CONFS), st.integers(0, 4 * MIB))
@settings(max_examples=100, deadline=None)
def test_limits_between_the_peaks_decide(
    moves: list[tuple[str, int]], text: str, more: int
) -> None:
    """Below what lives nothing ends well; from the unlimited reserved peak on everything does."""
    if "garbage" not in text:  # which reclaims below the limit already
        _, peak, reserved = ends(moves, text, None)
        assert ends(moves, text, reserved + more) == (True, peak, reserved)
    alive, live_peak = list[int](), 0
    for kind, value in moves:
        if kind == "a":
            alive.append(rounded(value))
        elif kind == "f" and alive:
            alive.pop(value % len(alive))
        live_peak = max(live_peak, sum(alive))
    if live_peak:
        assert not ends(moves, text, live_peak - 1)[0]


@given(steps, limits, st.sampled_from(CONFS), st.integers(0, 39))
@settings(max_examples=150, deadline=None)
def test_a_layout_is_everything_that_decides(
    moves: list[tuple[str, int]], limit: int | None, text: str, turn: int
) -> None:
    assert ends(moves, text, limit, turn) == ends(moves, text, limit)
