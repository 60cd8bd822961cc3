"""Prompts and pictures as a record holds them: hashes, and the words only where they are to be kept.

In: what goes into a run. Out: `records.models.Inputs`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from cardfit.errors import BadFile, BadRequest
from cardfit.records.models import Inputs, Picture
from cardfit.units import MIB, human_bytes

MAX_PICTURES = 16
MAX_BYTES = 256 * MIB  # of one picture's file
MAX_CHARACTERS = 100_000  # of a prompt


def inputs_of(
    prompt: str | None,
    negative_prompt: str | None,
    images: Sequence[Path],
    video: Path | None = None,
    *,
    keep: bool,
) -> Inputs:
    """Hashes of what goes in. Raises BadRequest, and BadFile for a picture that cannot be read."""
    if len(images) > MAX_PICTURES:
        raise BadRequest("run-too-many-images", found=len(images), allowed=MAX_PICTURES)
    for text in (prompt, negative_prompt):
        if text is not None and len(text) > MAX_CHARACTERS:
            raise BadRequest("run-long-prompt", found=len(text), allowed=MAX_CHARACTERS)
    return Inputs(
        prompt_sha256=_hash(prompt),
        prompt_characters=None if prompt is None else len(prompt),
        negative_prompt_sha256=_hash(negative_prompt),
        pictures=(*(_picture(path) for path in images), *_video(video)),
        prompt=prompt if keep else None,
        negative_prompt=negative_prompt if keep else None,
    )


def _hash(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _video(path: Path | None) -> tuple[Picture, ...]:
    """Footage by the bytes of its file, or of its files where it is a folder of frames."""
    if path is None:
        return ()
    from cardfit.media import source

    footage, found = source.look(path), hashlib.sha256()
    for file in source.frame_files(path) if path.is_dir() else (path,):
        with file.open("rb") as stream:
            while part := stream.read(MIB):
                found.update(part)
    return (Picture(sha256=found.hexdigest(), width=footage.width, height=footage.height),)


def _picture(path: Path) -> Picture:
    from PIL import Image, UnidentifiedImageError

    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadFile("run-image-too-large", path=str(path), limit=human_bytes(MAX_BYTES))
        with Image.open(path) as picture:
            width, height = picture.size
        return Picture(
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(), width=width, height=height
        )
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise BadFile("run-image-not-read", path=str(path), why=type(error).__name__) from error
    except OSError as error:
        raise BadFile(
            "run-image-not-read", path=str(path), why=error.strerror or str(error)
        ) from error
