"""Run a job in a child process and keep what it did, whatever becomes of it.

In: a `Job`, what was predicted, where the record goes. Out: a `Record`, saved after every repetition. The child may
run out of memory, crash, hang or be killed: each is an outcome. When this process is killed the child goes with it,
and the record on disk holds every repetition that had ended.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from cardfit import errors
from cardfit.errors import BadRequest, CardfitError
from cardfit.measure.here import driver_index
from cardfit.measure.job import Event, Job
from cardfit.measure.keep import Keeper
from cardfit.measure.samplers import Target
from cardfit.measure.sampling import Sampling
from cardfit.records.models import Outcome, OutcomeKind, PhaseName, Reason, Record, Repetition
from cardfit.units import KIB

_LOG_BYTES = 4 * KIB
_END_S = 10.0  # for a child that has said its last word


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a run is now. ``share`` is of the phase, ``held_bytes`` what torch holds, else the process."""

    phase: PhaseName
    number: int
    stage: str | None
    step: int
    steps: int
    held_bytes: float | None
    elapsed_s: float


Watcher = Callable[[Moment, Record], None]


def run(
    job: Job,
    record: Record,
    keeper: Keeper,
    *,
    timeout_s: float | None = None,
    watcher: Watcher | None = None,
    environment: Mapping[str, str] | None = None,
) -> Record:
    """Run ``job``; ``record`` is what is known before it. Raises BadRequest for what the child refuses, BadFile where
    the record can no longer be written (the child is ended first).
    """
    return _Run(job, record, keeper, timeout_s, watcher, environment or {}).go()


