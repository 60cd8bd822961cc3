"""Watch a pipeline's components while it runs: the same calls, by the same names, as the dry run wraps.

In: components, a clock, what to tell on the way. Out: `Watch` with every call, stage and step of one repetition. Only
the outermost call of a component counts. Peaks are read at the borders of calls and never waited for; the device is
waited for where one stage gives way to the next, so that a stage's seconds are its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from unittest.mock import patch

from cardfit.measure.runner.clock import Clock, Peaks
from cardfit.records.models import Call, PhaseName, Repetition, Stage
from cardfit.trace.dryrun import stage_of

METHODS = ("forward", "encode", "decode")  # as the dry run wraps them; a test compares

StageSaid = Callable[[str, str], None]
StepSaid = Callable[[int], None]
BeforeDecode = Callable[[str, tuple[Any, ...], dict[str, Any]], None]


@dataclass
class _Call:
    stage: tuple[str, str]
    method: str
    begin: Any
    end: Any = None
    peaks: Peaks = (None, None)


@dataclass
class _Stage:
    calls: int = 0
    seconds: float = 0.0
    peaks: Peaks = (None, None)


@dataclass
class Watch:
    """One repetition as it is seen. ``where`` is the stage, component and method that runs now."""

    modules: Mapping[str, Any]
    clock: Clock
    stage_said: StageSaid = lambda _name, _component: None
    step_said: StepSaid = lambda _done: None
    before_decode: BeforeDecode = lambda _name, _args, _kwargs: None
    around: Callable[[int], Any] | None = None  # a context for the n-th call
    found: list[_Call] = field(default_factory=list)
    stages: dict[tuple[str, str], _Stage] = field(default_factory=dict)
    steps: list[Any] = field(default_factory=list)
    where: tuple[str, str] | None = None
    denoised: bool = False
    _inside: bool = False
    _stage_began: Any = None
    _stepper: Any = None

    @contextmanager
    def watching(self, scheduler: Any = None) -> Iterator[Watch]:
        """Wrap the components for one repetition; what was there before comes back, hooks made meanwhile stay."""
        with ExitStack() as stack:
            for name, module in self.modules.items():
                for method in METHODS:
                    if hasattr(module, method):
                        self._wrap(stack, name, module, method)
            if scheduler is not None and hasattr(type(scheduler), "step"):
                kind = type(scheduler)
                stack.enter_context(patch.object(kind, "step", self._stepping(kind.step)))
            self.clock.wait()
            self.clock.peaks()
            self.began = self.clock.mark()
            self._stage_began = self.began
            yield self
            self._leave_stage()
            self.ended = self.clock.mark()
            self.clock.wait()

    @property
    def seconds(self) -> float:
        """Seconds of the repetition."""
        return self.clock.seconds(self.began, self.ended)

    def calls(self) -> tuple[Call, ...]:
        """Every call in its order; read it when the device has caught up."""
        return tuple(
            Call(
                stage=each.stage[0],
                component=each.stage[1],
                method=each.method,
                at_seconds=self.clock.seconds(self.began, each.begin),
                seconds=self.clock.seconds(each.begin, each.end),
                allocated_peak_bytes=each.peaks[0],
                reserved_peak_bytes=each.peaks[1],
            )
            for each in self.found
            if each.end is not None
        )

    def stage_rows(self) -> tuple[Stage, ...]:
        """Every stage in the order of its first call."""
        return tuple(
            Stage(
                name=name,
                component=component,
                calls=stage.calls,
                seconds=stage.seconds,
                allocated_peak_bytes=stage.peaks[0],
                reserved_peak_bytes=stage.peaks[1],
            )
            for (name, component), stage in self.stages.items()
        )

    def step_seconds(self) -> tuple[float, ...]:
        """Seconds from the end of one denoising step to the end of the next."""
        return tuple(self.clock.seconds(before, after) for before, after in pairwise(self.steps))

    def row(self, phase: PhaseName, number: int, output_sha256: str | None) -> Repetition:
        """Everything that was seen."""
        return Repetition(
            phase=phase,
            number=number,
            seconds=self.seconds,
            stages=self.stage_rows(),
            calls=self.calls(),
            step_seconds=self.step_seconds(),
            output_sha256=output_sha256,
        )

    # -- wrapping -------------------------------------------------------------------------------------------------

    def _wrap(self, stack: ExitStack, name: str, module: Any, method: str) -> None:
        before = module.__dict__.get(method)
        original = getattr(module, method)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return original(*args, **kwargs)
            if method == "decode":
                self.before_decode(name, args, kwargs)
            return self._call(name, method, original, args, kwargs)

        def unwrap() -> None:
            if module.__dict__.get(method) is not call:
                return  # the pipeline has put a hook of its own there since
            if before is None:
                del module.__dict__[method]
            else:
                module.__dict__[method] = before

        module.__dict__[method] = call
        stack.callback(unwrap)

    def _call(self, name: str, method: str, original: Any, args: Any, kwargs: Any) -> Any:
        stage = (stage_of(name, method, self.denoised), name)
        self.denoised = self.denoised or stage[0] == "denoise"
        if stage != self.where:
            self._leave_stage()
            self.where = stage
            self.stages.setdefault(stage, _Stage())
            self.stage_said(*stage)
        else:
            self._note(self.clock.peaks())
        row = _Call(stage, method, self.clock.mark())
        self.found.append(row)
        self._inside = True
        try:
            if self.around is None:
                out = original(*args, **kwargs)
            else:
                with self.around(len(self.found) - 1):
                    out = original(*args, **kwargs)
        finally:
            self._inside = False
        row.end = self.clock.mark()
        row.peaks = self.clock.peaks()
        self._note(row.peaks)
        self.stages[stage].calls += 1
        return out

    def _leave_stage(self) -> None:
        """The stage that ran until now ends here; what came before the first one belongs to the first."""
        if self.where is None:
            return
        self.clock.wait()
        now = self.clock.mark()
        self._note(self.clock.peaks())
        self.stages[self.where].seconds += self.clock.seconds(self._stage_began, now)
        self._stage_began = now

    def _note(self, peaks: Peaks) -> None:
        if self.where is not None:
            stage = self.stages[self.where]
            stage.peaks = (_higher(stage.peaks[0], peaks[0]), _higher(stage.peaks[1], peaks[1]))

    def _stepping(self, original: Any) -> Any:
        """Note where every step ends. A pipeline may copy its scheduler: the first one that steps keeps time."""

        @functools.wraps(original)
        def step(*args: Any, **kwargs: Any) -> Any:
            out = original(*args, **kwargs)
            self._stepper = self._stepper or args[0]
            if args[0] is self._stepper:
                self.steps.append(self.clock.mark())
                self.step_said(len(self.steps))
            return out

        return step


def _higher(one: int | None, other: int | None) -> int | None:
    known = [value for value in (one, other) if value is not None]
    return max(known, default=None)
