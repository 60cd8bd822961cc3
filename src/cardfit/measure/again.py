"""Decode the latents of an earlier run again, with other VAE settings; and what every run has in common.

In: a record that kept its latents. Out: a new record that names it. Nothing is sampled again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cardfit.errors import BadFile, BadRequest
from cardfit.library.load import load
from cardfit.library.rules import settings_allowed
from cardfit.measure.folder import with_folder
from cardfit.measure.here import here
from cardfit.measure.hub import located
from cardfit.measure.job import Job
from cardfit.measure.keep import Keeper
from cardfit.measure.run import Watcher
from cardfit.measure.run import run as run_job
from cardfit.records import files
from cardfit.records.models import Record
from cardfit.records.verbs import find
from cardfit.request import Settings

RANDOM = "random"
_OF_DECODING = frozenset({"vae_tiling", "vae_tile", "vae_overlap", "vae_slicing"})


def again(
    record: Record | Path | str,
    settings: Settings | None,
    weights: str | Path | None,
    device: str,
    repeats: int,
    timeout_s: float | None,
    store: str | None,
    watcher: Watcher | None,
) -> Record:
    """Decode the latents of an earlier run again, with other VAE settings, instead of sampling again.

    ``settings`` go on top of the earlier ones. Raises BadRequest where no latents were kept or something else than the
    VAE's settings is to change, BadFile.
    """
    before = record if isinstance(record, Record) else find(record, store)
    if (
        before.request is None
        or before.settings is None
        or before.model is None
        or not before.latents
    ):
        raise BadRequest("resume-no-latents", record=before.id)
    changed = (settings or Settings()).model_dump(exclude_unset=True)
    other = sorted(set(changed) - _OF_DECODING)
    if other:
        raise BadRequest(
            "resume-other-settings", names=", ".join(other), allowed=", ".join(sorted(_OF_DECODING))
        )
    paths = [files.records_folder() / before.id / name for name in before.latents]
    if missing := [path for path in paths if not path.is_file()]:
        raise BadFile("resume-latents-gone", path=str(missing[0]))
    if weights is None and before.weights.kind != RANDOM:
        raise BadRequest("resume-needs-weights", record=before.id, name=before.weights.name)
    given = Settings.model_validate(before.settings.model_dump(exclude_unset=True) | changed)
    given = given.model_copy(update={"offload": None})
    entry = load(before.model)
    chosen = RANDOM if weights is None else weights
    folder = None if chosen == RANDOM else located(chosen, entry, before.request.task)
    if folder is not None:
        entry, _ = with_folder(entry, folder, before.request.task, weights=True)
    settings_allowed(entry, given)
    new = before.model_copy(
        update={
            "id": files.new_id(),
            "created": datetime.now(UTC),
            "finished": False,
            "settings": given,
            "machine": here(device).machine,
            "device": device,
            "predicted": None,
            "repetitions": (),
            "latents": (),
            "sweep": None,
            "cell": None,
            "resumed": before.id,
            "notes": (),
        }
    )
    job = Job(
        model=entry,
        request=before.request,
        settings=given,
        weights="random" if folder is None else "folder",
        folder=None if folder is None else str(folder.resolve()),
        device=device,
        repeats=repeats,
        resume=tuple(str(path) for path in paths),
    )
    return kept(job, new, Keeper(new.id, store), timeout_s, watcher)


def kept(
    job: Job, record: Record, keeper: Keeper, timeout_s: float | None, watcher: Watcher | None
) -> Record:
    """Run ``job`` and keep it; what the child refuses leaves nothing behind."""
    try:
        return run_job(job, record, keeper, timeout_s=timeout_s, watcher=watcher)
    except BadRequest:
        files.remove(record.id)  # nothing ran
        if keeper.store is not None:
            keeper.store.remove([record.id])
        raise
    finally:
        keeper.close()


def check(repeats: int, timeout_s: float | None, device: str) -> None:
    """Raise BadRequest for figures that cannot be meant."""
    if not 0 <= repeats <= 10_000:
        raise BadRequest("run-bad-repeats", repeats=repeats)
    if timeout_s is not None and timeout_s <= 0:
        raise BadRequest("run-bad-timeout", seconds=timeout_s)
    number = device.removeprefix("cuda").removeprefix(":")
    if device not in ("auto", "cpu", "cuda") and not (
        device.startswith("cuda:") and number.isdigit()
    ):
        raise BadRequest("run-bad-device", asked=device)
