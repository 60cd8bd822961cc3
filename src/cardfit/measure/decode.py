"""One set of latents decoded with several VAE settings, each in its own child, and held against the valid reference.

In: a record that kept its latents, or a latents file with its model; words for the settings. Out: `Decodes`, one row a
setting: what it took and what it cost the picture. Everything that differs is the decoder, since the latents are the
same. Each decode is a record of its own, with its output and its quality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from cardfit.errors import BadFile, BadRequest, CardfitError, MissingExtra
from cardfit.library.load import load
from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.measure.again import RANDOM, again, check
from cardfit.measure.here import here
from cardfit.measure.samples import headline
from cardfit.measure.vae_words import MOST, reference_words, usual_words, vae_settings
from cardfit.messages import say
from cardfit.quality.verbs import compare, needed
from cardfit.records import files
from cardfit.records.models import (
    Inputs,
    Outcome,
    OutcomeKind,
    Quality,
    Reason,
    Record,
    Weights,
)
from cardfit.records.verbs import find
from cardfit.request import ExactRequest, Request, Settings

if TYPE_CHECKING:
    from cardfit.quality.result import Comparison

SCHEMA = "cardfit.decode/1"
ENDING = ".safetensors"
_SIDES = ("height", "width")
Progress = Callable[[str, float | None], None]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Decode(_Frozen):
    """One setting: its record, what it took, and its output against the reference's. ``why`` says what is missing."""

    words: str
    settings: Settings
    reference: bool
    record: str | None = None
    outcome: OutcomeKind | None = None
    peak_bytes: Annotated[
        float | None, Field(description="of the card; on a CPU of its tensors")
    ] = None
    host_bytes: float | None = None
    seconds: float | None = None
    quality: Quality | None = None
    why: Reason | None = None


class Decodes(_Frozen):
    """Decodes of the same latents; the reference is the first row."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    model: str
    latents: Annotated[str, Field(description="record, or the file's name")]
    rows: tuple[Decode, ...]
    notes: tuple[Reason, ...] = ()

    _comparisons: dict[str, Comparison] = PrivateAttr(default_factory=dict)

    @property
    def comparisons(self) -> dict[str, Comparison]:
        """The comparisons with their pictures by the row's words, where they were made in this process."""
        return self._comparisons


def decode(
    source: Record | Path | str,
    vae: Sequence[str] = (),
    *,
    model: str | None = None,
    weights: str | Path | None = None,
    device: str = "auto",
    reference_device: str | None = None,
    repeats: int = 1,
    timeout_s: float | None = None,
    also: Sequence[str] = (),
    store: str | None = None,
    progress: Progress | None = None,
) -> Decodes:
    """Decode the latents of ``source`` with each of ``vae`` and compare with the model's valid reference.

    ``source`` is a record (or its id), or a ``latents-*.safetensors`` of one together with ``model``. ``vae`` are
    words as `vae_settings` reads them; none means the usual ones. ``reference_device`` lets the reference run
    elsewhere, on a CPU say, where it does not fit. ``also`` are metrics of `compare`. Raises BadRequest, BadFile,
    MissingExtra.
    """
    check(repeats, timeout_s, device)
    check(repeats, timeout_s, reference_device or device)
    needed()
    before, latents = _before(source, model, store)
    assert before.request is not None and before.model is not None
    entry, request = load(before.model), before.request
    wanted = _wanted(entry, request, vae)
    notes = []
    if entry.vae.tiling_required:
        notes.append(Reason.of("decode-reference-tiled", model=entry.id))
    rows: list[Decode] = []
    seen: dict[str, Comparison] = {}
    reference: Record | None = None
    for at, (words, settings) in enumerate(wanted):
        if progress is not None:
            args = {"words": words, "at": at + 1, "count": len(wanted)}
            progress(say("decode-progress", args), at / len(wanted))
        on = reference_device or device if at == 0 else device
        try:
            given = (before, settings, weights, on, repeats, timeout_s, store, None)
            record = again(*given, latents=latents, keep_outputs=True)
        except BadRequest as error:
            if at == 0:
                raise
            why = Reason.of("decode-refused", why=str(error))
            rows.append(Decode(words=words, settings=settings, reference=False, why=why))
            continue
        reference = record if at == 0 and record.ok else reference
        rows.append(_row(words, settings, record, reference, also, store, seen))
    if reference is None:
        notes.append(Reason.of("decode-no-reference"))
    name = latents[0].name if latents else before.id
    found = Decodes(model=entry.id, latents=name, rows=tuple(rows), notes=tuple(notes))
    found.comparisons.update(seen)
    return found


