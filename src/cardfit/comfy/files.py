"""Read the file that a workflow comes in: JSON, or the metadata of a PNG, WEBP or video that ComfyUI wrote.

In: a path or bytes. Out: the parsed JSON. Only as much as metadata needs is read of a picture or a video; size and
nesting are limited. Also the size of a picture from its head, as an answer to a question. Raises BadFile.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from cardfit.errors import BadFile, MissingExtra
from cardfit.units import MIB

MAX_BYTES = 32 * MIB
"""Of the JSON text. The largest known workflow has a hundredth of it."""
_PNG, _RIFF = b"\x89PNG\r\n\x1a\n", b"RIFF"
_KEYS = ("workflow", "prompt")  # the editor's graph says more than what the server was sent
_VIDEO_ENDINGS = (".mp4", ".mov", ".m4v", ".webm", ".mkv", ".gif", ".avif")
_MAX_CHUNKS = 100_000


def looks_like_workflow(name: str) -> bool:
    """Whether an argument names a file that can hold a workflow, by its ending.

    >>> looks_like_workflow("clip.json"), looks_like_workflow("out.PNG"), looks_like_workflow("plan.yaml")
    (True, True, False)
    """
    return name.lower().endswith((".json", ".png", ".webp", *_VIDEO_ENDINGS))


def read_raw(path: Path) -> Any:
    """The parsed workflow in the file at ``path``. Raises BadFile; MissingExtra for a video where PyAV is absent."""
    try:
        with path.open("rb") as stream:
            if (texts := _picture_texts(stream, path)) is not None:
                return _from_texts(texts, path)
            if path.suffix.lower() in _VIDEO_ENDINGS:
                return _from_texts(_video_texts(path), path)
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadFile("comfy-not-read", path=path, why=error.strerror or str(error)) from error
    return parse(content, str(path))


def raw_of(content: bytes, name: str) -> Any:
    """The parsed workflow in the bytes of a JSON, PNG or WEBP file called ``name``. Raises BadFile."""
    texts = _picture_texts(io.BytesIO(content), Path(name))
    return parse(content, name) if texts is None else _from_texts(texts, Path(name))


def _picture_texts(stream: BinaryIO, path: Path) -> dict[str, str] | None:
    """The texts in a PNG or WEBP; None for another file, with the stream at its begin."""
    head = stream.read(12)
    stream.seek(0)
    if head.startswith(_PNG):
        return _png_texts(stream, path)
    if head.startswith(_RIFF) and head[8:12] == b"WEBP":
        return _webp_texts(stream, path)
    return None


def parse(content: bytes, path: str) -> Any:
    """JSON bytes as plain values. Raises BadFile."""
    if len(content) > MAX_BYTES:
        raise BadFile("comfy-too-large", path=path, limit=MAX_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile("comfy-not-text", path=path, byte=error.start) from error
    try:
        return json.loads(text)
    except RecursionError as error:
        raise BadFile("comfy-nested", path=path) from error
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        raise BadFile("comfy-not-json", path=path, line=line, why=_why(error)) from error


def _why(error: ValueError) -> str:
    return str(getattr(error, "msg", error))


def _from_texts(texts: dict[str, str], path: Path) -> Any:
    for key in _KEYS:
        if key in texts:
            return parse(texts[key].encode("utf-8", "replace"), str(path))
    raise BadFile("comfy-no-metadata", path=path)


def _chunks(stream: BinaryIO, *, riff: bool) -> Iterator[tuple[bytes, int]]:
    """Kind and length of each chunk; the stream stands at its content when it is given."""
    stream.seek(12 if riff else 8)
    for _ in range(_MAX_CHUNKS):
        head = stream.read(8)
        if len(head) < 8:
            return
        kind, length = (
            (head[:4], struct.unpack("<I", head[4:])[0])
            if riff
            else (head[4:], struct.unpack(">I", head[:4])[0])
        )
        at = stream.tell()
        yield kind, length
        stream.seek(at + length + (length % 2 if riff else 4))


def _png_texts(stream: BinaryIO, path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, length in _chunks(stream, riff=False):
        if kind == b"IEND":
            break
        if kind not in (b"tEXt", b"zTXt", b"iTXt"):
            continue
        if length > MAX_BYTES:
            raise BadFile("comfy-too-large", path=path, limit=MAX_BYTES)
        key, _, rest = stream.read(length).partition(b"\0")
        name = key.decode("latin-1")
        if name in _KEYS:
            found[name] = _png_text(kind, rest, path)
    return found


def _png_text(kind: bytes, rest: bytes, path: Path) -> str:
    if kind == b"tEXt":
        return rest.decode("latin-1") if not _is_utf8(rest) else rest.decode("utf-8")
    if kind == b"zTXt":
        return _unpacked(rest[1:], path).decode("latin-1")
    packed = rest[:1] == b"\1"
    text = rest[2:].split(b"\0", 2)[-1]
    return (_unpacked(text, path) if packed else text).decode("utf-8", "replace")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _unpacked(content: bytes, path: Path) -> bytes:
    try:
        worker = zlib.decompressobj()
        found = worker.decompress(content, MAX_BYTES + 1)
    except zlib.error as error:
        raise BadFile("comfy-not-read", path=path, why=str(error)) from error
    if len(found) > MAX_BYTES:
        raise BadFile("comfy-too-large", path=path, limit=MAX_BYTES)
    return found


def _webp_texts(stream: BinaryIO, path: Path) -> dict[str, str]:
    """ComfyUI writes ``workflow:{...}`` and ``prompt:{...}`` as two texts of the EXIF block."""
    found: dict[str, str] = {}
    for kind, length in _chunks(stream, riff=True):
        if kind != b"EXIF":
            continue
        if length > MAX_BYTES:
            raise BadFile("comfy-too-large", path=path, limit=MAX_BYTES)
        content = stream.read(length)
        for key in _KEYS:
            start = content.find(f"{key}:{{".encode())
            if start >= 0:
                text, _, _ = content[start + len(key) + 1 :].partition(b"\0")
                found[key] = text.decode("utf-8", "replace")
    return found


def _video_texts(path: Path) -> dict[str, str]:
    try:
        import av
    except ModuleNotFoundError as missing:
        raise MissingExtra("comfy-video-needs-av", path=path) from missing
    try:
        with av.open(str(path)) as container:
            tags = {key.lower(): str(value) for key, value in container.metadata.items()}
    except (OSError, ValueError) as error:
        raise BadFile("comfy-not-read", path=path, why=str(error)) from error
    found = {key: tags[key] for key in _KEYS if key in tags}
    if not found and "comment" in tags:  # Video Helper Suite: both in one JSON comment
        comment = parse(tags["comment"].encode("utf-8", "replace"), str(path))
        if isinstance(comment, dict):
            for key in _KEYS:
                value = comment.get(key)
                if value is not None:
                    found[key] = value if isinstance(value, str) else json.dumps(value)
    return found


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels, from the head of a PNG, JPEG, WEBP or GIF. Raises BadFile."""
    try:
        with path.open("rb") as stream:
            found = _size(stream)
    except (OSError, struct.error, IndexError) as error:
        raise BadFile("comfy-not-a-picture", path=path) from error
    if found is None or min(found) < 1:
        raise BadFile("comfy-not-a-picture", path=path)
    return found


def _size(stream: BinaryIO) -> tuple[int, int] | None:
    head = stream.read(30)
    if head.startswith(_PNG):
        width, height = struct.unpack(">II", head[16:24])
        return width, height
    if head[:4] == b"GIF8":
        width, height = struct.unpack("<HH", head[6:10])
        return width, height
    if head.startswith(_RIFF) and head[8:12] == b"WEBP":
        return _webp_size(head)
    return _jpeg_size(stream) if head.startswith(b"\xff\xd8") else None


def _webp_size(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None


def _jpeg_size(stream: BinaryIO) -> tuple[int, int] | None:
    stream.seek(2)
    for _ in range(_MAX_CHUNKS):
        head = stream.read(4)
        if len(head) < 4 or head[0] != 0xFF:
            return None
        marker, length = head[1], struct.unpack(">H", head[2:])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">xHH", stream.read(5))
            return width, height
        stream.seek(length - 2, 1)
    return None
