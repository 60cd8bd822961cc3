"""The verbs about pictures: compare, export, codecs. What they need is loaded when they are called.

In: paths and words. Out: the values of `cardfit.quality` and `cardfit.media`. `cardfit.verbs` hands them out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cardfit.errors import MissingExtra
from cardfit.messages.said import Said
from cardfit.records.files import NAME
from cardfit.records.models import Record
from cardfit.records.verbs import find, judged

if TYPE_CHECKING:
    from cardfit.media.codecs import Codecs
    from cardfit.media.export import Exported
    from cardfit.quality.result import Comparison
    from cardfit.quality.where import Where

Progress = Callable[[str, float | None], None]
# a record's settings say that there are no tiles or chunks: nobody has to be asked where
_SETTINGS_SAY = ("quality-no-grid", "quality-no-edges")
_Found = TypeVar("_Found", "Comparison", "Exported", "Codecs")


def compare(
    reference: Path | str | Record,
    candidate: Path | str | Record,
    *,
    where: Where | None = None,
    align: bool = False,
    also: Sequence[str] = (),
    store: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """What a setting cost the picture: ``candidate`` against ``reference``, two pictures, folders of frames or videos.

    Either may be a record that kept its output, or its id. ``where`` says where tiles and chunks meet, in pixels and
    frames: `cardfit.quality.where.Where`; left out, it comes from the candidate record's settings. ``also`` adds flip,
    xpsnr or vif for every frame to PSNR and SSIM. Sizes, lengths and fps must agree unless ``align``. Memory does not
    grow with the length. Between two records the figures are kept in the candidate's, where `choose` and `plan` read
    them. Raises BadRequest, BadFile, MissingExtra.
    """
    needed()
    from cardfit.quality import compare as room
    from cardfit.quality import recorded

    one, other = (_record(each, store) for each in (reference, candidate))
    notes: list[Said] = []
    paths = []
    for given, record in ((reference, one), (candidate, other)):
        if record is None:
            assert not isinstance(given, Record)
            paths.append(Path(given))
            continue
        found = recorded.made(record)
        paths.append(found.path)
        if found.more and not notes:
            notes = [Said.of("quality-first-clip", count=found.more + 1)]
    if one is not None and other is not None:
        notes += recorded.differences(one, other)
    known: tuple[str, ...] = ()
    if where is None or where == room.NOWHERE:
        where = room.NOWHERE if other is None else recorded.where_of(other)
        known = () if other is None else _SETTINGS_SAY
    compared = room.compare(*paths, where=where, align=align, also=also, progress=progress)
    compared = compared.noted(notes, without=known)
    if one is not None and other is not None:
        judged(other, recorded.quality_of(compared, one.id), store)
    return _versioned(compared)


def needed() -> None:
    """Raise MissingExtra where what comparing needs is not installed."""
    try:
        import_module("cardfit.quality.compare")
        import_module("av")
    except ModuleNotFoundError as missing:
        raise MissingExtra("quality-needs-extra", package=missing.name or "?") from missing


def _record(given: Path | str | Record, store: str | None) -> Record | None:
    """The record that ``given`` is or names; None for footage."""
    if isinstance(given, Record):
        return given
    path = Path(given)
    is_one = path.name == NAME or (path / NAME).is_file()
    named = not path.exists() and re.fullmatch(r"[0-9]{8}t[0-9a-f-]*", str(given))
    return find(given, store) if is_one or named else None


def export(
    source: Path,
    outputs: Sequence[str],
    *,
    fps: float | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write ``source`` (a picture, a folder of frames, a video) to all of ``outputs`` in one pass, and check them.

    An output is a path with choices: ``small.mp4,codec=hevc,height=480``. ``fps`` is needed for pictures; a video
    keeps its duration. Files are yuv420p with even sides and BT.709 tags, sound is kept. Raises BadRequest, BadFile and
    MissingExtra; then no file is left under a final name.
    """
    from cardfit.media import export as room
    from cardfit.media.variant import parse

    wanted = [parse(each) for each in outputs]
    return _versioned(room.export(Path(source), wanted, fps=fps, force=force, progress=progress))


def codecs(*, progress: Progress | None = None) -> Codecs:
    """Which encoders and decoders work here, tried with a few frames each, and why the others do not.

    Raises MissingExtra without PyAV.
    """
    from cardfit.media.codecs import probe_codecs

    return _versioned(probe_codecs(progress=progress))


def _versioned(found: _Found) -> _Found:
    """``found`` with this release among the versions that made it."""
    # by name: the package itself stands above this room
    own = import_module("cardfit").__version__
    return found.model_copy(update={"versions": {"cardfit": own, **found.versions}})
