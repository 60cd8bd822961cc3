"""A trace as a table: per stage and component what was called, what it weighs and what it does.

In: a `Trace`, with the estimate of its memory where the caller has one. Out: lines. FLOPs count a multiply-add as two
and are summed over every call of the run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from cardfit.messages import say
from cardfit.predict.estimate import MemoryEstimate
from cardfit.report import words
from cardfit.report.grid import Cell, Column, grid, hanging, wrapped
from cardfit.report.style import Style
from cardfit.request import DTYPES, Dtype, Settings
from cardfit.trace.peaks import Peaks
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
    peaks = Peaks(trace)
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
                for work in trace.streams[a].work:  # of nested calls too
                    row.flop[work.kind] += work.flop * segment.repeat
                peak = peaks.of(a)
                if peak.bytes > row.activation_bytes:
                    row.activation_bytes, row.site = peak.bytes, trace.sites[peak.site]
    return list(found.values())


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
    found = [*wrapped(head, style.width, hyphens=True), "", *grid(columns, table, style), ""]
    for row in counted:
        label = f"{row.stage}, {row.component}"
        found += hanging(say("trace-peak"), f"{label}: {_where(row)}", style.width)
    found.append("")
    if estimate is not None:
        stages = [f"{stage.name} {gib_text(stage.reserved_bytes)}" for stage in estimate.stages]
        found.append(say("trace-stages", {"stages": ", ".join(stages)}))
    return [*found, *wrapped(say("trace-total", args), style.width, hyphens=True)]


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
