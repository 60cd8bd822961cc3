"""`cardfit comfy check`: the Compose file, the tunnel and the public addresses, as they are seen from here."""

from __future__ import annotations

import importlib.util
import json
import socket
from pathlib import Path

import pytest

from cardfit.cli.main import run
from cardfit.comfy.check import check
from cardfit.comfy.deploy import deploy
from cardfit.comfy.server import Server
from cardfit.errors import BadFile, BadRequest

_spec = importlib.util.spec_from_file_location(
    "fake_comfy", Path(__file__).with_name("fake_comfy.py")
)
fake_comfy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake_comfy)
IMAGE = "ghcr.io/someone/comfyui@sha256:" + "a" * 64


@pytest.fixture(scope="module")
def server():
    with fake_comfy.FakeComfy() as found:
        yield found


@pytest.fixture
def closed():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield free.getsockname()[1]


def grades(found):
    return [(each.grade, each.what.code) for each in found.findings]


def test_what_deploy_wrote_is_good(tmp_path):
    deploy([], tmp_path / "s", Server(image=IMAGE))
    found = check(tmp_path / "s")
    assert found.ok
    assert grades(found) == [("good", "comfy-check-closed"), ("good", "comfy-check-pinned")]


def test_what_was_changed_since_is_seen(tmp_path):
    deploy([], tmp_path / "s", Server(image=IMAGE, manager=True))
    path = tmp_path / "s" / "compose.yaml"
    text = path.read_text().replace("127.0.0.1\n", "0.0.0.0\n").replace(f"{IMAGE}", "me/comfyui")
    path.write_text(text)
    found = check(tmp_path / "s")
    assert not found.ok and grades(found) == [
        ("bad", "comfy-port-open"),
        ("odd", "comfy-check-not-pinned"),
        ("odd", "comfy-manager-on"),
    ]


def test_the_tunnel_is_asked(server, closed):
    found = check(server=server.url)
    assert found.ok and grades(found)[0] == ("good", "comfy-check-answers")
    assert "RTX 4090" in found.findings[1].what.text
    assert grades(check(server=f"http://127.0.0.1:{closed}")) == [("bad", "comfy-check-no-tunnel")]


def test_a_public_address_must_not_answer(server, closed):
    found = check(public=[f"127.0.0.1:{server.port}", "127.0.0.1"], port=closed)
    assert grades(found) == [("bad", "comfy-check-public"), ("good", "comfy-check-nothing")]
    assert grades(check(public=[f"http://127.0.0.1:{closed}"])) == [("good", "comfy-check-nothing")]


def test_something_else_that_answers_is_said(server):
    server.stats = {"hello": "there"}
    try:
        assert grades(check(public=[server.url])) == [("odd", "comfy-check-other")]
    finally:
        server.stats = None


def test_what_cannot_be_checked(tmp_path):
    with pytest.raises(BadRequest, match="say what to check"):
        check()
    with pytest.raises(BadRequest, match="is not this machine"):
        check(server="http://192.0.2.1:8188")
    with pytest.raises(BadFile, match="cannot be read"):
        check(tmp_path / "none")


def test_the_command_exits_with_one_for_what_is_bad(server, tmp_path, capsys):
    deploy([], tmp_path / "s", Server(image=IMAGE))
    words = ["comfy", "check", str(tmp_path / "s"), "--server", server.url]
    assert run(words) == 0
    assert "binds port 8188 to loopback alone" in " ".join(capsys.readouterr().out.split())
    assert run([*words, "--public", f"127.0.0.1:{server.port}", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "cardfit.comfy-check/1"
    assert [each["grade"] for each in found["findings"]].count("bad") == 1
