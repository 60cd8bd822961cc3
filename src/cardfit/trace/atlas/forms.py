"""What the traces of one book have in common, whatever their size: worked out once, not for every request.

In: the streams and components of a book. Out: the same objects for every request where nothing of them depends on it,
and of each stream its `Form`, the events before sizes are worked out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cardfit.trace.atlas.columns import events_of
from cardfit.trace.atlas.domain import Point
from cardfit.trace.coding import component_of
from cardfit.trace.stream import Component, Form, Op, Stream

_BIRTH, _WORKSPACE, _CALL = (int(o) for o in (Op.BIRTH, Op.WORKSPACE, Op.CALL))
_BATCH = (
    0  # the place in a point of the only variable that a stream kept for all requests may depend on
)


class Forms:
    """What requests share of one book, or of the tiles of one size."""

    def __init__(self) -> None:
        self.memo: dict[object, Any] = {}
        self._forms: dict[int, Form] = {}
        self._components: dict[int, Component] = {}
        self._sites: tuple[tuple[str, str], ...] | None = None
        self._streams: dict[tuple[int, int], Stream] = {}
        self._depends: dict[int, bool] = {}

    def component(self, book: dict[str, Any], number: int) -> Component:
        """Component ``number`` of ``book``."""
        if number not in self._components:
            self._components[number] = component_of(book["components"][number])
        return self._components[number]

    def sites(self, book: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        """The ops and module paths of ``book``."""
        if self._sites is None:
            self._sites = tuple((op, path) for op, path in book["sites"])
        return self._sites

    def form(self, book: dict[str, Any], number: int) -> Form:
        """The events of stream ``number`` with formulas in place of sizes."""
        if number not in self._forms:
            events = events_of(book["streams"][number][3])
            self._forms[number] = Form(
                events=tuple(events),
                sized=tuple(n for n, e in enumerate(events) if e[0] in (_BIRTH, _WORKSPACE)),
                calls=tuple(n for n, e in enumerate(events) if e[0] == _CALL),
            )
        return self._forms[number]

    def kept(self, number: int, point: Point) -> Stream | None:
        """The stream as it was for a request of the same batch, if nothing else decides it."""
        return self._streams.get((number, point[_BATCH]))

    def keep(self, book: dict[str, Any], number: int, point: Point, stream: Stream) -> None:
        """Keep ``stream`` for requests of the same batch, if nothing else decides it."""
        if number not in self._depends:
            self._depends[number] = self._varies(book, number)
        if not self._depends[number]:
            self._streams[number, point[_BATCH]] = stream

    def _varies(self, book: dict[str, Any], number: int) -> bool:
        """Whether more than the batch decides stream ``number``, or it calls others, which have other places."""
        form = self.form(book, number)
        if form.calls:
            return True
        used = {form.events[n][2] for n in form.sized}
        used.update(n for _, _, *numbers in book["streams"][number][6] for n in numbers)
        return any(
            power
            for formula in used
            for term in book["formulas"][formula]
            for power in term[_BATCH + 1 : -2]
        )


@lru_cache(maxsize=32)
def forms_of(model: str, size: str) -> Forms:
    """What traces of ``model``, or those in tiles at ``size``, share."""
    return Forms()