def _wanted(entry: Model, request: ExactRequest, vae: Sequence[str]) -> list[tuple[str, Settings]]:
    """The settings by their words, the reference first, each once."""
    if len(vae) > MOST:
        raise BadRequest("decode-too-many", found=len(vae), allowed=MOST)
    first = reference_words(entry)
    found: dict[Settings | str, tuple[str, Settings]] = {}
    for words in (first, *(vae or usual_words(entry, request))):
        settings = vae_settings(words, entry, request)
        found.setdefault(settings.model_dump_json(), (words, settings))
    return list(found.values())


def _row(
    words: str,
    settings: Settings,
    record: Record,
    reference: Record | None,
    also: Sequence[str],
    store: str | None,
    seen: dict[str, Comparison],
) -> Decode:
    figures, quality, why = headline(record), None, record.outcome.why
    if record.ok and reference is not None and reference.id != record.id:
        try:
            seen[words] = compare(reference, record, also=also, store=store)
            quality = find(record.id, store).quality
        except CardfitError as error:
            why = Reason.of("decode-not-compared", why=str(error))
    return Decode(
        words=words,
        settings=settings,
        reference=reference is not None and reference.id == record.id,
        record=record.id,
        outcome=record.outcome.kind,
        peak_bytes=figures.peak_bytes,
        host_bytes=figures.host_bytes,
        seconds=figures.seconds,
        quality=quality,
        why=why,
    )


def _before(
    source: Record | Path | str, model: str | None, store: str | None
) -> tuple[Record, tuple[Path, ...]]:
    """The record to decode again, and the latents' file where that is what was named."""
    if isinstance(source, Record):
        return source, ()
    if Path(source).suffix != ENDING:
        if model is not None:
            raise BadRequest("decode-model-alone")
        return find(source, store), ()
    if model is None:
        raise BadRequest("decode-needs-model", path=str(source))
    path = Path(source)
    entry = load(model)
    request = _request(entry, path, _shape(path))
    record = Record(
        id=files.new_id(),
        created=datetime.now(UTC),
        finished=True,
        model=entry.id,
        request=request,
        settings=Settings(),
        weights=Weights(kind=RANDOM),
        inputs=Inputs(),
        versions={"cardfit": files.cardfit_version()},
        device="cpu",
        machine=here("cpu").machine,
        predicted=None,
        repetitions=(),
        outcome=Outcome(kind="ok"),
    )
    return record, (path,)


def _request(entry: Model, path: Path, shape: tuple[int, ...]) -> ExactRequest:
    """The request that latents of ``shape`` belong to. Raises BadFile for latents of another model."""
    vae = entry.vae
    if len(shape) not in (4, 5) or shape[1] != vae.latent_channels:
        raise BadFile(
            "decode-other-latents",
            path=str(path),
            shape="x".join(map(str, shape)),
            model=entry.id,
            channels=vae.latent_channels,
        )
    batch = frames = 1
    if len(shape) == 5:
        batch, frames = shape[0], (shape[2] - 1) * vae.temporal_compression + 1
    elif entry.is_video:
        frames = shape[0]
    else:
        batch = shape[0]
    exact, _ = resolve(entry, Request(model=entry.id))
    size = {
        name: side * vae.spatial_compression for name, side in zip(_SIDES, shape[-2:], strict=True)
    }
    return exact.model_copy(update={"batch": batch, "num_frames": frames, **size})


def _shape(path: Path) -> tuple[int, ...]:
    """The shape of the latents in a file that cardfit kept, read from its header. Raises BadFile, MissingExtra."""
    try:
        from safetensors import safe_open
    except ModuleNotFoundError as missing:
        raise MissingExtra("run-needs-torch", package=missing.name or "safetensors") from missing
    try:
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
            shapes = [tuple(file.get_slice(name).get_shape()) for name in names]
            ours = (file.metadata() or {}).get("schema", "").startswith("cardfit.latents/")
    except Exception as error:  # its own kinds, and OSError
        raise BadFile("latents-not-read", path=str(path), why=str(error)) from error
    latents = [shape for shape in shapes if len(shape) >= 4]
    if not ours or len(latents) != 1:
        raise BadFile("latents-not-ours", path=str(path))
    return latents[0]
