"""A picture in a language that no font of the machine can write says so."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cardfit.report import fonts


@pytest.fixture
def fontconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ``fc-list`` of its own, which knows Korean and fails for nothing else."""
    program = tmp_path / "fc-list"
    program.write_text('#!/bin/sh\ncase "$1" in :lang=ko) echo "Noto Sans CJK KR";; esac\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    return program


def test_a_missing_font_is_named_with_the_one_to_install(fontconfig: Path) -> None:
    said = fonts.missing("ja")
    assert said is not None
    assert "Noto Sans CJK JP" in said
    assert ".svg" in said


def test_nothing_is_said_where_the_signs_are_at_hand(fontconfig: Path) -> None:
    assert fonts.missing("ko") is None
    assert fonts.missing("en") is None


def test_nothing_is_said_where_nobody_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fontconfig: Path
) -> None:
    fontconfig.write_text("#!/bin/sh\nexit 1\n")
    assert fonts.missing("ja") is None
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert fonts.missing("ja") is None
