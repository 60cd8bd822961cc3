"""A trace as a table: per stage and component what was called, what it weighs and what it does.

In: a `Trace`, with the estimate of its memory where the caller has one. Out: lines. FLOPs count a multiply-add as two
and are summed over every call of the run.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from dataclasses import dataclass, field

from cardfit.messages import say
from cardfit.predict.estimate import MemoryEstimate
from cardfit.report import words
from cardfit.report.grid import Cell, Column, grid, hanging
from cardfit.report.style import Style
from cardfit.request import DTYPES, Dtype, Settings
from cardfit.trace.stream import Component, Op, Trace
from cardfit.units import gib_text, human_bytes, human_flop


@dataclass(slots=True)
class CallRow:
    """One component in one stage: calls, FLOPs by kind, activation peak above what it was handed."""

    stage: str
    component: str
    calls: int = 0
    weights_bytes: int = 0
    activation_bytes: int = 0
    site: tuple[str, str] = ("", "")
    flop: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def rows(trace: Trace) -> list[CallRow]:
    """A row for every (stage, component) of the timeline, in its order; weights after a change of dtype."""
    found: dict[tuple[str, str], CallRow] = {}
    current: list[Component] = list(trace.components)
    known: dict[int, _Height] = {}
    stage = ""
    for segment in trace.timeline:
        for op, a, b, _ in segment.events:
            if op == Op.STAGE:
                stage = trace.stages[a][0]
            elif op == Op.RECAST:
                current[a] = trace.recasts[b]
            elif op == Op.CALL:
                component = current[trace.streams[a].component]
                key = (stage, component.name)
                row = found.setdefault(key, CallRow(*key, weights_bytes=component.weights_bytes))
                row.weights_bytes = max(row.weights_bytes, component.weights_bytes)
                row.calls += segment.repeat
                _add_flop(trace, a, segment.repeat, row.flop)
                height = _height(trace, a, known)
                if height.peak_bytes > row.activation_bytes:
                    row.activation_bytes, row.site = height.peak_bytes, trace.sites[height.site]
    return list(found.values())


def _add_flop(trace: Trace, at: int, times: int, into: dict[str, float]) -> None:
    stream = trace.streams[at]
    for work in stream.work:
        into[work.kind] += work.flop * times
    for op, a, _, _ in stream.events:
        if op == Op.CALL:
            _add_flop(trace, a, times, into)


@dataclass(frozen=True, slots=True)
class _Height:
    """Most bytes live at once above a call's inputs, the site where that is, the bytes of each output."""

    peak_bytes: int
    site: int
    outputs: tuple[int, ...]


def _height(trace: Trace, at: int, known: dict[int, _Height]) -> _Height:
    if at in known:
        return known[at]
    stream = trace.streams[at]
    live, peak, site = 0, 0, 0
    sizes: dict[int, int] = {}
    for op, a, b, where in stream.events:
        reached = live
        if op == Op.BIRTH:
            sizes[a] = b
            live += b
            reached = live
        elif op == Op.DEATH:
            live -= sizes.pop(a, 0)
        elif op == Op.WORKSPACE:
            reached = live + b
        elif op == Op.CALL:
            inner = _height(trace, a, known)
            reached, where = live + inner.peak_bytes, inner.site
            for name, size in zip(stream.bindings[b].outputs, inner.outputs, strict=True):
                live += size if name not in sizes else 0
                sizes.setdefault(name, size)
        if reached > peak:
            peak, site = reached, where
    known[at] = _Height(peak, site, tuple(sizes.get(name, 0) for name in stream.outputs))
    return known[at]


def facts(trace: Trace) -> dict[str, object]:
    """What stands beside the rows in JSON: what was traced, with which versions."""
    return {
        "versions": trace.versions,
        "pipeline": trace.pipeline,
        "request": trace.request.model_dump(mode="json"),
        "settings": trace.settings.model_dump(mode="json"),
        "streams": len(trace.streams),
        "notes": [
            {"code": code, "args": args, "text": say(code, args)} for code, args in trace.notes
        ],
    }


def lines(trace: Trace, style: Style, estimate: MemoryEstimate | None = None) -> list[str]:
    """The page; with ``estimate`` the peak of each stage and its site come from the placement."""
    title = [
        trace.request.model,
        *words.what(trace.request),
        words.dtypes(Settings(dtype=_dtypes(trace))),
    ]
    columns = [
        Column(say("col-stage")),
        Column(say("col-component")),
        Column(say("col-calls"), right=True),
        Column(say("col-weights"), right=True),
        Column(say("col-working"), right=True),
        Column(say("col-work"), least=24),
    ]
    counted = rows(trace)
    table = [_row(row) for row in counted]
    total = sum(flop for row in counted for flop in row.flop.values())
    versions = ", ".join(f"{name} {trace.versions[name]}" for name in sorted(trace.versions))
    args = {"flop": human_flop(total), "streams": len(trace.streams), "versions": versions}
    head = f"{trace.pipeline}{style.dot}{style.dot.join(title)}"
    found = [*textwrap.wrap(head, style.width), "", *grid(columns, table, style), ""]
    for row in counted:
        label = f"{row.stage}, {row.component}"
        found += hanging(say("trace-peak"), f"{label}: {_where(row)}", style.width)
    found.append("")
    if estimate is not None:
        stages = [f"{stage.name} {gib_text(stage.reserved_bytes)}" for stage in estimate.stages]
        found.append(say("trace-stages", {"stages": ", ".join(stages)}))
    return [*found, *textwrap.wrap(say("trace-total", args), style.width)]


def _dtypes(trace: Trace) -> dict[str, Dtype]:
    found: dict[str, Dtype] = {}
    for part in trace.components:
        name = part.dtype.removeprefix("torch.")
        dtype = next((dtype for dtype in DTYPES if dtype == name), None)
        if dtype is not None:
            found[part.name] = dtype
    return found


def _row(row: CallRow) -> list[Cell | str]:
    kinds = sorted(row.flop.items(), key=lambda item: -item[1])
    work = ", ".join(f"{kind} {human_flop(flop)}" for kind, flop in kinds if flop > 0)
    return [
        row.stage,
        row.component,
        str(row.calls),
        gib_text(row.weights_bytes),
        human_bytes(row.activation_bytes),
        work,
    ]


def _where(row: CallRow) -> str:
    """The op where a component's working memory is highest, and the module it is in."""
    op, path = row.site
    return say("trace-site", {"op": op, "module": path}) if path else op
