"""A run while it goes on: one line of progress, and once the line that is read before walking away.

In: moments from `cardfit.measure.run`. Out: text for the progress line and one remark on stderr.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from cardfit.fleet.tasks import State
from cardfit.measure.ahead import Ahead, ahead
from cardfit.measure.run import Moment
from cardfit.measure.sweep import Sweep
from cardfit.messages import say
from cardfit.plan.answer import Money
from cardfit.records.models import Record
from cardfit.report.out import Progress
from cardfit.report.words import money
from cardfit.units import gib, human_bytes

_WORTH_S = 60.0  # of denoising still to come, below which nobody walks away
_CURRENCY = "USD"
_SHOWN = 2  # runs of a fleet on the one line


class Live:
    """Called with every moment. ``remark`` writes a line that stays."""

    def __init__(
        self,
        progress: Progress | None,
        remark: Callable[[str], None],
        *,
        usable_bytes: int | None = None,
        price_per_hour: float | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.progress, self.remark = progress, remark
        self.usable_bytes, self.price, self.timeout_s = usable_bytes, price_per_hour, timeout_s
        self._first: tuple[object, int, float] | None = None  # repetition, step, when
        self._said = False

    def __call__(self, moment: Moment, record: Record) -> None:
        """Show it."""
        step_s = self._step_s(moment)
        if step_s is not None and not self._said:
            to_come = ahead(
                moment,
                record,
                step_s,
                usable_bytes=self.usable_bytes,
                price_per_hour=self.price,
                timeout_s=self.timeout_s,
            )
            if to_come.denoise_left_s >= _WORTH_S:
                self._said = True
                self.remark(line(to_come))
        if self.progress is not None:
            share = (
                moment.step / moment.steps if moment.stage == "denoise" and moment.steps else None
            )
            self.progress(where(moment, step_s), share)

    def _step_s(self, moment: Moment) -> float | None:
        """Seconds a step, from the first one told in this repetition to the last."""
        key, now = (moment.phase, moment.number), time.monotonic()
        if moment.step == 0:
            return None
        if self._first is None or self._first[0] != key:
            self._first = (key, moment.step, now)
            return None
        steps = moment.step - self._first[1]
        return (now - self._first[2]) / steps if steps > 0 else None


class LiveFleet:
    """Called with what nodes tell of their runs, and with every state of the sweep."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.done = self.of = 0

    def said(self, found: Sweep) -> None:
        """A cell has ended."""
        self.done, self.of = len(found.rows), found.cells

    def watch(self, state: State, runs: Sequence[tuple[str, Moment]]) -> None:
        """Show it: how many there are of everything, and where the first few runs are."""
        if self.progress is None:
            return
        args = {"done": self.done, "of": self.of or "?", "going": state.going, "nodes": state.nodes}
        told = [f"{node} {where(moment, None)}" for node, moment in runs[:_SHOWN]]
        share = self.done / self.of if self.of else None
        self.progress(" · ".join([say("fleet-progress", args), *told]), share)


def where(moment: Moment, step_s: float | None) -> str:
    """The progress line: phase, stage, step, memory, and when denoising ends."""
    parts = [say(f"phase-{moment.phase}")]
    if moment.stage is not None:
        parts.append(moment.stage)
    if moment.stage == "denoise" and moment.step:
        parts.append(f"{moment.step}/{moment.steps}")
    if moment.held_bytes is not None:
        parts.append(human_bytes(moment.held_bytes))
    if step_s is not None and moment.stage == "denoise":
        parts.append(say("run-ends", {"at": _at((moment.steps - moment.step) * step_s)}))
    return " · ".join(parts)


def line(to_come: Ahead) -> str:
    """``denoise ends 22:41; decode needs 20.5 of 23.0; latents saved first; $0.55 at most``."""
    parts = [say("run-denoise-ends", {"at": _at(to_come.denoise_left_s)})]
    if to_come.decode_bytes is not None and to_come.usable_bytes is not None:
        args = {"size": gib(to_come.decode_bytes), "room": human_bytes(to_come.usable_bytes)}
        parts.append(say("run-decode-needs", args))
    if to_come.latents_kept:
        parts.append(say("run-latents-first"))
    if to_come.cost is not None:
        amount = money(Money(amount=round(to_come.cost, 2), currency=_CURRENCY))
        parts.append(
            say("run-cost-most" if to_come.at_most else "run-cost-about", {"money": amount})
        )
    return "; ".join(parts)


def _at(seconds: float) -> str:
    return (datetime.now() + timedelta(seconds=seconds)).strftime("%H:%M")
