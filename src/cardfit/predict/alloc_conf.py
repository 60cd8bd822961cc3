"""The settings of PyTorch's caching allocator, as PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF) writes them.

In: a text such as ``expandable_segments:True,max_split_size_mb:512``. Out: an `AllocConf`, sizes in bytes. Names,
defaults and bounds as documented in torch's notes on CUDA semantics, torch 2.13. Settings that do not change how
device memory is laid out, and those that no rule here follows, are refused by name, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from cardfit.errors import BadRequest
from cardfit.units import MIB

LEAST_SPLIT_MB = 21  # more than the 20 MiB of a large segment
INTERVALS = 16  # powers of two from 1 MiB to 64 GiB, each with its number of divisions


@dataclass(frozen=True, slots=True)
class AllocConf:
    """What is set; the defaults are torch's.

    ``max_split_size_bytes`` and ``garbage_collection_threshold`` (a share of what the process may reserve) are None
    where nothing is set; ``roundup_power2_divisions`` holds one number for each power of two from 1 MiB to 64 GiB,
    0 for no rounding, and is empty where nothing is set.
    """

    expandable_segments: bool = False
    max_split_size_bytes: int | None = None
    max_non_split_rounding_bytes: int = 20 * MIB
    garbage_collection_threshold: float | None = None
    roundup_power2_divisions: tuple[int, ...] = ()


@lru_cache(maxsize=64)
def parse_alloc_conf(text: str | None) -> AllocConf:
    """The settings in ``text``; None and an empty text are the defaults. Raises BadRequest.

    >>> parse_alloc_conf("expandable_segments:True").expandable_segments
    True
    >>> parse_alloc_conf("max_split_size_mb:128").max_split_size_bytes == 128 * 1024**2
    True
    """
    conf = AllocConf()
    seen: set[str] = set()
    for part in _parts(text or ""):
        key, colon, value = part.partition(":")
        if key not in _KEYS:
            raise BadRequest("alloc-conf-unknown", asked=key, allowed=", ".join(_KEYS))
        if key in seen:
            raise BadRequest("alloc-conf-twice", key=key)
        seen.add(key)
        allowed, read = _KEYS[key]
        changed = read(conf, value) if colon else None
        if changed is None:
            raise BadRequest("alloc-conf-value", key=key, found=value, allowed=allowed)
        conf = changed
    return conf


def _parts(text: str) -> list[str]:
    """``key:value`` pairs; commas inside brackets belong to the value, blanks to nobody."""
    plain = "".join(text.split())
    return re.split(r",(?![^\[]*\])", plain) if plain else []


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _expandable(conf: AllocConf, value: str) -> AllocConf | None:
    if value not in ("True", "False"):
        return None
    return replace(conf, expandable_segments=value == "True")


def _max_split(conf: AllocConf, value: str) -> AllocConf | None:
    size = _whole(value)
    if size is None or size < LEAST_SPLIT_MB:
        return None
    return replace(conf, max_split_size_bytes=size * MIB)


def _non_split(conf: AllocConf, value: str) -> AllocConf | None:
    size = _whole(value)
    if size is None or size < LEAST_SPLIT_MB:
        return None
    return replace(conf, max_non_split_rounding_bytes=size * MIB)


def _threshold(conf: AllocConf, value: str) -> AllocConf | None:
    if not re.fullmatch(r"[0-9]*\.?[0-9]+", value) or not 0 < float(value) < 1:
        return None
    return replace(conf, garbage_collection_threshold=float(value))


def _native(conf: AllocConf, value: str) -> AllocConf | None:
    return conf if value == "native" else None


def _power(text: str, *, zero: bool) -> int | None:
    number = _whole(text)
    if number is None or number & (number - 1) or (number == 0 and not zero):
        return None
    return number


def _roundup(conf: AllocConf, value: str) -> AllocConf | None:
    """One number for all sizes, or ``[256:1,512:2,>:4]``: sizes in MiB and their divisions.

    What stands before the first size takes its number; ``>`` is everything after the last one.
    """
    if not value.startswith("["):
        every = _power(value, zero=True)
        return (
            None if every is None else replace(conf, roundup_power2_divisions=(every,) * INTERVALS)
        )
    found, last, first = [0] * INTERVALS, 0, True
    for pair in value.removeprefix("[").removesuffix("]").split(","):
        name, _, number = pair.partition(":")
        divisions = _power(number, zero=True)
        if divisions is None:
            return None
        if name == ">":
            found[last + 1 :] = [divisions] * (INTERVALS - last - 1)
            continue
        size = _power(name, zero=False)
        if size is None:
            return None
        last = min(size.bit_length() - 1, INTERVALS - 1)
        if first:
            found[:last] = [divisions] * last
            first = False
        found[last] = divisions
    return replace(conf, roundup_power2_divisions=tuple(found))


_Read = Callable[[AllocConf, str], AllocConf | None]
_KEYS: dict[str, tuple[str, _Read]] = {
    "expandable_segments": ("True, False", _expandable),
    "max_split_size_mb": (f">= {LEAST_SPLIT_MB}", _max_split),
    "max_non_split_rounding_mb": (f">= {LEAST_SPLIT_MB}", _non_split),
    "garbage_collection_threshold": ("0 < x < 1", _threshold),
    "roundup_power2_divisions": ("2^n, [256:1,512:2,>:4]", _roundup),
    "backend": ("native", _native),
}
