"""The pictures that runs kept beside their records on this machine: which there are, and one as a PNG.

In: a record of the store. Out: places in its list of outputs, or bytes. Only what lies in the record's own folder is
read, whatever its list says. Of a clip the first frame is shown.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from cardfit.errors import CardfitError
from cardfit.records import files
from cardfit.records.models import Record
from cardfit.units import MIB
from cardfit.web.problems import Refused

MAX_PICTURES = 8
_MAX_BYTES = 64 * MIB


def places(record: Record) -> tuple[int, ...]:
    """The places of the outputs that are there to be shown, the first few."""
    listed = record.outputs[:MAX_PICTURES]
    return tuple(at for at in range(len(listed)) if _file(record, at) is not None)


def picture(record: Record, place: int) -> bytes:
    """The output at ``place`` as a PNG. Raises Refused where there is none to show."""
    path = _file(record, place)
    if path is None:
        name = f"/records/{record.id}/output/{place}"
        raise Refused(HTTPStatus.NOT_FOUND, "web-no-page", path=name)
    return path.read_bytes() if path.suffix == ".png" else _first_frame(path)


def _file(record: Record, place: int) -> Path | None:
    if not 0 <= place < min(MAX_PICTURES, len(record.outputs)):
        return None
    folder = (files.records_folder() / record.id).resolve()
    path = (folder / record.outputs[place]).resolve()  # a link that leads elsewhere is elsewhere
    try:
        inside = path.is_relative_to(folder) and path.suffix in (".png", ".mkv")
        return path if inside and path.is_file() and path.stat().st_size <= _MAX_BYTES else None
    except (OSError, ValueError):
        return None


def _first_frame(path: Path) -> bytes:
    from cardfit.media import pixels, source

    try:
        frame = next(source.frames(source.look(path)))
        return pixels.png(frame.to_ndarray(format="rgb24"))
    except (CardfitError, StopIteration) as error:
        raise Refused(HTTPStatus.NOT_FOUND, "web-no-page", path=path.name) from error
