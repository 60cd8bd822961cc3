"""`cardfit comfy record` against a small server that speaks ComfyUI's endpoints."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from cardfit.cli.main import run
from cardfit.comfy import http, recording
from cardfit.comfy.client import outputs_of, read_api_file
from cardfit.errors import BadFile, BadRequest, ServerFailed
from cardfit.measure.samplers.fake_nvml import FakeNvml
from cardfit.records import files
from cardfit.report import run as page
from cardfit.report.style import Style

_spec = importlib.util.spec_from_file_location(
    "fake_comfy", Path(__file__).with_name("fake_comfy.py")
)
fake_comfy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake_comfy)
GIB = 1024**3


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path / "data"))


@pytest.fixture
def server():
    with fake_comfy.FakeComfy() as found:
        yield found


def graph(**more):
    """A text-to-image workflow, by node id."""
    nodes = {
        "4": ("CheckpointLoaderSimple", {"ckpt_name": "x.safetensors"}),
        "6": ("CLIPTextEncode", {"text": "a cat"}),
        "3": ("KSampler", {"steps": 5}),
        "8": ("VAEDecode", {}),
        "9": ("SaveImage", {}),
        **more,
    }
    return {name: {"class_type": kind, "inputs": inputs} for name, (kind, inputs) in nodes.items()}


@pytest.fixture
def workflow(tmp_path):
    def write(nodes=None):
        path = tmp_path / "wan-api.json"
        path.write_text(json.dumps(graph() if nodes is None else nodes))
        return path

    return write


def test_a_prompt_becomes_a_record(server, workflow):
    told = []
    found = recording.record(
        workflow(), server.url, tell=lambda what, share: told.append((what, share))
    )
    assert found.ok and found.runtime == "comfyui"
    assert found.versions["comfyui"] == "0.3.76" and found.versions["torch"] == "2.9.1+cu130"
    assert (found.machine.card, found.machine.card_name) == ("rtx-4090", "NVIDIA GeForce RTX 4090")
    assert (found.machine.os, found.machine.ram_bytes) == ("linux", 64 * GIB)
    (row,) = found.repetitions
    assert [(call.method, call.component) for call in row.calls] == [
        (name, node["class_type"]) for name, node in graph().items()
    ]
    assert [stage.name for stage in row.stages] == [
        "load",
        "encode_prompt",
        "denoise",
        "decode",
        "export",
    ]
    sampler = row.calls[2]
    assert len(row.step_seconds) == 4 and min(row.step_seconds) > 0
    assert sum(row.step_seconds) <= sampler.seconds <= row.seconds
    assert sum(call.seconds for call in row.calls) == pytest.approx(row.seconds, abs=0.1)
    assert row.output_sha256 == hashlib.sha256(b"ComfyUI_00001_.png").hexdigest()
    assert row.figures["host_used_peak_bytes"] == 24 * GIB
    assert row.figures["device_used_peak_bytes"] >= 2 * GIB
    assert row.silent["reserved_peak_bytes"].code == "comfy-no-counters"
    assert ("node 3 KSampler", 1.0) in told and ("node 4 CheckpointLoaderSimple", None) in told
    assert "x.safetensors" not in files.text_of(found) and "a cat" not in files.text_of(found)


def test_the_record_is_kept_and_shown_like_any_other(server, workflow):
    found = recording.record(workflow(), server.url)
    assert files.read(files.records_folder() / found.id) == found
    text = "\n".join(page.lines(found, Style(shapes=False)))
    assert "wan-api.json | NVIDIA GeForce RTX 4090" in text
    assert "comfyui 0.3.76" in text and "denoise" in text
    assert "wan-api.json" in "\n".join(page.table([found], Style()))


def test_memory_is_sampled_while_it_runs(server, workflow, monkeypatch):
    monkeypatch.setattr(recording, "INTERVAL_S", 0.02)
    nodes = graph(**{"3": ("KSampler", {"steps": 10})})
    (row,) = recording.record(workflow(nodes), server.url).repetitions
    stages = {stage.name: stage.figures for stage in row.stages}
    # the server takes 1 GiB more with each node, from 2 GiB on
    assert stages["denoise"]["device_used_peak_bytes"] == 5 * GIB
    assert stages["denoise"]["torch_reserved_peak_bytes"] == 2.5 * GIB
    assert stages["denoise"]["torch_active_peak_bytes"] == 1.25 * GIB
    assert row.figures["device_used_peak_bytes"] >= 5 * GIB


def test_the_driver_of_this_machine_is_read_where_it_is_the_servers(server, workflow, monkeypatch):
    memory = [SimpleNamespace(used=used * GIB) for used in (3, 9, 4)]
    fake = FakeNvml(nvmlDeviceGetMemoryInfo=memory, nvmlDeviceGetPowerUsage=300_000)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    nodes = graph(**{"3": ("Wait", {"seconds": 0.5})})
    (row,) = recording.record(workflow(nodes), server.url, here=0).repetitions
    assert row.figures["device_used_peak_bytes"] == 9 * GIB and row.figures["power_peak_w"] == 300
    assert row.figures["host_used_peak_bytes"] == 24 * GIB and fake.opened == 0


def test_out_of_memory_is_an_outcome(server, workflow):
    text = "Allocation on device 0 would exceed allowed memory. Tried to allocate 2.50 GiB."
    nodes = graph(**{"8": ("Boom", {"text": f"CUDA out of memory. {text}\n\x1b[31m"})})
    found = recording.record(workflow(nodes), server.url)
    outcome = found.outcome
    assert (outcome.kind, outcome.op, outcome.component) == ("oom", "8", "Boom")
    assert outcome.tried_bytes == 2.5 * GIB and "execution.py" in outcome.log
    assert "\x1b" not in outcome.why.text
    assert len(found.repetitions[0].calls) == 4 and found.repetitions[0].output_sha256 is None


@pytest.mark.parametrize(
    ("kind", "text", "outcome"),
    [
        ("RuntimeError", "[enforce fail] DefaultCPUAllocator: not enough memory", "host_oom"),
        ("MemoryError", "", "host_oom"),
        ("ValueError", "shapes do not match", "error"),
        ("torch.cuda.OutOfMemoryError", "", "oom"),
    ],
)
def test_other_errors_are_told_apart(server, workflow, kind, text, outcome):
    nodes = graph(**{"3": ("Boom", {"kind": kind, "text": text})})
    assert recording.record(workflow(nodes), server.url).outcome.kind == outcome


def test_cached_nodes_are_said(server, workflow):
    server.cached = ["4", "6"]
    found = recording.record(workflow(), server.url)
    assert [call.method for call in found.repetitions[0].calls] == ["3", "8", "9"]
    assert {note.code for note in found.notes} == {"comfy-sampled", "comfy-cached"}


def test_a_refused_workflow_names_its_node_and_leaves_no_record(server, workflow):
    nodes = graph(**{"12": ("NoSuchNode", {})})
    with pytest.raises(BadRequest, match=r"12 NoSuchNode: Value not in list ckpt_name: 'x'"):
        recording.record(workflow(nodes), server.url)
    assert list(files.each()) == [] and not list(files.records_folder().iterdir())


def test_time_that_is_up_interrupts_on_the_server(server, workflow):
    nodes = graph(**{"3": ("Wait", {"seconds": 30})})
    found = recording.record(workflow(nodes), server.url, timeout_s=0.5)
    assert found.outcome.kind == "timeout" and server.calls == ["interrupt"]
    assert [call.method for call in found.repetitions[0].calls] == ["4", "6", "3"]


def test_a_prompt_that_still_waits_is_taken_from_the_queue(server, workflow):
    server.hold = True
    found = recording.record(workflow(), server.url, timeout_s=0.3)
    assert found.outcome.kind == "timeout" and server.calls == ["delete"] and not server.pending


def test_an_interruption_by_someone_else_is_one(server, workflow):
    def interrupt():
        while server.running is None:
            time.sleep(0.01)
        server.stopped.add(server.running)

    threading.Thread(target=interrupt).start()
    nodes = graph(**{"3": ("Wait", {"seconds": 30})})
    assert recording.record(workflow(nodes), server.url).outcome.kind == "interrupted"


def test_ctrl_c_interrupts_and_keeps_what_was_seen(server, workflow, capsys):
    def press():
        while server.running is None or server.used < 5 * GIB:
            time.sleep(0.02)
        time.sleep(0.3)  # what was sent is taken by then
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    path = workflow(graph(**{"3": ("Wait", {"seconds": 60})}))
    # the process that runs tests side by side ignores the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run(["comfy", "record", str(path), "--server", server.url, "--json"]) == 1
    finally:
        signal.signal(signal.SIGINT, before)
    found = files.parse(capsys.readouterr().out, "stdout")
    assert found.outcome.kind == "interrupted" and server.calls == ["interrupt"]
    assert [call.method for call in found.repetitions[0].calls] == ["4", "6", "3"]
    assert files.read(files.records_folder() / found.id) == found


def test_a_connection_that_breaks_is_made_anew(server, workflow):
    server.drop_after = 4
    nodes = graph(**{"3": ("KSampler", {"steps": 20})})
    found = recording.record(workflow(nodes), server.url)
    assert found.ok and "comfy-broke-off" in {note.code for note in found.notes}


def test_a_server_that_was_started_anew_has_forgotten(server, workflow, monkeypatch):
    monkeypatch.setattr("cardfit.comfy.client._QUIET_S", 0.1)
    monkeypatch.setattr("cardfit.comfy.client._ASK_EVERY", 1)
    server.drop_after, server.forget = 5, True
    nodes = graph(**{"3": ("Wait", {"seconds": 60})})
    found = recording.record(workflow(nodes), server.url)
    assert found.outcome.why.code == "comfy-forgotten" and found.outcome.kind == "error"


def test_a_server_that_vanishes_is_an_error_with_its_likely_cause(workflow, monkeypatch):
    monkeypatch.setattr("cardfit.comfy.client._TRIES", 2)
    with fake_comfy.FakeComfy() as server:

        def leave():
            while server.used < 5 * GIB:
                time.sleep(0.01)
            server._server.should_exit = server._server.force_exit = True

        threading.Thread(target=leave).start()
        nodes = graph(**{"3": ("Wait", {"seconds": 60})})
        found = recording.record(workflow(nodes), server.url)
    assert found.outcome.kind == "error" and "host memory" in found.outcome.why.text
    assert found.outcome.op == "3"


# --- who is spoken to


def test_only_loopback_is_spoken_to(workflow):
    with pytest.raises(BadRequest, match=r"ssh -N -L 8188:127\.0\.0\.1:8188 USER@192\.0\.2\.7"):
        recording.record(workflow(), "http://192.0.2.7:8188")


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:8188",
        "ftp://127.0.0.1",
        "http://user:word@127.0.0.1",
        "http://127.0.0.1:8188/api",
        "http://127.0.0.1:99999",
        "http://[::1",
        "http://127.0.0.1:8188/?a=b",
        "",
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(BadRequest, match="not a server's address"):
        http.address_of(text, allow_remote=True)


def test_a_name_counts_by_its_addresses():
    assert http.is_loopback("localhost")
    assert not http.is_loopback("localhost.invalid")
    assert http.address_of("http://[::1]:8188").url("/x", a="b c") == "http://[::1]:8188/x?a=b+c"


def test_redirects_are_not_followed(server, workflow):
    server.redirect = "http://192.0.2.1/steal"
    with pytest.raises(ServerFailed, match=r"answered 307 and sent us to http://192\.0\.2\.1"):
        recording.record(workflow(), server.url)


def test_a_server_that_is_none(server, workflow):
    server.stats = {"hello": 1}
    with pytest.raises(ServerFailed, match="is no ComfyUI"):
        recording.record(workflow(), server.url)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(ServerFailed, match="does not answer at /system_stats"):
        recording.record(workflow(), f"http://127.0.0.1:{port}")


def test_answers_have_a_limit(server, workflow, monkeypatch):
    monkeypatch.setattr(http, "MAX_JSON_BYTES", 10)
    with pytest.raises(ServerFailed, match=r"more than 10 B at /system_stats"):
        recording.record(workflow(), server.url)


def test_odd_figures_of_a_server_are_left_out(server, workflow):
    devices = [{"name": "\x1b[2J", "type": 7, "vram_total": -1, "vram_free": "many"}]
    server.stats = {"system": {"os": None, "ram_total": 1e300}, "devices": devices}
    found = recording.record(workflow(), server.url)
    assert found.machine.ram_bytes is None and found.machine.card_name == "\\x1b[2J"
    assert found.repetitions[0].figures["device_used_peak_bytes"] is None
    assert found.repetitions[0].silent["device_used_peak_bytes"].code == "comfy-no-samples"


# --- what is run


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"nodes": [], "links": []}', "Workflow > Export"),
        ("[1]", "API format"),
        ("{}", "API format"),
        ('{"3": {"class_type": "KSampler"}}', "node 3 is not one"),
        ('{"\\u001b[31m": 1}', r"node \\x1b\[31m is not one"),
        ("{", "is not JSON"),
        ('{"3": {"class_type": "x", "inputs": {"width": NaN}}}', r"is not JSON \(NaN\)"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_workflow_is_said(tmp_path, content, words):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(BadFile, match=words):
        read_api_file(path)


def test_outputs_are_read_with_care():
    files_ = [{"filename": "a", "subfolder": 3}, {"filename": 7}, "x", None]
    assert outputs_of({"images": files_, "text": "x", "n": 3}) == [
        {"filename": "a", "subfolder": "3", "type": ""}
    ]
    assert outputs_of(None) == outputs_of([]) == []
