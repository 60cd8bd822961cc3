"""The documentation is held to the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import cardfit
from cardfit.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PACKAGE = ROOT / "src" / "cardfit"


def page(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def rooms() -> set[str]:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    files = {path.stem for path in PACKAGE.glob("[a-z]*.py")}
    return folders | files


def test_the_readme_starts_with_exactly_two_commands():
    block = README.split("\n\n")[1].splitlines()
    assert [line.split("#")[0].strip() for line in block] == ["make plan", "make test"]


def test_the_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("plan", "test", "setup"):
        assert re.search(rf"^{target}:", makefile, re.M)
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_command_is_in_the_readme_with_its_job():
    listed = re.findall(r"^\| `cardfit (\w+)[^`]*` \| (.+) \|$", README, re.M)
    names = [getattr(command, "__name__", None) or command.name[0] for command in COMMANDS]
    assert [name for name, _ in listed] == names


def test_the_file_map_names_every_room_in_five_words_or_so():
    listed = dict(
        re.findall(r"^\| \[`src/cardfit/(\w+)(?:\.py)?`\]\(\S+\) \| (.+) \|$", README, re.M)
    )
    assert set(listed) == rooms()
    assert all(len(job.split()) <= 5 for job in listed.values())


def test_the_layout_page_names_every_room():
    layout = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in layout.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", table)) == rooms()


def test_the_import_contract_names_every_room():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    assert {room for layer in layers for room in re.findall(r"\w+", layer)} == rooms()


def test_versions_agree():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert config["project"]["version"] == cardfit.__version__
    assert f"## {cardfit.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_pages_speak_of_the_project_alone(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users)/", text)


def test_the_python_of_the_readme_is_python_and_uses_public_names():
    for block in re.findall(r"```python\n(.*?)```", README, re.S):
        compile(block, "README.md", "exec")
        for used in re.findall(r"cardfit\.(\w+)", block):
            assert used in cardfit.__all__
