"""An answer as a file: it stands alone, holds every card, and nothing in it can run."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cardfit.cli.main import run
from cardfit.report import dump, shared

_spec = importlib.util.spec_from_file_location(
    "make_answer", Path(__file__).with_name("make_answer.py")
)
make_answer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_answer)


class Elements(HTMLParser):
    """The elements of a page with their attributes; closed ones must have been opened."""

    VOID = frozenset({"meta", "rect", "line", "circle", "path", "polyline", "br", "input", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.found, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def answer():
    return make_answer.answer()


def test_the_page_stands_alone_and_runs_nothing(answer):
    page = Elements()
    page.feed(shared.page(answer))
    assert page.open == []
    tags = {tag for tag, _ in page.found}
    assert not tags & {"script", "link", "img", "iframe", "form"}
    names = {name for _, attrs in page.found for name in attrs}
    assert not {name for name in names if name.startswith(("on", "hx-"))} and "src" not in names
    assert all(attrs["href"].startswith("#") for _, attrs in page.found if "href" in attrs)


def test_every_card_is_in_the_page(answer):
    text = shared.page(answer)
    for row in answer.cards:
        assert row.settings_text in text


def test_hostile_text_stays_text(answer):
    title = '<img src=x onerror="alert(1)">|`*_'
    hostile = answer.model_copy(
        update={"model": answer.model.model_copy(update={"title": title, "license": title})}
    )
    assert "<img" not in shared.page(hostile)
    told = shared.markdown(hostile)
    assert "<img" not in told.replace("\\<", "") and "\\|\\`\\*\\_" in told


def test_markdown_has_the_picks_the_stages_and_the_cards(answer):
    text = shared.markdown(answer)
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    assert len(tables) == 2
    stages, cards = (table.splitlines() for table in tables)
    assert len(stages) == 2 + len(answer.stages)
    assert len(cards) >= 3
    assert "**Cheapest**" in text and "```sh\ncardfit plan" in text


def test_the_command_writes_whole_files_and_not_over_one(answer, tmp_path, capsys):
    saved = tmp_path / "plan.json"
    saved.write_text(dump.one(answer), encoding="utf-8")
    for name in ("plan.html", "plan.md"):
        out = tmp_path / name
        assert run(["report", str(saved), "-o", str(out)]) == 0
        before = out.read_bytes()
        assert run(["report", str(saved), "-o", str(out)]) == 2
        assert out.read_bytes() == before
        assert run(["report", str(saved), "-o", str(out), "--force"]) == 0
    assert run(["report", str(saved), "-o", str(tmp_path / "plan.pdf")]) == 2
    saved.write_text("{}", encoding="utf-8")
    assert run(["report", str(saved), "-o", str(tmp_path / "other.html")]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.html", "plan.json", "plan.md"]
    assert "Traceback" not in capsys.readouterr().err
