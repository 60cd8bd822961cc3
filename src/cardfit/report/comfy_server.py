"""Pages of `cardfit comfy deploy`, `check` and `inventory`.

In: their values and a `Style`. Out: lines. Names from files and servers were made fit to show where they came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from cardfit.comfy.check import Checked, Grade
from cardfit.comfy.deploy import Deployment
from cardfit.comfy.downloads import Download
from cardfit.comfy.inventory import Inventory
from cardfit.messages import say
from cardfit.messages.said import Said
from cardfit.report.grid import Column, grid, hanging
from cardfit.report.style import Style
from cardfit.report.words import money
from cardfit.units import human_bytes, human_seconds

_MOST = 20  # rows of a table
_GRADES: dict[Grade, tuple[str, str]] = {
    "good": ("fits", "green"),
    "odd": ("price", "amber"),
    "bad": ("no", "red"),
}


def deployment(found: Deployment, style: Style) -> list[str]:
    """What was written, what will be downloaded, what to do next."""
    folder = found.folder
    head = say("comfy-wrote", {"count": len(found.files), "folder": folder})
    page = [style.paint(head, "bold"), ""]
    if found.downloads:
        columns = [
            Column(say("comfy-col-file"), least=24, cut=True),
            Column(say("comfy-col-size"), right=True),
            Column(say("comfy-col-sum")),
            Column(say("comfy-col-from"), least=12, cut=True),
        ]
        page += grid(columns, [_download(each) for each in found.downloads], style)
        args = {"size": human_bytes(found.known_bytes), "unknown": found.unknown_sizes}
        page.append("  " + say("comfy-total", {"count": len(found.downloads), **args}))
    else:
        page.append(say("comfy-no-models"))
    if found.copy_command is None:
        steps = [say("comfy-next-paste", {"folder": folder})]
    else:
        steps = [say("comfy-next-copy", {"command": found.copy_command}), say("comfy-next-server")]
    steps.append(say("comfy-next-tunnel", {"command": found.tunnel}))
    return [*page, "", *(f"{number}. {step}" for number, step in enumerate(steps, 1))]


def _download(each: Download) -> list[str]:
    size = "?" if each.size_bytes is None else human_bytes(each.size_bytes)
    host = say("comfy-by-hand") if each.url is None else urlsplit(each.url).hostname or ""
    return [each.path, size, say("comfy-sum-known") if each.sha256 else "", host]


def checked(found: Checked, style: Style) -> list[str]:
    """A line a finding, with its shape."""
    page = []
    for each in found.findings:
        shape, colour = _GRADES[each.grade]
        lines = hanging(style.shape(shape), each.what.text, style.width, 2)
        page += [style.paint(line, colour) for line in lines]
    return page


def inventory(found: Inventory, style: Style) -> list[str]:
    """Kinds, duplicates, what is unused and missing, and what a rebuild takes."""
    args = {"folder": found.folder, "count": len(found.files)}
    head = say("inventory-head", {**args, "size": human_bytes(found.total_bytes)})
    columns = [
        Column(say("comfy-col-kind"), least=12, cut=True),
        Column(say("comfy-col-count"), right=True),
        Column(say("comfy-col-size"), right=True),
    ]
    rows = [[each.kind, str(each.files), human_bytes(each.size_bytes)] for each in found.kinds]
    page = [style.paint(head, "bold"), "", *grid(columns, rows, style)]
    if found.same:
        page += ["", say("inventory-same", {"size": human_bytes(found.spare_bytes)})]
        page += _some([", ".join(each.paths) for each in found.same], style)
    if found.unused:
        sizes = {each.path: each.size_bytes for each in found.files}
        size = human_bytes(sum(sizes[path] for path in found.unused))
        page += ["", say("inventory-unused", {"size": size, "count": len(found.unused)})]
        page += _some(sorted(found.unused, key=lambda path: -sizes[path]), style)
    if found.missing:
        page += ["", say("inventory-missing", {"count": len(found.missing)})]
        page += _some([each.path for each in found.missing], style)
    return [
        *page,
        "",
        *hanging(say("inventory-rebuild"), style.dot.join(_rebuild(found)), style.width),
    ]


def _some(lines: Sequence[str], style: Style) -> list[str]:
    shown = [line for each in lines[:_MOST] for line in hanging("", each, style.width, 4)]
    return [*shown, "    ..."] if len(lines) > _MOST else shown


def _rebuild(found: Inventory) -> list[str]:
    rebuild = found.rebuild
    size = human_bytes(rebuild.size_bytes)
    parts = [say("inventory-rebuild-size", {"count": rebuild.files, "size": size})]
    if rebuild.seconds is not None:
        parts.append(say("inventory-rebuild-time", {"time": human_seconds(rebuild.seconds)}))
    if rebuild.cost is not None:
        parts.append(say("inventory-rebuild-cost", {"money": money(rebuild.cost)}))
    if rebuild.keep_month is not None:
        parts.append(say("inventory-rebuild-keep", {"money": money(rebuild.keep_month)}))
    return parts


def notes(said: Sequence[Said], style: Style) -> list[str]:
    """What has to be said beside a page."""
    return [line for each in said for line in hanging(say("note"), each.text, style.width)]
