"""`cardfit comfy deploy`: files that only their owner can reach a server by, whatever a workflow calls its models."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cardfit.cli.main import run
from cardfit.comfy import compose, pod, scripts
from cardfit.comfy.deploy import deploy
from cardfit.comfy.downloads import BETWEEN, below_models, downloads, safe_url, table
from cardfit.comfy.server import Server, check, words_of
from cardfit.comfy.wanted import WantedFile
from cardfit.errors import BadFile, BadRequest

DATA = Path(__file__).with_name("data")
IMAGE = "ghcr.io/someone/comfyui:v1@sha256:" + "a" * 64
HOSTILE = '/srv/it\'s $(touch owned) `id` "x" & | ; ${HOME} !!'
SHELLCHECK = shutil.which("shellcheck")


def workflow(path, *models, mode=0):
    """A workflow of the editor whose one loader lists ``models``: (name, directory, url)."""
    entries = [{"name": n, "directory": d, "url": u} for n, d, u in models]
    node = {"id": 1, "type": "UNETLoader", "mode": mode, "properties": {"models": entries}}
    path.write_text(json.dumps({"version": 0.4, "nodes": [node], "links": []}))
    return path


@pytest.fixture
def one(tmp_path):
    url = "https://huggingface.co/a/b/resolve/main/high.safetensors"
    return workflow(tmp_path / "wan.json", ("wan/high.safetensors", "diffusion_models", url))


def valid(value):
    content = (DATA / "compose-spec.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() in (DATA / "README.md").read_text()
    schema = json.loads(content)
    jsonschema.validators.validator_for(schema)(schema).validate(value)


def composed(folder):
    found = yaml.safe_load((folder / "compose.yaml").read_text())
    valid(found)
    return found


# --- the Compose file


def test_the_compose_file_is_one_and_binds_loopback_alone(one, tmp_path):
    found = deploy([one], tmp_path / "server", Server(image=IMAGE, models="/mnt/nvme/models"))
    service = composed(tmp_path / "server")["services"]["comfyui"]
    assert service["image"] == IMAGE and service["restart"] == "unless-stopped"
    assert [port["host_ip"] for port in service["ports"]] == ["127.0.0.1"]
    assert service["environment"]["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility,video"
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert service["ipc"] == "host" and "shm_size" not in service
    assert service["volumes"][0]["source"] == "/mnt/nvme/models"
    assert "--enable-manager" not in service["entrypoint"]
    assert found.files == tuple(sorted(found.files, key=found.files.index))
    assert [each.path for each in found.downloads] == ["diffusion_models/wan/high.safetensors"]
    assert compose.audit(compose.load(tmp_path / "server" / "compose.yaml"), 8188) == ()


def test_other_settings_reach_the_file(tmp_path):
    server = Server(
        image=IMAGE,
        gpu=1,
        shm_bytes=8 * 10**9,
        port=9000,
        manager=True,
        root="/opt/ComfyUI",
        start=words_of("/venv/bin/python 'main.py'"),
    )
    found = deploy([], tmp_path / "s", server)
    service = composed(tmp_path / "s")["services"]["comfyui"]
    assert service["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] == ["1"]
    assert service["shm_size"] == 8 * 10**9 and "ipc" not in service
    assert service["entrypoint"][:2] == ["/venv/bin/python", "main.py"]
    assert service["entrypoint"][-1] == "--enable-manager"
    assert service["ports"][0]["target"] == 9000 and service["working_dir"] == "/opt/ComfyUI"
    assert "comfy-manager-on" in {note.code for note in found.notes}


def test_a_hostile_path_stays_a_path(tmp_path):
    deploy([], tmp_path / "s", check(Server(image=IMAGE, models=HOSTILE)))
    service = composed(tmp_path / "s")["services"]["comfyui"]
    # Compose turns $$ back into $ and puts no variable there
    assert service["volumes"][0]["source"].replace("$$", "$") == HOSTILE
    assert not re.search(r"(?<!\$)\$(?!\$)", service["volumes"][0]["source"])
    head = (tmp_path / "s" / "download.sh").read_text().split("here=")[0]
    said = subprocess.run(
        ["bash", "-c", f'{head}\nprintf %s "$models"'],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert said.stdout.decode() == HOSTILE and not (tmp_path / "owned").exists()


def _compose_command():
    docker = shutil.which("docker")
    if docker is None:
        return None
    known = subprocess.run([docker, "compose", "version"], capture_output=True)
    return [docker, "compose"] if known.returncode == 0 else None


@pytest.mark.skipif(_compose_command() is None, reason="docker compose is not installed")
def test_docker_compose_reads_it(one, tmp_path):
    deploy([one], tmp_path / "s", Server(image=IMAGE))
    subprocess.run([*_compose_command(), "config", "--quiet"], cwd=tmp_path / "s", check=True)


def test_the_model_paths_name_every_folder(tmp_path):
    path = workflow(tmp_path / "w.json", ("x.safetensors", "geometry_estimation", None))
    deploy([path], tmp_path / "s", Server(image=IMAGE))
    found = yaml.safe_load((tmp_path / "s" / "extra_model_paths.yaml").read_text())["cardfit"]
    assert found["base_path"] == "/cardfit/models/"
    assert found["geometry_estimation"] == "geometry_estimation/" and found["loras"] == "loras/"


# --- what is refused


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (Server(), "name the image with --image"),
        (Server(image="me/comfyui:latest"), "pin it by its digest"),
        (Server(image="me/comfyui@sha256:abc"), "pin it by its digest"),
        (Server(image=IMAGE, models="models"), "--models models: give a whole path"),
        (Server(image=IMAGE, models="/srv/../etc"), "give a whole path"),
        (Server(image=IMAGE, models="/srv/a\nb"), "give a whole path"),
        (Server(image=IMAGE, root="/"), "--root /"),
        (Server(image=IMAGE, port=0), "--port 0"),
        (Server(image=IMAGE, ssh_port=70000), "--ssh-port 70000"),
        (Server(image=IMAGE, ssh="-oProxyCommand=id"), "--ssh -oProxyCommand=id"),
        (Server(image=IMAGE, ssh="a b"), "--ssh a b"),
        (Server(image=IMAGE, ssh="$(id)@x"), "--ssh"),
        (Server(image=IMAGE, gpu=-1), "--gpu -1"),
        (Server(image=IMAGE, shm_bytes=5), "--shm: give at least"),
        (Server(image=IMAGE, start=()), "--start"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(tmp_path, server, words):
    with pytest.raises(BadRequest, match=re.escape(words)):
        deploy([], tmp_path / "s", server)
    assert not (tmp_path / "s").exists()


def test_publishing_is_refused_with_the_reason(tmp_path):
    with pytest.raises(BadRequest, match=r"no login.*tunnel\.sh.*--behind-proxy"):
        deploy([], tmp_path / "s", Server(image=IMAGE), publish=True)


PROXY = """
services:
  caddy:
    image: caddy:2
    ports: ["443:443"]
    configs: [{source: caddy, target: /etc/caddy/Caddyfile}]
