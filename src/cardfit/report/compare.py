"""The page of `cardfit compare`: one line a metric, then seams, chunk edges and the worst spot.

In: a `Comparison` and a `Style`. Out: lines; the notes go to stderr.
"""

from __future__ import annotations

from cardfit.messages import say
from cardfit.quality import edges, seams
from cardfit.quality.edges import EdgeScore
from cardfit.quality.result import Comparison
from cardfit.quality.seams import SeamScore
from cardfit.report.grid import hanging
from cardfit.report.style import Style

_LABEL = 13


def lines(found: Comparison, style: Style) -> list[str]:
    """The page."""
    one, other = found.reference, found.candidate
    page = [say("quality-head", {"candidate": other.path, "reference": one.path})]
    args = {"size": f"{one.width}x{one.height}", "frames": found.frames}
    page += [say("quality-what", args).replace(" · ", style.dot), ""]
    for label, text, colour in rows(found):
        wrapped = hanging(label, text, style.width, _LABEL)
        page += [style.paint(line, colour) for line in wrapped]
    return page


def notes(found: Comparison, style: Style) -> list[str]:
    """What should be said beside it."""
    return [
        line
        for note in found.notes
        for line in hanging(say("note"), note.text, style.width, _LABEL)
    ]


def rows(found: Comparison) -> list[tuple[str, str, str]]:
    """Label, text and colour of every figure, in the order of the page."""
    totals, drift, worst = found.totals, found.drift, found.worst
    if totals.psnr_db is None:
        psnr = say("quality-identical")
    else:
        psnr = say("quality-psnr", {"value": totals.psnr_db})
    ssim = say("quality-ssim", {"value": totals.ssim, "lowest": totals.ssim_lowest})
    page = [(say("quality-row-psnr"), psnr, ""), (say("quality-row-ssim"), ssim, "")]
    flip = totals.flip if totals.flip is not None else worst.flip
    if flip is not None:
        page.append((say("quality-row-flip"), say("quality-plain", {"value": flip}), ""))
    if totals.xpsnr_db is not None:
        text = say("quality-psnr", {"value": totals.xpsnr_db})
        page.append((say("quality-row-xpsnr"), text, ""))
    if totals.vif is not None:
        page.append((say("quality-row-vif"), say("quality-plain", {"value": totals.vif}), ""))
    if drift.composition is not None:
        code = "quality-composition-diverged" if drift.diverged else "quality-composition"
        text = say(code, {"value": drift.composition})
        page.append((say("quality-row-composition"), text, "red" if drift.diverged else ""))
    if drift.fine_energy_ratio is not None:
        text = say("quality-fine", {"percent": 100 * drift.fine_energy_ratio})
        page.append((say("quality-row-fine"), text, ""))
    page += [_seams(found), _edges(found)]
    if found.flicker is not None:
        text = say("quality-flicker", {"percent": 100 * found.flicker})
        page.append((say("quality-row-flicker"), text, ""))
    where: dict[str, object] = {
        "frame": worst.frame,
        "ssim": worst.ssim,
        "x": worst.x,
        "y": worst.y,
    }
    return [*page, (say("quality-row-worst"), say("quality-worst", where), "")]


def strongest_seam(found: Comparison) -> SeamScore | None:
    """The seam to show: the highest of those found, else the highest of all; None without a grid."""
    scores = found.seams.scores if found.seams else ()
    return max(scores, key=lambda each: (each.found, each.score), default=None)


def _seams(found: Comparison) -> tuple[str, str, str]:
    label, best = say("quality-row-seams"), strongest_seam(found)
    if found.seams is None or best is None:
        return label, say("quality-not-known"), "dim"
    if not best.found:
        count = len(found.seams.columns) + len(found.seams.rows)
        args: dict[str, object] = {"lines": count, "score": best.score, "limit": seams.FOUND_SCORE}
        return label, say("quality-seam-none", args), "green"
    line, first, last = best.worst
    code = "quality-seam-column" if best.direction == "vertical" else "quality-seam-row"
    place = say(code, {"line": line, "first": first, "last": last})
    step = max(each.step_levels for each in found.seams.scores if each.found)
    args = {"place": place, "step": step, "score": best.score}
    return label, say("quality-seam-found", args), "red"


def _edges(found: Comparison) -> tuple[str, str, str]:
    label, scores = say("quality-row-edges"), found.edges.scores if found.edges else ()
    best: EdgeScore | None = max(scores, key=lambda each: (each.found, each.score), default=None)
    if best is None:
        return label, say("quality-not-known"), "dim"
    args: dict[str, object] = {"edges": best.edges, "score": best.score, "limit": edges.FOUND_SCORE}
    if not best.found:
        return label, say("quality-edge-none", args), "green"
    args |= {"frame": best.frame, "percent": 100 * best.size, "found": best.edges_found}
    code = "quality-edge-brightness" if best.look == "brightness" else "quality-edge-jump"
    return label, say(code, args), "red"
