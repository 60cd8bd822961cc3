"""`cardfit comfy check`: what can be seen from here of a server: its files, its tunnel, its public addresses.

In: a folder that `deploy` wrote, the tunnel's address, addresses by which others might reach the server. Out:
`Checked`, a list of findings. What only the server can see (driver, disk, encoder) is the job of the folder's
``check.sh``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.comfy import compose, http
from cardfit.comfy.shown import shown
from cardfit.errors import BadRequest, ServerFailed
from cardfit.messages.said import Said
from cardfit.units import human_bytes

SCHEMA = "cardfit.comfy-check/1"
Grade = Literal["good", "odd", "bad"]
_QUICK_S = 8.0
_MANAGER = ("/manager/version", "/v2/manager/version")


class Finding(BaseModel):
    """One thing that was looked at, and how it was found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grade: Grade
    what: Said


class Checked(BaseModel):
    """All findings, in the order in which they were made."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: str = Field(default=SCHEMA, alias="schema")
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is bad."""
        return all(each.grade != "bad" for each in self.findings)


def check(
    folder: Path | None = None,
    *,
    server: str | None = None,
    public: Sequence[str] = (),
    port: int = 8188,
) -> Checked:
    """Audit the Compose file of ``folder``, ask ``server`` through its tunnel, try the ``public`` addresses.

    ``port`` is ComfyUI's port on the server. Raises BadRequest when there is nothing to check, BadFile for a file that
    is no Compose file.
    """
    if folder is None and server is None and not public:
        raise BadRequest("comfy-check-what")
    found: list[Finding] = []
    if folder is not None:
        found += _folder(folder, port)
    if server is not None:
        found += _tunnel(http.address_of(server))
    for text in public:
        found.append(_public(text, port))
    return Checked(findings=tuple(found))


def _finding(grade: Grade, code: str, **args: object) -> Finding:
    return Finding(grade=grade, what=Said.of(code, **args))


def _folder(folder: Path, port: int) -> list[Finding]:
    path = folder / compose.FILE if folder.is_dir() else folder
    found = compose.load(path)
    at = {"path": shown(path)}
    reasons = [Finding(grade="bad", what=each) for each in compose.audit(found, port)]
    rows = reasons or [_finding("good", "comfy-check-closed", port=port, **at)]
    service = found["services"].get(compose.SERVICE)
    if isinstance(service, dict):
        image = str(service.get("image"))
        pinned = compose.IMAGE.fullmatch(image) is not None
        code = "comfy-check-pinned" if pinned else "comfy-check-not-pinned"
        rows.append(_finding("good" if pinned else "odd", code, image=shown(image)))
        if "--enable-manager" in str((service.get("entrypoint"), service.get("command"))):
            rows.append(_finding("odd", "comfy-manager-on"))
    return rows


def _tunnel(address: http.Address) -> list[Finding]:
    asked = address.url("")
    try:
        stats = http.get_json(address, "/system_stats", timeout_s=_QUICK_S)
    except ServerFailed as error:
        return [_finding("bad", "comfy-check-no-tunnel", server=asked, why=str(error))]
    rows = [_finding("good", "comfy-check-answers", server=asked, version=version_of(stats))]
    for name, total_bytes, free_bytes in devices_of(stats):
        args = {"total": human_bytes(total_bytes), "free": human_bytes(free_bytes)}
        rows.append(_finding("good", "comfy-check-device", name=name, **args))
    if any(_there(address, path) for path in _MANAGER):
        rows.append(_finding("odd", "comfy-manager-on"))
    return rows


def _there(address: http.Address, path: str) -> bool:
    try:
        http.read(address, path, http.MAX_JSON_BYTES, timeout_s=_QUICK_S)
    except ServerFailed:
        return False
    return True


def _public(text: str, port: int) -> Finding:
    """Whether ComfyUI answers at ``text``: a host, host:port or an address with http(s)."""
    whole = text if "://" in text else f"http://{text}" if ":" in text else f"http://{text}:{port}"
    address = http.address_of(whole, allow_remote=True)
    asked = address.url("")
    try:
        stats = http.get_json(address, "/system_stats", timeout_s=_QUICK_S)
    except http.Refused as error:
        return _finding("good", "comfy-check-refused", address=asked, status=error.status)
    except ServerFailed as error:
        return _finding("good", "comfy-check-nothing", address=asked, why=str(error))
    if isinstance(stats, dict) and "devices" in stats:
        return _finding("bad", "comfy-check-public", address=asked)
    return _finding("odd", "comfy-check-other", address=asked)


def version_of(stats: Any) -> str:
    """ComfyUI's version in ``/system_stats``; ``?`` where it says none."""
    system = stats.get("system") if isinstance(stats, dict) else None
    return shown(system.get("comfyui_version", "?") if isinstance(system, dict) else "?", 40)


def devices_of(stats: Any) -> list[tuple[str, int, int]]:
    """``(name, total bytes, free bytes)`` of every device in ``/system_stats``."""
    devices = stats.get("devices") if isinstance(stats, dict) else None
    found = []
    for each in devices if isinstance(devices, list) else ():
        if isinstance(each, dict):
            sizes = [number(each.get(key)) or 0 for key in ("vram_total", "vram_free")]
            found.append((shown(each.get("name", "?"), 80), sizes[0], sizes[1]))
    return found


def number(value: Any) -> int | None:
    """``value`` as whole bytes; None for anything that is no such number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**60:
        return None
    return int(value)
