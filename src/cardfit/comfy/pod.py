"""The block for a host that gives a container and no machine: pasted once, it downloads and starts ComfyUI.

In: a `Server`, the list of downloads. Out: text for a terminal. ComfyUI listens on the container's loopback alone, so
that the address by which the host shows ports to the world finds nothing.
"""

from __future__ import annotations

import yaml

from cardfit.comfy.compose import model_paths
from cardfit.comfy.downloads import BETWEEN
from cardfit.comfy.scripts import script, settings
from cardfit.comfy.server import Server

ENDS = ("CARDFIT_POD", "CARDFIT_LIST", "CARDFIT_PATHS")


def inner(server: Server, table: str) -> str:
    """What the block runs; ``table`` is the text of ``models.txt``."""
    paths = f"{server.root}/cardfit_model_paths.yaml"
    start = (*server.start, "--listen", "127.0.0.1", "--port", str(server.port))
    start += ("--extra-model-paths-config", paths, "--disable-auto-launch")
    folders = [line.split(BETWEEN)[2] for line in table.splitlines() if not line.startswith("#")]
    return script(
        "pod_inner.sh",
        settings=settings(
            models=server.models,
            root=server.root,
            port=server.port,
            start=(*start, "--enable-manager") if server.manager else start,
        ),
        list=table,
        paths=yaml.safe_dump(model_paths(folders, server.models), sort_keys=False),
    )


def block(server: Server, table: str) -> str:
    """The whole block."""
    text = inner(server, table)
    assert ENDS[0] not in text.splitlines()
    return script("pod.sh", inner=text)
