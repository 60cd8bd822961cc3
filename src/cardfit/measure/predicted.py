"""What a run was predicted to take, beside which its record puts what it took.

In: a model, an exact request, settings, the card if there is one. Out: `records.models.Predicted`, or a note that says
why there is none. A prediction that fails never stops a measurement.
"""

from __future__ import annotations

from collections.abc import Callable

from cardfit.cards import Card
from cardfit.errors import CardfitError
from cardfit.library.models import Model
from cardfit.measure.cpu_peak import cpu_peaks
from cardfit.predict.memory import estimate
from cardfit.predict.store import kept
from cardfit.predict.timing import seconds
from cardfit.predict.totals import head_dim_of, totals
from cardfit.records.models import Predicted, PredictedStage, Reason
from cardfit.request import ExactRequest, Settings
from cardfit.trace.cache import cached
from cardfit.trace.stream import Trace

Progress = Callable[[str, float | None], None]


def predicted(
    model: Model,
    request: ExactRequest,
    settings: Settings,
    card: Card | None,
    *,
    progress: Progress | None = None,
) -> tuple[Predicted | None, tuple[Reason, ...]]:
    """Peaks per stage, and seconds where the card's rates are known."""
    try:
        trace, notes = cached(model, request, settings, progress=progress)
        memory = kept(
            estimate,
            model,
            trace,
            settings,
            architecture=None if card is None else card.architecture,
            limit_bytes=None,
        )
    except CardfitError as error:
        return None, (Reason.of("run-not-predicted", why=str(error)),)
    times, kinds, total = _seconds(model, trace, settings, card)
    cpu: dict[str, int] = {}
    for (name, _), size in (cpu_peaks(trace) if card is None else {}).items():
        cpu[name] = max(size, cpu.get(name, 0))
    rows = tuple(
        PredictedStage(
            name=stage.name,
            component=stage.component,
            calls=stage.calls,
            weights_bytes=stage.weights_bytes,
            activation_bytes=stage.activation_bytes,
            allocated_bytes=stage.allocated_bytes,
            reserved_bytes=stage.reserved_bytes,
            cpu_bytes=cpu.get(stage.name),
            seconds=times.get(stage.name),
            kind_seconds=kinds.get(stage.name, {}),
        )
        for stage in memory.stages
    )
    found = Predicted(
        stages=rows,
        allocated_bytes=memory.allocated_bytes,
        reserved_bytes=memory.reserved_bytes,
        host_bytes=memory.host_bytes,
        cpu_bytes=max(cpu.values(), default=None),
        seconds=total,
    )
    return found, tuple(Reason.of(note.code, **note.args) for note in notes)


def _seconds(
    model: Model, trace: Trace, settings: Settings, card: Card | None
) -> tuple[dict[str, float], dict[str, dict[str, float]], float | None]:
    """Likely seconds by stage, by stage and kind of kernel, and in all."""
    if card is None:
        return {}, {}, None
    found = seconds(totals(trace, head_dim=head_dim_of(model)), settings, card)
    if found.total is None:
        return {}, {}, None
    by_stage: dict[str, float] = {}
    by_kind: dict[str, dict[str, float]] = {}
    for stage in found.stages:
        by_stage[stage.name] = by_stage.get(stage.name, 0.0) + stage.seconds.likely
        kinds = by_kind.setdefault(stage.name, {})
        for kind, part in stage.parts:
            kinds[kind] = kinds.get(kind, 0.0) + part
    return by_stage, by_kind, found.total.likely
