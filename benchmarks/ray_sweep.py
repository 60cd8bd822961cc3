"""A sweep on a Ray cluster of several nodes, one of which is killed: every record once, and what a run costs.

    python benchmarks/ray_sweep.py [--runs 200] [--nodes 4] [--real 8] [--tasks 2000]

On a cluster of this machine: ``--runs`` runs of the fake device, to see what a run costs beside itself (the time from
the first record to the last, times the nodes, less what the runs slept); the same with a node killed after a quarter,
then asked once more; ``--tasks`` tasks that do nothing, for the most that one driver hands out; ``--real`` runs of a
tiny Stable Diffusion on the processor, each in its own child, here in turn and then on the cluster.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}

from ray.cluster_utils import Cluster

import cardfit
from cardfit.fleet import tasks
from cardfit.fleet.cluster import Needs, joined
from cardfit.measure.fake import REPETITION_S
from cardfit.records import files
from cardfit.records.models import Record
from cardfit.records.verbs import listed

REPEATS = 2
PHASES = 2 + REPEATS  # load and first beside them
SMALL = {"width": 64, "height": 64, "num_inference_steps": 3}


def counted(sweep: str) -> Counter[str | None]:
    """Records of every cell of ``sweep``, as they lie on disk. Raises AssertionError where the store has others."""
    found = [each for each in files.each() if isinstance(each, Record) and each.sweep == sweep]
    assert {each.id for each in listed(sweep=sweep)} == {each.id for each in found}
    return Counter(each.cell for each in found)


def fake(cluster: Cluster, runs: int, name: str, kill: Any = None) -> tuple[Any, float, float]:
    """Sweep over seeds on the fake device; the sweep, and from its first record to its last: wall, the driver's CPU."""
    at: list[float] = []
    cpu: list[float] = []

    def said(state: Any) -> None:
        at.append(time.monotonic())
        cpu.append(time.process_time())
        if kill is not None and len(at) == runs // 4:
            cluster.remove_node(kill, allow_graceful=False)

    found = cardfit.sweep(
        "flux.1-dev", axes={"seed": list(range(runs))}, device="fake", repeats=REPEATS, ray=cluster.address, name=name,
        said=said,
    )  # fmt: skip
    return found, at[-1] - at[0], cpu[-1] - cpu[0]


def real(cluster: Cluster, runs: int) -> dict[str, Any]:
    """The same tiny runs in turn here and on the cluster."""
    path = Path(__file__).parents[1] / "tests" / "measure" / "tiny.py"
    spec = importlib.util.spec_from_file_location("tiny", path)
    assert spec is not None and spec.loader is not None
    tiny = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiny)
    weights = tiny.save("stable-diffusion-1.5", Path(tempfile.mkdtemp()) / "sd")
    request = cardfit.Request(model="stable-diffusion-1.5", **SMALL)
    asked = {"weights": weights, "device": "cpu", "repeats": 1}
    seconds: dict[str, float] = {}
    for name, where in (("here", None), ("ray", cluster.address)):
        began = time.monotonic()
        found = cardfit.sweep(
            request, axes={"seed": list(range(runs))}, name=f"real-{name}", ray=where, **asked
        )
        assert [row.outcome for row in found.rows] == ["ok"] * runs, found.rows
        assert set(counted(f"real-{name}").values()) == {1}
        seconds[name] = time.monotonic() - began
    return {"runs": runs, **{f"{name}_seconds": round(each, 1) for name, each in seconds.items()}}


def handed_out(cluster: Cluster, count: int) -> dict[str, Any]:
    """Tasks that do nothing: how many a second one driver hands out and takes back."""

    def nothing(item: int) -> int:
        return item

    with joined(cluster.address) as here:
        dict(tasks.each(here, nothing, {Needs(): iter(range(20))}))  # workers are there
        began, processor = time.monotonic(), time.process_time()
        found = dict(
            tasks.each(here, nothing, {Needs(cpus=0.01): iter(range(count))}, in_flight=200)
        )
        took, processor = time.monotonic() - began, time.process_time() - processor
    assert len(found) == count
    return {
        "tasks": count,
        "per_second": round(count / took),
        "driver_cpu_ms_each": round(1e3 * processor / count, 2),
    }


def main(arguments: argparse.Namespace) -> int:
    """All of it; JSON on stdout."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(arguments.nodes)]
    said: dict[str, Any] = {"load": [round(each, 1) for each in os.getloadavg()]}
    try:
        found, wall, cpu = fake(cluster, arguments.runs, "plain")
        assert found.ran == arguments.runs and set(counted("plain").values()) == {1}
        slept = PHASES * REPETITION_S
        each = wall * arguments.nodes / (arguments.runs - 1) - slept
        said["plain"] = {
            "runs": found.ran,
            "nodes": arguments.nodes,
            "wall_seconds": round(wall, 2),
            "overhead_seconds_a_run": round(each, 3),
            "driver_cpu_seconds_a_run": round(cpu / (arguments.runs - 1), 4),
        }
        print(json.dumps(said["plain"]), file=sys.stderr)
        found, wall, _ = fake(cluster, arguments.runs, "killed", nodes.pop())
        counts = counted("killed")
        assert len(counts) == arguments.runs and set(counts.values()) == {1}, counts
        assert all(row.outcome == "ok" for row in found.rows)
        codes = Counter(note.code for note in found.notes)
        again = cardfit.sweep(
            "flux.1-dev", axes={"seed": list(range(arguments.runs))}, device="fake", repeats=REPEATS,
            ray=cluster.address, name="killed",
        )  # fmt: skip
        assert (again.ran, again.kept) == (0, arguments.runs)
        said["killed"] = {
            "runs": len(counts),
            "records": sum(counts.values()),
            "wall_seconds": round(wall, 2),
            "notes": dict(codes),
        }
        print(json.dumps(said["killed"]), file=sys.stderr)
        if arguments.tasks:
            said["handed_out"] = handed_out(cluster, arguments.tasks)
            print(json.dumps(said["handed_out"]), file=sys.stderr)
        if arguments.real:
            said["real"] = real(cluster, arguments.real)
    finally:
        cluster.shutdown()
    print(json.dumps(said, indent=1))
    return 0 if said["plain"]["overhead_seconds_a_run"] <= arguments.limit else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="A sweep on a Ray cluster, a node of which is killed."
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--real", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--limit", type=float, default=0.3, help="seconds beside a run, at most")
    given = parser.parse_args()
    if "CARDFIT_DATA" not in os.environ:
        os.environ["CARDFIT_DATA"] = tempfile.mkdtemp(prefix="cardfit-ray-")
    sys.exit(main(given))
