"""The values that one field of a request may take by the model's own rules, smallest first, and a search among them.

In: a library entry, a request after its rules, and ``num_frames``, ``size`` or ``batch``. Out: `Step`s, every one a
request that the model makes exactly as it stands. A size keeps the asked aspect ratio as far as its multiples allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from cardfit.errors import BadRequest
from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.request import ExactRequest, Request

Vary = Literal["num_frames", "size", "batch"]
VARIED: tuple[Vary, ...] = get_args(Vary)
MOST: Mapping[Vary, int] = {"num_frames": 1024, "size": 8192, "batch": 64}
"""Where a search stops that nothing else stops: frames, pixels of the longer side, outputs at once."""

_SAME_RATIO = (
    0.1  # of a fixed list of sizes, those whose width / height is within a tenth of the asked one
)
MORE_HOPS = 4  # times that a search goes on past a value that does not hold


@dataclass(frozen=True, slots=True)
class Step:
    """One value: its text, the fields that it sets and how much work it is (pixels x frames x batch)."""

    text: str
    fields: Mapping[str, int]
    work: int

    def on(self, request: ExactRequest) -> Request:
        """``request`` with this value."""
        return Request(**{**request.model_dump(), **self.fields})


def value_text(request: Request, vary: Vary) -> str:
    """The value of ``vary`` in ``request``: ``81``, ``1280x720``."""
    if vary == "size":
        return f"{request.width}x{request.height}"
    return str(request.num_frames if vary == "num_frames" else request.batch)


def steps(
    model: Model, request: ExactRequest, vary: Vary, most: int | None = None
) -> tuple[Step, ...]:
    """The values of ``vary`` up to ``most``, smallest first.

    ``most`` is frames, pixels of the longer side or outputs; `MOST` when left out. Raises BadRequest where the model
    has nothing to vary: frames of an image model, a pipeline that makes one size only.
    """
    top = MOST[vary] if most is None else most
    if vary == "num_frames" and not model.is_video:
        raise BadRequest("largest-no-frames", model=model.id)
    found = {step.text: step for step in _made(model, request, vary, top)}
    if vary == "size" and len(found) < 2:
        raise BadRequest("largest-one-size", model=model.id, why=model.rules.size.why)
    if not found:
        raise BadRequest("largest-none-below", vary=vary, most=top)
    return tuple(sorted(found.values(), key=lambda step: step.work))


def _made(model: Model, request: ExactRequest, vary: Vary, top: int) -> Iterator[Step]:
    """Only what the rules leave as it is: everything else would be another value under a wrong name."""
    for fields in _sizes(model, request, top) if vary == "size" else _counts(vary, top):
        try:
            exact, _ = resolve(model, Request(**{**request.model_dump(), **fields}))
        except (BadRequest, ValueError):  # not to be made; a figure that no request takes
            continue
        if all(getattr(exact, name) == value for name, value in fields.items()):
            work = exact.width * exact.height * exact.num_frames * exact.batch
            yield Step(value_text(exact, vary), fields, work)


def _counts(vary: Vary, top: int) -> Iterator[dict[str, int]]:
    for count in range(1, top + 1):
        yield {vary: count}


def _sizes(model: Model, request: ExactRequest, top: int) -> Iterator[dict[str, int]]:
    rule, ratio = model.rules.size, request.width / request.height
    if rule.sizes:
        for width, height in rule.sizes:
            if abs(width / height / ratio - 1) <= _SAME_RATIO and max(width, height) <= top:
                yield {"width": width, "height": height}
        return
    step = math.lcm(rule.refuse_unless, rule.floor_to)
    step = math.lcm(step, model.vae.spatial_compression) if step == 1 else step
    shorter, longer = sorted((request.width, request.height))
    for short in range(step, top + 1, step):
        long = max(step, round(short * longer / shorter / step) * step)
        if long > top:
            return
        width, height = (long, short) if request.width >= request.height else (short, long)
        yield {"width": width, "height": height}


def nearest(found: tuple[Step, ...], request: ExactRequest) -> int:
    """The place among ``found`` of the largest value that is no more work than ``request``; 0 below all."""
    work = request.width * request.height * request.num_frames * request.batch
    return max((at for at, step in enumerate(found) if step.work <= work), default=0)


@dataclass(frozen=True, slots=True)
class Edge:
    """The largest place that holds (None: none does), and whether the neighbours agree that size is what decides."""

    at: int | None
    monotone: bool


def edge(count: int, start: int, holds: Callable[[int], bool]) -> Edge:
    """The largest of ``count`` places for which ``holds``, by galloping up from ``start`` and bisection.

    A hop over one that does not hold and a look one below the answer tell whether larger is always harder; where a
    larger place holds again the search goes on from there.

    >>> edge(10, 2, lambda at: at <= 6)
    Edge(at=6, monotone=True)
    >>> edge(10, 2, lambda at: at <= 3 or at == 5)
    Edge(at=5, monotone=False)
    """
    found, monotone = _bisected(-1, count, start, holds), True
    for _ in range(MORE_HOPS):
        if not 0 <= found < count - 2 or not holds(found + 2):
            break
        monotone = False
        found = _bisected(found + 2, count, min(found + 3, count - 1), holds)
    if found < 0:
        return Edge(None, True)
    return Edge(found, monotone and (found == 0 or holds(found - 1)))


def _bisected(low: int, high: int, start: int, holds: Callable[[int], bool]) -> int:
    """The last place that holds before one that does not; ``low`` holds and ``high`` does not, both untried."""
    at, hop = start, max(1, (start + 1) // 2)
    while low < at < high and holds(at):
        low, at, hop = at, min(at + hop, high - 1) if at < high - 1 else high, 2 * hop
    high = min(high, max(at, low + 1))
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
