"""A model's variants as one file: JSON values, each stream, formula and component once, packed the same every time.

In: variants with their tables. Out: `<model>.xz`, and `tiles/<model>.xz` with the sizes whose decoding in tiles was
looked at.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fit import Formula
from split import split
from survey import Structures, Table, Variant

from cardfit.trace.atlas.columns import Columns, columns
from cardfit.trace.atlas.layout import LAYOUT
from cardfit.trace.atlas.read import TILES
from cardfit.trace.stream import Event, Op

_SIZED = (Op.BIRTH, Op.WORKSPACE)
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 24}]


class _Pool:
    """Values once each, in order of first use."""

    def __init__(self, held: Iterable[Any] = ()) -> None:
        self.index: dict[str, int] = {}
        self.values: list[Any] = []
        for value in held:
            self.index.setdefault(json.dumps(value, separators=(",", ":")), len(self.values))
            self.values.append(value)

    def number(self, value: Any) -> int:
        name = json.dumps(value, separators=(",", ":"))
        if name not in self.index:
            self.index[name] = len(self.values)
            self.values.append(value)
        return self.index[name]


class Book:
    """What is written for one model; ``held`` is what a file of it holds already."""

    def __init__(self, structures: Structures, held: dict[str, Any] | None = None) -> None:
        held = held or {}
        self.structures = structures
        self.formulas, self.streams, self.calls, self.timelines, self.components = (
            _Pool(held.get(name, ()))
            for name in ("formulas", "streams", "calls", "timelines", "components")
        )
        self.variants: list[dict[str, Any]] = list(held.get("variants", ()))

    def formula(self, formula: Formula) -> int:
        """The number of a formula."""
        rows = [[*e, c.numerator, c.denominator] for e, c in formula]
        return self.formulas.number(rows)

    def table(self, table: Table, kind: str) -> dict[str, Any]:
        """A table; its pieces by number in the pool of ``kind``."""
        make = self._timeline if kind == "timeline" else self._call
        numbers = [make(p.structure, [self.formula(f) for f in p.formulas]) for p in table.found]
        return {
            "features": list(table.features),
            "pieces": [[*key, numbers[at]] for key, at in table.pieces.items()],
        }

    def _events(self, events: Any, sized: Any, number: Any) -> Columns:
        found: list[Event] = []
        for op, a, b, site in events:
            if op in _SIZED:
                b = next(sized)
            elif op == Op.CALL:
                a = number(a)
            found.append((op, a, b, site))
        return columns(found)

    def _call(self, structure: int, formulas: list[int]) -> int:
        streams, _ = self.structures.all[structure]
        slots = iter(formulas)
        more = next(slots)
        laid = []
        for component, method, inputs, events, outputs, bindings, work in streams:
            used = [next(slots) for e in events if e[0] in _SIZED]
            counts = [[*w, next(slots), next(slots), next(slots)] for w in work]
            laid.append((component, method, inputs, events, used, outputs, bindings, counts))
        numbers: dict[int, int] = {}

        def write(n: int) -> int:
            if n not in numbers:
                component, method, inputs, events, used, outputs, bindings, counts = laid[n]
                written = self._events(events, iter(used), write)
                numbers[n] = self.streams.number(
                    [component, method, inputs, written, list(outputs), _lists(bindings), counts]
                )
            return numbers[n]

        return self.calls.number([write(0), more])

    def _timeline(self, structure: int, formulas: list[int]) -> int:
        (segments, stages, called, recasts), _ = self.structures.all[structure]
        slots = iter(formulas)
        rows = []
        for events, bindings, stride in segments:
            used = iter([next(slots) for e in events if e[0] in _SIZED])
            written = self._events(events, used, lambda a: a)
            rows.append([written, _lists(bindings), stride, next(slots)])
        kept = [self.components.number(_lists(each)) for each in recasts]
        return self.timelines.number([rows, _lists(stages), list(called), kept])

    def add(
        self, variant: Variant, components: list[Any], *, task: str, guided: str, more: list[Any]
    ) -> None:
        """One variant; ``more`` are the VAE's calls under other settings."""
        self.variants.append(
            {
                "task": task,
                "guided": guided,
                "domain": variant.domain.as_json(),
                "components": [self.components.number(each) for each in components],
                "pipeline": variant.pipeline,
                "offload_sequence": list(variant.sequence),
                "excluded": list(variant.excluded),
                "notes": [[code, args] for code, args in variant.notes],
                "timeline": self.table(variant.timeline, "timeline"),
                "calls": {n: self.table(t, "call") for n, t in variant.calls.items()},
                "settings": more,
            }
        )

    def content(self, head: dict[str, Any], sites: list[Any]) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "layout": LAYOUT,
            **head,
            "sites": sites,
            "formulas": self.formulas.values,
            "components": self.components.values,
            "streams": self.streams.values,
            "calls": self.calls.values,
            "timelines": self.timelines.values,
            "variants": self.variants,
        }


def packed(content: Any) -> bytes:
    """JSON values as text: the same values give the same bytes."""
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()


def save(content: dict[str, Any], folder: Path, *, keep_tiles: bool = False) -> int:
    """Write a model's files into ``folder``, the one without tiles last; how many bytes they are.

    With ``keep_tiles`` those of an earlier build stay: the variants that they belong to kept their numbers.
    """
    main, tiles = split(content)
    path = folder / f"{main['model']}.xz"
    own = folder / TILES / path.name
    if not keep_tiles:
        path.unlink(missing_ok=True)
        own.unlink(missing_ok=True)
    if tiles:
        own.parent.mkdir(exist_ok=True)
        sizes = sorted(tiles)
        _write(own, b"\n".join([packed(sizes), *(packed(tiles[size]) for size in sizes)]))
    _write(path, packed(main))
    return sum(each.stat().st_size for each in (path, own) if each.exists())


def _write(path: Path, text: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(
        lzma.compress(text, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=FILTERS)
    )
    part.replace(path)


def _lists(value: Any) -> Any:
    return [_lists(each) for each in value] if isinstance(value, (list, tuple)) else value
