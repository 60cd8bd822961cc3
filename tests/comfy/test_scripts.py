"""The scripts of a deployment, really run: downloads over TLS, the checks beside a real listener, the pasted block."""

from __future__ import annotations

import hashlib
import http.server
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from cardfit.comfy import pod, scripts
from cardfit.comfy.server import Server

NEEDED = ("bash", "curl", "openssl", "sha256sum", "numfmt")
pytestmark = pytest.mark.skipif(
    any(shutil.which(each) is None for each in NEEDED), reason="needs bash, curl and openssl"
)
TENSORS = b"\x08\0\0\0\0\0\0\0{}      " + b"w" * 5000
STATS = b'{"system": {"comfyui_version": "0.3.76"}, "devices": []}'


class _Files(http.server.BaseHTTPRequestHandler):
    """Serves `TENSORS` with ranges at /good, a page at /login, nothing elsewhere; notes what was asked."""

    asked: list[tuple[str, str, str | None, str | None]] = []

    def do_HEAD(self):  # noqa: N802
        self._answer(False)

    def do_GET(self):  # noqa: N802
        self._answer(True)

    def _answer(self, whole):
        given = self.headers.get("Range")
        self.asked.append((self.command, self.path, given, self.headers.get("Authorization")))
        content = {"/good": TENSORS, "/login": b"<html>log in</html>"}.get(self.path)
        if content is None:
            self.send_error(404)
            return
        begin = int(given.removeprefix("bytes=").partition("-")[0]) if given else 0
        if begin >= len(content):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if given else 200)
        if given:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        if whole:
            self.wfile.write(content[begin:])

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost "
        "-keyout key.pem -out cert.pem".split(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def files(certificate):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _Files.asked.clear()
    yield f"https://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def fetch(tmp_path, certificate):
    """Runs download.sh on the rows of a list; gives its exit code and what it said."""
    (tmp_path / "download.sh").write_text(scripts.download(Server(models=str(tmp_path / "m d"))))

    def go(*rows, **more):
        (tmp_path / "models.txt").write_text("# head\n" + "\n".join(rows) + "\n")
        ran = subprocess.run(
            ["bash", str(tmp_path / "download.sh")],
            env={
                "PATH": os.environ["PATH"],
                "CURL_CA_BUNDLE": str(certificate / "cert.pem"),
                **more,
            },
            capture_output=True,
            text=True,
        )
        return ran.returncode, ran.stdout + ran.stderr

    return go


def test_a_file_is_fetched_once_and_checked(files, fetch, tmp_path):
    row = f"{len(TENSORS)}|{hashlib.sha256(TENSORS).hexdigest()}|loras/it's $(id).safetensors|{files}/good"
    code, said = fetch(row)
    target = tmp_path / "m d" / "loras" / "it's $(id).safetensors"
    assert (code, target.read_bytes()) == (0, TENSORS), said
    assert not list(target.parent.glob("*.part"))
    code, said = fetch(row)
    assert code == 0 and "have " in said
    assert [command for command, *_ in _Files.asked] == ["GET"]


def test_a_broken_download_goes_on(files, fetch, tmp_path):
    part = tmp_path / "m d" / "vae" / "x.safetensors.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(TENSORS[:1000])
    row = f"-|{hashlib.sha256(TENSORS).hexdigest()}|vae/x.safetensors|{files}/good"
    assert fetch(row)[0] == 0
    assert part.with_suffix("").read_bytes() == TENSORS
    assert ("GET", "/good", "bytes=1000-", None) in _Files.asked
    # broken off between the last byte and the check
    part.with_suffix("").rename(part)
    assert fetch(row)[0] == 0 and part.with_suffix("").read_bytes() == TENSORS


def test_a_size_that_nobody_knows_is_asked_for(files, fetch):
    _, said = fetch(f"-|-|vae/x.safetensors|{files}/good")
    assert "still to fetch: 4.9KiB, and 0 files of unknown size" in said


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("-|" + "0" * 64 + "|a/x.safetensors|{}/good", "wrong"),
        ("7|-|a/x.safetensors|{}/good", "wrong"),
        ("-|-|a/x.safetensors|{}/login", "wrong"),
        ("-|-|a/x.gguf|{}/good", "wrong"),
        ("-|-|a/x.safetensors|{}/none", "broke off"),
        ("-|-|a/x.safetensors|-", "by hand"),
        ("-|-|a/x.ckpt|{}/good", "pickle"),
        ("-|-|../x.safetensors|{}/good", "refused"),
        ("-|-|a/../../x.safetensors|{}/good", "refused"),
        ("-|-|/x.safetensors|{}/good", "refused"),
        ("-|-|a/x.safetensors|http://localhost:1/good", "broke off"),
        ("-|-|a/x.safetensors|file:///etc/passwd", "broke off"),
        ("9000000000000000000|-|a/x.safetensors|{}/good", "too small"),
    ],
)
def test_what_is_not_as_listed_is_not_kept(files, fetch, tmp_path, monkeypatch, row, word):
    (tmp_path / "download.sh").write_text(
        (tmp_path / "download.sh").read_text().replace("sleep $((2 * try))", "sleep 0")
    )
    code, said = fetch(row.format(files))
    assert code == 1 and word in said
    kept = [path for path in tmp_path.rglob("*") if "x." in path.name]
    assert kept == []


