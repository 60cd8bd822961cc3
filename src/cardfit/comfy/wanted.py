"""A file that a workflow wants, below ComfyUI's models folder.

In: loader nodes with the name they load and, where the workflow has them, addresses and checksums. Out: `WantedFile`
values. A name or folder that would leave the models folder never becomes one (`safe_parts`).
"""

from __future__ import annotations

from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict, Field

_DRIVE = ":"


class WantedFile(BaseModel):
    """One model file: its name and folder below ``models/``, where it comes from and which node loads it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, description="file name, with sub-folders if the node has them")
    folder: str = Field(min_length=1, description="folder below models/")
    url: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    node: str = Field(description="title of the node that loads it")
    used_by: str = Field(description="what it is for: denoiser, text_encoder, vae, lora ...")


def safe_parts(path: str) -> tuple[str, ...] | None:
    """The parts of a relative path that stays where it starts; None for any other.

    >>> safe_parts("wan/high.safetensors"), safe_parts("wan\\\\high.safetensors")
    (('wan', 'high.safetensors'), ('wan', 'high.safetensors'))
    >>> safe_parts("../x"), safe_parts("/etc/x"), safe_parts("C:/x"), safe_parts("a/./b"), safe_parts("")
    (None, None, None, None, None)
    """
    plain = path.replace("\\", "/")
    parts = tuple(plain.split("/"))
    if (
        not plain
        or plain.startswith("/")
        or any(not sign.isprintable() or sign == _DRIVE for sign in plain)
    ):
        return None
    if any(part in ("", ".", "..", "~") or part != part.strip() for part in parts):
        return None
    return PurePosixPath(plain).parts
