"""The activation peak of one distinct call, without weights and without an allocator.

In: a trace and the number of a stream. Out: the most bytes alive at once among what the call makes, and where.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardfit.trace.stream import Op, Trace


@dataclass(frozen=True, slots=True)
class Peak:
    """``bytes`` alive at the highest moment; ``site`` is an index into ``Trace.sites``."""

    bytes: int
    site: int


@dataclass(frozen=True, slots=True)
class _Shape:
    peak: Peak
    left: dict[int, int]  # storages that outlive the call: id -> bytes
    freed: tuple[int, ...]  # inputs that the call let go


class Peaks:
    """Activation peaks of a trace's streams; nested calls are looked at once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[tuple[int, tuple[int, ...]], _Shape] = {}

    def of(self, stream: int) -> Peak:
        """The peak of stream number ``stream``."""
        return self._shape(stream, ()).peak

    def _shape(self, number: int, given: tuple[int, ...]) -> _Shape:
        """The call's shape, where inputs that it lets go have the sizes ``given``."""
        key = (number, given)
        if key not in self._known:
            self._known[key] = self._walk(number, given)
        return self._known[key]

    def _walk(self, number: int, given: tuple[int, ...]) -> _Shape:
        stream = self._trace.streams[number]
        sizes = dict(enumerate(given))
        freed: list[int] = []
        total, highest, where = 0, 0, 0
        for op, a, b, site in stream.events:
            extra, place = 0, site
            if op == Op.BIRTH:
                sizes[a] = b
                total += b
            elif op == Op.DEATH:
                total -= sizes.pop(a, 0)
                if a < stream.inputs:
                    freed.append(a)
            elif op == Op.WORKSPACE:
                extra = b
            elif op == Op.CALL:
                binding = stream.bindings[b]
                inner = self._shape(a, tuple(sizes.get(outer, 0) for outer in binding.inputs))
                extra, place = inner.peak.bytes, inner.peak.site
                if total + extra > highest:
                    highest, where = total + extra, place
                extra = 0
                for gone in inner.freed:
                    total -= sizes.pop(binding.inputs[gone], 0)
                names = dict(zip(self._trace.streams[a].outputs, binding.outputs, strict=True))
                for identity, size in inner.left.items():
                    sizes[names[identity]] = size
                    total += size
            if total + extra > highest:
                highest, where = total + extra, place
        left = {identity: sizes[identity] for identity in stream.outputs if identity in sizes}
        return _Shape(Peak(highest, where), left, tuple(freed))
