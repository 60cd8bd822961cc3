"""`Server`: how and where a ComfyUI is to run, checked field by field.

In: fields as flags or Python give them. Out: a frozen value, or a BadRequest that names the flag. Paths are those of
the server, so they are POSIX paths whatever this machine is.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict

from cardfit.comfy.shown import shown
from cardfit.errors import BadRequest
from cardfit.units import MIB, human_bytes

_SSH = re.compile(r"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9\[][A-Za-z0-9.:\]-]*")
_LEAST_SHM = 64 * MIB


class Server(BaseModel):
    """A server: its image and folders, how ComfyUI starts there, and how to get to it.

    ``gpu`` is a card's index (None: all), ``shm_bytes`` the shared memory (None: the host's), ``proxy`` the Compose
    file of a proxy with a login.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str | None = None
    models: str = "/srv/comfyui/models"
    root: str = "/ComfyUI"
    start: tuple[str, ...] = ("python", "main.py")
    port: int = 8188
    local_port: int = 8188
    ssh: str | None = None
    ssh_port: int = 22
    gpu: int | None = None
    shm_bytes: int | None = None
    manager: bool = False
    proxy: Path | None = None


def check(server: Server) -> Server:
    """``server`` when all of it can be written into files. Raises BadRequest naming the flag."""
    for flag, path in (("--models", server.models), ("--root", server.root)):
        parts = PurePosixPath(path).parts
        if not path.startswith("/") or ".." in parts or not path.isprintable() or len(parts) < 2:
            raise BadRequest("comfy-bad-path", flag=flag, asked=shown(path))
    ports = {
        "--port": server.port,
        "--local-port": server.local_port,
        "--ssh-port": server.ssh_port,
    }
    for flag, port in ports.items():
        if not 1 <= port <= 65535:
            raise BadRequest("comfy-bad-port", flag=flag, asked=port)
    if server.ssh is not None and not _SSH.fullmatch(server.ssh):
        raise BadRequest("comfy-bad-ssh", asked=shown(server.ssh))
    if server.gpu is not None and not 0 <= server.gpu <= 63:
        raise BadRequest("comfy-bad-gpu", asked=server.gpu)
    if server.shm_bytes is not None and server.shm_bytes < _LEAST_SHM:
        raise BadRequest("comfy-bad-shm", least=human_bytes(_LEAST_SHM))
    if not server.start or not all(word.isprintable() for word in server.start):
        raise BadRequest("comfy-bad-start", asked=shown(shlex.join(server.start)))
    return server


def words_of(text: str) -> tuple[str, ...]:
    """The words of a command as a shell reads them. Raises BadRequest."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BadRequest("comfy-bad-start", asked=shown(text)) from error
