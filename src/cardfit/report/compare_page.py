"""The report of `cardfit compare`: a page that needs nothing else, and its pictures as PNG files beside it.

In: a `Comparison` with its evidence, and a folder. Out: `index.html`, `comparison.json` and PNG files in it. The page
holds its pictures, loads nothing and runs no script.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from cardfit.errors import BadFile
from cardfit.media import pixels
from cardfit.media.pixels import Levels, Rgb
from cardfit.messages import say
from cardfit.quality.result import Comparison, Evidence
from cardfit.report import dump
from cardfit.report.compare import rows, strongest_seam

PAGE, SEAM = "index.html", "seam.png"
_SPOT_SIDE = 384  # pixels that a magnified spot is shown with
_SEAM_SIDE = 160  # pixels of the picture around a seam
_COLOURS = {"red": "#b00020", "green": "#1b6e2e", "dim": "#777"}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "th{text-align:left;padding-right:1.5rem;vertical-align:top;font-weight:600}img{max-width:100%;height:auto}"
    "td{padding-right:1.5rem}figure{margin:1.5rem 0}figcaption{color:#555}"
    "svg{width:100%;height:auto;border:1px solid #ccc}"
)


def check(folder: Path, force: bool) -> None:
    """Raise BadFile where ``folder`` is a file, or holds a page that may not be written over."""
    if folder.exists() and not folder.is_dir():
        raise BadFile("quality-report-exists", path=folder)
    if (folder / PAGE).exists() and not force:
        raise BadFile("quality-report-exists", path=folder)


def write(found: Comparison, folder: Path) -> Path:
    """Write the report and return the path of its page. Raises BadFile for a disk that cannot take it."""
    made(folder)
    figures = []
    for name, image, caption in _pictures(found):
        file = folder / f"{name}.png"
        pixels.write_png(file, image)
        figures.append(figure(file, caption))
    pixels.write_whole(folder / "comparison.json", dump.one(found).encode())
    file = folder / PAGE
    pixels.write_whole(file, _html(found, figures).encode())
    return file


def made(folder: Path) -> None:
    """Make ``folder``. Raises BadFile where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile("media-not-written", path=folder, why=error.strerror or "?") from None


def _pictures(found: Comparison) -> list[tuple[str, Levels | Rgb, str]]:
    shown, worst = found.evidence, found.worst
    if shown is None:
        return []
    frame = {"frame": worst.frame}
    pictures: list[tuple[str, Levels | Rgb, str]] = [
        ("reference", shown.reference, say("quality-caption-reference", frame)),
        ("candidate", shown.candidate, say("quality-caption-candidate", frame)),
        ("ssim", 255 * (1 - np.clip(shown.ssim, 0, 1)), say("quality-caption-ssim")),
    ]
    if shown.flip is not None:
        pictures.append(("flip", 255 * shown.flip, say("quality-caption-flip")))
    spot = say("quality-caption-spot", {"side": worst.side})
    pictures.append(("spot", _spot(shown, worst.x, worst.y, worst.side), spot))
    seam = strongest_seam(found)
    if seam is not None and seam.found:
        of = shown.mean if seam.of == "candidate" else shown.difference
        line, first, last = seam.worst
        middle = (first + last) // 2
        x, y = (line, middle) if seam.direction == "vertical" else (middle, line)
        pictures.append(("seam", _stretched(of, x, y), say("quality-caption-seam")))
    return pictures


def _spot(shown: Evidence, x: int, y: int, side: int) -> Rgb:
    """The worst square of both, magnified, side by side with a white line between them."""
    times = max(1, _SPOT_SIDE // side)
    parts = []
    for image in (shown.reference, shown.candidate):
        cut = pixels.bytes_of(image)[y : y + side, x : x + side]
        parts.append(cut.repeat(times, axis=0).repeat(times, axis=1))
    between = np.full((parts[0].shape[0], 6, 3), 255, np.uint8)
    return np.concatenate([parts[0], between, parts[1]], axis=1)


def _stretched(luma: Levels, x: int, y: int) -> Levels:
    """The surroundings of a place, magnified, with what varies widely taken out and the rest made strong."""
    half = _SEAM_SIDE // 2
    top = max(0, min(y - half, luma.shape[0] - _SEAM_SIDE))
    left = max(0, min(x - half, luma.shape[1] - _SEAM_SIDE))
    cut = luma[top : top + _SEAM_SIDE, left : left + _SEAM_SIDE]
    low, high = np.percentile(cut, (2, 98))
    found = (cut - low) * (255 / max(float(high - low), 4.0))
    magnified: Levels = found.repeat(3, axis=0).repeat(3, axis=1).astype(np.float32)
    return magnified


def figure(file: Path, caption: str) -> str:
    """The picture in ``file`` as a part of a page, which then needs no other file."""
    data = b64encode(file.read_bytes()).decode("ascii")
    text = escape(caption)
    return (
        f'<figure><img alt="{text}" src="data:image/png;base64,{data}">'
        f"<figcaption>{text}</figcaption></figure>"
    )


def _html(found: Comparison, figures: list[str]) -> str:
    one, other = found.reference, found.candidate
    title = say("quality-head", {"candidate": other.path, "reference": one.path})
    table = "".join(
        f"<tr><th>{escape(label)}</th>{cell(text, colour)}</tr>"
        for label, text, colour in rows(found)
    )
    said = [note.text for note in found.notes]
    return page(say("quality-title"), title, table, said, [_curve(found), *figures])


def cell(text: str, colour: str) -> str:
    """A cell of a table."""
    return f'<td style="color:{_COLOURS.get(colour, "inherit")}">{escape(text)}</td>'


def page(title: str, about: str, table: str, said: Sequence[str], figures: Sequence[str]) -> str:
    """A page that needs nothing else; ``table`` are rows and ``figures`` parts of HTML, the rest is text."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in said)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>{escape(about)}</p><table>{table}</table>"
        f"{f'<ul>{notes}</ul>' if notes else ''}{''.join(figures)}</body></html>\n"
    )


def _curve(found: Comparison) -> str:
    """SSIM over the frames as a line; chunk edges as thin lines."""
    values = [each.ssim for each in found.per_frame]
    if len(values) < 2:
        return ""
    low = min(values)
    room = max(1 - low, 1e-4)
    across = 1000 / (len(values) - 1)
    points = " ".join(
        f"{at * across:.1f},{5 + 90 * (1 - value) / room:.1f}" for at, value in enumerate(values)
    )
    marks = "".join(
        f'<line x1="{edge * across:.1f}" x2="{edge * across:.1f}" y1="0" y2="100" stroke="#ddd"/>'
        for edge in (found.edges.frames if found.edges else ())
    )
    caption = escape(say("quality-html-lowest"))
    return (
        f'<figure><svg viewBox="0 0 1000 100" role="img" aria-label="{caption}">{marks}'
        f'<polyline fill="none" stroke="#1565c0" stroke-width="2" points="{points}"/></svg>'
        f"<figcaption>{caption} ({low:.4f} - {max(values):.4f})</figcaption></figure>"
    )
