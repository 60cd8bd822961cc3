"""Units: the only module that knows 1024, "GiB" or "ms".

In goes what a person wrote ("24 GiB", "64GB", "500Mbit"), out come base units (bytes, seconds); and the way back,
a number of bytes or seconds as a person reads it. Everything between keeps plain integers and floats.
"""

from __future__ import annotations

import re

from cardfit.messages import number

KIB = 1024
MIB = 1024**2
GIB = 1024**3
GIB_NAME = "GiB"  # for the head of a column

_DECIMAL = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KIB": KIB, "MIB": MIB, "GIB": GIB, "TIB": 1024**4}
_SIZE = re.compile(r"^\s*([0-9]+(?:[.,][0-9]+)?)\s*([A-Za-z]+)\s*$")


def parse_bytes(text: str, *, memory: bool = False) -> int:
    """Bytes in a size such as ``"24 GiB"`` or ``"64GB"``.

    With ``memory=True`` decimal names count as memory is sold: a "64 GB" module holds 64 GiB.
    Raises ValueError for text without a number or without a known unit.

    >>> parse_bytes("24 GiB") == 24 * 1024**3
    True
    >>> parse_bytes("64GB"), parse_bytes("64GB", memory=True)
    (64000000000, 68719476736)
    """
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(text)
    number, unit = float(match[1].replace(",", ".")), match[2].upper()
    if memory and unit in _DECIMAL and unit != "B":
        unit = unit[0] + "IB"
    factor = _DECIMAL.get(unit) or _BINARY.get(unit)
    if factor is None:
        raise ValueError(text)
    return round(number * factor)


def gib(size_bytes: float, digits: int = 1) -> str:
    """``size_bytes`` as GiB without the unit name, for table cells.

    >>> gib(38 * 1024**3)
    '38.0'
    """
    return number(f"{size_bytes / GIB:.{digits}f}")


def gib_text(size_bytes: float, digits: int = 1) -> str:
    """``size_bytes`` as GiB with the unit name, however small, so that a column of them compares.

    >>> gib_text(512 * 1024**2)
    '0.5 GiB'
    """
    return f"{gib(size_bytes, digits)} GiB"


def human_bytes(size_bytes: float) -> str:
    """``size_bytes`` with the unit that reads best.

    >>> human_bytes(131072), human_bytes(25 * 1024**3), human_bytes(12)
    ('128.0 KiB', '25.0 GiB', '12 B')
    """
    for factor, name in ((1024**4, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(size_bytes) >= factor:
            return number(f"{size_bytes / factor:.1f}") + f" {name}"
    return f"{size_bytes:.0f} B"


def signed_bytes(size_bytes: float) -> str:
    """A difference in bytes with its sign.

    >>> signed_bytes(3 * 1024**3), signed_bytes(-131072)
    ('+3.0 GiB', '-128.0 KiB')
    """
    return ("+" if size_bytes >= 0 else "") + human_bytes(size_bytes)


def human_seconds(seconds: float) -> str:
    """``seconds`` as a person says them.

    >>> human_seconds(3900), human_seconds(75), human_seconds(4.25), human_seconds(0.0123)
    ('1 h 05', '1 min 15', '4.2 s', '0.012 s')
    """
    if seconds >= 3600:
        minutes = round(seconds / 60)
        return f"{minutes // 60} h {minutes % 60:02d}"
    if seconds >= 60:
        whole = round(seconds)
        return f"{whole // 60} min {whole % 60:02d}"
    digits = ".1f" if seconds >= 0.1 or seconds == 0 else ".2g"
    return number(format(seconds, digits)) + " s"


def human_flop(flop: float) -> str:
    """``flop`` with an SI prefix.

    >>> human_flop(6.52e15)
    '6.52 PFLOP'
    """
    for factor, name in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(flop) >= factor:
            return number(f"{flop / factor:.2f}") + f" {name}FLOP"
    return f"{flop:.0f} FLOP"


_RATE = re.compile(r"^\s*([0-9]+(?:[.,][0-9]+)?)\s*([A-Za-z]+)(?:/s|ps)?\s*$")
_RATES = {"KBIT": 125, "MBIT": 125_000, "GBIT": 125_000_000, "TBIT": 125_000_000_000}
_SPAN = re.compile(r"^\s*([0-9]+(?:[.,][0-9]+)?)\s*([A-Za-z]+)\s*$")
_MONTHS = {
    **dict.fromkeys(("d", "day", "days"), 12 / 365),
    **dict.fromkeys(("w", "week", "weeks"), 84 / 365),
    **dict.fromkeys(("mo", "month", "months"), 1.0),
    **dict.fromkeys(("y", "year", "years"), 12.0),
}


def parse_rate(text: str) -> float:
    """Bytes a second in a rate such as ``"500Mbit"`` or ``"60 MB/s"``. Raises ValueError without a known unit.

    >>> parse_rate("500Mbit"), parse_rate("60 MB/s"), parse_rate("1Gbps")
    (62500000.0, 60000000.0, 125000000.0)
    """
    match = _RATE.match(text)
    if match is None:
        raise ValueError(text)
    number, unit = float(match[1].replace(",", ".")), match[2]
    if unit.endswith("ps") and not unit.lower().endswith("bps"):
        raise ValueError(text)
    unit = unit.removesuffix("ps")
    name = unit.upper()
    if name in ("KB", "MB", "GB", "TB") and not unit.endswith("B"):
        name += "IT"  # a small b is a bit
    factor = _RATES.get(name) or _DECIMAL.get(name) or _BINARY.get(name)
    if factor is None:
        raise ValueError(text)
    return number * factor


def human_rate(bytes_per_s: float) -> str:
    """A rate as networks are sold.

    >>> human_rate(62.5e6), human_rate(1.25e8)
    ('500 Mbit/s', '1 Gbit/s')
    """
    bits = 8 * bytes_per_s
    large = bits >= 1e9
    return f"{number(f'{bits / (1e9 if large else 1e6):g}')} {'Gbit/s' if large else 'Mbit/s'}"


def parse_months(text: str) -> float:
    """Months in a span such as ``"3mo"``, ``"2w"`` or ``"3y"``; a year has 365 days. Raises ValueError.

    >>> parse_months("3mo"), parse_months("3y"), round(parse_months("73d"), 6)
    (3.0, 36.0, 2.4)
    """
    match = _SPAN.match(text)
    if match is None or match[2].lower() not in _MONTHS:
        raise ValueError(text)
    return float(match[1].replace(",", ".")) * _MONTHS[match[2].lower()]
