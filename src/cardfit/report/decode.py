"""Decodes of the same latents as a table, and as a page with the worst seam of each.

In: a `Decodes` and a `Style`, or a folder. Out: lines; `index.html` with a folder a setting beside it.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from cardfit.measure.decode import Decode, Decodes
from cardfit.media import pixels
from cardfit.messages import say
from cardfit.report import compare_page, dump
from cardfit.report.grid import Cell, Column, grid, hanging
from cardfit.report.run import OUTCOMES
from cardfit.report.style import Style
from cardfit.units import human_bytes, human_seconds

_INDENT = 10
Figures = list[tuple[str, str]]  # text, colour
_EMPTY: Figures = [("", "")] * 4


def lines(found: Decodes, style: Style) -> list[str]:
    """The whole page."""
    head = say("decode-head", _head(found))
    columns = [
        Column(title, right=bool(at), least=0 if at else 14) for at, title in enumerate(_titles())
    ]
    rows = [[Cell(*cell) for cell in _cells(row, style)] for row in found.rows]
    page = [style.paint(head, "bold"), "", *grid(columns, rows, style)]
    for row in found.rows:
        if row.why is not None:
            page += hanging(row.words, row.why.text, style.width, 26)
    return page


def notes(found: Decodes, style: Style) -> list[str]:
    """What should be said beside it: of the whole, then of each comparison, once."""
    said = dict.fromkeys(
        [
            *(note.text for note in found.notes),
            *(
                f"{words}: {note.text}"
                for words, each in found.comparisons.items()
                for note in each.notes
            ),
        ]
    )
    return [line for text in said for line in hanging(say("note"), text, style.width, _INDENT)]


def write(found: Decodes, folder: Path) -> Path:
    """Write the report and return the path of its page. Raises BadFile for a disk that cannot take it."""
    figures = []
    for number, (words, each) in enumerate(found.comparisons.items()):
        own = folder / f"{number:02}"
        compare_page.write(each, own)
        seam = own / compare_page.SEAM
        if seam.is_file():
            figures.append(compare_page.figure(seam, say("decode-worst-seam", {"words": words})))
    head, rows = _titles(), [_cells(row, None) for row in found.rows]
    table = [f"<tr>{''.join(f'<th>{escape(each)}</th>' for each in head)}</tr>"]
    table += [
        f"<tr>{''.join(compare_page.cell(text, colour) for text, colour in row)}</tr>"
        for row in rows
    ]
    said = [note.text for note in found.notes]
    page = folder / compare_page.PAGE
    text = compare_page.page(
        say("decode-title"), say("decode-head", _head(found)), "".join(table), said, figures
    )
    compare_page.made(folder)
    pixels.write_whole(folder / "decodes.json", dump.one(found).encode())
    pixels.write_whole(page, text.encode())
    return page


def _head(found: Decodes) -> dict[str, object]:
    return {"model": found.model, "latents": found.latents, "count": len(found.rows)}


def _titles() -> list[str]:
    codes = ("words", "psnr", "ssim", "flip", "seam", "edge")
    first, *scores = (say(f"decode-col-{code}") for code in codes)
    return [first, say("sweep-col-peak"), say("sweep-col-seconds"), *scores]


def _cells(row: Decode, style: Style | None) -> Figures:
    peak = "" if row.peak_bytes is None else human_bytes(row.peak_bytes)
    seconds = "" if row.seconds is None else human_seconds(row.seconds)
    return [(row.words, ""), (peak, ""), (seconds, ""), *_scores(row, style)]


def _scores(row: Decode, style: Style | None) -> Figures:
    if row.quality is None:
        if row.reference:
            return [(say("decode-is-reference"), "dim"), *_EMPTY]
        shape, code = OUTCOMES[row.outcome or "error"]
        sign = "" if style is None else f"{style.shape(shape)} "
        return [(f"{sign}{say(code)}", "red" if row.outcome != "ok" else "amber"), *_EMPTY]
    of = row.quality
    psnr = say("decode-identical") if of.psnr_db is None else f"{of.psnr_db:.2f}"
    return [
        (psnr, ""),
        (f"{of.ssim:.4f}", "red" if of.diverged else ""),
        ("" if of.flip is None else f"{of.flip:.4f}", ""),
        _score(of.seam_score, of.seam_found),
        _score(of.edge_score, of.edge_found),
    ]


def _score(value: float | None, found: bool) -> tuple[str, str]:
    return ("", "") if value is None else (f"{value:.1f}", "red" if found else "green")