@dataclass
class _Run:
    job: Job
    record: Record
    keeper: Keeper
    timeout_s: float | None
    watcher: Watcher | None
    environment: Mapping[str, str]
    phase: PhaseName = "load"
    number: int = 0
    stage: tuple[str, str] | None = None
    step: int = 0
    held: float | None = None
    sampling: Sampling | None = None
    outcome: Outcome | None = None
    refused: CardfitError | None = None
    done: bool = False
    events: queue.Queue[Event | None] = field(default_factory=queue.Queue)

    def go(self) -> Record:
        """The whole run."""
        log_path = self.keeper.folder / "run.log"
        self.record = self.keeper.save(self._interrupted("run-cut-off"))
        self.began = time.monotonic()
        with log_path.open("wb") as log:
            self.child = self._start(log)
            try:
                self._follow()
            except KeyboardInterrupt:
                self._kill()
                self._finish(self._at("interrupted", "run-interrupted"), log_path)
                raise
            except BaseException:
                self._kill()
                raise
            finally:
                self._sampled_out()
        if self.refused is not None:
            raise self.refused
        return self._finish(self.outcome or self._ended(log_path), log_path)

    def _sampled_out(self) -> None:
        if self.sampling is not None:
            self.sampling.close()

    def _start(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        before = {**os.environ, "PYTHONUNBUFFERED": "1", **self.environment}
        before["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        if self.job.settings.alloc_conf:
            before["PYTORCH_CUDA_ALLOC_CONF"] = self.job.settings.alloc_conf
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "cardfit.measure.runner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=before,
            start_new_session=True,  # Ctrl-C reaches this process alone, which ends the child in its own way
        )
        threading.Thread(target=_hear, args=(child, self.events), daemon=True).start()
        self.sampling = Sampling(Target(child.pid, self._card()))
        assert child.stdin is not None
        try:
            child.stdin.write(self.job.model_dump_json(by_alias=True).encode() + b"\n")
            child.stdin.flush()
        except OSError:
            pass  # it died at once: its log says why
        return child

    def _card(self) -> int | None:
        """The driver's index of the card, as far as it is known before torch says."""
        name = self.job.device
        if name == "cpu" or (name == "auto" and self.record.machine.card is None):
            return None
        return driver_index(int(name.partition(":")[2] or 0))

    def _follow(self) -> None:
        """Hear the child until it ends, sampling meanwhile."""
        assert self.sampling is not None
        self.sampling.begin()
        while True:
            wait = self.sampling.wait()
            if self.timeout_s is not None and time.monotonic() - self.began > self.timeout_s:
                self._kill()
                self.outcome = self._at("timeout", "run-timed-out", seconds=self.timeout_s)
                return
            try:
                event = self.events.get(timeout=wait)
            except queue.Empty:
                self._show()
                continue
            if event is None:
                break
            self._take(event)
        self._wait()

    def _take(self, event: Event) -> None:
        data = event.data
        assert self.sampling is not None
        match event.event:
            case "ready":
                versions = {**self.record.versions, **data["versions"]}
                self._update(device=data["device"], versions=versions)
            case "phase":
                self.phase, self.number, self.stage, self.step = (
                    data["phase"],
                    data["number"],
                    None,
                    0,
                )
                if self.phase != "load":
                    self.sampling.begin()
                self._show()
            case "stage":
                self.stage = (data["name"], data["component"])
                self.sampling.stage(*self.stage, event.at)
                self._show()
            case "step":
                self.step, self.held = data["done"], data["held_bytes"]
                self._show()
            case "latents":
                self._update(latents=(*self.record.latents, data["file"]))
            case "outputs":
                self._update(outputs=tuple(data["files"]))
            case "note":
                self._note(Reason.of(data["code"], **data["args"]))
            case "repetition":
                self._repetition(Repetition.model_validate(data["row"]))
            case "failed":
                why = Reason.of(data["why"]["code"], **data["why"]["args"])
                self.outcome = Outcome.model_validate({**data, "why": why})
            case "refused":
                kind = getattr(errors, data["kind"], BadRequest)
                self.refused = kind(data["code"], **data["args"])
            case "done":
                self.done = True

    def _repetition(self, row: Repetition) -> None:
        assert self.sampling is not None
        row = self.sampling.end(row)
        self._update(repetitions=(*self.record.repetitions, row))
        self.record = self.keeper.save(self.record)

    def _update(self, **fields: Any) -> None:
        self.record = self.record.model_copy(update=fields)

    def _note(self, note: Reason) -> None:
        if note not in self.record.notes:
            self._update(notes=(*self.record.notes, note))

    def _show(self) -> None:
        if self.watcher is None or self.sampling is None:
            return
        moment = Moment(
            phase=self.phase,
            number=self.number,
            stage=self.stage[0] if self.stage else None,
            step=self.step,
            steps=self.job.request.num_inference_steps,
            held_bytes=self.held if self.held is not None else self.sampling.latest("rss"),
            elapsed_s=time.monotonic() - self.began,
        )
        self.watcher(moment, self.record)

    # -- the end --------------------------------------------------------------------------------------------------

    def _interrupted(self, code: str) -> Record:
        """The record as it is kept while the run goes on: what it will be if nobody is left to finish it."""
        outcome = Outcome(kind="interrupted", why=Reason.of(code))
        return self.record.model_copy(update={"finished": False, "outcome": outcome})

    def _at(self, kind: OutcomeKind, said: str, /, **args: Any) -> Outcome:
        stage, component = self.stage or (None, None)
        return Outcome(
            kind=kind,
            why=Reason.of(said, **args),
            phase=self.phase,
            stage=stage,
            component=component,
        )

    def _ended(self, log_path: Path) -> Outcome:
        """The outcome of a child that said nothing more: it ended well, or something ended it."""
        if self.done:
            return Outcome(kind="ok")
        code = self.child.returncode
        if code == -getattr(signal, "SIGKILL", 9):
            if self._killed_for_memory():
                return self._at("host_oom", "run-killed-for-memory")
            return self._at("interrupted", "run-killed")
        return self._at("error", "run-died", code=code)

    def _killed_for_memory(self) -> bool:
        """Whether the control group or the machine counted a kill for want of memory while the child ran."""
        assert self.sampling is not None
        self.sampling.read()
        counts = [
            reading["oom_kills"]
            for _, reading in self.sampling.figures.samples
            if "oom_kills" in reading
        ]
        return (bool(counts) and counts[-1] > counts[0]) or _machine_kills() > self.kills_before

    def _finish(self, outcome: Outcome, log_path: Path) -> Record:
        if outcome.kind != "ok":
            outcome = outcome.model_copy(update={"log": _tail(log_path)})
        self._update(finished=True, outcome=outcome)
        self.record = self.keeper.save(self.record)
        return self.record

    def _wait(self) -> None:
        try:
            self.child.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._kill()
        self._close()

    def _kill(self) -> None:
        self.child.kill()
        self.child.wait()
        self._close()

    def _close(self) -> None:
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def __post_init__(self) -> None:
        self.kills_before = _machine_kills()


def _hear(child: subprocess.Popen[bytes], events: queue.Queue[Event | None]) -> None:
    """Put the child's lines into ``events``, then None."""
    assert child.stdout is not None
    try:
        for line in child.stdout:
            try:
                events.put(Event.model_validate_json(line))
            except ValidationError:
                continue  # half a line of a child that was killed while it spoke
    except (OSError, ValueError):
        pass  # the pipe was closed under the reader, by the end of the run: there is nothing more to hear
    events.put(None)


def _machine_kills() -> int:
    """Processes that the kernel has killed for want of memory since it started; 0 where it does not say."""
    try:
        text = Path("/proc/vmstat").read_text(encoding="ascii")
    except OSError:
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("oom_kill ")]
    return int(found[0]) if found else 0


def _tail(path: Path) -> str | None:
    """The last lines that the run wrote."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _LOG_BYTES))
            text = stream.read().decode("utf-8", "replace").strip()
    except OSError:
        return None
    return text or None
