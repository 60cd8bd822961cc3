"""The other languages: nothing missing on the pages, the same placeholders, tables that line up."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from cardfit.messages import LANGUAGES, TEXTS, language, say, speaking
from cardfit.report.grid import Column, grid
from cardfit.report.style import Style, cells

OTHERS = LANGUAGES[1:]
_spec = importlib.util.spec_from_file_location(
    "catalogues", Path(__file__).parents[2] / "scripts" / "catalogues.py"
)
catalogues = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(catalogues)


def fields(text: str) -> list[str]:
    return sorted(re.findall(r"(?<!\{)\{(\w+)", text))


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_of_the_pages_is_left_in_english(name):
    known = catalogues.read(name)
    missing = [
        code
        for room in catalogues.WHOLE
        for code, text in room.TEXTS.items()
        if not known.get(text)
    ]
    assert missing == []


@pytest.mark.parametrize("name", OTHERS)
def test_a_translation_fills_in_the_same_places(name):
    wrong = [
        text
        for text, said in catalogues.read(name).items()
        if said and fields(text) != fields(said)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", OTHERS)
def test_the_compiled_catalogue_is_that_of_the_text(name):
    path = catalogues.file_of(name)
    _, compiled = catalogues.made(name, catalogues.read(name))
    assert path.with_suffix(".mo").read_bytes() == compiled


def test_each_language_is_spoken_within_and_english_elsewhere(monkeypatch):
    with speaking("nl"):
        assert (language(), say("verdict-fits")) == ("nl", "past")
        with speaking("ja"):
            assert say("verdict-fits") == "収まる"
    assert (language(), say("verdict-fits")) == ("en", "fits")
    monkeypatch.setenv("CARDFIT_LANG", "ko")
    assert say("verdict-fits") == "들어감"
    monkeypatch.setenv("CARDFIT_LANG", "../../etc/passwd")
    assert say("verdict-fits") == "fits"


@pytest.mark.parametrize("name", LANGUAGES)
def test_tables_line_up_where_signs_are_wide(name):
    with speaking(name):
        columns = [
            Column(say("col-card")),
            Column(say("col-verdict")),
            Column(say("col-price"), right=True),
        ]
        rows = [
            ["L4", say("verdict-fits"), "$1"],
            ["T4", say("verdict-does-not-fit"), say("no-offer")],
        ]
        lines = grid(columns, rows, Style())
    assert len({cells(line) for line in lines}) == 1


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_page_speaks_the_language_of_its_reader(client, name):
    by_address = client.get(f"/?model=sdxl-turbo&lang={name}")
    assert f'<html lang="{name}">' in by_address.text
    by_browser = client.get("/autopsy", headers={"accept-language": name})
    with speaking(name):
        assert say("web-page-autopsy") in by_browser.text
        assert all(say(code) in by_address.text for code in ("label-model", "web-group-make"))


@pytest.mark.parametrize("code", [code for code in TEXTS if code.startswith("about-")])
def test_every_term_that_is_explained_has_a_name(code):
    assert say(code.replace("about-", "term-"))
