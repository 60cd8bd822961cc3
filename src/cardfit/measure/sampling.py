"""Sample a process while it runs, and say what was seen in each phase and stage of it.

In: a `Target`, moments at which phases and stages begin. Out: figures of a `Repetition`, each ``None`` with a reason
where its sampler was silent. The readings are taken outside the process that is measured.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from cardfit.measure.samplers import FIGURES, SAMPLERS, Target
from cardfit.measure.samplers.base import Figures
from cardfit.records.models import Reason, Repetition, Stage

INTERVAL_S = 0.1


class Sampling:
    """All samplers on one target, phase by phase."""

    def __init__(self, target: Target) -> None:
        self.samplers = [make(target) for make in SAMPLERS.values()]
        self.figures = Figures()
        self.stages: list[tuple[tuple[str, str], float]] = []
        self._next = 0.0

    def begin(self) -> None:
        """A phase begins now."""
        self.figures, self.stages = Figures(), []
        for sampler in self.samplers:
            sampler.mark()
        self.read(border=True)

    def stage(self, name: str, component: str, at: float) -> None:
        """A stage begins at the moment ``at``."""
        self.stages.append(((name, component), at))

    def wait(self) -> float:
        """Seconds until the next reading is due; reads when it is."""
        left = self._next - time.monotonic()
        if left <= 0:
            self.read()
            left = INTERVAL_S
        return left

    def read(self, *, border: bool = False) -> None:
        """Read everything once."""
        found: dict[str, float] = {}
        for sampler in self.samplers:
            with suppress(OSError):
                found.update(sampler.read(border))
        now = time.monotonic()
        self.figures.samples.append((now, found))
        self._next = now + INTERVAL_S

    def end(self, row: Repetition) -> Repetition:
        """``row`` with the figures of the phase that ends now."""
        self.read(border=True)
        over = self.figures.of(FIGURES)
        found = {**over, **row.figures}
        silent = {name: why for name, why in self._reasons(row).items() if found.get(name) is None}
        for name, value in found.items():
            if value is None and name not in silent:
                silent[name] = Reason.of("sampler-too-short")
        stages = tuple(self._stage(stage) for stage in row.stages)
        return row.model_copy(update={"figures": found, "silent": silent, "stages": stages})

    def close(self) -> None:
        """Let every source go."""
        for sampler in self.samplers:
            sampler.close()

    def latest(self, raw: str) -> float | None:
        """The last reading of ``raw``."""
        for _, reading in reversed(self.figures.samples):
            if raw in reading:
                return reading[raw]
        return None

    def _reasons(self, row: Repetition) -> dict[str, Reason]:
        silent = {raw: why for sampler in self.samplers for raw, why in sampler.silent.items()}
        found = {
            name: silent[figure.raw] for name, figure in FIGURES.items() if figure.raw in silent
        }
        if row.reserved_peak_bytes is None and row.figures.get("reserved_peak_bytes") is None:
            found["reserved_peak_bytes"] = Reason.of("sampler-torch-cpu")
            if row.allocated_peak_bytes is None:
                found["allocated_peak_bytes"] = Reason.of("sampler-torch-cpu")
        return found

    def _stage(self, stage: Stage) -> Stage:
        return stage.model_copy(
            update={"figures": self.figures.of(FIGURES, self._between(stage.name, stage.component))}
        )

    def _between(self, name: str, component: str) -> Sequence[tuple[float, float]]:
        ends = [at for _, at in self.stages[1:]] + [float("inf")]
        return [
            (at, end)
            for (key, at), end in zip(self.stages, ends, strict=True)
            if key == (name, component)
        ]
