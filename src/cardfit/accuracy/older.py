"""Which diffusers a row's time had: its release series, by the version or the day that the row names.

A row belongs to the release series that was the newest on its date (0.30 from 0.30.0 on until 0.31.0). Its date is the
earliest that the row names, or that of the page's publication; a diffusers version that the row names goes before any
date. A development version counts as the series before it. Left out: torch and transformers, of which few rows name a
version. What was traced with the older releases: `cardfit.accuracy.kept`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import date

from cardfit.accuracy.rows import Published

# First releases of diffusers' series, from the upload dates that the Python Package Index shows (read 2026-12-01).
RELEASES: tuple[tuple[date, str], ...] = tuple(
    (date.fromisoformat(day), series)
    for day, series in (
        ("2023-07-26", "0.19"),
        ("2023-08-17", "0.20"),
        ("2023-09-13", "0.21"),
        ("2023-11-06", "0.22"),
        ("2023-11-09", "0.23"),
        ("2023-11-29", "0.24"),
        ("2023-12-27", "0.25"),
        ("2024-01-31", "0.26"),
        ("2024-03-14", "0.27"),
        ("2024-05-27", "0.28"),
        ("2024-06-12", "0.29"),
        ("2024-08-07", "0.30"),
        ("2024-10-22", "0.31"),
        ("2024-12-23", "0.32"),
        ("2025-04-09", "0.33"),
        ("2025-06-24", "0.34"),
        ("2025-08-19", "0.35"),
        ("2025-12-08", "0.36"),
        ("2026-03-05", "0.37"),
        ("2026-05-01", "0.38"),
        ("2026-07-03", "0.39"),
        ("2026-08-20", "0.40"),
        ("2026-10-06", "0.41"),
        ("2026-10-23", "0.42"),
    )
)
# Pages that were read long after their figures were published: the start of their name and the day of publication. The
# blog's days are its posts' known dates, not read again here. The torchao study prints none: a day in the series that
# its CogVideoX figures point to (docs/decisions/2026-12-01-older-versions.md).
PAGES: tuple[tuple[str, date], ...] = tuple(
    (page, date.fromisoformat(day))
    for page, day in (
        ("huggingface/blog simple_sdxl_optimizations.md", "2023-10-24"),
        ("huggingface/blog sd3.md", "2024-06-12"),
        ("huggingface/blog quanto-diffusers.md", "2024-07-30"),
        ("huggingface/blog video_gen.md", "2025-01-27"),
        ("huggingface/blog diffusers-quantization.md", "2025-05-21"),
        ("huggingface/blog lora-fast.md", "2025-07-23"),
        ("sayakpaul/diffusers-torchao", "2024-09-18"),
    )
)
_NAMED = re.compile(r"\bdiffusers (\d+)\.(\d+)(?:\.\d+)?(\.?dev)?", re.I)
_DAY = re.compile(r"\b(20\d\d)-(\d\d)(?:-(\d\d))?\b")


def series_of_version(version: str) -> str:
    """The release series of a diffusers version.

    >>> series_of_version("0.30.3"), series_of_version("1.2")
    ('0.30', '1.2')
    """
    return ".".join(version.split(".")[:2])


def number(series: str) -> tuple[int, ...]:
    """A series as numbers that sort: 0.9 comes before 0.30."""
    return tuple(int(part) for part in series.split("."))


def published_on(row: Published) -> date | None:
    """The day of the row's figure: the earliest that the row or the list of pages names.

    A month alone is its first day. Years before 2022 and days that do not exist are no dates.
    """
    days = [day for page, day in PAGES if row.page.startswith(page)]
    for year, month, day in _DAY.findall(f"{row.dated} {row.notes}"):
        try:
            found = date(int(year), int(month), int(day or 1))
        except ValueError:
            continue
        if found.year >= 2022:
            days.append(found)
    return min(days, default=None)


def series_of(row: Published) -> str | None:
    """The diffusers series of the row's time, as ``0.30``; None where the row tells neither version nor day.

    A development version is the series before it: 0.33.0.dev0 is what followed 0.32.
    """
    named = _NAMED.search(row.framework_version)
    if named is not None:
        major, minor, dev = int(named[1]), int(named[2]), bool(named[3])
        return f"{major}.{minor - 1 if dev and minor else minor}"
    day = published_on(row)
    if day is None:
        return None
    at = bisect_right([first for first, _ in RELEASES], day)
    return RELEASES[at - 1][1] if at else None


def legacy_bnb(series: str | None) -> bool:
    """Whether model offload leaves 8-bit components of bitsandbytes on the card, with the diffusers of ``series``.

    Up to 0.36 whatever the other versions; from 0.37 on only below bitsandbytes 0.48 (diffusers 0.31.0 to 0.42.1,
    pipeline_utils, enable_model_cpu_offload). False where the series is not known.
    """
    return series is not None and number(series) < (0, 37)
