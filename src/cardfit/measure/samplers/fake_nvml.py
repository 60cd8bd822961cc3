"""A driver without a card: stands where pynvml does, for tests of whatever reads a card.

In: readings by the name of NVML's function, as constants, as lists that are played one reading a call (the last one
stays), or as exceptions to raise. Out: an object with pynvml's functions. A function that was given nothing raises
NVMLError, as a card does that cannot answer.

>>> from types import SimpleNamespace
>>> fake = FakeNvml(nvmlDeviceGetPowerUsage=[250_000, 300_000])
>>> fake.nvmlInit(); card = fake.nvmlDeviceGetHandleByIndex(0)
>>> fake.nvmlDeviceGetPowerUsage(card), fake.nvmlDeviceGetPowerUsage(card), fake.nvmlDeviceGetPowerUsage(card)
(250000, 300000, 300000)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class NVMLError(Exception):
    """What NVML raises; ``str`` of it is the driver's word."""


class FakeNvml:
    """NVML as a script of answers. ``cards`` is how many there are; ``opened`` counts inits less shutdowns."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0
    NVML_PCIE_UTIL_TX_BYTES = 0
    NVML_PCIE_UTIL_RX_BYTES = 1

    def __init__(self, *, cards: int = 1, working: bool = True, **answers: Any) -> None:
        self.cards, self.working, self.opened = cards, working, 0
        self._answers = dict(answers)

    def nvmlInit(self) -> None:
        """Refuse where the driver is said not to work."""
        if not self.working:
            raise NVMLError("Driver Not Loaded")
        self.opened += 1

    def nvmlShutdown(self) -> None:
        """Close once."""
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:
        """How many cards there are."""
        return self.cards

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        """The card's own number."""
        if not 0 <= index < self.cards:
            raise NVMLError("Invalid Argument")
        return index

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def answer(*_: Any) -> Any:
            found = self._answers.get(name, NVMLError("Not Supported"))
            if isinstance(found, list):
                found = found.pop(0) if len(found) > 1 else found[0]
            if isinstance(found, Exception):
                raise found
            return found

        return answer
