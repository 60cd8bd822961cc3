"""How the reader's screen is: width, shapes or letters, colour or none.

In: a stream. Out: a `Style` that every view is handed, so that a view is a function from value to lines and can be
tested without a terminal.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from dataclasses import dataclass
from typing import TextIO

MAX_WIDTH = 100
SHAPES = {"fits": "●", "price": "◐", "tight": "◔", "no": "○", "unknown": "?"}
LETTERS = {"fits": "Y", "price": "P", "tight": "T", "no": "N", "unknown": "?"}
_COLOURS = {"green": "32", "amber": "33", "red": "31", "dim": "2", "bold": "1"}


@dataclass(frozen=True, slots=True)
class Style:
    """``width`` in columns; ``shapes`` as round signs or letters; ``bars`` and ``colour`` for terminals only."""

    width: int = MAX_WIDTH
    shapes: bool = True
    bars: bool = False
    colour: bool = False

    @classmethod
    def of(cls, stream: TextIO) -> Style:
        """The style that suits ``stream``: plain and 100 columns when it is not a terminal."""
        shapes = can_encode("".join(SHAPES.values()), stream.encoding)
        if not stream.isatty():
            return cls(shapes=shapes)
        width = min(MAX_WIDTH, shutil.get_terminal_size((MAX_WIDTH, 24)).columns)
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        return cls(width=max(width, 40), shapes=shapes, bars=True, colour=not plain)

    @property
    def dot(self) -> str:
        """What stands between the parts of a line."""
        return " · " if self.shapes else " | "

    def shape(self, name: str) -> str:
        """The sign for a verdict, by the keys of `SHAPES`."""
        return (SHAPES if self.shapes else LETTERS)[name]

    def paint(self, text: str, colour: str) -> str:
        """``text`` in ``colour`` (a key of green, amber, red, dim, bold) where colours are on."""
        if not self.colour or colour not in _COLOURS or not text.strip():
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"

    def bar(self, part: float, whole: float, width: int = 12) -> str:
        """A bar that shows ``part`` of ``whole``; a ``>`` at its end when it is more than the whole.

        >>> Style(shapes=False).bar(1, 2, 8)
        '####....'
        >>> Style(shapes=False).bar(3, 2, 8)
        '#######>'
        """
        full, empty = ("█", "░") if self.shapes else ("#", ".")
        if part > whole:
            return full * (width - 1) + ">"
        filled = round(width * part / whole)
        return full * filled + empty * (width - filled)


def can_encode(text: str, encoding: str | None) -> bool:
    """Whether ``encoding`` (None counts as ASCII) has every sign of ``text``.

    >>> can_encode("◔", "utf-8"), can_encode("◔", "cp949"), can_encode("●", "cp1252")
    (True, False, False)
    """
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def cells(text: str) -> int:
    """Columns that ``text`` takes on a screen: wide East Asian signs take two.

    >>> cells("fits"), cells("카드")
    (4, 4)
    """
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
