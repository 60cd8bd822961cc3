"""Sweeps on a real cluster: nodes lost, nodes that differ, memory that runs out, Ctrl-C, silent addresses."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

import cardfit
from cardfit.errors import BadRequest, ServerFailed, UnknownCard
from cardfit.fleet import tasks
from cardfit.fleet.cluster import Cluster, Needs, joined
from cardfit.fleet.sweeping import Many
from cardfit.measure import sweeping
from cardfit.measure.sweep import Cell, sweep
from cardfit.measure.sweeping import Each
from cardfit.records import files
from cardfit.records.models import Predicted, PredictedStage, Reason, Record
from cardfit.records.verbs import listed
from cardfit.request import Request, Settings

# all on one worker: the cluster is started once
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


def kept() -> Counter[str | None]:
    """How many records lie in the files for every cell; the store has the same."""
    found = [each for each in files.each() if isinstance(each, Record)]
    assert {each.id for each in listed()} == {each.id for each in found}
    return Counter(each.cell for each in found)


def test_a_lost_node_costs_no_record_and_one_that_differs_is_left_out(
    nodes: Any, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "cardfit").mkdir()
    (tmp_path / "cardfit" / "__init__.py").write_text('__version__ = "0.0.9"\n')
    other = nodes.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(tmp_path)})
    extra = nodes.add_node(num_cpus=1)
    notes: list[Reason] = []
    seen: list[int] = []
    killing: list[threading.Timer] = []

    def said(state: Any) -> None:
        seen.append(len(state.rows))
        if not killing and works(
            extra
        ):  # a moment later: what gave this record has its next task then
            killing.append(threading.Timer(0.3, nodes.remove_node, [extra, False]))
            killing[0].start()

    try:
        found = cardfit.sweep(
            "flux.1-dev", axes={"seed": list(range(24))}, device="fake", repeats=300, ray=nodes.address, name="lost",
            said=said, note=notes.append,
        )  # fmt: skip
    finally:
        nodes.remove_node(other)
    assert (found.ran, found.kept, found.cells, max(seen)) == (24, 0, 24, 24)
    assert all(row.outcome == "ok" for row in found.rows)
    assert len(kept()) == 24 and set(kept().values()) == {1}
    codes = [note.code for note in notes]
    assert "fleet-node-lost" in codes and "fleet-again" in codes and list(found.notes) == notes
    (differs,) = [note for note in notes if note.code == "fleet-node-differs"]
    assert differs.args["there"] == "0.0.9" and differs.args["here"] == cardfit.__version__
    assert other.node_id[:6] in differs.text


def works(node: Any) -> bool:
    """Whether a worker of ``node`` is at a task."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return any("ray::call" in " ".join(each.cmdline()) for each in raylet.children())


def need(size: int) -> Predicted:
    """A prediction of ``size`` bytes."""
    stage = PredictedStage(
        name="denoise", component="transformer", calls=1, weights_bytes=0, activation_bytes=size, allocated_bytes=size,
        reserved_bytes=size,
    )  # fmt: skip
    return Predicted(stages=(stage,), allocated_bytes=size, reserved_bytes=size, host_bytes=0)


def test_running_out_of_memory_is_an_outcome_of_that_card(
    cluster: Cluster, data: Path, make_record: Any
) -> None:
    sizes = {"small": 10, "large": 30, "larger": 35}
    cells = [
        Cell(
            Request(model="flux.1-dev"), make_record.request(), Settings(), {"card": card, "size": name},
            f"{name} {card}", need(size * 2**30), card=card,
        )  # fmt: skip
        for card in ("rtx-4090", "l40s") for name, size in sizes.items()
    ]  # fmt: skip
    each = Each("memory", "random", None, "fake", 1, None, None, False)
    assert cluster.cards() == ("l40s", "rtx-4090")
    many = Many(cluster, 0, 1, None, None)
    found = sweep("memory", "flux.1-dev", cells, each, many=many)
    outcomes = {row.cell: row.outcome for row in found.rows}
    assert outcomes == {
        "small rtx-4090": "ok",
        "large rtx-4090": "oom",
        "larger rtx-4090": None,  # not tried: needs more than what failed on the same card
        "small l40s": "ok",
        "large l40s": "ok",
        "larger l40s": "ok",
    }
    assert set(kept().values()) == {1} and len(kept()) == 5
    again = sweep("memory", "flux.1-dev", cells, each, many=many)
    assert (again.ran, again.kept) == (0, 5) and len(kept()) == 5
    with pytest.raises(BadRequest, match="fake device"):
        cardfit.choose(sweep="memory")


