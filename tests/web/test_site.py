"""The static site: pages that hold what the command prints, links that lead somewhere, nothing half-written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cardfit import api
from cardfit.cli.main import run
from cardfit.messages import say, speaking
from cardfit.report import site
from cardfit.request import Request

OFFERS = "provider,card_id,gpus,price,currency,per,as_of\nour own,l4,1,0.11,EUR,hour,2026-08-01\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A site of one model in two languages, with the reader's own offers."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "mine.csv").write_text(OFFERS)
    line = f"site -o {folder / 'public'} --models sdxl-turbo --lang nl,ko --offers-file {folder / 'mine.csv'}"
    assert run(line.split()) == 0
    return folder / "public"


def test_every_link_and_every_script_of_every_page_is_there(made):
    pages = sorted(made.rglob("*.html"))
    assert [page.relative_to(made).as_posix() for page in pages] == [
        "index.html",
        "ko/index.html",
        "ko/sdxl-turbo/512x512.html",
        "sdxl-turbo/512x512.html",
    ]
    for page in pages:
        found = re.findall(r'(?:href|src)="([^"#]+)', page.read_text(encoding="utf-8"))
        assert found
        for target in found:
            assert "://" not in target and not target.startswith("/")
            assert (page.parent / target).is_file(), (page, target)


def test_a_page_holds_the_answer_and_the_prices_of_the_day_it_was_built(made):
    text = (made / "sdxl-turbo" / "512x512.html").read_text(encoding="utf-8")
    assert '<html lang="nl">' in text and "0,11 EUR" in text and "mine.csv" in text
    assert text.count('id="card-') == len(api.cards())
    with speaking("ko"):
        other = (made / "ko" / "sdxl-turbo" / "512x512.html").read_text(encoding="utf-8")
        assert say("view-stages") in other and '<html lang="ko">' in other


def test_the_figures_to_choose_from_are_those_of_the_pages(made):
    text = (made / "sdxl-turbo" / "data.js").read_text(encoding="utf-8")
    name, rows = re.fullmatch(r"cardfit\((\".*?\"), (\[.*\])\);\n", text, re.S).groups()
    assert json.loads(name) == "sdxl-turbo"
    (preset,) = json.loads(rows)
    l4 = next(each for each in preset["cards"] if each[0] == "l4")
    assert l4[1] == "L4" and l4[-1] == "0,11 EUR/u"
    assert len(preset["cards"]) == len(api.cards())


def test_an_earlier_site_is_replaced_and_nothing_else_is(made, tmp_path, capsys):
    line = ["site", "-o", str(made), "--models", "sdxl-turbo", "--lang", "en"]
    assert run(line) == 2
    assert "--force" in capsys.readouterr().err
    other = tmp_path / "photos"
    other.mkdir()
    (other / "a.txt").write_text("mine")
    assert run(["site", "-o", str(other), "--force"]) == 2
    assert [each.name for each in other.iterdir()] == ["a.txt"]
    assert [each.name for each in tmp_path.iterdir()] == ["photos"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--lang", "xx"], "en, ja, ko, nl"),
        (["--models", "omnigen2"], "no shipped traces"),
        (["--models", "no-such-model"], "no-such-model"),
        (["--offers-file", "missing.csv"], "missing.csv"),
    ],
)
def test_what_cannot_be_made_is_said_before_anything_is_written(tmp_path, flags, said, capsys):
    assert run(["site", "-o", str(tmp_path / "public"), *flags]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_planned_is_left_out_and_said(tmp_path):
    def plan(request: Request):
        raise site.BadFile("planfile-empty", path="x")

    found = site.build(
        tmp_path / "public", [api.model("sdxl-turbo")], ["en"], plan, offers="none of them"
    )
    assert (found.pages, [note.code for note in found.skipped]) == (0, ["site-skipped"])
    assert (tmp_path / "public" / "index.html").is_file()


def test_a_disk_that_fails_leaves_nothing(tmp_path):
    def plan(request: Request):
        raise OSError("no space left")

    with pytest.raises(site.BadFile):
        site.build(tmp_path / "public", [api.model("sdxl-turbo")], ["en"], plan, offers="")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", ["sdxl-turbo", "flux.1-dev", "ltx-video-2b", "wan2.1-t2v-14b"])
def test_presets_are_sizes_that_the_shipped_traces_hold(model):
    from cardfit.library.rules import resolve
    from cardfit.trace import atlas

    entry = api.model(model)
    found = site.presets(entry)
    assert len({each.name for each in found}) == len(found) >= 1
    for each in found:
        exact, _ = resolve(entry, each.request)
        domain = atlas.domain(entry, exact)
        assert domain is not None and domain.outside(exact) is None
        assert each.name.startswith(f"{exact.width}x{exact.height}")
