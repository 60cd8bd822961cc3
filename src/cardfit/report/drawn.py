"""Put an altair chart into a file that opens without a network.

In: a chart and a path. Out: a PNG, an SVG, or an HTML page that holds everything it needs, by the file's ending.
altair and vl-convert come with the extra `web` and are imported here and in the charts only.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from cardfit.errors import MissingExtra
from cardfit.messages import language
from cardfit.report import fonts, out

ENDINGS = (".html", ".svg", ".png")
_PACKAGES = ("altair", "vl_convert")


def draw(make: Callable[[], Any], file: Path, missing_code: str) -> None:
    """Draw what ``make`` returns into ``file``. Raises MissingExtra with ``missing_code`` without the extra."""
    try:
        drawn = make()
        ending = file.suffix.lower()
        if ending == ".html":
            text = drawn.to_html(inline=True, fullhtml=True)
            file.write_text(text, encoding="utf-8")
            return
        convert: Any = import_module("vl_convert")
        spec = drawn.to_json(validate=False)
        if ending == ".svg":
            file.write_text(convert.vegalite_to_svg(spec), encoding="utf-8")
            return
        file.write_bytes(convert.vegalite_to_png(spec, scale=2))
        warn()
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        raise MissingExtra(missing_code, package=package) from missing


def warn() -> None:
    """Say on stderr where a PNG shows boxes for letters."""
    lacks = fonts.missing(language())
    if lacks is not None:
        out.error(lacks)
