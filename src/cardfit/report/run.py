"""A record as a page: what was predicted beside what was measured, and how it ended.

In: a `Record` and a `Style`. Out: lines. Also the sentences for a repetition's figures and for records in a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cardfit.measure.compared import Row, rows, step_seconds
from cardfit.messages import number, say
from cardfit.records.files import records_folder
from cardfit.records.models import OutcomeKind, Record
from cardfit.report import words
from cardfit.report.grid import Cell, Column, Table, grid, hanging
from cardfit.report.style import Style
from cardfit.units import human_bytes, human_seconds

_INDENT = 11
OUTCOMES: dict[OutcomeKind, tuple[str, str]] = {
    "ok": ("fits", "outcome-ok"),
    "oom": ("no", "outcome-oom"),
    "host_oom": ("no", "outcome-host-oom"),
    "error": ("no", "outcome-error"),
    "timeout": ("no", "outcome-timeout"),
    "interrupted": ("unknown", "outcome-interrupted"),
}
_COLOURS: dict[OutcomeKind, str] = {"ok": "green", "interrupted": "amber"}
_SHOWN = (
    ("rss_peak_bytes", "figure-rss"),
    ("cgroup_peak_bytes", "figure-cgroup"),
    ("device_used_peak_bytes", "figure-device"),
    ("host_used_peak_bytes", "figure-host-used"),
    ("link_received_bytes", "figure-received"),
    ("disk_read_bytes", "figure-disk-read"),
)


def lines(record: Record, style: Style) -> list[str]:
    """The whole page."""
    return [
        style.paint(style.dot.join(head(record)), "bold"),
        style.dot.join(f"{name} {number}" for name, number in sorted(record.versions.items())),
        "",
        *stages(record, style),
        "",
        *_times(record, style),
        *_figures(record, style),
        *ending(record, style),
        *_lost(record, style),
        *_came(record, style),
        *_labelled("run-label-record", say("run-kept", {"id": record.id}), style),
    ]


def notes(record: Record, style: Style) -> list[str]:
    """The cautions, for the error stream."""
    return [line for note in record.notes for line in hanging(say("note"), note.text, style.width)]


def head(record: Record) -> list[str]:
    """What ran, on what: model, size, settings, card."""
    parts = [record.model or record.weights.name or say("run-own-code")]
    if record.request is not None:
        parts += words.what(record.request)
    if record.settings is not None:
        parts += [words.dtypes(record.settings), words.settings_words(record.settings)]
    parts.append(record.machine.card_name or record.versions.get("card") or record.device)
    return parts


def stages(record: Record, style: Style) -> list[str]:
    """The table of stages, printed."""
    table = stage_table(record)
    return grid(table.columns, table.rows, style)


def stage_table(record: Record) -> Table:
    """What was predicted of each stage beside what was measured."""
    found = rows(record)
    on_card = any(row.reserved_bytes is not None for row in found)
    columns = [
        Column(say("col-stage")),
        Column(say("run-calls"), right=True),
        Column(say("run-predicted"), right=True),
        Column(say("run-measured"), right=True),
        Column(say("run-off"), right=True),
        *([Column(say("run-reserved-predicted"), right=True)] if on_card else []),
        *([Column(say("run-reserved"), right=True)] if on_card else []),
        Column(say("run-time-predicted"), right=True),
        Column(say("run-first"), right=True),
        Column(say("run-steady"), right=True),
    ]
    return Table(columns, [_row(row, on_card) for row in found])


def _row(row: Row, on_card: bool) -> list[Cell | str]:
    reserved = [_size(row.predicted_reserved_bytes), _size(row.reserved_bytes)] if on_card else []
    return [
        row.name,
        _calls(row),
        _size(row.predicted_bytes),
        _size(row.measured_bytes),
        _off(row.predicted_bytes, row.measured_bytes),
        *reserved,
        _seconds(row.predicted_seconds),
        _seconds(row.first_seconds),
        _seconds(row.steady_seconds),
    ]


def _calls(row: Row) -> str:
    if row.calls is None:
        return ""
    if row.calls_predicted in (None, row.calls):
        return str(row.calls)
    return say("run-calls-differ", {"calls": row.calls, "predicted": row.calls_predicted})


def _size(value: float | None) -> str:
    return "" if value is None else human_bytes(value)


def _seconds(value: float | None) -> str:
    return "" if value is None else human_seconds(value)


def _off(predicted: int | None, measured: int | None) -> Cell:
    """Predicted against measured, in percent of what was measured."""
    if predicted is None or not measured:
        return Cell("")
    share = 100 * (predicted - measured) / measured
    return Cell(number(f"{share:+.1f} %"), "" if abs(share) < 5 else "amber")


def _times(record: Record, style: Style) -> list[str]:
    found = times(record)
    return _labelled("run-label-time", style.dot.join(found), style) if found else []


def times(record: Record) -> list[str]:
    """How long each phase took, and a step."""
    found = []
    for phase in ("load", "first", "steady", "resume", "own"):
        each = [repetition.seconds for repetition in record.of_phase(phase)]
        if each:
            args = {"seconds": human_seconds(sum(each) / len(each)), "count": len(each)}
            code = "run-phase-mean" if len(each) > 1 else "run-phase-once"
            found.append(say(code, {"phase": say(f"phase-{phase}"), **args}))
    if (step := step_seconds(record)) is not None:
        found.append(say("run-step", {"seconds": human_seconds(step)}))
    return found


def _figures(record: Record, style: Style) -> list[str]:
    found = figures(record)
    return _labelled("run-label-seen", style.dot.join(found), style) if found else []


def figures(record: Record) -> list[str]:
    """What the samplers saw at most."""
    return [
        say(code, {"size": human_bytes(value)})
        for name, code in _SHOWN
        if (value := record.peak(name)) is not None
    ]


def outcome_word(record: Record, style: Style) -> Cell:
    """The outcome as shape and word."""
    kind = record.outcome.kind
    shape, code = OUTCOMES[kind]
    return Cell(f"{style.shape(shape)} {say(code)}", _COLOURS.get(kind, "red"))


def ending(record: Record, style: Style) -> list[str]:
    """How it ended: where, at what, why, and what to do next."""
    outcome = record.outcome
    word = outcome_word(record, style)
    parts = [style.paint(word.text, word.colour)]
    if outcome.kind != "ok":
        parts += list(_where(record))
    page = _labelled("run-label-outcome", style.dot.join(parts), style)
    if outcome.why is not None and outcome.kind != "ok":
        page += _labelled("run-label-why", outcome.why.text, style)
    if outcome.kind in ("oom", "host_oom") and record.latents:
        page += _labelled("run-label-next", say("run-next-resume", {"id": record.id}), style)
    elif outcome.kind in ("oom", "host_oom"):
        page += _labelled(
            "run-label-next", say("run-next-autopsy", {"path": str(log_path(record))}), style
        )
    return page


def _lost(record: Record, style: Style) -> list[str]:
    """What the output lost against another run's, where the two were compared."""
    of = record.quality
    if of is None:
        return []
    parts = [say("run-quality", {"ssim": of.ssim, "reference": of.reference})]
    if of.seam_score is not None:
        parts.append(say("run-quality-seam", {"score": of.seam_score}))
    if of.diverged:
        parts.append(say("run-quality-diverged"))
    return _labelled("run-label-quality", style.dot.join(parts), style)


