"""Templates of pages: the environment that fills them, shared by files and by the server.

In: the name of a template and values. Out: HTML in which every value is escaped. A template lays out; it works nothing
out. Jinja2 comes with the extra `web` and is imported here only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardfit.errors import MissingExtra
from cardfit.messages import language, say

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).with_name("templates")


def environment(*folders: Path) -> Environment:
    """The templates of ``folders`` and of this room. Raises MissingExtra without the extra."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as missing:
        raise MissingExtra("web-extra", package=str(missing.name)) from missing
    found = Environment(
        loader=FileSystemLoader([*folders, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.globals.update(say=_say, language=language, term_label=term_label, terms=terms)
    return found


def _say(code: str, **args: Any) -> str:
    return say(code, args)


def style() -> str:
    """The style sheet of every page."""
    return (FOLDER / "cardfit.css").read_text(encoding="utf-8")


TERMS = (
    "stage",
    "weights",
    "working",
    "allocator",
    "peak",
    "band",
    "verdict",
    "settings",
    "against",
    "time",
    "cost",
    "price",
    "offload",
    "tiling",
    "headroom",
    "host",
)
"""The words that a reader can ask about; each has a name and one line."""


def term_label(name: str) -> str:
    """How a page names one of `TERMS`."""
    return say(f"term-{name}")


def terms() -> list[tuple[str, str, str]]:
    """Each of `TERMS` with its name and what it means."""
    return [(name, term_label(name), say(f"about-{name}")) for name in TERMS]
