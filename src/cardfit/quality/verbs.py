"""The verbs about pictures: compare, export, codecs. What they need is loaded when they are called.

In: paths and words. Out: the values of `cardfit.quality` and `cardfit.media`. `cardfit.verbs` hands them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cardfit.errors import MissingExtra

if TYPE_CHECKING:
    from cardfit.media.codecs import Codecs
    from cardfit.media.export import Exported
    from cardfit.quality.result import Comparison
    from cardfit.quality.where import Where

Progress = Callable[[str, float | None], None]
_Found = TypeVar("_Found", "Comparison", "Exported", "Codecs")


def compare(
    reference: Path,
    candidate: Path,
    *,
    where: Where | None = None,
    align: bool = False,
    also: Sequence[str] = (),
    progress: Progress | None = None,
) -> Comparison:
    """What a setting cost the picture: ``candidate`` against ``reference``, two pictures, folders of frames or videos.

    ``where`` says where tiles and chunks meet, in pixels and frames: `cardfit.quality.where.Where`. ``also`` adds flip,
    xpsnr or vif for every frame to PSNR and SSIM. Sizes, lengths and fps must agree unless ``align``. Memory does not
    grow with the length. Raises BadRequest, BadFile, MissingExtra.
    """
    try:
        from cardfit.quality import compare as room
    except ModuleNotFoundError as missing:
        raise MissingExtra("quality-needs-extra", package=missing.name or "?") from missing
    found = room.NOWHERE if where is None else where
    paths = Path(reference), Path(candidate)
    return _versioned(room.compare(*paths, where=found, align=align, also=also, progress=progress))


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
