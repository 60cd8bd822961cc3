"""The other languages: nothing missing on the pages, the same placeholders, tables that line up."""

from __future__ import annotations

import importlib.util
import re
from datetime import date
from pathlib import Path

import pytest

from cardfit import api
from cardfit.cli.main import run
from cardfit.messages import LANGUAGES, TEXTS, day, language, say, speaking
from cardfit.plan.offers import money_text
from cardfit.report import plan as plan_page
from cardfit.report.grid import Column, grid
from cardfit.report.style import Style, cells
from cardfit.trace.source import DRY_RUNS
from cardfit.units import gib_text, human_bytes, human_seconds

OTHERS = LANGUAGES[1:]
_spec = importlib.util.spec_from_file_location(
    "catalogues", Path(__file__).parents[2] / "scripts" / "catalogues.py"
)
catalogues = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(catalogues)


def fields(text: str) -> list[str]:
    return sorted(re.findall(r"(?<!\{)\{(\w+)", text))


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_is_left_in_english(name):
    known = catalogues.read(name)
    assert [code for code, text in TEXTS.items() if not known.get(text)] == []


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


# --- one word for one thing


GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary"
KEPT = ("ComfyUI", "PyTorch", "LoRA", "VAE", "RAM", "JSON", "YAML", "PNG", "WEBP", "CUDA", "fps")


def glossary(name: str) -> dict[str, tuple[str, ...]]:
    """English term to the words that a translation may use for it."""
    rows = re.findall(r"^\| (\w[^|]*) \| ([^|]+) \|$", (GLOSSARY / f"{name}.md").read_text(), re.M)
    found = {term: tuple(words.split(", ")) for term, words in rows}
    del found["English"]
    return found


def speaks_of(text: str, term: str) -> bool:
    """Whether a sentence has the term, placeholders and commands left out."""
    plain = re.sub(
        r"[A-Z]+@[A-Z]+|cardfit \w+( [A-Za-z.\-]+)*|\{[^}]*\}|--[\w-]+|'[^']*'|\([^)]*extra\)",
        " ",
        text,
    )
    return re.search(rf"(?<![\w-]){term}(?![\w-])", plain, re.I) is not None


@pytest.mark.parametrize("name", OTHERS)
def test_translations_use_the_words_of_the_glossary(name):
    words = glossary(name)
    assert len(words) > 25
    wrong = [
        (term, text, said)
        for text, said in catalogues.read(name).items()
        for term, allowed in words.items()
        if said and speaks_of(text, term)
        if not any(word.lower() in said.lower() for word in allowed)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", OTHERS)
def test_names_and_units_are_left_as_they_are(name):
    wrong = [
        (kept, said)
        for text, said in catalogues.read(name).items()
        for kept in KEPT
        if said and re.search(rf"\b{kept}\b", text) and kept not in said
    ]
    assert wrong == []


# --- numbers and dates


def test_the_formats_are_those_of_the_cldr():
    assert (catalogues.FOLDER / "formats.json").read_bytes() == catalogues.formats()


@pytest.mark.parametrize(
    ("name", "size", "seconds", "money", "date_"),
    [
        ("en", "1.5 GiB", "4.2 s", "$0.40", "2026-08-03"),
        ("ja", "1.5 GiB", "4.2 s", "$0.40", "2026/8/3"),
        ("ko", "1.5 GiB", "4.2 s", "$0.40", "2026/8/3"),
        ("nl", "1,5 GiB", "4,2 s", "$0,40", "3-8-2026"),
    ],
)
def test_numbers_and_dates_are_written_as_the_language_writes_them(
    name, size, seconds, money, date_
):
    with speaking(name):
        assert gib_text(1.5 * 2**30) == human_bytes(1.5 * 2**30) == size
        assert human_seconds(4.2) == seconds
        assert money_text(0.4, "USD") == money
        assert day(date(2026, 8, 3)) == date_
        assert say("plays-for", {"frames": 81, "seconds": 5.1, "fps": 16}).count(",") == (
            name == "nl"
        )


def test_a_dutch_page_has_no_english_number_and_its_drawings_no_dutch_one(client):
    text = client.get("/card/rtx-4090?model=sdxl-turbo&lang=nl").text
    shown = re.sub(r"<(script|style|pre|code|title)\b.*?</\1>|<[^>]+>", " ", text, flags=re.S)
    assert re.search(r"\d,\d GiB", shown)
    assert not re.search(r"\d\.\d+ (GiB|s|min|h)\b|\$\d+\.\d", shown)
    assert re.findall(r'(?:width|x|x1|points)="[^"]*\d,\d[^" ]*"', text) == []
    assert "cardfit plan sdxl-turbo" in text


# --- --lang


def test_every_command_speaks_the_language_that_is_asked_for(capsys):
    for line in (["--lang", "nl", "cards", "l4"], ["cards", "l4", "--lang=nl"]):
        assert run(line) == 0
        with speaking("nl"):
            assert say("unknown-value") in (found := capsys.readouterr().out) or "22" in found
            assert say("col-fact") in found
    assert language() == "en"


@pytest.mark.parametrize(
    "line", [["cards", "--lang", "xx"], ["cards", "--lang"], ["--lang=", "cards"]]
)
def test_a_language_that_nobody_speaks_here_is_refused(line, capsys):
    assert run(line) == 2
    assert "en, ja, ko, nl" in capsys.readouterr().err


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


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_tables_of_a_printed_plan_line_up(name):
    """Every verdict of the table of cards begins in the same column, whatever stands before it."""
    token = DRY_RUNS.set(False)
    try:
        with speaking(name):
            lines = plan_page.lines(api.plan("sdxl-turbo", ram_bytes=64 * 2**30), Style())
            signs = [
                cells(line[: found.start()])
                for line in lines
                if (found := re.search(r"(?<= )[●◐◔○](?= )", line)) is not None
            ]
    finally:
        DRY_RUNS.reset(token)
    assert len(signs) > 5 and len(set(signs)) == 1
