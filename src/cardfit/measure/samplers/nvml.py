"""The driver's view of a card: memory of all processes, power, clocks, throttling, heat, link and encoder use.

In: a module like pynvml, the index of the card. Out: readings. What a driver or card does not answer is left out with
a reason. `cardfit.measure.samplers.fake_nvml` is such a module without a card.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cardfit.measure.samplers.base import Figure, Reading, integral, last, least, mean, peak
from cardfit.records.models import Reason
from cardfit.units import KIB

_RAW = (
    "device_used", "power", "sm_clock", "memory_clock", "heat", "gpu_use", "encoder_use", "decoder_use", "received",
    "sent", "link_gen", "link_lanes", "throttled_power", "throttled_heat",
)  # fmt: skip
# bits of nvmlDeviceGetCurrentClocksEventReasons
_POWER = 0x4 | 0x80  # software power cap, hardware power brake
_HEAT = 0x20 | 0x40  # software and hardware thermal slowdown


class Nvml:
    """One card through NVML. Silent, with the reason, where there is no driver, no card or no pynvml."""

    def __init__(self, index: int, library: Any = None) -> None:
        self.silent: dict[str, Reason] = {}
        self.library = library
        self.handle: Any = None
        if self.library is None:
            try:
                self.library = importlib.import_module("pynvml")
            except ImportError:
                self._all_silent("sampler-no-pynvml")
                return
        try:
            self.library.nvmlInit()
            self.handle = self.library.nvmlDeviceGetHandleByIndex(index)
        except self.library.NVMLError as error:
            self._all_silent("sampler-no-driver", why=str(error))

    def _all_silent(self, code: str, **args: Any) -> None:
        self.silent = dict.fromkeys(_RAW, Reason.of(code, **args))

    def mark(self) -> None:
        """The driver keeps no peaks of its own."""

    def read(self, border: bool = False) -> Reading:
        """What the driver says now."""
        if self.handle is None:
            return {}
        n = self.library
        found: dict[str, float] = {}

        def ask(raws: tuple[str, ...], question: Callable[[], tuple[float, ...]]) -> None:
            try:
                found.update(zip(raws, question(), strict=True))
            except (n.NVMLError, AttributeError, TypeError) as error:
                for raw in raws:
                    self.silent[raw] = Reason.of("sampler-not-answered", what=raw, why=str(error))

        h = self.handle
        ask(("device_used",), lambda: (float(n.nvmlDeviceGetMemoryInfo(h).used),))
        ask(("power",), lambda: (n.nvmlDeviceGetPowerUsage(h) / 1000,))
        ask(("sm_clock",), lambda: (n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM) * 1e6,))
        ask(("memory_clock",), lambda: (n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM) * 1e6,))
        ask(("heat",), lambda: (float(n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)),))
        ask(("gpu_use",), lambda: (n.nvmlDeviceGetUtilizationRates(h).gpu / 100,))
        ask(("encoder_use",), lambda: (n.nvmlDeviceGetEncoderUtilization(h)[0] / 100,))
        ask(("decoder_use",), lambda: (n.nvmlDeviceGetDecoderUtilization(h)[0] / 100,))
        ask(
            ("received",),
            lambda: (n.nvmlDeviceGetPcieThroughput(h, n.NVML_PCIE_UTIL_RX_BYTES) * KIB,),
        )
        ask(("sent",), lambda: (n.nvmlDeviceGetPcieThroughput(h, n.NVML_PCIE_UTIL_TX_BYTES) * KIB,))
        ask(("link_gen",), lambda: (float(n.nvmlDeviceGetCurrPcieLinkGeneration(h)),))
        ask(("link_lanes",), lambda: (float(n.nvmlDeviceGetCurrPcieLinkWidth(h)),))
        ask(("throttled_power", "throttled_heat"), lambda: _throttled(n, h))
        return found

    def close(self) -> None:
        """Let the driver go."""
        if self.handle is not None:
            with suppress(self.library.NVMLError):
                self.library.nvmlShutdown()
            self.handle = None


def _throttled(library: Any, handle: Any) -> tuple[float, float]:
    asked = getattr(library, "nvmlDeviceGetCurrentClocksEventReasons", None)
    reasons = int((asked or library.nvmlDeviceGetCurrentClocksThrottleReasons)(handle))
    return float(bool(reasons & _POWER)), float(bool(reasons & _HEAT))


FIGURES: dict[str, Figure] = {
    "device_used_peak_bytes": Figure(
        "device_used", peak, "memory of the card, all processes and the driver", True
    ),
    "power_mean_w": Figure("power", mean, "power of the board", True),
    "power_peak_w": Figure("power", peak, "power of the board"),
    "sm_clock_mean_hz": Figure("sm_clock", mean, "clock of the multiprocessors", True),
    "sm_clock_least_hz": Figure("sm_clock", least, "clock of the multiprocessors"),
    "memory_clock_mean_hz": Figure("memory_clock", mean, "clock of the memory"),
    "heat_peak_c": Figure("heat", peak, "temperature of the chip"),
    "gpu_use_mean_share": Figure("gpu_use", mean, "share of time with a kernel running", True),
    "encoder_use_peak_share": Figure("encoder_use", peak, "use of the video encoder"),
    "decoder_use_peak_share": Figure("decoder_use", peak, "use of the video decoder"),
    "link_received_bytes": Figure(
        "received", integral, "bytes over the link to the card, from its sampled rate"
    ),
    "link_sent_bytes": Figure(
        "sent", integral, "bytes over the link from the card, from its sampled rate"
    ),
    "link_gen": Figure("link_gen", peak, "PCIe generation as trained, the highest seen"),
    "link_lanes": Figure("link_lanes", last, "PCIe lanes as trained"),
    "throttled_power_share": Figure(
        "throttled_power", mean, "share of samples held back by a power limit"
    ),
    "throttled_heat_share": Figure("throttled_heat", mean, "share of samples held back by heat"),
}
