"""The Compose file of a server, and the audit of any Compose file: who could reach ComfyUI by it.

In: a `Server`; a file. Out: text; findings. ComfyUI has no login, and who reaches its port runs code on the machine:
the port is bound to loopback and nothing else. Behind a proxy too: then the proxy is what others reach, and it must ask
who they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from cardfit.comfy.server import Server
from cardfit.comfy.shown import shown
from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say
from cardfit.messages.said import Said
from cardfit.request.read import read_fields, read_text

SERVICE = "comfyui"
FILE, PROXY_FILE, PATHS_FILE = "compose.yaml", "proxy.yaml", "extra_model_paths.yaml"
MODELS, DATA, PATHS = "/cardfit/models", "/cardfit/data", "/cardfit/extra_model_paths.yaml"
IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._:/-]*@sha256:[0-9a-f]{64}")
# Folders below models/, as ComfyUI names them; clip and unet are the older names of two.
KINDS = (
    *("checkpoints", "diffusion_models", "text_encoders", "vae", "loras", "controlnet"),
    *("clip_vision", "style_models", "embeddings", "upscale_models", "latent_upscale_models"),
    *("vae_approx", "gligen", "hypernetworks", "photomaker", "model_patches", "audio_encoders"),
    *("unet", "clip"),
)
_LOOPBACK = ("127.", "::1", "[::1]")
# What asks who a visitor is: directives and labels of proxies, and images that do nothing else.
_AUTH_WORDS = (
    *("basic_auth", "basicauth", "forward_auth", "forwardauth", "auth_basic", "auth_request"),
    *("digestauth", "client_auth", "ssl_verify_client"),
)
_AUTH_IMAGES = ("oauth2-proxy", "authelia", "authentik", "pomerium", "vouch-proxy")


def compose_of(server: Server) -> dict[str, Any]:
    """The Compose file as a value; what Compose would take for a variable is written so that it does not."""
    start = [*server.start, "--listen", "0.0.0.0", "--port", str(server.port)]
    start += ["--extra-model-paths-config", PATHS, "--disable-auto-launch"]
    for kind in ("input", "output", "user", "temp"):
        start += [f"--{kind}-directory", f"{DATA}/{kind}"]
    device = {"driver": "nvidia", "capabilities": ["gpu"]}
    device |= {"count": "all"} if server.gpu is None else {"device_ids": [str(server.gpu)]}
    service: dict[str, Any] = {
        "image": server.image,
        "working_dir": server.root,
        "entrypoint": [*start, "--enable-manager"] if server.manager else start,
        "ports": [
            {
                "target": server.port,
                "published": str(server.port),
                "host_ip": "127.0.0.1",
                "protocol": "tcp",
            }
        ],
        "environment": {
            "NVIDIA_VISIBLE_DEVICES": "all" if server.gpu is None else str(server.gpu),
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility,video",
        },
        "volumes": [
            _bind(server.models, MODELS, read_only=True),
            _bind(f"./{PATHS_FILE}", PATHS, read_only=True),
            _bind("./data", DATA, read_only=False),
        ],
        "deploy": {"resources": {"reservations": {"devices": [device]}}},
        **({"ipc": "host"} if server.shm_bytes is None else {"shm_size": server.shm_bytes}),
        "security_opt": ["no-new-privileges:true"],
        "restart": "unless-stopped",
        "healthcheck": {
            "test": ["CMD", server.start[0], "-c", _health(server.port)],
            "interval": "30s",
            "timeout": "10s",
            "retries": 5,
            "start_period": "120s",
        },
    }
    behind = {"include": [PROXY_FILE]} if server.proxy is not None else {}
    value = {"name": "comfyui", **behind, "services": {SERVICE: service}}
    return {key: _plain(part) for key, part in value.items()}


def text_of(value: dict[str, Any], head: str) -> str:
    """``value`` as YAML below the comment ``head`` (the code of a sentence)."""
    lines = [f"# {line}" for line in say(head).splitlines()]
    body = yaml.safe_dump(value, sort_keys=False, width=120, allow_unicode=True)
    return "\n".join([*lines, body])


def model_paths(folders: Iterable[str], base: str) -> dict[str, Any]:
    """The value of ``extra_model_paths.yaml``: every folder below ``base`` that ComfyUI or a workflow knows."""
    known = dict.fromkeys((*KINDS, *(folder.partition("/")[0] for folder in folders)))
    return {"cardfit": {"base_path": f"{base}/", **{kind: f"{kind}/" for kind in known}}}


def load(path: Path) -> dict[str, Any]:
    """A Compose file as a value. Raises BadFile."""
    found, _ = read_fields(path)
    if not isinstance(found, dict) or not isinstance(found.get("services"), dict):
        raise BadFile("comfy-file-not-compose", path=shown(path))
    return found


def audit(compose: dict[str, Any], port: int) -> tuple[Said, ...]:
    """Why others could reach port ``port`` by this file; empty when they cannot."""
    found: list[Said] = []
    for name, service in compose["services"].items():
        if not isinstance(service, dict):
            continue
        at = {"service": shown(name)}
        if str(service.get("network_mode", "")) == "host":
            found.append(Said.of("comfy-host-network", **at))
        for host, published, target in _ports(service):
            ours = name == SERVICE or str(port) in (target, published)
            if ours and not host.startswith(_LOOPBACK):
                found.append(Said.of("comfy-port-open", published=shown(published), **at))
    return tuple(found)


def check_proxy(path: Path, port: int) -> str:
    """The proxy's Compose file as it is, when it asks for a login. Raises BadFile with what is missing."""
    compose = load(path)
    services = compose["services"]
    if SERVICE in services:
        raise BadFile("comfy-proxy-redefines", path=shown(path), service=SERVICE)
    if open_ports := audit(compose, port):
        raise BadFile("comfy-proxy-opens", path=shown(path), why=open_ports[0].text)
    if not any(list(_ports(each)) for each in services.values() if isinstance(each, dict)):
        raise BadFile("comfy-proxy-no-port", path=shown(path))
    said = " ".join(_texts([services, compose.get("configs")])).lower()
    images = [str(each.get("image")) for each in services.values() if isinstance(each, dict)]
    asks = any(re.search(rf"(?<![a-z_]){word}(?![a-z])", said) for word in _AUTH_WORDS)
    if not asks and not any(name in image for image in images for name in _AUTH_IMAGES):
        raise BadFile(
            "comfy-proxy-no-login",
            path=shown(path),
            allowed=", ".join(("basic_auth", "forward_auth", "auth_request", *_AUTH_IMAGES[:2])),
        )
    return read_text(path)


def check_image(image: str | None) -> str:
    """The image, pinned by its digest. Raises BadRequest for a tag alone."""
    if image is None:
        raise BadRequest("comfy-no-image")
    if not IMAGE.fullmatch(image):
        raise BadRequest("comfy-bad-image", asked=shown(image))
    return image


def _health(port: int) -> str:
    return (
        f"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/system_stats', timeout=8)"
    )


def _bind(source: str, target: str, *, read_only: bool) -> dict[str, Any]:
    mount = {"type": "bind", "source": source, "target": target}
    return {**mount, "read_only": True} if read_only else mount


def _plain(value: Any) -> Any:
    """``value`` with ``$`` doubled: Compose puts variables in place of single ones."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _ports(service: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """``(host address, published, target)`` of every port that a service publishes, both forms."""
    for port in service.get("ports") or ():
        if isinstance(port, dict):
            yield (
                str(port.get("host_ip") or ""),
                str(port.get("published", "")),
                str(port.get("target", "")),
            )
            continue
        before, _, target = str(port).partition("/")[0].rpartition(":")
        host, _, published = before.rpartition(":")
        yield host, published, target


def _texts(value: Any) -> Iterator[str]:
    """Every key and text in ``value``."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif value is not None:
        yield str(value)
