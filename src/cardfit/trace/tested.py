"""The versions that the shipped figures and the tests were made with, and the caution where others are installed.

In: installed versions. Out: the versions of `tested.json`, a copy of the project's constraints (a test holds the two
equal), and a note where an installed one differs. Nothing here imports torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def versions() -> Mapping[str, str]:
    """Package to the version that was tested."""
    text = files("cardfit.trace").joinpath("tested.json").read_text(encoding="utf-8")
    loaded = json.loads(text)
    return {str(name): str(version) for name, version in loaded["versions"].items()}


def notes(installed: Mapping[str, str]) -> tuple[tuple[str, dict[str, object]], ...]:
    """The note ``trace-other-versions`` where an installed version is not the tested one.

    >>> notes(versions())
    ()
    """
    wanted = versions()
    other = {name: found for name, found in installed.items() if _plain(found) != wanted.get(name)}
    if not other:
        return ()
    found = ", ".join(f"{name} {version}" for name, version in other.items())
    tried = ", ".join(f"{name} {wanted[name]}" for name in other if name in wanted)
    return (("trace-other-versions", {"found": found, "tested": tried}),)


def _plain(version: str) -> str:
    """A version without the build it came from: ``2.13.0+cpu`` shapes a trace as ``2.13.0`` does."""
    return version.partition("+")[0]
