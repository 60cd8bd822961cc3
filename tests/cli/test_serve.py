"""`cardfit serve`: what it refuses, and that it answers and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from cardfit.cli.main import run


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--host 0.0.0.0", "--token"),
        ("--host 192.168.1.2 --token short", "16"),
        ("--token short", "16"),
        ("--port 0", "--port 0"),
        ("--port 70000", "--port 70000"),
        ("--rate -1", "--rate"),
        ("--rate nan", "--rate"),
        ("--offers-file no-such.csv", "no-such.csv"),
    ],
)
def test_a_server_that_must_not_be_is_not_started(line, said, capsys, monkeypatch):
    monkeypatch.delenv("CARDFIT_TOKEN", raising=False)
    monkeypatch.setattr("uvicorn.run", lambda *args, **more: pytest.fail("started"))
    assert run(["serve", *line.split()]) == 2
    assert said in capsys.readouterr().err


def test_a_token_may_come_from_the_environment(monkeypatch):
    started = []
    monkeypatch.setenv("CARDFIT_TOKEN", "0123456789abcdef")
    monkeypatch.setattr("uvicorn.run", lambda app, **more: started.append(more))
    assert run(["serve", "--host", "0.0.0.0"]) == 0
    assert started[0]["host"] == "0.0.0.0" and started[0]["server_header"] is False


def test_it_answers_and_ends_when_told_to():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "cardfit", "serve", "--port", str(port)],
        env=dict(os.environ),
        stderr=subprocess.PIPE,
    )
    try:
        for _ in range(300):
            try:
                found = httpx.get(f"http://127.0.0.1:{port}/api/v1/cards/l4")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        assert found.json()["id"] == "l4"
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=30)
        assert f"http://127.0.0.1:{port}".encode() in errors and b"Traceback" not in errors
    finally:
        server.kill()
        server.wait()
