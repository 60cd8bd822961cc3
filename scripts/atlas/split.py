"""Decoding in tiles apart from the rest: a book for each size and number of frames, read only when it is asked for.

In: a model's book as `write` makes it, tables of tiles within. Out: the book without them, and a small book per size
under the name of the size. A clip in tiles is thousands of calls; together they are many times the rest.
"""

from __future__ import annotations

from typing import Any

from cardfit.trace.atlas.columns import Columns, columns, events_of
from cardfit.trace.atlas.domain import Domain
from cardfit.trace.stream import Event, Op

_BIRTH, _WORKSPACE, _CALL = int(Op.BIRTH), int(Op.WORKSPACE), int(Op.CALL)


def split(book: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The book without tiles, and those of each size by its name."""
    tiles: dict[str, dict[str, dict[str, int]]] = {}
    variants = []
    for at, variant in enumerate(book["variants"]):
        domain = Domain.of(variant["domain"])
        counts = {(n - 1) // domain.temporal: n for n in domain.frame_counts}
        kept = []
        for held, tables in variant["settings"]:
            if not any("height" in table["features"] for table in tables.values()):
                kept.append([held, tables])
                continue
            for name, table in tables.items():
                for _, height, width, frames, number in table["pieces"]:
                    size = f"{width * domain.grid}x{height * domain.grid}x{counts[frames]}"
                    tiles.setdefault(size, {}).setdefault(str(at), {})[name] = number
        variants.append({**variant, "settings": kept})
    rest = _Copy(book)
    for variant in variants:
        groups = [variant["calls"], *(tables for _, tables in variant["settings"])]
        for tables in groups:
            for table in tables.values():
                table["pieces"] = [[*key, rest.call(n)] for *key, n in table["pieces"]]
        variant["timeline"]["pieces"] = [
            [*key, rest.timeline(n)] for *key, n in variant["timeline"]["pieces"]
        ]
    main = {**book, "variants": variants, **rest.lists(), "timelines": rest.timelines}
    own = {}
    for size, by_variant in tiles.items():
        copy = _Copy(book)
        called = {
            at: {name: copy.call(number) for name, number in sorted(names.items())}
            for at, names in by_variant.items()
        }
        head = {key: book[key] for key in ("layout", "model", "entry", "versions")}
        own[size] = {**head, "variants": called, **copy.lists()}
    return main, own


class _Copy:
    """What is reached of a book's calls, numbered anew in the order of first use."""

    def __init__(self, book: dict[str, Any]) -> None:
        self.book = book
        self.formulas: list[Any] = []
        self.streams: list[Any] = []
        self.calls: list[Any] = []
        self.timelines: list[Any] = []
        self._known: dict[tuple[str, int], int] = {}

    def lists(self) -> dict[str, Any]:
        """The numbered values."""
        return {"formulas": self.formulas, "streams": self.streams, "calls": self.calls}

    def call(self, number: int) -> int:
        """A call's new number."""
        if ("call", number) not in self._known:
            top, more = self.book["calls"][number]
            self.calls.append([self._stream(top), self._formula(more)])
            self._known["call", number] = len(self.calls) - 1
        return self._known["call", number]

    def timeline(self, number: int) -> int:
        """A timeline's new number; the calls in it are places in its own list of names."""
        if ("timeline", number) not in self._known:
            segments, stages, called, recasts = self.book["timelines"][number]
            rows = [
                [self._events(written, None), bindings, stride, self._formula(repeat)]
                for written, bindings, stride, repeat in segments
            ]
            self.timelines.append([rows, stages, called, recasts])
            self._known["timeline", number] = len(self.timelines) - 1
        return self._known["timeline", number]

    def _stream(self, number: int) -> int:
        if ("stream", number) not in self._known:
            component, method, inputs, written, outputs, bindings, work = self.book["streams"][
                number
            ]
            done = [
                [*head, *map(self._formula, tail)]
                for *head, a, b, c in work
                for tail in [(a, b, c)]
            ]
            events = self._events(written, self._stream)
            self.streams.append([component, method, inputs, events, outputs, bindings, done])
            self._known["stream", number] = len(self.streams) - 1
        return self._known["stream", number]

    def _events(self, written: Columns, stream: Any) -> Columns:
        found: list[Event] = []
        for op, a, b, site in events_of(written):
            if op in (_BIRTH, _WORKSPACE):
                b = self._formula(b)
            elif op == _CALL and stream is not None:
                a = stream(a)
            found.append((op, a, b, site))
        return columns(found)

    def _formula(self, number: int) -> int:
        if ("formula", number) not in self._known:
            self.formulas.append(self.book["formulas"][number])
            self._known["formula", number] = len(self.formulas) - 1
        return self._known["formula", number]
