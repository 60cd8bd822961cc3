"""The commands `comfy deploy`, `comfy check`, `comfy inventory` and `comfy record`.

In: flags. Out: an exit code. A docstring here is the help that a person reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from cardfit.cli.quotes import money
from cardfit.errors import BadRequest
from cardfit.messages import say
from cardfit.units import parse_bytes, parse_rate

_DONE, _DID_NOT = 0, 1
Json = Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())]


def _flag(code: str, *names: str) -> Any:
    return Parameter(name=names or None, help=say(code), negative=(), show_default=False)


def deploy(
    *workflows: Annotated[Path, Parameter(help=say("help-comfy-workflows"))],
    folder: Annotated[Path, Parameter(name=("--out", "-o"), help=say("help-comfy-out"))] = Path(
        "comfyui-server"
    ),
    image: Annotated[str | None, Parameter(help=say("help-comfy-image"))] = None,
    models: Annotated[str, Parameter(help=say("help-comfy-models"))] = "/srv/comfyui/models",
    root: Annotated[str, Parameter(help=say("help-comfy-root"))] = "/ComfyUI",
    start: Annotated[str, Parameter(help=say("help-comfy-start"))] = "python main.py",
    port: Annotated[int, Parameter(help=say("help-comfy-port"))] = 8188,
    local_port: Annotated[int, Parameter(help=say("help-comfy-local-port"))] = 8188,
    ssh: Annotated[str | None, Parameter(help=say("help-comfy-ssh"))] = None,
    ssh_port: Annotated[int, Parameter(help=say("help-comfy-ssh-port"))] = 22,
    gpu: Annotated[int | None, Parameter(help=say("help-comfy-gpu"))] = None,
    shm: Annotated[str | None, Parameter(help=say("help-comfy-shm"))] = None,
    manager: Annotated[bool, _flag("help-comfy-manager")] = False,
    pod: Annotated[bool, _flag("help-comfy-pod")] = False,
    publish: Annotated[bool, _flag("help-comfy-publish")] = False,
    behind_proxy: Annotated[Path | None, Parameter(help=say("help-comfy-proxy"))] = None,
    force: Annotated[bool, _flag("help-force")] = False,
    json: Json = False,
) -> int:
    """Write what sets up a ComfyUI that only you reach: Compose file, downloads, tunnel, checks.

    Try:

    cardfit comfy deploy wan.json --image name/comfyui@sha256:... --models /mnt/nvme/models --ssh root@203.0.113.7

    cardfit comfy deploy wan.json --pod --root /workspace/ComfyUI --models /workspace/models -o pod
    """
    from cardfit.comfy import deploy as room
    from cardfit.comfy.server import Server, words_of
    from cardfit.report import comfy_server as page
    from cardfit.report import dump, out

    server = Server(
        image=image,
        models=models,
        root=root,
        start=words_of(start),
        port=port,
        local_port=local_port,
        ssh=ssh,
        ssh_port=ssh_port,
        gpu=gpu,
        shm_bytes=None if shm is None else round(_sized("--shm", shm, parse_bytes, "8GB")),
        manager=manager,
        proxy=behind_proxy,
    )
    found = room.deploy(workflows, folder, server, pod=pod, publish=publish, force=force)
    style = out.style_of()
    out.write(dump.one(found) if json else page.deployment(found, style))
    if not json:
        out.remarks(page.notes(found.notes, style))
    return _DONE


def check(
    folder: Annotated[Path | None, Parameter(help=say("help-comfy-folder"))] = None,
    /,
    *,
    server: Annotated[str | None, Parameter(help=say("help-comfy-server"))] = None,
    public: Annotated[list[str] | None, _flag("help-comfy-public")] = None,
    port: Annotated[int, Parameter(help=say("help-comfy-port"))] = 8188,
    json: Json = False,
) -> int:
    """Check a server from here: its Compose file, its tunnel, that nobody else reaches it; exit 1 for what is bad.

    Driver, disk and encoder are checked by check.sh of the folder, on the server.

    Try:

    cardfit comfy check server --server http://127.0.0.1:8188 --public 203.0.113.7
    """
    from cardfit.comfy import check as room
    from cardfit.report import comfy_server as page
    from cardfit.report import dump, out

    found = room.check(folder, server=server, public=public or (), port=port)
    out.write(dump.one(found) if json else page.checked(found, out.style_of()))
    return _DONE if found.ok else _DID_NOT


def inventory(
    folder: Annotated[Path, Parameter(help=say("help-comfy-dir"))],
    /,
    *,
    workflow: Annotated[list[Path] | None, _flag("help-comfy-against")] = None,
    down: Annotated[str | None, Parameter(help=say("help-comfy-down"))] = None,
    hourly: Annotated[str | None, Parameter(help=say("help-comfy-hourly"))] = None,
    disk: Annotated[str | None, Parameter(help=say("help-comfy-disk"))] = None,
    json: Json = False,
) -> int:
    """What lies in a models folder: kinds, duplicates, what no workflow wants, what a rebuild downloads and costs.

    Try:

    cardfit comfy inventory models --workflow wan.json --workflow flux.json --down 500Mbit --hourly 0.45 --disk 0.07

    cardfit comfy inventory models --json > library.json

    cardfit rent --monthly 286 --hourly 0.45 --disk 0.07 --library library.json
    """
    from cardfit.comfy import inventory as room
    from cardfit.plan.answer import Money
    from cardfit.report import comfy_server as page
    from cardfit.report import dump, out

    rate = None if down is None else _sized("--down", down, parse_rate, "500Mbit")

    def price(flag: str, text: str | None) -> Money | None:
        if text is None:
            return None
        amount, currency = money(flag, text)
        return Money(amount=amount, currency=currency or "USD")

    with out.progress(quiet=json) as progress:
        found = room.inventory(
            folder,
            workflow or (),
            down_bytes_per_s=rate,
            hourly=price("--hourly", hourly),
            disk_per_gb_month=price("--disk", disk),
            progress=progress,
        )
    style = out.style_of()
    out.write(dump.one(found) if json else page.inventory(found, style))
    if not json:
        out.remarks(page.notes(found.notes, style))
    return _DONE


def record(
    workflow: Annotated[Path, Parameter(help=say("help-comfy-api-file"))],
    /,
    *,
    server: Annotated[str, Parameter(help=say("help-comfy-server"))] = "http://127.0.0.1:8188",
    allow_remote: Annotated[bool, _flag("help-comfy-remote")] = False,
    here: Annotated[int | None, Parameter(help=say("help-comfy-here"))] = None,
    timeout: Annotated[float | None, Parameter(help=say("help-comfy-timeout"))] = None,
    store: Annotated[str | None, Parameter(help=say("help-store"))] = None,
    json: Json = False,
) -> int:
    """Run one prompt on a ComfyUI server and keep what was seen: seconds of each node, memory, versions, outputs.

    Try:

    cardfit comfy record wan-api.json --server http://127.0.0.1:8188

    cardfit records list --last 1
    """
    from cardfit.cli.run import show
    from cardfit.comfy import recording as room
    from cardfit.report import out

    with out.progress(quiet=json) as progress:
        found = room.record(
            workflow,
            server,
            allow_remote=allow_remote,
            here=here,
            timeout_s=timeout,
            store=store,
            tell=progress,
        )
    return show(found, json)


def _sized(flag: str, text: str, parse: Callable[[str], float], example: str) -> float:
    try:
        found = parse(text)
    except ValueError:
        found = 0.0
    if found <= 0:
        raise BadRequest("comfy-bad-size", flag=flag, asked=text, example=example)
    return found