def test_a_pickle_comes_when_it_is_allowed(files, fetch):
    assert fetch(f"-|-|a/x.ckpt|{files}/good", ALLOW_PICKLE="1")[0] == 0


def test_a_token_goes_to_its_own_host_alone(files, fetch):
    assert fetch(f"-|-|a/x.safetensors|{files}/good", HF_TOKEN="secret")[0] == 0
    assert all(token is None for *_, token in _Files.asked)


# --- check.sh


class _Comfy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        known = self.path == "/system_stats"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(STATS if known else b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def comfy():
    made = []

    def listen(host):
        server = http.server.ThreadingHTTPServer((host, 0), _Comfy)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.append(server)
        return server.server_address[1]

    yield listen
    for server in made:
        server.shutdown()
        server.server_close()


@pytest.fixture
def check(tmp_path):
    """Runs check.sh as in a container, beside stand-ins for nvidia-smi and for a python with torch."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tmp_path / "models").mkdir()

    def go(
        port, *public, card="NVIDIA L4", driver="13.0", torch="13.0", encoder=0, rows=(), **more
    ):
        (tmp_path / "models.txt").write_text("\n".join(rows) + "\n")
        _tool(
            tools / "nvidia-smi",
            f'case "$*" in *query*) echo "{card}, 23034 MiB, 580.95.05" ;; *) '
            f'echo "| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: {driver}  |" ;; esac',
        )
        _tool(
            tools / "python",
            f'case "$2" in *version.cuda*) echo "{torch}" ;; *encode*) exit {encoder} ;; esac',
        )
        server = Server(models=str(tmp_path / "models"), port=port)
        (tmp_path / "check.sh").write_text(scripts.check(server, pod=True))
        ran = subprocess.run(
            ["bash", str(tmp_path / "check.sh"), *public],
            env={"PATH": f"{tools}:{os.environ['PATH']}", **more},
            capture_output=True,
            text=True,
        )
        return ran.returncode, ran.stdout + ran.stderr

    return go


def _tool(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_good_server_passes(comfy, check):
    port = comfy("127.0.0.1")
    code, said = check(port)
    assert code == 0 and "FAIL" not in said, said
    assert f"port {port} listens on loopback alone" in said
    assert "the driver knows CUDA 13.0, torch was built for 13.0" in said
    assert "the encoder is seen" in said and f"ComfyUI answers on 127.0.0.1:{port}" in said


def test_a_port_that_is_open_fails(comfy, check):
    port = comfy("0.0.0.0")
    code, said = check(port)
    assert code == 1 and f"FAIL  port {port} listens on more than loopback (00000000)" in said


def test_a_proxy_address_that_answers_fails(comfy, check):
    inner, proxy = comfy("127.0.0.1"), comfy("127.0.0.1")
    code, said = check(inner, f"http://127.0.0.1:{proxy}")
    assert code == 1 and "anyone can run code there" in said
    vast = {"PUBLIC_IPADDR": "127.0.0.1", f"VAST_TCP_PORT_{inner}": str(proxy)}
    code, said = check(inner, **vast)
    assert code == 1 and f"ComfyUI answers at http://127.0.0.1:{proxy}" in said


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ({"driver": "12.4"}, 1, "FAIL  torch was built for CUDA 13.0"),
        ({"driver": "12.4", "torch": "12.8"}, 0, "warn  torch was built for CUDA 12.8"),
        ({"torch": ""}, 0, "warn  CUDA not compared"),
        ({"encoder": 1}, 1, "FAIL  the encoder is not seen"),
        (
            {"encoder": 1, "card": "NVIDIA A100-SXM4-80GB"},
            0,
            "warn  this card has no video encoder",
        ),
        ({"rows": ["9000000000000000000|-|a/x.safetensors|-"]}, 1, "FAIL  still to fetch: 7.9EiB"),
    ],
)
def test_what_is_wrong_is_said(comfy, check, more, code, words):
    found, said = check(comfy("127.0.0.1"), **more)
    assert words in said and found == code, said


def test_no_server_and_no_driver(check, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        code, said = check(port)
    assert code == 1 and f"FAIL  ComfyUI does not answer on 127.0.0.1:{port}" in said
    assert f"warn  nothing listens on port {port}" in said


# --- the pasted block

MAIN = """
import http.server, os, sys
words = sys.argv[1:]
open("pid", "w").write(str(os.getpid()))
open("words", "w").write("\\n".join(words))
class Comfy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"system": {"comfyui_version": "0.3.76"}, "devices": []}')
    def log_message(self, *_):
        pass
