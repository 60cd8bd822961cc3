"""Kill a sweep at random moments, as kill -9 does, and check that nothing is lost, half written or run twice.

    python benchmarks/sweep_kills.py --folder DIFFUSERS_FOLDER --model stable-diffusion-1.5 --kills 30 --runs 20

Every time one of the two processes is killed: the one that sweeps, or the child that runs. After each kill the records
that had been finished must still be there, unchanged, and none may be half written. At the end the sweep is asked once
more and left alone: every cell must have exactly one finished record that is not cut off.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cardfit.records import files
from cardfit.records.models import Record
from cardfit.records.verbs import listed


def finished() -> dict[str, bytes]:
    """The finished records by id, as they lie on disk. Raises AssertionError for one that cannot be read."""
    found = {}
    for record in files.each():
        assert isinstance(record, Record), record
        if record.finished and record.outcome.kind != "interrupted":
            found[record.id] = (files.records_folder() / record.id / files.NAME).read_bytes()
    return found


def child_of(parent: int) -> int | None:
    """The process that runs for the sweep ``parent``."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            words = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"cardfit.measure.runner" in words:
            return int(path.parent.name)
    return None


def start(arguments: argparse.Namespace) -> subprocess.Popen[str]:
    """Ask for the sweep."""
    seeds = ",".join(str(seed) for seed in range(arguments.runs))
    words = [
        "sweep", arguments.model, "--over", f"seed={seeds}", "--weights", str(arguments.folder), "--width", "64",
        "--height", "64", "--steps", "3", "--device", "cpu", "--repeats", "1", "--name", "kills", "--json",
    ]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "cardfit", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def main(arguments: argparse.Namespace) -> int:
    """Kill, check, and go on."""
    chance = random.Random(arguments.seed)
    before = finished()
    killed = collections.Counter[str]()
    for number in range(arguments.kills):
        sweep = start(arguments)
        time.sleep(chance.uniform(arguments.least, arguments.most))
        victim, who = (
            (child_of(sweep.pid), "child") if chance.random() < 0.5 else (sweep.pid, "sweep")
        )
        if victim is not None and sweep.poll() is None:
            try:
                os.kill(victim, signal.SIGKILL)
                killed[who] += 1
            except ProcessLookupError:
                pass
        if who == "child" and sweep.poll() is None:
            time.sleep(chance.uniform(0, 0.5))
            sweep.kill()
        sweep.communicate()
        now = finished()
        lost = [name for name, content in before.items() if now.get(name) != content]
        assert not lost, lost
        print(
            f"[{number + 1}/{arguments.kills}] {who} killed, {len(now)} finished", file=sys.stderr
        )
        before = now
    sweep = start(arguments)
    out, err = sweep.communicate()
    assert sweep.returncode == 0, err
    rows = json.loads(out)["rows"]
    now = finished()
    cells = collections.Counter(
        record.cell for record in files.each() if isinstance(record, Record) and record.id in now
    )
    assert len(rows) == arguments.runs and all(row["outcome"] == "ok" for row in rows), rows
    assert set(cells.values()) == {1} and len(cells) == arguments.runs, cells
    assert all(now.get(name) == content for name, content in before.items())
    in_store = {record.id for record in listed()}
    print(
        json.dumps(
            {
                "kills": dict(killed),
                "cells": len(cells),
                "lost": 0,
                "in_store": len(in_store & set(now)),
            }
        )
    )
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill a sweep at random moments.")
    parser.add_argument("--folder", type=Path, required=True, help="a small local diffusers folder")
    parser.add_argument("--model", default="stable-diffusion-1.5")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--least", type=float, default=1.0, help="seconds before a kill, at least")
    parser.add_argument("--most", type=float, default=20.0, help="seconds before a kill, at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if "CARDFIT_DATA" not in os.environ:
        os.environ["CARDFIT_DATA"] = tempfile.mkdtemp(prefix="cardfit-kills-")
    sys.exit(main(given))
