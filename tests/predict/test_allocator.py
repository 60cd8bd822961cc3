"""The caching allocator: its documented rules by hand, then laws against a reference that knows only addresses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.predict.allocator import Allocator, Block, DeviceFull, rounded, segment_bytes
from cardfit.units import KIB, MIB


def test_sizes_round_up_to_512_bytes() -> None:
    assert [rounded(n) for n in (1, 511, 512, 513, 1024, MIB + 1)] == [
        512,
        512,
        512,
        1024,
        1024,
        MIB + 512,
    ]


@pytest.mark.parametrize(
    ("asked", "reserved"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),  # up to 1 MiB: the small pool
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),  # below 10 MiB
        (10 * MIB, 10 * MIB),  # from 10 MiB on: rounded up to 2 MiB
        (10 * MIB + 512, 12 * MIB),
        (63 * MIB, 64 * MIB),
    ],
)
def test_segments(asked: int, reserved: int) -> None:
    allocator = Allocator()
    assert segment_bytes(asked) == reserved
    allocator.allocate(asked)
    assert allocator.reserved_bytes == allocator.reserved_peak_bytes == reserved


def test_an_empty_tensor_asks_for_nothing() -> None:
    allocator = Allocator(limit_bytes=0)
    allocator.free(allocator.allocate(0))
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (0, 0)


def test_small_pool_splits_at_512_bytes() -> None:
    allocator = Allocator()
    first, second = allocator.allocate(MIB), allocator.allocate(MIB - 512)
    last = allocator.allocate(1)  # the 512 bytes that were left
    assert allocator.reserved_bytes == 2 * MIB
    assert allocator.allocated_bytes == 2 * MIB == first.size + second.size + last.size
    allocator.allocate(1)
    assert allocator.reserved_bytes == 4 * MIB


def test_large_pool_splits_only_what_leaves_more_than_1_mib() -> None:
    allocator = Allocator()
    # 31 of 32 MiB: 1 MiB is not more than 1 MiB, so the whole segment goes, and counts as allocated
    block = allocator.allocate(31 * MIB)
    assert block.size == allocator.allocated_bytes == allocator.reserved_bytes == 32 * MIB
    allocator.free(block)
    # 512 bytes less leave more than 1 MiB
    assert allocator.allocate(31 * MIB - 512).size == 31 * MIB - 512
    assert allocator.allocate(MIB + 512).size == MIB + 512
    assert allocator.reserved_bytes == 32 * MIB


def test_best_fit_takes_the_smallest_and_then_the_lowest() -> None:
    allocator = Allocator()
    held = [allocator.allocate(n * MIB) for n in (40, 20, 30, 20)]
    for block in held:
        allocator.free(block)
    assert allocator.allocate(20 * MIB).address == held[1].address
    assert allocator.allocate(20 * MIB).address == held[3].address
    assert allocator.allocate(25 * MIB).address == held[2].address  # 5 MiB of it stay free
    assert allocator.allocate(5 * MIB).address == held[2].address + 25 * MIB
    assert allocator.reserved_bytes == 110 * MIB


def test_pools_do_not_lend_to_each_other() -> None:
    allocator = Allocator()
    allocator.free(allocator.allocate(20 * MIB))
    allocator.allocate(MIB)  # small: not from the free 20 MiB
    assert allocator.reserved_bytes == 22 * MIB
    allocator.allocate(20 * MIB, stream=1)  # another stream: neither
    assert allocator.reserved_bytes == 42 * MIB
    allocator.allocate(20 * MIB)
    assert allocator.reserved_bytes == 42 * MIB


def test_neighbours_merge_within_a_segment_and_never_across() -> None:
    allocator = Allocator()
    a, b, c = (allocator.allocate(6 * MIB) for _ in range(3))
    other = allocator.allocate(10 * MIB)
    allocator.free(a)
    allocator.free(c)  # with the 2 MiB tail
    allocator.free(other)
    assert allocator.reserved_bytes == 30 * MIB
    allocator.free(b)
    assert allocator.allocate(20 * MIB).address == a.address  # one again
    assert allocator.reserved_bytes == 30 * MIB
    allocator.allocate(11 * MIB)
    assert allocator.reserved_bytes == 42 * MIB


def test_empty_cache_returns_whole_segments_only() -> None:
    allocator = Allocator()
    whole, part = allocator.allocate(50 * MIB), allocator.allocate(6 * MIB)
    allocator.free(whole)
    allocator.empty_cache()
    assert allocator.reserved_bytes == 20 * MIB  # `part` pins its segment
    allocator.free(part)
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0
    assert allocator.reserved_peak_bytes == 70 * MIB


def test_a_full_card_frees_cached_segments_and_tries_again() -> None:
    allocator = Allocator(limit_bytes=100 * MIB)
    allocator.free(allocator.allocate(60 * MIB))
    allocator.allocate(70 * MIB)
    assert allocator.reserved_bytes == 70 * MIB
    assert allocator.reserved_peak_bytes == 70 * MIB


def test_the_error_asks_for_the_segment() -> None:
    allocator = Allocator(limit_bytes=30 * MIB)
    allocator.allocate(12 * MIB)
    with pytest.raises(DeviceFull) as full:
        allocator.allocate(5 * MIB)
    assert full.value.tried_bytes == 20 * MIB
    assert (full.value.allocated_bytes, full.value.reserved_bytes) == (12 * MIB, 12 * MIB)


@pytest.mark.parametrize(("limit_mib", "ends_well"), [(80, True), (105, False), (110, True)])
def test_more_memory_can_fail_where_less_does_not(limit_mib: int, ends_well: bool) -> None:
    """A 40, free A, C 60, B 12, free C, D 66 MiB.

    At 80 C drives A's cached segment out, and B gets one of its own: 12 + 66 fit. At 105 both A's and C's segment
    fit, B lands in A's, which can then not be returned: 40 + 66 do not fit. At 110 they do.
    """
    allocator = Allocator(limit_bytes=limit_mib * MIB)

    def play() -> None:
        a = allocator.allocate(40 * MIB)
        allocator.free(a)
        c = allocator.allocate(60 * MIB)
        allocator.allocate(12 * MIB)
        allocator.free(c)
        allocator.allocate(66 * MIB)

    if ends_well:
        play()
    else:
        with pytest.raises(DeviceFull):
            play()


# -- laws ----------------------------------------------------------------------------------------

sizes = st.one_of(
    st.integers(1, 4 * KIB),
    st.integers(1, 3 * MIB),
    st.integers(1, 40 * MIB),
    st.sampled_from([MIB, MIB + 512, 10 * MIB, 10 * MIB - 512, 20 * MIB]),
)
# ("a", size), ("f", which of the living) or ("e", 0): empty the cache
steps = st.lists(
    st.one_of(
        st.tuples(st.just("a"), sizes),
        st.tuples(st.just("a"), sizes),
        st.tuples(st.just("f"), st.integers(0, 50)),
        st.tuples(st.just("e"), st.just(0)),
    ),
    max_size=40,
)


class Reference:
    """Segments as lists of (address, size, taken), searched whole at every request."""

    def __init__(self, limit_bytes: int | None) -> None:
        self.limit_bytes = limit_bytes
        self.segments: list[tuple[bool, list[list[int]]]] = []
        self.next = 0

    @property
    def reserved(self) -> int:
        return sum(size for _, blocks in self.segments for _, size, _ in blocks)

    @property
    def allocated(self) -> int:
        return sum(size for _, blocks in self.segments for _, size, taken in blocks if taken)

    def drop(self) -> None:
        self.segments = [s for s in self.segments if len(s[1]) > 1 or s[1][0][2]]

    def allocate(self, size: int) -> int | None:
        size = -(-size // 512) * 512
        small = size <= 2**20
        fits = [
            (block[1], block[0], blocks, place)
            for pool, blocks in self.segments
            if pool == small
            for place, block in enumerate(blocks)
            if not block[2] and block[1] >= size
        ]
        if not fits:
            large = 20 * 2**20 if size < 10 * 2**20 else -(-size // 2**21) * 2**21
            whole = 2**21 if small else large
            if self.limit_bytes is not None and self.reserved + whole > self.limit_bytes:
                self.drop()
                if self.reserved + whole > self.limit_bytes:
                    return None
            made = [[self.next, whole, 0]]
            self.segments.append((small, made))
            self.next += whole + KIB
            fits = [(whole, made[0][0], made, 0)]
        found, address, blocks, place = min(fits, key=lambda fit: fit[:2])
        rest = found - size
        if rest >= 512 if small else rest > 2**20:
            blocks[place : place + 1] = [[address, size, 1], [address + size, rest, 0]]
        else:
            blocks[place][2] = 1
        return address

    def free(self, address: int) -> None:
        for _, blocks in self.segments:
            for place, block in enumerate(blocks):
                if block[0] == address and block[2]:
                    block[2] = 0
                    if place + 1 < len(blocks) and not blocks[place + 1][2]:
                        block[1] += blocks.pop(place + 1)[1]
                    if place and not blocks[place - 1][2]:
                        blocks[place - 1][1] += blocks.pop(place)[1]
                    return


def overlaps(blocks: list[Block]) -> bool:
    spans = sorted((block.address, block.address + block.size) for block in blocks)
    return any(end > start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


@given(steps, st.one_of(st.none(), st.integers(0, 200 * MIB)))
def test_it_does_what_the_reference_does(moves: list[tuple[str, int]], limit: int | None) -> None:
    allocator, reference = Allocator(limit), Reference(limit)
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
            reference.drop()
        assert not overlaps(alive)
        assert allocator.allocated_bytes == reference.allocated == sum(b.size for b in alive)
        assert allocator.reserved_bytes == reference.reserved >= allocator.allocated_bytes
        assert limit is None or allocator.reserved_bytes <= limit
    for block in alive:
        allocator.free(block)
    allocator.empty_cache()  # frees merged into whole segments, so nothing stays
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (0, 0)


def ends(moves: list[tuple[str, int]], limit: int | None) -> tuple[bool, int, int]:
    """Whether the moves end well, and the peaks reached."""
    allocator, alive, peak = Allocator(limit), list[Block](), 0
    try:
        for kind, value in moves:
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


@given(steps, st.integers(0, 4 * MIB))
@settings(max_examples=60)
def test_limits_between_the_peaks_decide(moves: list[tuple[str, int]], more: int) -> None:
    """Below the sum of what lives nothing ends well; from the unlimited reserved peak on everything does."""
    _, _, reserved = ends(moves, None)
    assert ends(moves, reserved + more)[0]
    asked, alive, live_peak = 0, list[int](), 0
    for kind, value in moves:
        if kind == "a":
            alive.append(rounded(value))
        elif kind == "f" and alive:
            alive.pop(value % len(alive))
        asked = sum(alive)
        live_peak = max(live_peak, asked)
    if live_peak:
        assert not ends(moves, live_peak - 1)[0]
