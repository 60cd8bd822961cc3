"""What a run made and what it ran with: a hash of its output, and versions.

In: whatever a pipeline returns, a device. Out: plain values.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from typing import Any

import torch

from cardfit.trace.cache import versions


def output_sha256(result: Any) -> str | None:
    """A hash of everything that came out; ``None`` where there is nothing to hash."""
    found = hashlib.sha256()
    for each in _leaves(result):
        found.update(each)
    return found.hexdigest() if found.digest() != hashlib.sha256().digest() else None


def _leaves(value: Any) -> Iterable[bytes]:
    if isinstance(value, torch.Tensor):
        plain = value.detach().to("cpu")
        plain = plain.float() if plain.dtype == torch.bfloat16 else plain
        yield plain.contiguous().numpy().tobytes()
    elif hasattr(value, "tobytes"):
        yield value.tobytes()
    elif isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves(each)


def versions_of(device: torch.device, *, adapters: bool = False) -> dict[str, str]:
    """What ran: python, the libraries, and on a card CUDA, cuDNN and the card's name."""
    found = {"python": platform.python_version(), **versions(adapters=adapters)}
    if device.type == "cuda":
        found["cuda"] = str(torch.version.cuda)
        found["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]
        found["card"] = torch.cuda.get_device_name(device)
    return found
