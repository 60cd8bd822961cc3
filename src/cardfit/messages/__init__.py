"""Every sentence a person reads, by code: one file a room, one dict a file.

A module that has something to say raises or returns a code with arguments; the English sentence stands here once and
goes through gettext, so that a translation is a catalogue file and never a change of code.
"""

from __future__ import annotations

import gettext
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from cardfit.messages import (
    accuracy,
    assign,
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
    script,
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
        assign,
        comfy_server,
        fleet,
        verbs,
        report,
        cli,
        comfy,
        script,
        web,
    )
    for code, text in room.TEXTS.items()
}

LANGUAGE_NAMES = {"en": "English", "ja": "日本語", "ko": "한국어", "nl": "Nederlands"}
LANGUAGES = tuple(LANGUAGE_NAMES)
_LOCALES = Path(__file__).parent.with_name("locales")
_spoken: ContextVar[str | None] = ContextVar("language", default=None)


def say(code: str, args: Mapping[str, object] | None = None) -> str:
    """The sentence for ``code`` in the reader's language, with ``args`` filled in.

    Raises KeyError when no such sentence exists: a code without words is a programming error.
    """
    text = _catalogue(language()).gettext(TEXTS[code])
    if _formats()[language()]["decimal"] == ".":
        return text.format(**(args or {}))
    return _WORDS.vformat(text, (), args or {})


def number(text: str) -> str:
    """A number that was written with Python's marks, in those of the reader's language.

    >>> with speaking("nl"):
    ...     number("1,234.5"), number("-0.3")
    ('1.234,5', '-0,3')
    >>> number("1,234.5")
    '1,234.5'
    """
    marks = _formats()[language()]
    if marks["decimal"] == ".":
        return text
    return text.translate({ord("."): marks["decimal"], ord(","): marks["group"]})


def day(value: date) -> str:
    """A date as the reader's language writes it; year-month-day in English, which is read the same everywhere.

    >>> with speaking("nl"):
    ...     day(date(2026, 8, 3))
    '3-8-2026'
    """
    named = {"year": value.year, "month": value.month, "day": value.day}
    return _formats()[language()]["date"].format(**named)


class _Words(Formatter):
    """Fills in the fields of a sentence, numbers in the marks of the language."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text = str(super().format_field(value, format_spec))
        return number(text) if isinstance(value, (int, float)) else text


_WORDS = _Words()


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
def _formats() -> dict[str, dict[str, str]]:
    """How each language writes numbers and dates; `scripts/catalogues.py` takes it from the CLDR."""
    found: dict[str, dict[str, str]] = json.loads((_LOCALES / "formats.json").read_text("utf-8"))
    return found


@cache
def _catalogue(name: str) -> gettext.NullTranslations:
    """The catalogue of a language; what it lacks stays English."""
    return gettext.translation("cardfit", localedir=_LOCALES, languages=[name], fallback=True)