configs:
  caddy:
    content: |
      example.org {
        basic_auth { me $2a$14$abc }
        reverse_proxy comfyui:8188
      }
"""


@pytest.mark.parametrize(
    "text",
    [
        PROXY,
        "services: {auth: {image: 'quay.io/oauth2-proxy/oauth2-proxy:v7', ports: ['443:4180']}}",
        "services: {t: {image: traefik, ports: ['443:443'],"
        " labels: ['traefik.http.middlewares.a.basicauth.users=me:x']}}",
    ],
)
def test_a_proxy_with_a_login_is_taken_and_comfyui_stays_on_loopback(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    server = Server(image=IMAGE, proxy=tmp_path / "mine.yaml")
    deploy([], tmp_path / "s", server, publish=True)
    found = composed(tmp_path / "s")
    assert found["include"] == ["proxy.yaml"]
    assert found["services"]["comfyui"]["ports"][0]["host_ip"] == "127.0.0.1"
    assert (tmp_path / "s" / "proxy.yaml").read_text() == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PROXY.replace("basic_auth", "# basic"), "nothing in it asks for a login"),
        (PROXY.replace("basic_auth", "no_basic_auth_x"), "nothing in it asks for a login"),
        (PROXY.replace('ports: ["443:443"]', ""), "publishes no port"),
        (PROXY.replace("443:443", "8188:8188"), "publishes port 8188 on more than loopback"),
        (PROXY.replace("ports:", "network_mode: host\n    ports:"), "shares the network"),
        (
            PROXY.replace("  caddy:\n    image", "  comfyui:\n    image"),
            "service comfyui of its own",
        ),
        ("services: [1]", "not a Compose file"),
        ("a: *b", "not YAML"),
        ("!!python/object/apply:os.system ['id']", "is refused"),
        ("[" * 5000, "nested deeper"),
    ],
)
def test_a_proxy_without_one_is_not(tmp_path, text, words):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(BadFile, match=words):
        deploy([], tmp_path / "s", Server(image=IMAGE, proxy=tmp_path / "mine.yaml"), publish=True)
    assert not (tmp_path / "s").exists()


def test_endless_aliases_end(tmp_path):
    levels = "\n".join(f"x{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))
    (tmp_path / "b.yaml").write_text(
        f"x0: &a0 [x]\n{levels}\nservices: {{p: {{image: x, ports: ['1:1'], labels: *a8}}}}"
    )
    with pytest.raises(BadFile, match="unfold"):
        compose.check_proxy(tmp_path / "b.yaml", 8188)


@pytest.mark.parametrize(
    ("ports", "closed"),
    [
        (["127.0.0.1:8188:8188"], True),
        (["[::1]:8188:8188/tcp"], True),
        (["127.0.0.1::8188"], True),
        ([{"target": 8188, "published": "8188", "host_ip": "127.0.0.1"}], True),
        (["8188:8188"], False),
        ([8188], False),
        (["0.0.0.0:80:8188"], False),
        (["[::]:8188:8188"], False),
        (["${BIND:-127.0.0.1}:8188:8188"], False),
        ([{"target": 8188, "published": "8188"}], False),
    ],
)
def test_the_audit_reads_both_forms_of_ports(ports, closed):
    found = {"services": {"comfyui": {"ports": ports}, "x": {"ports": ["80:80"]}, "y": None}}
    assert (compose.audit(found, 8188) == ()) is closed


def test_files_are_not_written_over(one, tmp_path):
    deploy([one], tmp_path / "s", Server(image=IMAGE))
    (tmp_path / "s" / "compose.yaml").write_text("mine")
    with pytest.raises(BadFile, match=r"holds .*compose\.yaml.* already"):
        deploy([one], tmp_path / "s", Server(image=IMAGE))
    assert (tmp_path / "s" / "compose.yaml").read_text() == "mine"
    deploy([one], tmp_path / "s", Server(image=IMAGE), force=True)
    composed(tmp_path / "s")


# --- the list


def wanted(name, folder="loras", url=None, **more):
    return WantedFile(name=name, folder=folder, url=url, node="Load", used_by="lora", **more)


@given(st.text(max_size=30), st.text(max_size=60))
def test_no_name_leaves_the_models_folder(folder, name):
    path = below_models(folder, name)
    if path is not None:
        home = Path("/srv/models")
        assert (home / path).resolve().is_relative_to(home) and (home / path) != home
        assert path.isprintable() and BETWEEN not in path and not path.startswith("/")


@given(st.text(max_size=80))
def test_no_address_is_more_than_one_word(text):
    url = safe_url("https://a.org/" + text)
    if url is not None:
        assert re.fullmatch(r"https://a\.org/[!-{}~]*", url)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.org/x",
        "file:///etc/passwd",
        "https://localhost/x",
        "https://127.0.0.1/x",
        "https://2130706433/x",
        "https://0x7f.1/x",
        "https://[::1]/x",
        "https://a.org:8443/x",
        "https://me:word@a.org/x",
        "https://a.org/x\ny",
        "https://-a.org/x",
        "javascript:alert(1)",
        "https://[",
    ],
)
def test_odd_addresses_are_left_out_and_said(url):
    found, said = downloads([wanted("x.safetensors", url=url)])
    assert found[0].url is None and [each.code for each in said] == ["comfy-bad-url"]


def test_hostile_names_of_a_workflow_are_refused_with_their_node(tmp_path):
    names = ["../../.ssh/authorized_keys", "/etc/x", "C:\\x", "a\nb", "ok.safetensors"]
    path = workflow(tmp_path / "w.json", *((name, "loras", None) for name in names))
    found = deploy([path], tmp_path / "s", Server(image=IMAGE))
    assert [each.path for each in found.downloads] == ["loras/ok.safetensors"]
    outside = [note for note in found.notes if note.code == "comfy-model-outside"]
    assert len(outside) == 4 and all("UNETLoader" in note.text for note in outside)
    assert all(note.text.isprintable() for note in found.notes)


def test_what_the_server_was_sent_is_read_too(tmp_path):
    sent = {
        "1": {"class_type": "UNETLoader", "inputs": {"unet_name": "wan.safetensors"}},
        "2": {"class_type": "KSampler", "inputs": {"model": ["1", 0], "steps": 4}},
        "3": {"class_type": "VAEDecode", "inputs": {"samples": ["2", 0]}},
        "4": {"class_type": "SaveImage", "inputs": {"images": ["3", 0]}},
    }
    path = tmp_path / "sent.json"
    path.write_text(json.dumps(sent), encoding="utf-8")
    found = deploy([path], tmp_path / "s", Server(image=IMAGE))
    assert [each.path for each in found.downloads] == ["diffusion_models/wan.safetensors"]


def test_safetensors_are_preferred_and_pickles_flagged():
    files = [wanted("a.ckpt"), wanted("a.safetensors"), wanted("b.pth"), wanted("a.safetensors")]
    found, said = downloads(files)
    assert [(each.path, each.pickle) for each in found] == [
        ("loras/a.safetensors", False),
        ("loras/b.pth", True),
    ]
    assert [each.code for each in said] == ["comfy-pickle-left-out", "comfy-pickle"]


def test_the_list_is_one_line_a_file():
    digest = "0" * 64
    files = [
        wanted("x y.safetensors", url="https://a.org/x y", size_bytes=7, sha256=digest),
        wanted("z.gguf", sha256="no"),
    ]
    lines = table(downloads(files)[0]).splitlines()
    assert lines[2:] == [
        f"7|{digest}|loras/x y.safetensors|https://a.org/x%20y",
        "-|-|loras/z.gguf|-",
    ]


def test_bypassed_loaders_are_not_downloaded(tmp_path):
    off = workflow(tmp_path / "off.json", ("x.safetensors", "loras", None), mode=4)
    assert deploy([off], tmp_path / "s", Server(image=IMAGE)).downloads == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"3": {"inputs": {}}}', "no list of nodes"),
        ("[]", "no list of nodes"),
        ("nope", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_workflow_is_said(tmp_path, content, words):
    path = tmp_path / "w.json"
    path.write_text(content)
    with pytest.raises(BadFile, match=words):
        deploy([path], tmp_path / "s", Server(image=IMAGE))
    with pytest.raises(BadFile, match="cannot be read"):
        deploy([tmp_path / "none.json"], tmp_path / "s", Server(image=IMAGE))


# --- the scripts


def texts():
    server = Server(image=IMAGE, models=HOSTILE, root=HOSTILE, ssh="root@203.0.113.7")
    rows = table(downloads([wanted("it's $(id) `x`.safetensors", url="https://a.org/x")])[0])
    return {
        "download.sh": scripts.download(server),
        "check.sh": scripts.check(server, pod=False),
        "check-pod.sh": scripts.check(server, pod=True),
        "tunnel.sh": scripts.tunnel(server),
        "pod.sh": pod.block(server, rows),
        "inner.sh": "#!/usr/bin/env bash\n" + pod.inner(server, rows),
    }


@pytest.mark.parametrize("name", list(texts()))
def test_bash_reads_them(name):
    subprocess.run(["bash", "-n"], input=texts()[name].encode(), check=True, capture_output=True)


@pytest.mark.skipif(SHELLCHECK is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("name", list(texts()))
def test_shellcheck_has_nothing_to_say(name):
    # SC2016: "expressions don't expand in single quotes", which is what the names are quoted for
    command = [SHELLCHECK, "--exclude=SC2016", "-"]
    said = subprocess.run(command, input=texts()[name].encode(), capture_output=True)
    assert said.stdout.decode() == "" and said.returncode == 0


@pytest.mark.parametrize("name", list(texts()))
def test_they_paste_into_a_terminal(name):
    text = texts()[name]
    assert "\t" not in text and "\r" not in text
    assert all(len(line) < 1000 for line in text.splitlines())


def test_the_tunnel_reads_the_same_in_both_shells():
    line = scripts.tunnel_command(Server(ssh="root@203.0.113.7", ssh_port=2222, local_port=9000))
    assert line == "ssh -N -L 127.0.0.1:9000:127.0.0.1:8188 -p 2222 root@203.0.113.7"
    assert not set("$`\"'&|;<>(){}") & set(line)


def test_the_powershell_script_follows_the_rules():
    """There is no PowerShell here to run it: strings, braces and names are held to its rules."""
    text = scripts.tunnel_powershell(Server(ssh="root@203.0.113.7", ssh_port=2222))
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert code.startswith("param(\n")  # nothing may stand before it
    assert "[string]$Server = 'root@203.0.113.7'" in code and "[int]$SshPort = 2222" in code
    outside = re.sub(r"'(?:[^']|'')*'", "", code)
    assert not set("'\"`") & set(
        outside
    )  # every text is in single quotes, where nothing is expanded
    for opening, closing in ("()", "{}", "[]"):
        assert outside.count(opening) == outside.count(closing)
    assert "&&" not in code and "||" not in code  # Windows PowerShell 5.1 has neither
    assert re.findall(r"\$\w+:", code) == []  # would be read as a scope
    names = {"Server", "SshPort", "LocalPort", "Port", "Forward", "ErrorActionPreference"}
    assert set(re.findall(r"\$(\w+)", code)) == names | {"LASTEXITCODE"}
    assert "127.0.0.1:{0}:127.0.0.1:{1}" in code and "-- $Server" in code


def test_tunnel_sh_asks_ssh_for_the_tunnel_alone(tmp_path):
    fake = tmp_path / "ssh"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    text = scripts.tunnel(Server(ssh="root@203.0.113.7"))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    ran = subprocess.run(["bash", "-s"], input=text.encode(), env=environment, capture_output=True)
    words = ran.stdout.decode().split()
    assert words[:3] == ["-N", "-L", "127.0.0.1:8188:127.0.0.1:8188"]
    assert words[-2:] == ["--", "root@203.0.113.7"]
    text = scripts.tunnel(Server())
    ran = subprocess.run(["bash", "-s"], input=text.encode(), env=environment, capture_output=True)
    assert ran.returncode == 2 and b"name the server" in ran.stderr


# --- the command


def test_the_command_writes_and_says_what_is_next(one, tmp_path, capsys):
    words = ["comfy", "deploy", str(one), "--image", IMAGE, "--ssh", "root@203.0.113.7"]
    assert run([*words, "-o", str(tmp_path / "s"), "--shm", "8GB"]) == 0
    said = capsys.readouterr()
    assert "diffusion_models/wan/high.safetensors" in said.out
    assert "1. scp -r -P 22" in said.out and "ssh -N -L" in said.out
    assert (tmp_path / "s" / "check.sh").stat().st_mode & 0o111
    assert run([*words, "-o", str(tmp_path / "t"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "cardfit.comfy-deployment/1" and found["unknown_sizes"] == 1
    assert run([*words, "-o", str(tmp_path / "s")]) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*words, "--publish"]) == 2 and run([*words, "--shm", "lots"]) == 2
    assert run(["comfy", "deploy", "--pod", "-o", str(tmp_path / "p")]) == 0
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "check.sh",
        "models.txt",
        "pod.sh",
        "tunnel.ps1",
        "tunnel.sh",
    ]
    assert run(["comfy", "deploy", "--pod", "--behind-proxy", "x"]) == 2


@pytest.mark.parametrize("command", ["deploy", "check", "inventory", "record"])
def test_help_has_an_example(command, capsys):
    assert run(["comfy", command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"cardfit comfy {command}" in text and "Try:" in text


def test_templates_give_whole_lists(tmp_path):
    templates = pytest.importorskip("comfyui_workflow_templates_json")
    folder = Path(next(iter(templates.__path__))) / "templates"
    paths = [path for path in sorted(folder.glob("video_*.json")) if "index" not in path.name]
    found = deploy(paths, tmp_path / "s", Server(image=IMAGE))
    assert len(found.downloads) > 100 and found.notes == ()
    assert all(each.url and not each.pickle for each in found.downloads)
