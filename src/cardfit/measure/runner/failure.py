"""What an error says of a run: which kind it was, at which op, in which module, asking for how many bytes.

In: an exception and the components. Out: the fields of an `Outcome`. An out-of-memory error is a result like any other.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import torch

from cardfit.records.models import OutcomeKind
from cardfit.units import parse_bytes

_TRIED = re.compile(r"[Tt]ried to allocate ([0-9.]+ ?[KMGT]?i?B|[0-9]+ bytes)")
_MAX_TEXT = 600


def kind_of(error: BaseException) -> OutcomeKind:
    """``oom`` of a card, ``host_oom``, ``interrupted``, or any other ``error``."""
    if isinstance(error, torch.OutOfMemoryError):
        return "oom"
    text = str(error)
    if (
        isinstance(error, MemoryError)
        or "DefaultCPUAllocator" in text
        or "not enough memory" in text
    ):
        return "host_oom"
    if "CUDA" in text and "out of memory" in text:
        return "oom"
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "error"


def told(error: BaseException, modules: Mapping[str, torch.nn.Module]) -> dict[str, Any]:
    """The fields of the outcome that the error itself shows."""
    text = " ".join(str(error).split())
    if len(text) > _MAX_TEXT:
        text = text[: _MAX_TEXT - 3] + "..."
    return {
        "kind": kind_of(error),
        "why": {"code": "run-raised", "args": {"kind": type(error).__name__, "text": text}},
        "op": site_of(error.__traceback__, modules),
        "tried_bytes": tried_bytes(text),
    }


def tried_bytes(text: str) -> int | None:
    """Bytes that an out-of-memory text says were asked for.

    >>> tried_bytes("CUDA out of memory. Tried to allocate 2.00 GiB.") == 2 * 1024**3
    True
    >>> tried_bytes("DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes.")
    64
    """
    found = _TRIED.search(text)
    if found is None:
        return None
    return parse_bytes(found[1].replace(" bytes", " B"))


def site_of(at: TracebackType | None, modules: Mapping[str, torch.nn.Module]) -> str | None:
    """The innermost component module on the way to the error, and the function that raised: ``unet.up.1 conv2d``."""
    paths = {
        id(part): f"{name}.{path}" if path else name
        for name, module in modules.items()
        for path, part in module.named_modules()
    }
    module, function = None, None
    for frame, _ in traceback.walk_tb(at):
        module = paths.get(id(frame.f_locals.get("self")), module)
        function = frame.f_code.co_name
    if function is None:
        return module
    return f"{module}, {function}" if module else function
