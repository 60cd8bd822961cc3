"""`cardfit comfy deploy`: a folder of files that set up a ComfyUI which only its owner reaches.

In: workflows, a `Server`, a folder. Out: the files, and a `Deployment` that says what they hold. Nothing is started and
nothing is downloaded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from cardfit.comfy import compose, pod, scripts
from cardfit.comfy.downloads import Download, downloads, table
from cardfit.comfy.lists import wanted_in
from cardfit.comfy.server import Server, check
from cardfit.comfy.shown import shown
from cardfit.errors import BadFile, BadRequest
from cardfit.messages.said import Said
from cardfit.request.read import write_whole

SCHEMA = "cardfit.comfy-deployment/1"
LIST = "models.txt"


class Deployment(BaseModel):
    """What was written: the files, what ``download.sh`` will fetch, and the commands to go on with."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: str = Field(default=SCHEMA, alias="schema")
    folder: str
    files: tuple[str, ...]
    pod: bool
    port: int
    downloads: tuple[Download, ...]
    known_bytes: int = Field(description="sum of the sizes that are known")
    unknown_sizes: int = Field(description="files whose size nobody says")
    copy_command: str | None = Field(description="brings the folder to the server; None for a pod")
    tunnel: str = Field(description="command for your own machine, in bash and PowerShell alike")
    notes: tuple[Said, ...]


def deploy(
    workflows: Sequence[Path] = (),
    folder: Path = Path("comfyui-server"),
    server: Server | None = None,
    *,
    pod: bool = False,
    publish: bool = False,
    force: bool = False,
) -> Deployment:
    """Write the files for ``server`` and the models of ``workflows`` into ``folder``.

    ``pod``: one block to paste into a container instead of a Compose file. ``publish`` asks for a port that others
    reach, which is refused unless the server has a proxy with a login. Existing files are kept unless ``force``.
    Raises BadRequest and BadFile; what cannot be asked is found before anything is written, no file is half written.
    """
    given = check(server or Server())
    if publish and given.proxy is None:
        raise BadRequest("comfy-publish-refused", port=given.port)
    if pod and given.proxy is not None:
        raise BadRequest("comfy-pod-proxy")
    wanted = wanted_in(workflows)
    found, said = downloads(wanted.files)
    texts = _files(given, found, pod)
    _write(folder, texts, force)
    sizes = [each.size_bytes for each in found]
    return Deployment(
        folder=shown(folder),
        files=tuple(texts),
        pod=pod,
        port=given.port,
        downloads=found,
        known_bytes=sum(size for size in sizes if size is not None),
        unknown_sizes=sizes.count(None),
        copy_command=None if pod else scripts.copy_command(given, folder),
        tunnel=scripts.tunnel_command(given),
        notes=(*wanted.refused, *said, *_notes(given)),
    )


def _files(server: Server, found: tuple[Download, ...], as_pod: bool) -> dict[str, str]:
    """The files by name; those that are run come last."""
    rows = table(found)
    texts: dict[str, str] = {LIST: rows}
    if as_pod:
        texts["pod.sh"] = pod.block(server, rows)
    else:
        compose.check_image(server.image)
        if server.proxy is not None:
            texts[compose.PROXY_FILE] = compose.check_proxy(server.proxy, server.port)
        folders = [each.path for each in found]
        paths = compose.model_paths(folders, compose.MODELS)
        texts[compose.PATHS_FILE] = compose.text_of(paths, "comfy-paths-head")
        texts[compose.FILE] = compose.text_of(compose.compose_of(server), "comfy-compose-head")
        texts["download.sh"] = scripts.download(server)
    texts["check.sh"] = scripts.check(server, pod=as_pod)
    texts["tunnel.sh"] = scripts.tunnel(server)
    texts["tunnel.ps1"] = scripts.tunnel_powershell(server)
    return texts


def _write(folder: Path, texts: dict[str, str], force: bool) -> None:
    there = [name for name in texts if (folder / name).exists()]
    if there and not force:
        raise BadFile("comfy-files-exist", folder=shown(folder), files=", ".join(there))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(folder / name, text, force=True)
        (folder / name).chmod(0o755 if name.endswith(".sh") else 0o644)


def _notes(server: Server) -> list[Said]:
    found = []
    if server.manager:
        found.append(Said.of("comfy-manager-on"))
    if server.proxy is not None:
        found.append(Said.of("comfy-behind-proxy", file=compose.PROXY_FILE))
    return found
