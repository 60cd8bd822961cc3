"""A run of a real pipeline in a real child process, through the command and through Python."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cardfit import verbs
from cardfit.errors import BadFile, BadRequest
from cardfit.measure.compared import rows
from cardfit.measure.run import Moment
from cardfit.records import files
from cardfit.records.models import Record
from cardfit.records.verbs import listed
from cardfit.request import Request, Settings


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cardfit", *words],
        capture_output=True,
        text=True,
        env={**os.environ},
    )


def children() -> list[int]:
    """Processes of this machine that are children of a run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if b"cardfit.measure.runner" in words:
            found.append(int(path.parent.name))
    return found


def test_the_command_measures_and_keeps_it(folder: Path, data: Path) -> None:
    asked = "run stable-diffusion-1.5 --width 64 --height 64 --steps 3 --device cpu --repeats 2 --prompt".split()
    ran = command(*asked, "a cat", "--weights", str(folder), "--json")
    assert ran.returncode == 0, ran.stderr
    record = Record.model_validate_json(ran.stdout)
    assert [(r.phase, r.number) for r in record.repetitions] == [
        ("load", 0), ("first", 0), ("steady", 0), ("steady", 1), ("memory", 0),
    ]  # fmt: skip
    assert record.ok and record.weights.kind == "folder" and record.device == "cpu"
    # the same seed makes the same picture, and every repetition was a real one
    outputs = {r.output_sha256 for r in record.repetitions[1:]}
    assert len(outputs) == 1 and None not in outputs
    # prompts are hashes
    assert record.inputs.prompt_sha256 == hashlib.sha256(b"a cat").hexdigest()
    assert "a cat" not in ran.stdout
    # predicted and measured line up call by call
    assert record.predicted is not None
    table = rows(record)
    assert [row.name for row in table] == ["load", "encode_prompt", "denoise", "decode"]
    assert all(row.calls == row.calls_predicted for row in table[1:])
    assert all(row.steady_seconds and row.measured_bytes for row in table[1:])
    assert [c.component for c in record.repetitions[1].calls].count(
        "unet"
    ) == 4  # PNDM takes one more
    # what could not be read is null with a reason, never zero
    steady = record.repetitions[2]
    assert steady.figures["device_used_peak_bytes"] is None
    assert "processor" in steady.silent["device_used_peak_bytes"].text
    assert all(steady.silent[name].text for name, value in steady.figures.items() if value is None)
    assert (steady.figures["rss_peak_bytes"] or 0) > 50_000_000
    # kept as a file and in the store, with its latents
    assert files.read(data / "records" / record.id) == record
    assert listed() == (record,)
    assert record.latents == ("latents-000.safetensors",)

    again = command(
        "run",
        "--resume",
        record.id,
        "--weights",
        str(folder),
        "--vae-slicing",
        "--device",
        "cpu",
        "--json",
    )
    assert again.returncode == 0, again.stderr
    decoded = Record.model_validate_json(again.stdout)
    assert decoded.resumed == record.id
    assert [(s.name, s.calls) for s in decoded.repetitions[1].stages] == [("decode", 1)]
    assert "denoise" not in again.stdout.replace("num_inference", "")
    other = command("run", "--resume", record.id, "--weights", str(folder), "--offload", "model")
    assert other.returncode == 2 and "cannot change when latents are decoded again" in other.stderr
    unnamed = command("run", "--resume", record.id)
    assert unnamed.returncode == 2 and "name it with --weights" in unnamed.stderr

    page = command("records", "show", record.id)
    assert page.returncode == 0 and "encode_prompt" in page.stdout and "ok" in page.stdout
    assert record.id in command("records").stdout


def test_random_weights_need_configs_only(folder: Path, data: Path, small: dict[str, Any]) -> None:
    record = verbs.run(
        Request(**small),
        Settings(vae_tiling=True),
        configs=folder,
        device="cpu",
        repeats=0,
        predict=False,
    )
    assert record.ok and record.weights.kind == "random"
    assert record.weights.differs == ("unet", "text_encoder", "vae")
    assert [r.phase for r in record.repetitions] == ["load", "first", "memory"]


class _Killer:
    """Kills the child when the watcher has seen enough."""

    def __init__(self, phase: str, number: int, how: int = signal.SIGKILL) -> None:
        self.phase, self.number, self.how = phase, number, how
        self.done = False

    def __call__(self, moment: Moment, record: Record) -> None:
        if (
            not self.done
            and (moment.phase, moment.number) == (self.phase, self.number)
            and moment.step
        ):
            self.done = True
            for pid in children():
                if Path(f"/proc/{pid}/stat").read_text().split()[3] == str(os.getpid()):
                    os.kill(pid, self.how)


