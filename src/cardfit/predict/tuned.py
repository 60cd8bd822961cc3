"""The caching allocator with settings: max_split_size_mb, garbage collection, rounding to powers of two, expandable.

In: an `AllocConf` and a limit. Out: an allocator for it (`allocator_of`), the default one where nothing is set. Rules
as documented for torch's CUDACachingAllocator. Garbage collection runs against the limit; torch runs it against what
``set_per_process_memory_fraction`` allows, and not at all where nobody called that. Left out: an expandable segment's
address space ends at 9/8 of the card; here it does not end.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from cardfit.predict.alloc_conf import INTERVALS, AllocConf
from cardfit.predict.allocator import (
    HOLE,
    LARGE_SEGMENT_BYTES,
    MIN_BLOCK_BYTES,
    SIZE_SHIFT,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
    TAKEN,
    Allocator,
    Block,
    DeviceFull,
    Part,
    Pool,
    key_of,
    segment_bytes,
)
from cardfit.units import MIB

SPACE_BYTES = (
    LARGE_SEGMENT_BYTES << 18
)  # addresses of one expandable segment: 5 TiB, whole pages of both sizes


def allocator_of(conf: AllocConf, limit_bytes: int | None = None) -> Allocator:
    """An empty allocator with these settings; ``limit_bytes`` is what the process may reserve."""
    if conf.expandable_segments:
        return ExpandableAllocator(conf, limit_bytes)
    return Allocator(limit_bytes) if conf == AllocConf() else TunedAllocator(conf, limit_bytes)


def power2_rounded(size_bytes: int, divisions: int) -> int:
    """``size_bytes`` up to the next of ``divisions`` equal steps between two powers of two.

    >>> power2_rounded(1200, 4), power2_rounded(2048, 4), power2_rounded(1200, 1)
    (1280, 2048, 2048)
    """
    if size_bytes & (size_bytes - 1) == 0:
        return size_bytes
    step = (1 << (size_bytes.bit_length() - 1)) // divisions
    return -(-size_bytes // step) * step if step else 1 << size_bytes.bit_length()


class TunedAllocator(Allocator):
    """Segments of fixed size with every setting but ``expandable_segments``."""

    def __init__(self, conf: AllocConf, limit_bytes: int | None = None) -> None:
        super().__init__(limit_bytes)
        self.conf = conf
        threshold = conf.garbage_collection_threshold
        self._collect_over: int | None = None
        if threshold is not None and limit_bytes is not None:
            self._collect_over = int(threshold * limit_bytes)
        self._calls = 0  # requests to the large pool
        self._since: dict[int, int] = {}  # its free blocks by key: calls when they were put there

    def allocate(self, size_bytes: int, stream: int = 0) -> Block:
        """As `Allocator.allocate`."""
        if size_bytes == 0:
            return Block(-1, 0, (stream, True))
        size = self.rounded(size_bytes)
        small = size <= SMALL_BYTES
        pool = (stream, small)
        self._keys.setdefault(pool, [])
        self._blocks.setdefault(pool, {})
        if not small:
            self._calls += 1
        block = self._fit(size, pool) or self._segment(size, pool)
        rest = block.size - size
        if self._splits(size, rest, small):
            tail = Block(block.address + size, rest, pool)
            after = block.after
            tail.before, tail.after = block, after
            if after is not None:
                after.before = tail
            block.after = tail
            block.size = size
            self._put(tail)
        block.free = False
        self.allocated_bytes += block.size
        return block

    def rounded(self, size_bytes: int) -> int:
        """The size a request takes up."""
        divisions = 0
        if self.conf.roundup_power2_divisions:
            power = (size_bytes // MIB).bit_length() - 1
            divisions = self.conf.roundup_power2_divisions[min(max(power, 0), INTERVALS - 1)]
        if divisions > 1 and size_bytes > MIN_BLOCK_BYTES * divisions:
            return power2_rounded(size_bytes, divisions)
        return max(1, -(-size_bytes // MIN_BLOCK_BYTES)) * MIN_BLOCK_BYTES

    def fingerprint(self) -> tuple[object, ...]:
        """As `Allocator.fingerprint`; ages count where something is collected by them."""
        if self._collect_over is None:
            return super().fingerprint()
        ages = tuple(
            self._age(key) for pool, keys in self._keys.items() if not pool[1] for key in keys
        )
        return (super().fingerprint(), ages)

    def part(self, block: Block) -> Part:
        """As `Allocator.part`, with the age of a free block."""
        found = super().part(block)
        if not block.free or block.pool[1] or self._collect_over is None:
            return found
        return found._replace(age=self._age(key_of(block)))

    def _chain(self, address: int, pool: Pool, parts: tuple[Part, ...]) -> list[Block]:
        blocks = super()._chain(address, pool, parts)
        for block, part in zip(blocks, parts, strict=True):
            if block.free and not pool[1]:
                self._since[key_of(block)] = self._calls - part.age
        return blocks

    def _age(self, key: int) -> int:
        return self._calls - self._since[key]

    def _put(self, block: Block) -> None:
        super()._put(block)
        if not block.pool[1]:
            self._since[key_of(block)] = self._calls

    def _fit(self, size: int, pool: Pool) -> Block | None:
        """The best free block, taken out of its pool."""
        keys = self._keys[pool]
        at = self._best(keys, self._blocks[pool], size)
        if at is None:
            return None
        found = self._blocks[pool][keys[at]]
        most = self.conf.max_split_size_bytes
        if most is not None:
            if size < most <= found.size:
                return None
            if size >= most and found.size >= size + self.conf.max_non_split_rounding_bytes:
                return None
        return self._blocks[pool].pop(keys.pop(at))

    def _best(self, keys: list[int], blocks: dict[int, Block], size: int) -> int | None:
        at = bisect_left(keys, size << SIZE_SHIFT)
        return at if at < len(keys) else None

    def _splits(self, size: int, rest: int, small: bool) -> bool:
        if small:
            return rest >= MIN_BLOCK_BYTES
        most = self.conf.max_split_size_bytes
        return (most is None or size < most) and rest > SMALL_BYTES

    def _segment(self, size: int, pool: Pool) -> Block:
        self._collect()
        wanted = segment_bytes(size)
        if self.limit_bytes is not None and self.reserved_bytes + wanted > self.limit_bytes:
            self._release_oversize(size, pool)
        return super()._segment(size, pool)

    def _release(self, pool: Pool, key: int) -> int:
        """Return one wholly free segment to the driver; its bytes."""
        keys = self._keys[pool]
        del keys[bisect_left(keys, key)]
        block = self._blocks[pool].pop(key)
        del self._heads[block.address]
        self.reserved_bytes -= block.size
        return block.size

    def _release_oversize(self, size: int, pool: Pool) -> None:
        """Before everything goes: the smallest free block that is never split and suffices, else the largest ones."""
        most = self.conf.max_split_size_bytes
        if most is None:
            return
        wanted = max(size, most)
        keys = self._keys[pool]
        at = bisect_left(keys, wanted << SIZE_SHIFT)
        if at < len(keys):
            self._release(pool, keys[at])
            return
        released = 0
        while at > 0 and released < wanted and keys[at - 1] >> SIZE_SHIFT >= most:
            at -= 1
            released += self._release(pool, keys[at])

    def _collect(self) -> None:
        """Over the threshold, return free segments of the large pools that lay unused longer than the average."""
        over = self._collect_over
        if over is None or self.reserved_bytes <= over:
            return
        target, reclaimed = self.reserved_bytes - over, 0
        whole = [
            (self._age(key), pool, key)
            for pool, blocks in self._blocks.items()
            if not pool[1]
            for key, block in blocks.items()
            if block.before is None and block.after is None
        ]
        while whole and reclaimed < target:
            average = sum(age for age, _, _ in whole) / len(whole)
            reclaimed += sum(self._release(pool, key) for age, pool, key in whole if age >= average)
            whole = [each for each in whole if each[0] < average]


class Hole(Block):
    """A stretch of an expandable segment without memory behind it; never free, so nothing merges with it."""

    __slots__ = ()


class ExpandableAllocator(TunedAllocator):
    """One segment per pool that grows: pages of 2 MiB (small) or 20 MiB (large) are mapped as they are needed.

    A full card unmaps every page that no living block touches, wherever it lies, and tries again.
    """

    def __init__(self, conf: AllocConf, limit_bytes: int | None = None) -> None:
        super().__init__(conf, limit_bytes)
        self._collect_over = None  # only segments of fixed size are collected
        self._holes: dict[Pool, list[int]] = {}  # addresses; the last hole has no end
        self._hole_at: dict[int, Hole] = {}

    def empty_cache(self) -> None:
        """Unmap every page that holds nothing alive."""
        for pool in self._keys:
            page = _page(pool)
            for block in [self._blocks[pool][key] for key in list(self._keys[pool])]:
                begin = -(-block.address // page) * page
                end = (block.address + block.size) // page * page
                if begin < end:
                    self._unmap(block, begin, end)

    def fingerprint(self) -> tuple[object, ...]:
        """As `Allocator.fingerprint`, with the holes."""
        holes = tuple((pool, *addresses) for pool, addresses in self._holes.items())
        return (super().fingerprint(), holes)

    def segments(self) -> Iterator[Block]:
        """The first block of every segment."""
        for addresses in self._holes.values():
            block: Block = self._hole_at[addresses[0]]
            while block.before is not None:
                block = block.before
            yield block

    def part(self, block: Block) -> Part:
        """As `Allocator.part`; a segment's end counts from its last mapped page."""
        if isinstance(block, Hole):
            return Part(block.size if block.after is not None else 0, HOLE)
        return super().part(block)

    def lay(self, pool: Pool, parts: tuple[Part, ...]) -> list[Block]:
        """As `Allocator.lay`: the segment of ``pool``, which has none yet."""
        self._open(pool)
        start = self._hole_at.pop(self._holes[pool].pop()).address
        blocks = self._chain(start, pool, parts)
        size = sum(part.size for part in parts)
        for place, (block, part) in enumerate(zip(blocks, parts, strict=True)):
            if part.kind == HOLE:
                last = place == len(parts) - 1
                hole = Hole(block.address, SPACE_BYTES - size if last else block.size, pool)
                self._replace(block, hole)
                self._add_hole(hole)
            else:
                self.reserved_bytes += part.size
        return [block for block, part in zip(blocks, parts, strict=True) if part.kind == TAKEN]

    def _best(self, keys: list[int], blocks: dict[int, Block], size: int) -> int | None:
        """Best fit by the size that a block can grow to."""
        at = super()._best(keys, blocks, size)
        if at is None:
            return None
        room = _room(blocks[keys[at]])
        while at + 1 < len(keys) and (further := _room(blocks[keys[at + 1]])) < room:
            at, room = at + 1, further
        return at

    def _splits(self, size: int, rest: int, small: bool) -> bool:
        return rest >= MIN_BLOCK_BYTES

    def _segment(self, size: int, pool: Pool) -> Block:
        self._open(pool)
        block = self._grow(size, pool)
        if block is None:
            self.empty_cache()
            block = self._grow(size, pool)
        if block is None:
            raise DeviceFull(segment_bytes(size), self.allocated_bytes, self.reserved_bytes)
        self._take(block)
        return block

    def _open(self, pool: Pool) -> None:
        if pool not in self._holes:
            self._keys.setdefault(pool, [])
            self._blocks.setdefault(pool, {})
            hole = Hole(SPACE_BYTES * len(self._holes), SPACE_BYTES, pool)
            self._holes[pool] = []
            self._add_hole(hole)

    def _grow(self, size: int, pool: Pool) -> Block | None:
        """A free block of at least ``size`` from the first place with room; None when the card has no page left."""
        for address in self._holes[pool]:
            place: Block = self._hole_at[address]
            if place.before is not None and place.before.free:
                place = place.before
            if _has_room(place, size):
                break
        if isinstance(place, Hole):
            mapped = self._map(place, min(place.size, size))
            if mapped is None:
                return None
            place = mapped
        while place.size < size:
            hole = place.after
            assert isinstance(hole, Hole)
            mapped = self._map(hole, min(hole.size, size - place.size))
            if mapped is None:
                return None
            place = mapped
        return place

    def _map(self, hole: Hole, size: int) -> Block | None:
        """Pages for the first ``size`` bytes of ``hole``: the free block that they end up in."""
        page = _page(hole.pool)
        size = -(-size // page) * page
        if self.limit_bytes is not None and self.reserved_bytes + size > self.limit_bytes:
            return None
        self.reserved_bytes += size
        self.reserved_peak_bytes = max(self.reserved_peak_bytes, self.reserved_bytes)
        self._drop_hole(hole)
        block = Block(hole.address, size, hole.pool)
        self._replace(hole, block)
        if size < hole.size:
            rest = Hole(hole.address + size, hole.size - size, hole.pool)
            rest.before, rest.after = block, block.after
            if rest.after is not None:
                rest.after.before = rest
            block.after = rest
            self._add_hole(rest)
        self.allocated_bytes += size  # `free` takes it away again
        self.free(block)
        return block if block.free else block.before

    def _unmap(self, block: Block, begin: int, end: int) -> None:
        """Give the pages from ``begin`` to ``end`` of a free block back."""
        self._take(block)
        self.reserved_bytes -= end - begin
        hole = Hole(begin, end - begin, block.pool)
        before, after = block.before, block.after
        if block.address < begin:
            head = Block(block.address, begin - block.address, block.pool)
            _link(before, head)
            self._put(head)
            before = head
        if end < block.address + block.size:
            tail = Block(end, block.address + block.size - end, block.pool)
            _link(tail, after)
            self._put(tail)
            after = tail
        if isinstance(before, Hole):
            self._drop_hole(before)
            hole.address, hole.size = before.address, hole.size + before.size
            before = before.before
        if isinstance(after, Hole):
            self._drop_hole(after)
            hole.size += after.size
            after = after.after
        _link(before, hole)
        _link(hole, after)
        self._add_hole(hole)

    def _replace(self, old: Block, new: Block) -> None:
        _link(old.before, new)
        _link(new, old.after)

    def _add_hole(self, hole: Hole) -> None:
        insort(self._holes[hole.pool], hole.address)
        self._hole_at[hole.address] = hole

    def _drop_hole(self, hole: Hole) -> None:
        addresses = self._holes[hole.pool]
        del addresses[bisect_left(addresses, hole.address)]
        del self._hole_at[hole.address]


def _link(before: Block | None, after: Block | None) -> None:
    if before is not None:
        before.after = after
    if after is not None:
        after.before = before


def _page(pool: Pool) -> int:
    return SMALL_SEGMENT_BYTES if pool[1] else LARGE_SEGMENT_BYTES


def _room(block: Block) -> int:
    """The size that a free block can grow to."""
    after = block.after
    return block.size + after.size if isinstance(after, Hole) else block.size


def _has_room(block: Block | None, size: int) -> bool:
    """Whether free blocks and holes from ``block`` on are ``size`` bytes in a row."""
    found = 0
    while found < size and block is not None and (block.free or isinstance(block, Hole)):
        found += block.size
        block = block.after
    return found >= size
