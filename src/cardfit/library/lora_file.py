"""The header of a LoRA's file: its rank, its bytes, and a hash of names, shapes and dtypes.

In: the adapters of a request, those of files by their path. Out: the same with what each file says filled in; the
tensors themselves are never read. Which layers the names stand for is asked of diffusers' own loaders
(`cardfit.trace.lora`). Left out: LoHa, LoKr and other kinds, which raise BadFile like any file without low-rank pairs.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextvars import ContextVar
from pathlib import Path

from cardfit.errors import BadFile, BadRequest
from cardfit.library.tensors import WRONG, Tensor, read
from cardfit.request import Lora, Request

FILES_READ: ContextVar[bool] = ContextVar("files_read", default=True)
"""Whether a file that a request names may be read. A server says no: its visitors' files are not on it."""
# the factor that goes up to the rank: PEFT's and diffusers', kohya's, and the older processors' names
_DOWN = (".lora_A.", ".lora_A", ".lora_down.", ".lora.down.", "_lora.down.", "_lora_down.")
_SCALES = (".alpha", ".dora_scale")


def with_files_read(request: Request) -> Request:
    """``request`` with what the files of its LoRAs say. Raises BadFile, BadRequest."""
    if not request.loras:
        return request
    return request.model_copy(update={"loras": tuple(map(_told, request.loras))})


def _told(lora: Lora) -> Lora:
    if lora.file is None:
        if lora.rank is None:
            raise BadRequest("lora-of-nothing")
        return lora
    if lora.targets or lora.dtype is not None:
        raise BadRequest("lora-file-says-it", file=lora.file)
    if lora.header_sha256 is not None:  # read before
        return lora
    tensors = tensors_of(lora)
    return lora.model_copy(
        update={
            "rank": rank_of(lora.file, tensors),
            "header_sha256": _hash(tensors),
            "size_bytes": sum(each.size_bytes for each in tensors),
        }
    )


def tensors_of(lora: Lora) -> tuple[Tensor, ...]:
    """The tensors of the adapter's file. Raises BadFile; for one that changed since it was read too."""
    path = Path(lora.file or "")
    if not FILES_READ.get():
        raise BadRequest("lora-file-not-here", file=path.name)
    try:
        with path.open("rb") as stream:
            found, _ = read(stream, path.stat().st_size)
    except OSError as error:
        raise BadFile(
            "lora-file-not-read", path=str(path), why=error.strerror or str(error)
        ) from error
    except WRONG as error:
        raise BadFile("lora-file-not-read", path=str(path), why="not safetensors") from error
    tensors = tuple(found)
    if lora.header_sha256 not in (None, _hash(tensors)):
        raise BadFile("lora-file-changed", path=str(path))
    return tensors


def rank_of(path: str, tensors: tuple[Tensor, ...]) -> int:
    """The rank that most layers have; raises BadFile where no layer has one."""
    ranks = Counter(
        each.shape[0]
        for each in tensors
        if len(each.shape) > 1
        and not each.name.endswith(_SCALES)
        and any(part in each.name for part in _DOWN)
    )
    if not ranks:
        raise BadFile("lora-file-without", path=path)
    return ranks.most_common(1)[0][0]


def _hash(tensors: tuple[Tensor, ...]) -> str:
    rows = sorted((each.name, each.dtype, each.shape) for each in tensors)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
