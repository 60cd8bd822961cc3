"""One run inside the child process: load, first, steady and memory, each told to the parent as it ends.

In: a `Job` on stdin. Out: events. Whatever goes wrong is told as an outcome; only what was asked wrongly is a refusal.
"""

from __future__ import annotations

import gc
import inspect
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch

from cardfit.errors import CardfitError
from cardfit.measure.job import Job
from cardfit.measure.runner import apply, latents, outputs, profile
from cardfit.measure.runner.assemble import assemble, device_of, vae_alone
from cardfit.measure.runner.clock import Clock, clock_of
from cardfit.measure.runner.failure import told
from cardfit.measure.runner.seen import output_sha256, versions_of
from cardfit.measure.runner.talk import Line, die_with_parent, read_job
from cardfit.measure.runner.watch import Watch
from cardfit.records.models import PhaseName, Repetition
from cardfit.trace import recipes

_TELL_STEP_S = 0.2  # no more than five steps a second are told


def main() -> None:
    """Do the job on stdin."""
    line = Line()
    job = read_job()
    die_with_parent()
    Child(job, line).run()


class Child:
    """A run in progress."""

    def __init__(self, job: Job, line: Line) -> None:
        self.job, self.line = job, line
        self.modules: dict[str, torch.nn.Module] = {}
        self.watch: Watch | None = None
        self.phase: PhaseName = "load"
        self.saved = 0
        self.saving = job.latents is not None
        self.clock = Clock()

    def run(self) -> None:
        """Everything, with its end told."""
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                self._run()
            self.line.say("done")
        except CardfitError as error:
            self.line.say(
                "refused", code=error.code, args=_plain(error.args_), kind=type(error).__name__
            )
        except BaseException as error:
            traceback.print_exc()  # to stderr, which is the run's log
            self.line.say("failed", **self._failure(error))

    def _run(self) -> None:
        job = self.job
        device = device_of(job.device)
        self.clock = clock_of(device)
        apply.refuse(job, device)
        self.line.say(
            "ready",
            device=str(device),
            versions=versions_of(device, adapters=bool(job.request.loras)),
        )
        if job.resume:
            self._resume(device)
            return
        pipeline = self._load(device)
        arguments = _arguments(job, pipeline) | self._footage()
        with apply.attention(job):
            self._repeat(pipeline, arguments, "first", 0)
            self.saving = False  # the same seed makes the same latents
            for number in range(job.repeats):
                self._repeat(pipeline, arguments, "steady", number)
            if job.memory if job.memory is not None else not self.clock.counts:
                self._repeat(pipeline, arguments, "memory", 0)

    def _footage(self) -> dict[str, Any]:
        """The frames of the reader's own footage, and a note of what read them and how long it took."""
        if self.job.video is None:
            return {}
        from PIL import Image

        from cardfit.media.ingest import ingest

        began = time.perf_counter()
        found = ingest(Path(self.job.video), self.job.request.num_frames)
        pictures = [Image.fromarray(frame) for frame in found.frames]
        taken_s = round(time.perf_counter() - began, 3)
        args = {"frames": len(pictures), "engine": found.engine, "seconds": taken_s}
        self.line.say("note", code="run-ingested", args=args)
        return {"video": pictures}

    # -- phases ---------------------------------------------------------------------------------------------------

    def _begin(self, phase: PhaseName, number: int) -> None:
        self.phase = phase
        self.line.say("phase", phase=phase, number=number)

    def _load(self, device: torch.device) -> Any:
        self._begin("load", 0)
        began = self.clock.mark()
        pipeline, self.modules = assemble(self.job, device)
        apply.apply(self.job, pipeline, self.modules, device)
        ended = self.clock.mark()
        self.clock.wait()
        allocated, reserved = self.clock.peaks()
        row = Repetition(
            phase="load",
            number=0,
            seconds=self.clock.seconds(began, ended),
            figures={"allocated_peak_bytes": allocated, "reserved_peak_bytes": reserved},
        )
        self._tell(row)
        return pipeline

    def _repeat(
        self, pipeline: Any, arguments: dict[str, Any], phase: PhaseName, number: int
    ) -> None:
        self._begin(phase, number)
        if "generator" in arguments:
            arguments["generator"].manual_seed(self.job.request.seed)
        watch = self._watch(profiled := profile.Profile() if phase == "memory" else None)
        counted = self.clock.counters()
        with watch.watching(getattr(pipeline, "scheduler", None)):
            if profiled is None:
                result = pipeline(**arguments)
            else:
                with profiled:
                    result = pipeline(**arguments)
        row = watch.row(phase, number, output_sha256(result))
        if phase == "first":
            self._keep(partial(outputs.of_pipeline, result))
        del result
        if profiled is not None:
            row = profiled.fill(row)
        figures = {name: value - counted[name] for name, value in self.clock.counters().items()}
        self._tell(row.model_copy(update={"figures": {**row.figures, **figures}}))
        self.watch = None
        gc.collect()

    def _resume(self, device: torch.device) -> None:
        """Decode the latents of an earlier run again, with this job's VAE settings."""
        self._begin("load", 0)
        began = self.clock.mark()
        name = self.job.model.vae.component
        given = [latents.load(Path(path), device) for path in self.job.resume]
        vae = latents.matched(vae_alone(self.job, device), given, self.job.settings.dtype.get(name))
        given = latents.in_chunks(vae, given, self.job.settings.decode_chunk_size)
        self.modules = {name: vae}
        apply.set_vae(self.job, vae)
        self.clock.wait()
        self._tell(
            Repetition(phase="load", number=0, seconds=self.clock.seconds(began, self.clock.mark()))
        )
        for number in range(max(1, self.job.repeats)):
            self._decode(vae, given, "resume", number)
        if self.job.memory if self.job.memory is not None else not self.clock.counts:
            self._decode(vae, given, "memory", 0)

    def _decode(self, vae: Any, given: list[dict[str, Any]], phase: PhaseName, number: int) -> None:
        """One repetition of decoding ``given``."""
        self._begin(phase, number)
        watch = self._watch(profiled := profile.Profile() if phase == "memory" else None)
        watch.denoised = True
        with watch.watching(), profiled or nullcontext():
            outs = [vae.decode(**each) for each in given]
        row = watch.row(phase, number, output_sha256(outs))
        if phase == "resume" and number == 0:
            video, batch = self.job.model.is_video, self.job.request.batch
            self._keep(partial(outputs.of_decodes, outs, video=video, batch=batch))
        del outs
        self._tell(row if profiled is None else profiled.fill(row))

    def _keep(self, clips: Callable[[], list[Any]]) -> None:
        """Keep what came out, where that was asked for; what cannot be kept costs a note."""
        if self.job.outputs is None:
            return
        try:
            files = outputs.save(clips(), Path(self.job.outputs), self.job.request.fps)
        except (CardfitError, OSError, ValueError) as error:
            self.line.say("note", code="run-outputs-not-kept", args={"why": str(error)})
            return
        self.line.say("outputs", files=files)

    def _watch(self, profiled: profile.Profile | None) -> Watch:
        self.watch = Watch(
            modules=self.modules,
            clock=self.clock,
            stage_said=lambda name, component: self.line.say(
                "stage", name=name, component=component
            ),
            step_said=self._step,
            before_decode=self._before_decode,
            around=None if profiled is None else profiled.call,
        )
        self._told = float("-inf")
        return self.watch

    # -- telling --------------------------------------------------------------------------------------------------

    def _tell(self, row: Repetition) -> None:
        self.line.say("repetition", row=row.model_dump(mode="json"))

    def _step(self, done: int) -> None:
        now = time.monotonic()
        if now - self._told >= _TELL_STEP_S:
            self._told = now
            self.line.say("step", done=done, held_bytes=self.clock.held())

    def _before_decode(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.saving or self.job.latents is None or name != self.job.model.vae.component:
            return
        path = Path(self.job.latents) / f"latents-{self.saved:03}.safetensors"
        try:
            latents.save(self.modules[name], args, kwargs, path)
        except OSError as error:
            self.saving = False
            why = error.strerror or str(error)
            self.line.say("note", code="run-latents-not-kept", args={"why": why})
            return
        self.saved += 1
        self.line.say("latents", file=path.name)

    def _failure(self, error: BaseException) -> dict[str, Any]:
        found = told(error, self.modules)
        found["phase"] = self.phase
        if self.watch is not None and self.watch.where is not None:
            found["stage"], found["component"] = self.watch.where
        if self.clock.counts:
            found["allocated_bytes"] = torch.cuda.memory_allocated()
            found["reserved_bytes"] = torch.cuda.memory_reserved()
        return found


def _arguments(job: Job, pipeline: Any) -> dict[str, Any]:
    """Arguments of the call: the dry run's, with the reader's own prompt and pictures in their places."""
    from PIL import Image

    found = recipes.call_arguments(job.model, pipeline, job.request, job.settings)
    names = inspect.signature(pipeline.__call__).parameters
    own: dict[str, Any] = {"prompt": job.prompt, "negative_prompt": job.negative_prompt}
    if job.images:
        pictures = [Image.open(path).convert("RGB") for path in job.images]
        own["image"] = pictures[0] if len(pictures) == 1 else pictures
    found.update(
        {name: value for name, value in own.items() if value is not None and name in names}
    )
    if "generator" in names:
        found["generator"] = torch.Generator("cpu")
    return found


def _plain(args: dict[str, Any]) -> dict[str, Any]:
    kinds = (str, int, float, bool, type(None))
    return {name: value if isinstance(value, kinds) else str(value) for name, value in args.items()}
