"""The catalogues of the other languages, from the messages and the translations at hand.

    python scripts/catalogues.py             brings every .po up to date with the messages and compiles the .mo
    python scripts/catalogues.py --check     changes nothing; exit 1 where a file is out of date

A translation is made by editing ``src/cardfit/locales/LANGUAGE/LC_MESSAGES/cardfit.po``. What is left empty stays
English. How a language writes numbers and dates is taken from the CLDR, as Babel has it, into ``formats.json``.
"""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from cardfit.messages import LANGUAGES, TEXTS

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
    """The .po and the .mo of a language: every text with its codes, in the order of the rooms."""
    catalogue = Catalog(
        locale=language, creation_date=_NO_DATE, revision_date=_NO_DATE, fuzzy=False
    )
    codes: dict[str, list[str]] = {}
    for code, text in TEXTS.items():
        codes.setdefault(text, []).append(code)
    for text, names in codes.items():
        catalogue.add(text, known.get(text, ""), auto_comments=[", ".join(names)])
    po, mo = io.BytesIO(), io.BytesIO()
    write_po(po, catalogue, width=110, omit_header=True)
    write_mo(mo, catalogue)
    head = f'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    return head.encode() + po.getvalue(), mo.getvalue()


def formats() -> bytes:
    """Decimal and grouping mark and numeric date of each language; English dates stay year-month-day."""
    found = {name: _format(Locale.parse(name)) for name in LANGUAGES}
    found[LANGUAGES[0]]["date"] = "{year:04}-{month:02}-{day:02}"
    return (json.dumps(found, indent=2, ensure_ascii=False) + "\n").encode()


def _format(locale: Locale) -> dict[str, str]:
    marks, pattern = locale.number_symbols["latn"], locale.datetime_skeletons["yMd"].pattern
    fields = {"y": "{year}", "M": "{month}", "d": "{day}"}
    date = "".join(fields.get(sign, sign) for sign in pattern)
    return {"decimal": marks["decimal"], "group": marks["group"], "date": date}


def main(arguments: list[str]) -> int:
    """Write or check all of them."""
    stale, made_now = [], {FOLDER / "formats.json": formats()}
    for language in LANGUAGES[1:]:
        po, mo = made(language, read(language))
        made_now |= {file_of(language): po, file_of(language).with_suffix(".mo"): mo}
    for path, content in made_now.items():
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