def test_a_killed_child_loses_no_repetition(
    folder: Path, data: Path, small: dict[str, Any]
) -> None:
    record = verbs.run(
        Request(**{**small, "num_inference_steps": 30}),
        weights=folder,
        device="cpu",
        repeats=3,
        memory=False,
        predict=False,
        watcher=_Killer("steady", 1),
    )
    assert record.outcome.kind == "interrupted"
    assert record.outcome.why is not None and "killed from outside" in record.outcome.why.text
    assert (record.outcome.phase, record.outcome.stage) == ("steady", "denoise")
    assert [r.phase for r in record.repetitions] == ["load", "first", "steady"]
    assert files.read(data / "records" / record.id) == record == listed()[0]


def test_a_run_ends_at_its_timeout(folder: Path, data: Path, small: dict[str, Any]) -> None:
    began = time.monotonic()
    record = verbs.run(
        Request(**{**small, "num_inference_steps": 1000}),
        weights=folder, device="cpu", predict=False, timeout_s=6.0,
    )  # fmt: skip
    assert record.outcome.kind == "timeout" and record.finished
    assert time.monotonic() - began < 30
    assert record.outcome.why is not None and "6 s" in record.outcome.why.text


def test_a_killed_parent_leaves_a_record_and_no_child(folder: Path, data: Path) -> None:
    words = "run stable-diffusion-1.5 --width 64 --height 64 --steps 40 --device cpu --repeats 200".split()
    parent = subprocess.Popen(
        [sys.executable, "-m", "cardfit", *words, "--weights", str(folder), "--memory"],
        env={**os.environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + 60
    kept: list[Record | BadFile] = []
    while time.monotonic() < until:
        kept = list(files.each())
        if kept and isinstance(kept[0], Record) and len(kept[0].repetitions) >= 2:
            break
        time.sleep(0.05)
    time.sleep(random.random() / 2)
    mine = [
        pid
        for pid in children()
        if Path(f"/proc/{pid}/stat").read_text().split()[3] == str(parent.pid)
    ]
    assert mine
    parent.kill()
    parent.wait()
    while any(Path(f"/proc/{pid}/exe").exists() for pid in mine) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(pid in children() for pid in mine)
    (record,) = files.each()
    assert isinstance(record, Record) and not record.finished
    assert record.outcome.kind == "interrupted" and len(record.repetitions) >= 2
    assert listed()[0] == record


def test_an_interrupt_is_kept_and_passed_on(
    folder: Path, data: Path, small: dict[str, Any]
) -> None:
    def stop(moment: Moment, record: Record) -> None:
        if moment.phase == "first":
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        verbs.run(Request(**small), weights=folder, device="cpu", predict=False, watcher=stop)
    (record,) = files.each()
    assert isinstance(record, Record) and record.finished and record.outcome.kind == "interrupted"
    ends = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < ends:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_bad_input_is_one_sentence_and_leaves_nothing(
    folder: Path, data: Path, small: dict[str, Any], tmp_path: Path
) -> None:
    request = Request(**small)
    with pytest.raises(BadRequest, match="torch sees no NVIDIA card here"):
        verbs.run(request, weights=folder, device="cuda", predict=False)
    assert not list((data / "records").glob("*")) and listed() == ()
    with pytest.raises(BadRequest, match="offload model moves weights between a card and the host"):
        verbs.run(request, Settings(offload="model"), weights=folder, device="cpu", predict=False)
    for wrong in ("gpu", "cuda:", "cuda:x", ""):
        with pytest.raises(BadRequest, match="give auto, cpu, cuda"):
            verbs.run(request, weights=folder, device=wrong)
    with pytest.raises(BadRequest, match="give seconds above zero"):
        verbs.run(request, weights=folder, timeout_s=0)
    with pytest.raises(BadRequest, match="whole number from 0"):
        verbs.run(request, weights=folder, repeats=-1)
    with pytest.raises(BadFile, match="cannot be read as a picture"):
        verbs.run(request, weights=folder, images=[tmp_path / "none.png"], predict=False)
    with pytest.raises(BadRequest, match="name a model or a plan file"):
        verbs.run()


def test_a_place_that_cannot_be_written_is_said_before_anything_runs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path / "taken"))
    began = time.monotonic()
    ran = command("run", "stable-diffusion-1.5", "--weights", str(folder), "--device", "cpu")
    assert (
        ran.returncode == 2
        and "could not be written" in ran.stderr
        and "Traceback" not in ran.stderr
    )
    assert time.monotonic() - began < 60


def test_a_store_that_cannot_be_used_is_an_error_when_named_and_a_note_when_not(
    folder: Path, data: Path, small: dict[str, Any]
) -> None:
    data.mkdir()
    (data / "records.sqlite").write_text("no database" * 200)
    with pytest.raises(BadFile, match="cannot be used"):
        verbs.run(
            Request(**small),
            weights=folder,
            device="cpu",
            store=f"sqlite:///{data}/records.sqlite",
            predict=False,
        )
    record = verbs.run(
        Request(**small), weights=folder, device="cpu", repeats=0, memory=False, predict=False
    )
    assert record.ok and [note.code for note in record.notes].count("run-store-left") == 1
    kept = json.loads((data / "records" / record.id / "record.json").read_text())
    assert kept["outcome"]["kind"] == "ok"
