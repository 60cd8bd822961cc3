"""The verbs of this room, wired: run, sweep, choose, probe, calibrate, and a record of the reader's own code.

In: what a person asks, with names and paths. Out: typed values. This is where the room loads things: library entries,
the machine, what was predicted, the store. `cardfit.verbs` hands these on under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cardfit.errors import BadRequest, MissingExtra
from cardfit.library.add_ons import with_add_ons
from cardfit.library.folder import name_of
from cardfit.library.lora_file import with_files_read
from cardfit.library.models import Model
from cardfit.library.rules import resolve, settings_allowed
from cardfit.library.sourced import taken
from cardfit.measure.again import RANDOM, again, check, kept
from cardfit.measure.folder import with_folder
from cardfit.measure.here import Here, here
from cardfit.measure.hub import located
from cardfit.measure.inputs import inputs_of
from cardfit.measure.job import Job
from cardfit.measure.keep import Keeper
from cardfit.measure.predicted import predicted
from cardfit.measure.run import Watcher
from cardfit.records import files
from cardfit.records.models import FAKE, Outcome, Predicted, Reason, Record, Weights
from cardfit.request import ExactRequest, Request, Settings

if TYPE_CHECKING:
    from cardfit.measure.runner.own import Recording

Progress = Callable[[str, float | None], None]
Foretold = tuple[Predicted | None, tuple[Reason, ...]]
"""What was predicted, and notes about it."""
_EXTRA = ("torch", "diffusers", "transformers", "accelerate", "peft", "safetensors")


def run(
    request: Request | str | None = None,
    settings: Settings | None = None,
    *,
    resume: Record | Path | str | None = None,
    weights: str | Path | None = None,
    configs: Path | None = None,
    device: str = "auto",
    repeats: int = 1,
    memory: bool | None = None,
    timeout_s: float | None = None,
    prompt: str | None = None,
    negative_prompt: str | None = None,
    images: Sequence[Path] = (),
    video: Path | None = None,
    keep_inputs: bool = False,
    keep_outputs: bool = False,
    store: str | None = None,
    predict: bool | Foretold = True,
    sweep: str | None = None,
    cell: str | None = None,
    progress: Progress | None = None,
    watcher: Watcher | None = None,
) -> Record:
    """Measure one request on this machine, in a child process: load, a first call, ``repeats`` steady ones.

    ``weights`` is ``"random"`` (so it is when left out), a local diffusers folder of safetensors, or the id of a repo
    on the hub, whose safetensors are fetched into its cache; ``configs`` a folder whose configs replace the library's
    under random weights. ``device`` is auto, cpu, cuda or cuda:N.
    ``memory`` adds a repetition under torch's memory profiler (left out: on a CPU, where nothing else counts). Open
    settings stay off. The record is saved after every repetition, whatever becomes of the run; ``outcome`` says what
    did. ``predict`` may be what was predicted already. ``resume`` names an earlier record instead of a request: its
    latents are decoded again, ``settings`` of the VAE on top of the earlier ones.
    Raises InputError for what cannot be asked, BadFile where the record cannot be kept, MissingExtra without torch.
    """
    check(repeats, timeout_s, device)
    if resume is not None:
        earlier = (resume, settings, weights, device, repeats, timeout_s, store, watcher)
        return again(*earlier, keep_outputs=keep_outputs)
    if request is None:
        raise BadRequest("run-model-or-resume")
    chosen = weights or RANDOM
    entry, exact, given, notes, from_ = asked(request, settings or Settings(), chosen, configs)
    machine = here(device)
    found, more = predict if isinstance(predict, tuple) else (None, ())
    if predict is True and device != FAKE:
        found, more = predict_run(entry, exact, given, machine, progress)
    record = Record(
        id=files.new_id(),
        created=datetime.now(UTC),
        finished=False,
        model=entry.id,
        request=exact,
        settings=given,
        weights=from_,
        inputs=inputs_of(prompt, negative_prompt, images, _footage(exact, video), keep=keep_inputs),
        versions={"cardfit": files.cardfit_version()},
        device=device,
        machine=machine.machine,
        predicted=found,
        repetitions=(),
        outcome=Outcome(kind="interrupted", why=Reason.of("run-cut-off")),
        sweep=sweep,
        cell=cell,
        notes=(*notes, *more),
    )
    keeper = Keeper(record.id, store)
    job = Job(
        model=entry,
        request=exact,
        settings=given,
        weights=from_.kind,
        folder=None if chosen == RANDOM else str(located(chosen, entry, exact.task).resolve()),
        device=device,
        repeats=repeats,
        memory=memory,
        prompt=prompt,
        negative_prompt=negative_prompt,
        images=tuple(str(path.resolve()) for path in images),
        video=None if video is None else str(video.resolve()),
        latents=str(keeper.folder),
        outputs=str(keeper.folder) if keep_outputs else None,
    )
    return kept(job, record, keeper, timeout_s, watcher)


def asked(
    request: Request | str, settings: Settings, weights: str | Path, configs: Path | None
) -> tuple[Model, ExactRequest, Settings, tuple[Reason, ...], Weights]:
    """The entry (with a folder's configs), the request after its rules, the settings, and where weights come from."""
    wanted = Request(model=request) if isinstance(request, str) else request
    entry, settings, found = taken(wanted.model, settings)
    exact, notes = resolve(entry, with_files_read(wanted))
    from_ = Weights(kind="random")
    if weights != RANDOM:
        folder = located(weights, entry, exact.task)
        entry, differs = with_folder(entry, folder, exact.task, weights=True)
        from_ = Weights(kind="folder", name=name_of(folder), differs=differs)
    elif configs is not None:
        entry, differs = with_folder(entry, configs, exact.task, weights=False)
        from_ = Weights(kind="random", name=configs.resolve().name, differs=differs)
    entry = with_add_ons(entry, exact)
    notes = (*found, *notes, *settings_allowed(entry, settings))
    said = [Reason.of(note.code, **note.args) for note in notes]
    if from_.differs:
        said.append(
            Reason.of("folder-differs", model=entry.id, components=", ".join(from_.differs))
        )
    return entry, exact, settings, tuple(said), from_


def _footage(exact: ExactRequest, video: Path | None) -> Path | None:
    """``video``, looked at before anything is loaded. Raises BadRequest, BadFile, MissingExtra."""
    if video is None:
        return None
    if exact.task != "video-to-video":
        raise BadRequest("run-video-not-taken", model=exact.model, task=exact.task)
    from cardfit.media import source

    found = source.look(video)
    if found.frames is not None and found.frames < exact.num_frames:
        raise BadRequest("ingest-too-short", path=video, found=found.frames, asked=exact.num_frames)
    return video


def predict_run(
    entry: Model, exact: ExactRequest, given: Settings, machine: Here, progress: Progress | None
) -> Foretold:
    """What the run is predicted to take. Raises MissingExtra without torch where a dry run is needed."""
    try:
        return predicted(entry, exact, given, machine.card, progress=progress)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        raise MissingExtra("run-needs-torch", package=package) from missing


def record(
    pipeline: object,
    *,
    request: Request | str | None = None,
    settings: Settings | None = None,
    keep_latents: bool = True,
    store: str | None = None,
) -> Recording:
    """Measure the reader's own code: ``with cardfit.record(pipe) as seen: pipe(...)``; then ``seen.record``.

    Every call of ``pipeline`` is a repetition. ``request`` and ``settings`` say what it is asked to do, where a
    prediction is to stand beside it; nothing is set by them. Raises BadFile where the record cannot be kept.
    """
    from cardfit.measure.runner.own import Recording

    if request is None:
        return Recording(pipeline, keep_latents=keep_latents, store=store, settings=settings)
    entry, exact, given, notes, _ = asked(request, settings or Settings(), RANDOM, None)
    found, more = predict_run(entry, exact, given, here(), None)
    return Recording(
        pipeline,
        request=exact,
        settings=given,
        predicted=found,
        keep_latents=keep_latents,
        store=store,
        notes=(*notes, *more),
    )
