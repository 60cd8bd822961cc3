"""A probed machine as a page, what is less than listed first.

In: a `Probe` and a `Style`. Out: lines.
"""

from __future__ import annotations

from cardfit.measure.probe import Probe, ProbedCard
from cardfit.messages import say
from cardfit.report.grid import hanging
from cardfit.report.style import Style
from cardfit.units import human_bytes

_INDENT = 11


def lines(found: Probe, style: Style) -> list[str]:
    """The whole page."""
    page = _against(found, style)
    for card in found.cards:
        page += _labelled("probe-label-card", style.dot.join(_card(card)), style)
    machine = found.machine
    host = [
        *([] if machine.processor is None else [machine.processor]),
        say("probe-cores", {"count": machine.cores}),
        *_sized("probe-ram", machine.ram_bytes),
        *_sized("probe-limit", machine.ram_limit_bytes),
    ]
    page += _labelled("probe-label-host", style.dot.join(host), style)
    disk = [
        *_sized("probe-disk-free", machine.disk_free_bytes),
        *_sized("probe-disk-write", found.disk_write_bytes_per_s),
        *_sized("probe-disk-read", found.disk_read_bytes_per_s),
    ]
    page += _labelled("probe-label-disk", style.dot.join(disk), style)
    page += _labelled("probe-label-container", style.dot.join(_container(found)), style)
    for why in found.silent.values():
        page += _labelled("note", why.text, style)
    return page


def _against(found: Probe, style: Style) -> list[str]:
    if not found.against:
        return []
    if not found.less:
        count = {"count": len(found.against)}
        return [*_labelled("probe-label-listed", say("probe-as-listed", count), style), ""]
    page = [style.paint(say("probe-send-back", {"count": len(found.less)}), "red")]
    for finding in found.less:
        page += hanging(f"  {style.shape('no')}", finding.text.text, style.width, 4)
    return [*page, ""]


def _card(card: ProbedCard) -> list[str]:
    parts = [card.name, human_bytes(card.memory_bytes)]
    parts.append(say("probe-used", {"size": human_bytes(card.used_bytes)}))
    if card.tenants:
        parts.append(say("probe-tenants", {"count": card.tenants}))
    link = card.link
    if link.gen is not None and link.lanes is not None:
        parts.append(say("probe-link", {"gen": link.gen, "lanes": link.lanes}))
    parts += _sized("probe-link-rate", link.pinned_bytes_per_s)
    return parts


def _container(found: Probe) -> list[str]:
    inside = found.container
    parts = _sized("probe-shared", inside.shared_memory_bytes)
    parts += _sized("probe-locked", inside.locked_memory_bytes)
    if inside.driver_capabilities is not None:
        parts.append(say("probe-capabilities", {"names": inside.driver_capabilities}))
        if inside.video is False:
            parts.append(say("probe-no-video"))
    return parts or [say("probe-nothing-said")]


def _sized(code: str, value: float | None) -> list[str]:
    return [] if value is None else [say(code, {"size": human_bytes(value)})]


def _labelled(code: str, text: str, style: Style) -> list[str]:
    return hanging(say(code), text, style.width, _INDENT)