def log_path(record: Record) -> Path:
    """Where the run's own words lie, on the machine that made the record."""
    return records_folder() / record.id / "run.log"


def _where(record: Record) -> Iterable[str]:
    outcome = record.outcome
    if outcome.stage is not None:
        yield say("run-in-stage", {"stage": outcome.stage, "component": outcome.component or "?"})
    elif outcome.phase is not None:
        yield say("run-in-phase", {"phase": say(f"phase-{outcome.phase}")})
    if outcome.op is not None and outcome.kind != "error":
        yield outcome.op
    if outcome.tried_bytes is not None:
        yield say("run-tried", {"size": human_bytes(outcome.tried_bytes)})
    if outcome.allocated_bytes is not None:
        yield say("run-held", {"size": human_bytes(outcome.allocated_bytes)})


def _came(record: Record, style: Style) -> list[str]:
    """The stores that a record came through; nothing for one that was measured here."""
    steps = [
        say(
            "record-came" if step.store else "record-came-file",
            {"date": f"{step.at:%Y-%m-%d}", "store": step.store},
        )
        for step in record.origin
    ]
    return _labelled("run-label-came", style.dot.join(steps), style) if steps else []


def _labelled(code: str, text: str, style: Style) -> list[str]:
    return hanging(say(code), text, style.width, _INDENT)


def table(records: Iterable[Record], style: Style) -> list[str]:
    """Records in a list, one a line."""
    found = listed(records, style)
    return grid(found.columns, found.rows, style) if found.rows else [say("records-none")]


def listed(records: Iterable[Record], style: Style) -> Table:
    """Records in a list, the id first."""
    columns = [
        Column(say("records-id")),
        Column(say("records-model"), least=8, cut=True),
        Column(say("records-size")),
        Column(say("records-settings"), least=9),
        Column(say("records-card"), least=8, cut=True),
        Column(say("records-peak"), right=True),
        Column(say("records-seconds"), right=True),
        Column(say("records-outcome"), least=10),
    ]
    return Table(columns, [_listed(record, style) for record in records])


def _listed(record: Record, style: Style) -> list[Cell | str]:
    request, settings = record.request, record.settings
    steady = record.of_phase("steady", "resume", "own") or record.of_phase("first")
    peak = record.peak("reserved_peak_bytes") or record.peak("cpu_allocated_peak_bytes")
    return [
        record.id,
        record.model or record.weights.name or say("run-own-code"),
        f"{request.width}x{request.height}" if request else "",
        words.settings_words(settings) if settings else "",
        record.machine.card or record.device,
        _size(peak),
        _seconds(sum(r.seconds for r in steady) / len(steady) if steady else None),
        outcome_word(record, style),
    ]
