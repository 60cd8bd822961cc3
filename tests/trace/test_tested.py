"""The versions that were tested are those of the constraints, and others are said."""

from __future__ import annotations

from pathlib import Path

from cardfit.errors import Note
from cardfit.trace import tested

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"


def test_the_shipped_versions_are_the_pinned_ones() -> None:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert {name: pinned[name] for name in tested.versions()} == tested.versions()
    assert {"torch", "diffusers", "transformers", "accelerate", "peft"} <= set(tested.versions())


def test_another_version_is_said_with_the_tested_one() -> None:
    versions = dict(tested.versions())
    assert tested.notes(versions | {"torch": versions["torch"] + "+cpu"}) == ()
    ((code, args),) = tested.notes(versions | {"diffusers": "0.30.3"})
    assert code == "trace-other-versions"
    assert args == {"found": "diffusers 0.30.3", "tested": f"diffusers {versions['diffusers']}"}
    assert "0.30.3" in Note(code, args).text
