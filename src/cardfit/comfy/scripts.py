"""The scripts of a deployment: files of `data/`, with what was asked written into them.

In: a `Server`. Out: texts. What comes from a person or a file stands in an assignment at the head of a script, quoted;
lists stand in quoted here-documents and are read as data. Where a line ``#@name`` stands in a script, the part of that
name is put.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from cardfit.cards import codecs, load
from cardfit.comfy.server import Server
from cardfit.messages import say

_DATA = Path(__file__).with_name("data")
_PLACE = re.compile(r"#@(\w+)")
_PARTS = ("room", "fetch", "port")


def script(name: str, **parts: str) -> str:
    """The file ``name`` of `data/` with its parts in place. Raises KeyError for a part that nobody gave."""
    known = {part: (_DATA / f"{part}.sh").read_text(encoding="utf-8") for part in _PARTS} | parts
    lines = []
    for line in (_DATA / name).read_text(encoding="utf-8").splitlines():
        place = _PLACE.fullmatch(line)
        lines.append(known[place[1]].rstrip("\n") if place else line)
    return "\n".join(lines) + "\n"


def settings(**values: object) -> str:
    """Assignments for bash: texts and numbers quoted, tuples as arrays.

    >>> settings(models="/srv/it's", port=8188, start=("python", "main.py"))
    'models=\\'/srv/it\\'"\\'"\\'s\\'\\nport=8188\\nstart=(python main.py)'
    """
    lines = []
    for name, value in values.items():
        array = isinstance(value, tuple)
        text = f"({shlex.join(value)})" if array else shlex.quote(str(value))  # type: ignore[arg-type]
        lines.append(f"{name}={text}")
    return "\n".join(lines)


def download(server: Server) -> str:
    """``download.sh``."""
    return script("download.sh", settings=settings(models=server.models))


def check(server: Server, *, pod: bool) -> str:
    """``check.sh``."""
    values = settings(
        models=server.models,
        port=server.port,
        python=server.start[0],
        pod=int(pod),
        without_encoder=rf"\b({'|'.join(without_encoder())})\b",
    )
    return script("check.sh", settings=values)


def tunnel(server: Server) -> str:
    """``tunnel.sh``."""
    values = settings(
        server=server.ssh or "",
        ssh_port=server.ssh_port,
        local_port=server.local_port,
        port=server.port,
    )
    return script("tunnel.sh", settings=values)


def tunnel_powershell(server: Server) -> str:
    """``tunnel.ps1``."""
    ssh = (server.ssh or "").replace("'", "''")
    lines = [
        "param(",
        f"    [string]$Server = '{ssh}',",
        f"    [int]$SshPort = {server.ssh_port},",
        f"    [int]$LocalPort = {server.local_port}",
        ")",
        f"$Port = {server.port}",
    ]
    return script("tunnel.ps1", settings="\n".join(lines))


def tunnel_command(server: Server) -> str:
    """The tunnel as one line; it reads the same in bash and in PowerShell."""
    forward = f"127.0.0.1:{server.local_port}:127.0.0.1:{server.port}"
    target = server.ssh or say("comfy-tunnel-server")
    return f"ssh -N -L {forward} -p {server.ssh_port} {target}"


def copy_command(server: Server, folder: Path) -> str:
    """The line that brings the folder to the server."""
    target = server.ssh or say("comfy-tunnel-server")
    return f"scp -r -P {server.ssh_port} {shlex.quote(str(folder))} {target}:"


def without_encoder() -> tuple[str, ...]:
    """The words of nvidia-smi for cards that have no video encoder.

    >>> without_encoder()
    ('A100', 'A30', 'B200', 'B300', 'GH200', 'H100', 'H200')
    """
    names = [
        each.name.removeprefix("NVIDIA ").split()[0]
        for each in load().values()
        if codecs.supports(each, "nvenc", "h264") is False
    ]
    return tuple(sorted(set(names)))
