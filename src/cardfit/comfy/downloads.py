"""What to download for workflows, and the list that the scripts read.

In: `WantedFile` values. Out: `Download` values and ``models.txt``: ``size|sha256|path|address``, ``-`` where one is not
known. The scripts read it as data, so no name in it is ever a part of a command. Only https addresses of named hosts
are taken. Where a safetensors stands beside a pickle of the same name, the pickle is left out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from cardfit.comfy.shown import shown
from cardfit.comfy.wanted import WantedFile, safe_parts
from cardfit.messages import say
from cardfit.messages.said import Said

PICKLES = (".ckpt", ".pt", ".pth", ".bin", ".pkl")
MAX_PATH = 200
BETWEEN = "|"  # no tab: a terminal into which a list is pasted would take it for a key
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_URL_SIGNS = "/%:@$&'()*+,;=~-._?"


class Download(BaseModel):
    """One file of the list; ``path`` is below the models folder. ``pickle``: it can run code when it is loaded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    url: str | None = Field(description="None: to be put there by hand")
    size_bytes: int | None
    sha256: str | None
    pickle: bool
    node: str


def downloads(files: Iterable[WantedFile]) -> tuple[tuple[Download, ...], tuple[Said, ...]]:
    """The list for ``files``, by path, and what has to be said about some of them."""
    found: dict[str, Download] = {}
    said: list[Said] = []
    for file in files:
        path = below_models(file.folder, file.name)
        if path is None:
            name = shown(f"{file.folder}/{file.name}")
            said.append(Said.of("comfy-model-outside", node=shown(file.node), name=name))
            continue
        url = None if file.url is None else safe_url(file.url)
        if file.url is not None and url is None:
            said.append(Said.of("comfy-bad-url", path=path, url=shown(file.url)))
        found.setdefault(
            path,
            Download(
                path=path,
                url=url,
                size_bytes=file.size_bytes,
                sha256=_sha256(file.sha256),
                pickle=path.lower().endswith(PICKLES),
                node=shown(file.node),
            ),
        )
    kept = _without_doubles(found, said)
    said += [Said.of("comfy-pickle", path=each.path) for each in kept if each.pickle]
    return kept, tuple(said)


def below_models(folder: str, name: str) -> str | None:
    """The path of a file below the models folder; None when it would leave it or steers a terminal.

    >>> below_models("loras", "wan\\\\high.safetensors"), below_models("loras", "../../.ssh/authorized_keys")
    ('loras/wan/high.safetensors', None)
    """
    parts = (safe_parts(folder), safe_parts(name))
    if parts[0] is None or parts[1] is None:
        return None
    path = "/".join((*parts[0], *parts[1]))
    plain = path.isprintable() and BETWEEN not in path and len(path.encode()) <= MAX_PATH
    return path if plain else None


def safe_url(text: str) -> str | None:
    """``text`` as an https address of a named host, blanks and other signs written as percents; else None.

    >>> safe_url("https://huggingface.co/a/b/resolve/main/x y.safetensors")
    'https://huggingface.co/a/b/resolve/main/x%20y.safetensors'
    >>> safe_url("http://a.org/x"), safe_url("https://user:word@a.org/x"), safe_url("https://169.254.169.254/x")
    (None, None, None)
    """
    try:
        parts = urlsplit(text.strip())
        host, port, named = parts.hostname or "", parts.port, parts.username or parts.password
    except ValueError:
        return None
    if parts.scheme != "https" or named is not None or port not in (None, 443):
        return None
    if "." not in host or not _HOST.fullmatch(host) or _is_address(host):
        return None
    if any(not sign.isprintable() for sign in text):
        return None
    query = f"?{quote(parts.query, safe=_URL_SIGNS)}" if parts.query else ""
    return f"https://{host}{quote(parts.path, safe=_URL_SIGNS)}{query}"


def table(files: Sequence[Download]) -> str:
    """``models.txt``."""
    head = [f"# {line}" for line in say("comfy-list-head").splitlines()]
    rows = [
        BETWEEN.join((str(each.size_bytes or "-"), each.sha256 or "-", each.path, each.url or "-"))
        for each in files
    ]
    return "\n".join([*head, *rows]) + "\n"


def _without_doubles(found: dict[str, Download], said: list[Said]) -> tuple[Download, ...]:
    """The files without pickles that have a safetensors beside them."""
    safe = {PurePosixPath(path).with_suffix("") for path in found if path.endswith(".safetensors")}
    kept = []
    for path, each in sorted(found.items()):
        if each.pickle and PurePosixPath(path).with_suffix("") in safe:
            said.append(Said.of("comfy-pickle-left-out", path=path))
        else:
            kept.append(each)
    return tuple(kept)


def _sha256(text: str | None) -> str | None:
    plain = (text or "").lower()
    return plain if _SHA256.fullmatch(plain) else None


def _is_address(host: str) -> bool:
    """Whether ``host`` is a number, in any of the ways that programs read one."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.rpartition(".")[2].startswith(tuple("0123456789"))
    return True
