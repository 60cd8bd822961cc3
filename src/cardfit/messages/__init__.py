"""Every sentence a person reads, by code: one file a room, one dict a file.

A module that has something to say raises or returns a code with arguments; the English sentence stands here once and
goes through gettext, so that a translation is a catalogue file and never a change of code.
"""

from __future__ import annotations

import gettext
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from cardfit.messages import (
    accuracy,
    autopsy,
    cards,
    cli,
    comfy,
    comfy_server,
    fleet,
    library,
    measure,
    media,
    offers,
    plan,
    predict,
    quality,
    records,
    rent,
    report,
    request,
    trace,
    verbs,
    web,
)

TEXTS: dict[str, str] = {
    code: text
    for room in (
        library,
        records,
        request,
        cards,
        offers,
        trace,
        predict,
        measure,
        plan,
        accuracy,
        autopsy,
        media,
        quality,
        rent,
        comfy_server,
        fleet,
        verbs,
        report,
        cli,
        comfy,
        web,
    )
    for code, text in room.TEXTS.items()
}

LANGUAGES = ("en", "ja", "ko", "nl")
_LOCALES = Path(__file__).parent.with_name("locales")
_spoken: ContextVar[str | None] = ContextVar("language", default=None)


def say(code: str, args: Mapping[str, object] | None = None) -> str:
    """The sentence for ``code`` in the reader's language, with ``args`` filled in.

    Raises KeyError when no such sentence exists: a code without words is a programming error.
    """
    return _catalogue(language()).gettext(TEXTS[code]).format(**(args or {}))


def language() -> str:
    """The language that is spoken: that of `speaking`, else CARDFIT_LANG, else English."""
    asked = _spoken.get() or os.environ.get("CARDFIT_LANG", "")
    return asked if asked in LANGUAGES else LANGUAGES[0]


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Speak ``name`` (one of `LANGUAGES`) within."""
    token = _spoken.set(name)
    try:
        yield
    finally:
        _spoken.reset(token)


@cache
def _catalogue(name: str) -> gettext.NullTranslations:
    """The catalogue of a language; what it lacks stays English."""
    return gettext.translation("cardfit", localedir=_LOCALES, languages=[name], fallback=True)
