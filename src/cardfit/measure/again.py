"""Decode the latents of an earlier run again, with other VAE settings; and what every run has in common.

In: a record that kept its latents. Out: a new record that names it. Nothing is sampled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cardfit.errors import BadFile, BadRequest
from cardfit.library.load import load
from cardfit.library.rules import settings_allowed
from cardfit.measure import fake
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
_OF_DECODING = frozenset(
    {"vae_tiling", "vae_tile", "vae_overlap", "vae_slicing", "decode_chunk_size", "dtype"}
)


def again(
    record: Record | Path | str,
    settings: Settings | None,
    weights: str | Path | None,
    device: str,
    repeats: int,
    timeout_s: float | None,
    store: str | None,
    watcher: Watcher | None,
    *,
    latents: Sequence[Path] = (),
    keep_outputs: bool = False,
) -> Record:
    """Decode the latents of an earlier run again, with other VAE settings, instead of sampling again.

    ``settings`` go on top of the earlier ones. ``latents`` are files to take instead of the record's own. Raises
    BadRequest where no latents were kept or something else than the VAE's settings is to change, BadFile.
    """
    before = record if isinstance(record, Record) else find(record, store)
    folder = files.records_folder() / before.id
    paths = list(latents) or [folder / name for name in before.latents]
    if before.request is None or before.settings is None or before.model is None or not paths:
        raise BadRequest("resume-no-latents", record=before.id)
    if missing := [path for path in paths if not path.is_file()]:
        raise BadFile("resume-latents-gone", path=str(missing[0]))
    if weights is None and before.weights.kind != RANDOM:
        raise BadRequest("resume-needs-weights", record=before.id, name=before.weights.name)
    entry = load(before.model)
    given = _on_top(before.settings, settings or Settings(), entry.vae.component)
    chosen = RANDOM if weights is None else weights
    local = None if chosen == RANDOM else located(chosen, entry, before.request.task)
    if local is not None:
        entry, _ = with_folder(entry, local, before.request.task, weights=True)
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
            "outputs": (),
            "quality": None,
            "sweep": None,
            "cell": None,
            "resumed": latents[0].name if latents else before.id,
            "notes": (),
        }
    )
    keeper = Keeper(new.id, store)
    job = Job(
        model=entry,
        request=before.request,
        settings=given,
        weights="random" if local is None else "folder",
        folder=None if local is None else str(local.resolve()),
        device=device,
        repeats=repeats,
        outputs=str(keeper.folder) if keep_outputs else None,
        resume=tuple(str(path.resolve()) for path in paths),
    )
    return kept(job, new, keeper, timeout_s, watcher)


def _on_top(before: Settings, changed: Settings, vae: str) -> Settings:
    """``before`` with what ``changed`` says of the VAE. Raises BadRequest for anything else."""
    fields = changed.model_dump(exclude_unset=True)
    other = sorted(set(fields) - _OF_DECODING)
    other += sorted(f"dtype {name}" for name in fields.get("dtype", {}) if name != vae)
    if other:
        raise BadRequest(
            "resume-other-settings", names=", ".join(other), allowed=", ".join(sorted(_OF_DECODING))
        )
    fields["dtype"] = {**before.dtype, **fields.get("dtype", {})}
    found = Settings.model_validate(before.model_dump(exclude_unset=True) | fields)
    return found.model_copy(update={"offload": None})


def kept(
    job: Job, record: Record, keeper: Keeper, timeout_s: float | None, watcher: Watcher | None
) -> Record:
    """Run ``job`` and keep it; what the child refuses leaves nothing behind."""
    runs = fake.run if fake.is_fake(job.device) else run_job
    try:
        return runs(job, record, keeper, timeout_s=timeout_s, watcher=watcher)
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
    if fake.is_fake(device):
        return
    number = device.removeprefix("cuda").removeprefix(":")
    if device not in ("auto", "cpu", "cuda") and not (
        device.startswith("cuda:") and number.isdigit()
    ):
        raise BadRequest("run-bad-device", asked=device)
