"""Texts of strangers as they may be shown: names and titles in workflows can hold anything.

In: a text from a file or a server. Out: the same on one line, cut to a length, with signs that steer a terminal
written out.
"""

from __future__ import annotations

_LONGEST = 120


def shown(text: object, longest: int = _LONGEST) -> str:
    """``text`` so that it can stand in a line on a terminal.

    >>> shown("Load\\x1b[31m VAE")
    'Load\\\\x1b[31m VAE'
    """
    plain = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in str(text))
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
