"""Record the reader's own code: ``with cardfit.record(pipe) as seen:`` around calls of an existing pipeline.

In: a diffusers pipeline. Out: a `Recording`, whose ``record`` holds a repetition for every call of the pipeline, and
one for calls of its components outside. The pipeline runs in the reader's own process, as they set it; an error is
recorded and goes on its way.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest.mock import patch

import torch

from cardfit.measure.here import here
from cardfit.measure.keep import Keeper
from cardfit.measure.runner import latents
from cardfit.measure.runner.clock import clock_of
from cardfit.measure.runner.failure import told
from cardfit.measure.runner.seen import output_sha256, versions_of
from cardfit.measure.runner.watch import Watch
from cardfit.measure.samplers import Target
from cardfit.measure.sampling import INTERVAL_S, Sampling
from cardfit.records import files
from cardfit.records.models import Inputs, Outcome, Predicted, Reason, Record, Repetition, Weights
from cardfit.request import ExactRequest, Settings


class Recording:
    """What goes on inside the ``with``; ``record`` grows with every call of the pipeline."""

    def __init__(
        self,
        pipeline: Any,
        *,
        store: str | None = None,
        keep_latents: bool = True,
        request: ExactRequest | None = None,
        settings: Settings | None = None,
        predicted: Predicted | None = None,
        notes: tuple[Reason, ...] = (),
    ) -> None:
        self.pipeline = pipeline
        parts = dict(getattr(pipeline, "components", {}))
        self.modules = {n: part for n, part in parts.items() if isinstance(part, torch.nn.Module)}
        self.device = _device(self.modules)
        self.clock = clock_of(self.device)
        self._keeper = Keeper(files.new_id(), store)
        self._keep_latents = keep_latents
        self._number = 0
        self._stack = ExitStack()
        self._watch: Watch | None = None
        self._open = ExitStack()
        self.record = Record(
            id=self._keeper.folder.name,
            created=datetime.now(UTC),
            finished=False,
            model=None if request is None else request.model,
            request=request,
            settings=settings,
            weights=Weights(kind="own", name=type(pipeline).__name__),
            inputs=Inputs(),
            versions={"cardfit": files.cardfit_version(), **versions_of(self.device)},
            device=str(self.device),
            machine=here(str(self.device)).machine,
            predicted=predicted,
            repetitions=(),
            outcome=Outcome(kind="interrupted", why=Reason.of("run-cut-off")),
            notes=notes,
        )

    def __enter__(self) -> Recording:
        self._sampler = _Sampler(self.device)
        self._stack.callback(self._sampler.close)
        kind = type(self.pipeline)
        original = kind.__call__
        recording = self

        @functools.wraps(original)
        def call(pipeline: Any, *args: Any, **kwargs: Any) -> Any:
            if pipeline is not recording.pipeline or recording._watch is None:
                return original(pipeline, *args, **kwargs)
            return recording._call(original, args, kwargs)

        self._stack.enter_context(patch.object(kind, "__call__", call))
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        where = None if self._watch is None else self._watch.where
        try:
            if error is None:
                self._end(None)
            else:
                self._drop()
        finally:
            self._stack.close()
        outcome = Outcome(kind="ok") if error is None else self._failed(error, where)
        self.record = self.record.model_copy(update={"finished": True, "outcome": outcome})
        self.record = self._keeper.save(self.record)
        self._keeper.close()

    # -- repetitions ----------------------------------------------------------------------------------------------

    def _call(self, original: Any, args: Any, kwargs: Any) -> Any:
        """One call of the pipeline is a repetition; what ran before it outside is another."""
        self._end(None)
        self._begin()
        result = original(self.pipeline, *args, **kwargs)
        self._end(result)
        self._begin()
        return result

    def _begin(self) -> None:
        self._open = ExitStack()
        self._watch = Watch(
            modules=self.modules,
            clock=self.clock,
            stage_said=self._sampler.stage,
            before_decode=self._before_decode,
        )
        self._sampler.begin()
        self._open.enter_context(self._watch.watching(getattr(self.pipeline, "scheduler", None)))

    def _end(self, result: Any) -> None:
        """Close the stretch; it is a repetition where a component was called in it."""
        watch, self._watch = self._watch, None
        self._open.close()
        if watch is None or not watch.found:
            return
        row = watch.row("own", self._number, None if result is None else output_sha256(result))
        self._number += 1
        row = self._sampler.end(row)
        self.record = self.record.model_copy(
            update={"repetitions": (*self.record.repetitions, row)}
        )
        self.record = self._keeper.save(self.record)

    def _drop(self) -> None:
        """Unwrap what an error left open."""
        self._watch = None
        self._open.close()

    def _before_decode(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        kept = len(self.record.latents)
        if not self._keep_latents or not name.startswith("vae") or self._number > 0:
            return
        path = self._keeper.folder / f"latents-{kept:03}.safetensors"
        try:
            latents.save(self.modules[name], args, kwargs, path)
        except OSError as error:
            self._keep_latents = False
            note = Reason.of("run-latents-not-kept", why=error.strerror or str(error))
            self.record = self.record.model_copy(update={"notes": (*self.record.notes, note)})
            return
        self.record = self.record.model_copy(
            update={"latents": (*self.record.latents, Path(path).name)}
        )

    def _failed(self, error: BaseException, where: tuple[str, str] | None) -> Outcome:
        found = told(error, self.modules)
        why = Reason.of(found["why"]["code"], **found["why"]["args"])
        stage, component = where or (None, None)
        more: dict[str, Any] = {}
        if self.clock.counts:
            more["allocated_bytes"] = torch.cuda.memory_allocated(self.device)
            more["reserved_bytes"] = torch.cuda.memory_reserved(self.device)
        return Outcome(
            **{**found, "why": why}, phase="own", stage=stage, component=component, **more
        )


class _Sampler:
    """The samplers on this very process, read by a thread."""

    def __init__(self, device: torch.device) -> None:
        index = device.index or 0 if device.type == "cuda" else None
        self._sampling = Sampling(Target(os.getpid(), index, own=True))
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """A repetition begins."""
        with self._lock:
            self._sampling.begin()

    def stage(self, name: str, component: str) -> None:
        """A stage begins."""
        with self._lock:
            self._sampling.stage(name, component, time.monotonic())

    def end(self, row: Repetition) -> Repetition:
        """The repetition's figures."""
        with self._lock:
            return self._sampling.end(row)

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join()
        self._sampling.close()

    def _go(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            with self._lock:
                self._sampling.read()


def _device(modules: dict[str, torch.nn.Module]) -> torch.device:
    """Where the pipeline runs: the card as soon as anything of it is there, or could be."""
    for module in modules.values():
        for parameter in module.parameters():
            if parameter.device.type == "cuda":
                return parameter.device
    # an offloaded pipeline keeps its weights in host RAM
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")