def test_what_a_run_raises_is_told_and_not_repeated(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(item: int) -> int:
        with (tmp_path / f"{item}").open("a") as file:
            file.write("x")
        if item == 1:
            raise MemoryError("no more")
        return item * item

    found = dict(tasks.each(cluster, work, {Needs(): iter(range(3))}))
    monkeypatch.setattr(tasks, "NO_ROOM_S", 0.5)
    given_up = list(tasks.each(cluster, work, {Needs(card="t4"): iter([7])}))
    assert (found[0], found[2]) == (0, 4)
    assert isinstance(found[1], Reason) and "no more" in found[1].text
    assert [(tmp_path / str(n)).read_text() for n in range(3)] == ["x", "x", "x"]
    ((item, why),) = given_up
    assert item == 7 and isinstance(why, Reason)
    assert "1 card:t4" in why.text and "1 card:l40s" in why.text and not (tmp_path / "7").exists()


def test_leaving_the_loop_ends_what_runs(cluster: Cluster, tmp_path: Path) -> None:
    def work(item: int) -> int:
        for tick in range(1 if item == 0 else 12_000):
            (tmp_path / str(item)).write_text(str(tick))
            time.sleep(0.01)
        return item

    drawn: list[int] = []

    def items() -> Any:
        for n in range(100):
            drawn.append(n)
            yield n

    with closing(tasks.each(cluster, work, {Needs(): items()}, in_flight=2)) as ended:
        assert next(ended) == (0, 0)
    assert len(drawn) <= 3  # drawn as there was room, never before
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    time.sleep(1.0)  # a hundred ticks of what would still run
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == left


def test_a_real_run_comes_back_with_its_files(cluster: Cluster, data: Path, folder: Path) -> None:
    request = Request(model="stable-diffusion-1.5", width=64, height=64, num_inference_steps=2)
    many = Many(cluster, 0, None, None, None)
    asked: Any = {"weights": folder, "device": "cpu", "predict": False, "many": many}
    found = sweeping.sweep(request, axes={"seed": [1]}, **asked)
    (row,) = found.rows
    assert row.outcome == "ok", row
    record = files.read(files.records_folder() / (row.record or ""))
    assert not record.fake and record.of_phase("steady")
    assert record.latents and (files.records_folder() / record.id / record.latents[0]).is_file()


def test_ctrl_c_leaves_no_child_behind(nodes: Any, data: Path, folder: Path) -> None:
    program = (
        "import cardfit; from pathlib import Path\n"
        "request = cardfit.Request(model='stable-diffusion-1.5', width=64, height=64, num_inference_steps=999)\n"
        f"cardfit.sweep(request, axes={{'seed': [1, 2]}}, weights=Path({str(folder)!r}), device='cpu', predict=False, "
        f"ray={nodes.address!r})"
    )
    asked = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    _wait(lambda: len(children()) == 2 or asked.poll() is not None)
    assert asked.poll() is None, asked.communicate()
    asked.send_signal(signal.SIGINT)
    out, err = asked.communicate(timeout=300)  # a busy machine
    assert "KeyboardInterrupt" in err and out == ""
    assert children() == [] and not kept()


def children() -> list[int]:
    """The processes that run a pipeline below this one: those of the cluster's nodes."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "cardfit.measure.runner" in process.cmdline() and process.status() != "zombie":
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


def _wait(until: Any, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_an_address_that_does_not_answer_is_said_within_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        for listening, words in ((False, "no Ray cluster at"), (True, "timed out")):
            if listening:
                silent.listen(1)
            began = time.monotonic()
            with pytest.raises(ServerFailed, match=words), joined(f"127.0.0.1:{port}"):
                pass
            assert time.monotonic() - began < 15
    for address in ("ray://127.0.0.1:10001", "somewhere", "host:99999", ":1"):
        with pytest.raises(BadRequest, match="give local, auto"), joined(address):
            pass


def test_what_speaks_another_protocol_is_no_cluster(tmp_path: Path) -> None:
    program = (
        "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.BaseHTTPRequestHandler); "
    )
    program += "print(s.server_port, flush=True); s.serve_forever()"
    server = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        with (
            pytest.raises(ServerFailed, match="does not answer as a Ray"),
            joined(f"127.0.0.1:{port}"),
        ):
            pass
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"cards": ["rtx-4090"]}, BadRequest, "add --ray"),
        ({"in_flight": 2}, BadRequest, "add --ray"),
        ({"in_flight": 0, "ray": "local"}, BadRequest, "whole number"),
        ({"cards": ["no-such-card"], "ray": "local"}, UnknownCard, "no-such-card"),
        ({"device": "gpu", "ray": "local"}, BadRequest, "gpu"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_joined(
    more: Any, kind: Any, words: str, data: Path
) -> None:
    with pytest.raises(kind, match=words):
        cardfit.sweep("flux.1-dev", axes={"seed": [1]}, **more)
    assert not data.exists()
