"""The command that was typed, kept so that the answer can name the next one.

In: the words of the command line. Out: the same question without what only changes how it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

WORDS: ContextVar[tuple[str, ...]] = ContextVar("WORDS", default=())
_SHOWING = frozenset({"--all", "--json", "--check", "--force"})
_SHOWING_WITH_VALUE = frozenset({"--as", "--save"})


def again(words: Sequence[str] | None = None) -> list[str] | None:
    """The typed command without the flags that say how to show the answer; ``None`` when none was typed.

    >>> again(["plan", "svd", "--as", "code", "--all", "--card=l4"])
    ['cardfit', 'plan', 'svd', '--card=l4']
    """
    found, skip = [], False
    given = WORDS.get() if words is None else words
    for word in given:
        name = word.partition("=")[0]
        if not skip and name not in _SHOWING and name not in _SHOWING_WITH_VALUE:
            found.append(word)
        skip = not skip and word in _SHOWING_WITH_VALUE
    return ["cardfit", *found] if found else None
