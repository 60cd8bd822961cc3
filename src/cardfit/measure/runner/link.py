"""The rate of the host link, measured: ``python -m cardfit.measure.runner.link INDEX`` tells it as one JSON value.

In: the number of a card. Out: bytes a second from pinned and from pageable host memory to the card, and the link as
trained under that load (an idle link is trained down). A process of its own, so that the caller needs no torch and no
context stays on the card.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import torch

from cardfit.measure.samplers.nvml import Nvml
from cardfit.units import MIB

SIZE_BYTES = 256 * MIB
_TURNS = 8


def main() -> None:
    """Measure and tell."""
    found: dict[str, Any]
    try:
        found = rates(int(sys.argv[1]))
    except Exception as error:
        found = {"why": f"{type(error).__name__}: {error}"}
    os.write(1, json.dumps(found).encode() + b"\n")


def rates(index: int) -> dict[str, Any]:
    """Bytes a second over the link to card number ``index``."""
    device = torch.device("cuda", index)
    target = torch.empty(SIZE_BYTES, dtype=torch.uint8, device=device)
    pinned = torch.empty(SIZE_BYTES, dtype=torch.uint8, pin_memory=True)
    paged = torch.empty(SIZE_BYTES, dtype=torch.uint8).fill_(1)
    driver = Nvml(index)
    found = {
        "pinned_bytes_per_s": _rate(target, pinned, device),
        "paged_bytes_per_s": _rate(target, paged, device),
    }
    for _ in range(_TURNS):
        target.copy_(pinned, non_blocking=True)
    reading = driver.read()
    torch.cuda.synchronize(device)
    driver.close()
    return {**found, "gen": reading.get("link_gen"), "lanes": reading.get("link_lanes")}


def _rate(target: torch.Tensor, source: torch.Tensor, device: torch.device) -> float:
    target.copy_(source)
    torch.cuda.synchronize(device)
    began = time.perf_counter()
    for _ in range(_TURNS):
        target.copy_(source, non_blocking=True)
    torch.cuda.synchronize(device)
    return _TURNS * target.numel() / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
