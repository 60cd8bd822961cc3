"""Every sentence a person reads, by code: one file a room, one dict a file.

A module that has something to say raises or returns a code with arguments; the English sentence stands here once and
goes through gettext, so that a translation is a catalogue file and never a change of code.
"""

from __future__ import annotations

import gettext
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cardfit.messages import (
    accuracy,
    autopsy,
    cards,
    cli,
    comfy,
    comfy_server,
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
        verbs,
        report,
        cli,
        comfy,
    )
    for code, text in room.TEXTS.items()
}

_LOCALES = Path(__file__).parent.with_name("locales")


def say(code: str, args: Mapping[str, object] | None = None) -> str:
    """The sentence for ``code`` in the reader's language, with ``args`` filled in.

    Raises KeyError when no such sentence exists: a code without words is a programming error.
    """
    return _translation().gettext(TEXTS[code]).format(**(args or {}))


@cache
def _translation() -> gettext.NullTranslations:
    return gettext.translation("cardfit", localedir=_LOCALES, fallback=True)