host, port = words[words.index("--listen") + 1], int(words[words.index("--port") + 1])
http.server.ThreadingHTTPServer((host, port), Comfy).serve_forever()
"""


def test_the_block_starts_comfyui_on_loopback(tmp_path):
    root = tmp_path / "it's ComfyUI"
    root.mkdir()
    (root / "main.py").write_text(MAIN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = (shutil.which("python3") or "python3", "main.py")
    server = Server(root=str(root), models=str(tmp_path / "models"), port=port, start=start)
    block = pod.block(server, "# head\n-|-|loras/it's $(touch owned).safetensors|-\n")
    ran = subprocess.run(
        ["bash"], input=block.encode(), cwd=tmp_path, capture_output=True, timeout=60
    )
    try:
        said = ran.stdout.decode()
        assert ran.returncode == 0 and f"ComfyUI is ready on 127.0.0.1:{port}" in said, said
        assert "by hand   loras/it's $(touch owned).safetensors" in said
        words = (root / "words").read_text().splitlines()
        assert words[words.index("--listen") + 1] == "127.0.0.1"
        assert Path(words[words.index("--extra-model-paths-config") + 1]).is_file()
        assert not list(tmp_path.rglob("owned"))
        again = subprocess.run(["bash"], input=block.encode(), capture_output=True, timeout=60)
        assert again.returncode == 1 and b"something listens on port" in again.stdout
    finally:
        os.kill(int((root / "pid").read_text()), signal.SIGTERM)
        time.sleep(0.1)


def test_the_block_needs_comfyui_where_it_was_said_to_be(tmp_path):
    block = pod.block(Server(root=str(tmp_path)), "# head\n")
    ran = subprocess.run(["bash"], input=block.encode(), capture_output=True)
    assert ran.returncode == 1 and b"write the block again with --root" in ran.stdout
