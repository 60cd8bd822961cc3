"""Why a video encoder or decoder cannot be opened, from what FFmpeg said.

In: the log of a failed attempt, what is known of the card, and the container's variables. Out: a `Diagnosis` of a
closed list. The texts are those of FFmpeg's nvenc.c and cuviddec.c; an unknown text stays `other` with its words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Cause = Literal[
    "no_engine",
    "codec_not_on_card",
    "no_driver",
    "no_runtime",
    "no_video_capability",
    "driver_too_old",
    "session_limit",
    "pixel_format",
    "not_in_build",
    "other",
]

# NVENC API -> the first Linux and Windows driver that has it (NVIDIA's SDK notes, repeated in FFmpeg's nvenc.c).
DRIVERS: dict[str, tuple[str, str]] = {
    "8.1": ("390.25", "390.77"),
    "8.2": ("396.24", "397.93"),
    "9.0": ("418.30", "418.81"),
    "9.1": ("435.21", "436.15"),
    "10.0": ("450.51", "445.87"),
    "11.0": ("455.28", "456.71"),
    "11.1": ("470.57.02", "471.41"),
    "12.0": ("520.56.06", "522.25"),
    "12.1": ("530.41.03", "531.61"),
    "12.2": ("550.54.14", "551.76"),
    "13.0": ("570.0", "570.0"),
}
_API = re.compile(r"nvenc API version\.?\s*Required:\s*(\d+\.\d+)\s*Found:\s*(\d+\.\d+)", re.I)
_SIGNS: tuple[tuple[str, Cause], ...] = (
    (r"unknown (en|de)coder|(en|de)coder not found|no codec named", "not_in_build"),
    (r"required nvenc API version|minimum required nvidia driver", "driver_too_old"),
    (r"libnvidia-encode|nvEncodeAPI|libnvcuvid|loading nvcuvid", "no_video_capability"),
    (r"libcuda|nvcuda\.dll", "no_driver"),
    (r"no CUDA-capable device|CUDA_ERROR_NO_DEVICE|cuInit.* failed", "no_runtime"),
    # NVENC says so when all sessions are taken; it is not memory
    (r"OpenEncodeSessionEx failed: (out of memory|incompatible client key)", "session_limit"),
    (r"OpenEncodeSessionEx failed: (unsupported device|no encode device)", "no_engine"),
    (r"4:2:2|4:4:4|10 bit .*not supported|chroma format|pixel format", "pixel_format"),
    (r"codec not supported|cannot find .*codec guid|no capable devices", "codec_not_on_card"),
    (r"hardware is lacking required capabilities|codec .*not supported", "codec_not_on_card"),
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why it failed. ``needs_api`` and ``found_api`` are NVENC API versions, ``needs_driver`` Linux / Windows.

    ``detail`` is FFmpeg's own line; ``capabilities`` the container's NVIDIA_DRIVER_CAPABILITIES, None outside of one.
    """

    cause: Cause
    detail: str
    needs_api: str | None = None
    found_api: str | None = None
    needs_driver: str | None = None
    capabilities: str | None = None


def diagnose(
    log: str,
    *,
    engines: int | None = None,
    driver: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Diagnosis:
    """The cause behind ``log``. ``engines`` is how many the card is known to have, None where that is not known.

    ``driver`` False says that the driver itself could not be loaded a moment ago: then a missing video library is no
    news.

    >>> diagnose("OpenEncodeSessionEx failed: out of memory (10): (no details)").cause
    'session_limit'
    >>> found = diagnose("Driver does not support the required nvenc API version. Required: 13.0 Found: 12.2")
    >>> found.needs_api, found.found_api, found.needs_driver
    ('13.0', '12.2', '570.0 / 570.0')
    """
    variables = environment or {}
    capabilities = variables.get("NVIDIA_DRIVER_CAPABILITIES")
    cause, detail = _sign(log)
    if cause in ("no_engine", "codec_not_on_card") and engines == 0:
        cause = "no_engine"
    if cause == "no_video_capability" and not driver:
        cause = "no_driver"
    if cause == "no_driver" and capabilities is not None:
        # a container of NVIDIA's runtime: the host has the driver, the container was not given it
        cause = "no_runtime"
    api = _API.search(log)
    needs = api[1] if api else None
    return Diagnosis(
        cause=cause,
        detail=detail,
        needs_api=needs,
        found_api=api[2] if api else None,
        needs_driver=" / ".join(DRIVERS[needs]) if needs in DRIVERS else None,
        capabilities=capabilities,
    )


def _sign(log: str) -> tuple[Cause, str]:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for pattern, cause in _SIGNS:
        for line in lines:
            if re.search(pattern, line, re.I):
                return cause, line
    return "other", lines[-1] if lines else ""
