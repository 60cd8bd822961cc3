"""PyTorch's CUDA caching allocator as a model: what it reserves for a given order of births and deaths.

In: allocations and frees by size. Out: bytes allocated and reserved at every moment, and an error where a card with
that capacity would raise one. Rules as documented in torch's CUDACachingAllocator with default settings: sizes round
up to 512 B; up to 1 MiB comes from 2 MiB segments of a small pool; below 10 MiB from 20 MiB segments; above, segments
round up to 2 MiB; best fit; blocks split and merge within their segment; a full card frees cached segments once. Each
CUDA stream has pools of its own. Settings other than the default have a class of their own (`predict.tuned`), so that
they cost nothing here. Left out: CUDA graphs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

from cardfit.units import KIB, MIB

MIN_BLOCK_BYTES = 512
SMALL_BYTES = MIB
SMALL_SEGMENT_BYTES = 2 * MIB
LARGE_SEGMENT_BYTES = 20 * MIB
MIN_LARGE_BYTES = 10 * MIB
ROUND_LARGE_BYTES = 2 * MIB
SIZE_SHIFT = 40  # addresses count blocks of 512 bytes: room for 512 TiB of segments over a run


Pool = tuple[int, bool]  # (CUDA stream, whether it is the small pool)
TAKEN, FREE, HOLE = 0, 1, 2


class Part(NamedTuple):
    """A stretch of a segment: TAKEN, FREE or a HOLE without memory behind it, and how long a free one lay unused.

    The age counts requests to the pool since the block was freed, and is 0 where nothing depends on it.
    """

    size: int
    kind: int
    age: int = 0


Layout = tuple[tuple[Pool, tuple[Part, ...]], ...]


class DeviceFull(Exception):
    """The capacity is spent: what the real allocator reports as out of memory."""

    def __init__(self, tried_bytes: int, allocated_bytes: int, reserved_bytes: int) -> None:
        super().__init__(tried_bytes, allocated_bytes, reserved_bytes)
        self.tried_bytes = tried_bytes
        self.allocated_bytes = allocated_bytes
        self.reserved_bytes = reserved_bytes


class Block:
    """A stretch of a segment; ``before`` and ``after`` are its neighbours in the same segment."""

    __slots__ = ("address", "after", "before", "free", "pool", "size")

    def __init__(self, address: int, size: int, pool: Pool) -> None:
        self.address = address
        self.size = size
        self.pool = pool
        self.free = False
        self.before: Block | None = None
        self.after: Block | None = None


def rounded(size_bytes: int) -> int:
    """The size a request takes up.

    >>> rounded(1), rounded(513)
    (512, 1024)
    """
    return max(MIN_BLOCK_BYTES, -(-size_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES)


def segment_bytes(size_bytes: int) -> int:
    """The size of the segment asked of the driver for a rounded request that no free block holds.

    >>> segment_bytes(512) // MIB, segment_bytes(5 * MIB) // MIB, segment_bytes(10 * MIB + 512) // MIB
    (2, 20, 12)
    """
    if size_bytes <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if size_bytes < MIN_LARGE_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-size_bytes // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES


class Allocator:
    """One device's allocator. ``limit_bytes`` is what the process may reserve; None means no limit.

    ``reserved_peak_bytes`` is the most it reserved since a caller last set it.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.allocated_bytes = 0
        self.reserved_bytes = 0
        self.reserved_peak_bytes = 0
        self._next_address = 0
        self._heads: dict[int, Block] = {}  # the first block of every segment, by address
        # free blocks by pool: their keys in order of (size, address), and the block of each key
        self._keys: dict[Pool, list[int]] = {}
        self._blocks: dict[Pool, dict[int, Block]] = {}

    def allocate(self, size_bytes: int, stream: int = 0) -> Block:
        """A block of at least ``size_bytes``; raises DeviceFull as the real allocator would.

        Nothing is asked of the device for an empty tensor: its block has no bytes.
        """
        if size_bytes == 0:
            return Block(-1, 0, (stream, True))
        size = -(-size_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES
        small = size <= SMALL_BYTES
        pool = (stream, small)
        keys = self._keys.get(pool)
        if keys is None:
            keys = self._keys[pool] = []
            self._blocks[pool] = {}
        at = bisect_left(keys, size << SIZE_SHIFT)
        if at < len(keys):
            block = self._blocks[pool].pop(keys.pop(at))
        else:
            block = self._segment(size, pool)
        rest = block.size - size
        if rest >= MIN_BLOCK_BYTES if small else rest > SMALL_BYTES:
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

    def free(self, block: Block) -> None:
        """Give ``block`` back to its pool, merged with free neighbours."""
        if block.size == 0:
            return
        self.allocated_bytes -= block.size
        before, after = block.before, block.after
        if before is not None and before.free:
            self._take(before)
            before.size += block.size
            before.after = after
            if after is not None:
                after.before = before
            block = before
        if after is not None and after.free:
            self._take(after)
            block.size += after.size
            block.after = after.after
            if after.after is not None:
                after.after.before = block
        self._put(block)

    def empty_cache(self) -> None:
        """Return every wholly free segment to the driver."""
        for pool, keys in self._keys.items():
            blocks = self._blocks[pool]
            kept = []
            for key in keys:
                block = blocks[key]
                if block.before is None and block.after is None:
                    self.reserved_bytes -= block.size
                    del blocks[key], self._heads[block.address]
                else:
                    kept.append(key)
            keys[:] = kept

    def fingerprint(self) -> tuple[object, ...]:
        """What was reserved and where free blocks lie; with the living blocks it decides all later requests."""
        free = tuple((pool, *keys) for pool, keys in self._keys.items())
        return (self.allocated_bytes, self.reserved_bytes, free)

    def segments(self) -> Iterator[Block]:
        """The first block of every segment, the lowest address first."""
        return (self._heads[address] for address in sorted(self._heads))

    def part(self, block: Block) -> Part:
        """What ``block`` is in a layout."""
        return Part(block.size, FREE if block.free else TAKEN)

    def lay(self, pool: Pool, parts: tuple[Part, ...]) -> list[Block]:
        """Put a segment after those that are there; the taken blocks of it, in order.

        Addresses begin anew, their order and the distances within a segment stay: nothing else counts.
        """
        size = sum(part.size for part in parts)
        blocks = self._chain(self._next_address, pool, parts)
        self._heads[self._next_address] = blocks[0]
        self._next_address += size + KIB
        self.reserved_bytes += size
        return [block for block, part in zip(blocks, parts, strict=True) if part.kind == TAKEN]

    def _chain(self, address: int, pool: Pool, parts: tuple[Part, ...]) -> list[Block]:
        """Blocks for ``parts``, neighbours linked, free ones in their pool."""
        self._keys.setdefault(pool, [])
        self._blocks.setdefault(pool, {})
        blocks: list[Block] = []
        for part in parts:
            block = Block(address, part.size, pool)
            if blocks:
                block.before, blocks[-1].after = blocks[-1], block
            blocks.append(block)
            address += part.size
            if part.kind == FREE:
                self._put(block)
            elif part.kind == TAKEN:
                self.allocated_bytes += part.size
        return blocks

    def _segment(self, size: int, pool: Pool) -> Block:
        wanted = segment_bytes(size)
        if self.limit_bytes is not None and self.reserved_bytes + wanted > self.limit_bytes:
            self.empty_cache()
            if self.reserved_bytes + wanted > self.limit_bytes:
                raise DeviceFull(wanted, self.allocated_bytes, self.reserved_bytes)
        self.reserved_bytes += wanted
        self.reserved_peak_bytes = max(self.reserved_peak_bytes, self.reserved_bytes)
        block = Block(self._next_address, wanted, pool)
        self._heads[block.address] = block
        self._next_address += wanted + KIB  # a gap: segments never merge
        return block

    def _put(self, block: Block) -> None:
        block.free = True
        key = key_of(block)
        insort(self._keys[block.pool], key)
        self._blocks[block.pool][key] = block

    def _take(self, block: Block) -> None:
        keys, key = self._keys[block.pool], key_of(block)
        del keys[bisect_left(keys, key)]
        del self._blocks[block.pool][key]
        block.free = False


def key_of(block: Block) -> int:
    """Orders free blocks by size, then by address: one integer compares faster than a pair."""
    return block.size << SIZE_SHIFT | block.address // MIN_BLOCK_BYTES


def layout(allocator: Allocator) -> tuple[Layout, tuple[Block, ...]]:
    """How everything lies, without addresses, and the taken blocks in the same order."""
    found, taken = [], []
    for head in allocator.segments():
        parts: list[Part] = []
        block: Block | None = head
        while block is not None:
            part = allocator.part(block)
            if part.kind == TAKEN:
                taken.append(block)
            parts.append(part)
            block = block.after
        found.append((head.pool, tuple(parts)))
    return tuple(found), tuple(taken)
