"""The catalogues of the other languages, from the messages and the translations at hand.

    python scripts/catalogues.py             brings every .po up to date with the messages and compiles the .mo
    python scripts/catalogues.py --check     changes nothing; exit 1 where a file is out of date

A translation is made by editing ``src/cardfit/locales/LANGUAGE/LC_MESSAGES/cardfit.po``. What is left empty stays
English.
"""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from cardfit.messages import LANGUAGES, TEXTS, report, web

WHOLE = (report, web)  # rooms of which nothing may be left in English
_NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)  # the same messages give the same bytes
FOLDER = Path(__file__).parents[1] / "src" / "cardfit" / "locales"


def file_of(language: str) -> Path:
    """The .po of a language."""
    return FOLDER / language / "LC_MESSAGES" / "cardfit.po"


def read(language: str) -> dict[str, str]:
    """English text to translation; empty where there is none."""
    path = file_of(language)
    if not path.exists():
        return {}
    with path.open("rb") as stream:
        found = read_po(stream, locale=language)
    return {str(message.id): str(message.string) for message in found if message.id}


def made(language: str, known: dict[str, str]) -> tuple[bytes, bytes]:
    """The .po and the .mo of a language: what is translated or has to be, with its codes, in the order of the rooms."""
    catalogue = Catalog(
        locale=language, creation_date=_NO_DATE, revision_date=_NO_DATE, fuzzy=False
    )
    codes: dict[str, list[str]] = {}
    for code, text in TEXTS.items():
        codes.setdefault(text, []).append(code)
    needed = {text for room in WHOLE for text in room.TEXTS.values()}
    for text, names in codes.items():
        if text in needed or known.get(text):
            catalogue.add(text, known.get(text, ""), auto_comments=[", ".join(names)])
    po, mo = io.BytesIO(), io.BytesIO()
    write_po(po, catalogue, width=110, omit_header=True)
    write_mo(mo, catalogue)
    head = f'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    return head.encode() + po.getvalue(), mo.getvalue()


def main(arguments: list[str]) -> int:
    """Write or check all of them."""
    stale = []
    for language in LANGUAGES[1:]:
        po, mo = made(language, read(language))
        for path, content in ((file_of(language), po), (file_of(language).with_suffix(".mo"), mo)):
            if path.exists() and path.read_bytes() == content:
                continue
            stale.append(path)
            if "--check" not in arguments:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    for path in stale:
        print(path)
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
