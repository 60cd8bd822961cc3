"""How long things take: a plan from the shipped traces, a dry run, a replay; and how the cost grows with frames.

    python benchmarks/speed.py [--write docs/speed.md]

Each figure is the median of five. "Cold" is a whole process, started anew; "warm" the second call in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5
FRAMES = (17, 33, 65, 97, 129)

_DRY = """
import json, resource, sys, time
from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.request import Request, Settings
from cardfit.trace.dryrun import dry_run
asked = json.loads(sys.argv[1])
tiled = asked.pop("tiled", False)
model = load(asked["model"])
exact = resolve(model, Request(**asked))[0]
took = []
for _ in range(2):
    started = time.perf_counter()
    dry_run(model, exact, Settings(vae_tiling=tiled))
    took.append(time.perf_counter() - started)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([*took, peak * 1024]))
"""

_PLAN = """
import json, time
from cardfit import api
from cardfit.plan.knobs import closed
from cardfit.predict.memory import estimate
from cardfit.request import Request, Settings
api.plan(Request(model="flux.1-schnell"))
started = time.process_time()
traced = api.trace(Request(model="flux.1-dev", width=1088, height=960))
composed = time.process_time() - started
replays = []
for offload in ("none", "model", "group-leaf", "sequential"):
    started = time.process_time()
    estimate(traced, closed(Settings(offload=offload)))
    replays.append(time.process_time() - started)
started = time.process_time()
api.plan(Request(model="flux.1-dev", width=1104, height=944))
print(json.dumps([composed, sum(replays) / len(replays), time.process_time() - started]))
"""


def ran(words: list[str], cache: str) -> tuple[float, str, int]:
    """Seconds of a whole process, its output, its peak in bytes."""
    environment = {**os.environ, "CARDFIT_CACHE": cache}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    started = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    seconds = time.perf_counter() - started
    return (
        seconds,
        done.stdout,
        max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024,
    )


def median(values: list[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def dry(asked: dict[str, object], runs: int = RUNS) -> tuple[float, float, float, int]:
    """Cold seconds of the process, seconds of the first and second dry run, peak bytes."""
    rows = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            seconds, out, _ = ran([sys.executable, "-c", _DRY, json.dumps(asked)], cache)
        first, second, peak = json.loads(out)
        rows.append((seconds - second, first, second, peak))
    return (
        median([r[0] for r in rows]),
        median([r[1] for r in rows]),
        median([r[2] for r in rows]),
        max(r[3] for r in rows),
    )


def measure() -> list[tuple[str, str]]:
    """What was measured, in words."""
    found: list[tuple[str, str]] = []
    cold = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            seconds, _, peak = ran(
                [sys.executable, "-m", "cardfit", "plan", "flux.1-dev", "--json"], cache
            )
        cold.append(seconds)
    found.append(
        (
            "`cardfit plan flux.1-dev`, whole process, nothing cached",
            f"{median(cold):.2f} s, {peak / 2**20:.0f} MiB",
        )
    )
    with tempfile.TemporaryDirectory() as cache:
        warm = [
            ran([sys.executable, "-m", "cardfit", "plan", "flux.1-dev", "--json"], cache)[0]
            for _ in range(RUNS + 1)
        ][1:]
    rows = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            rows.append(json.loads(ran([sys.executable, "-c", _PLAN], cache)[1]))
    found.append(("the same, replays kept from before", f"{median(warm):.2f} s"))
    imports = [
        ran(
            [
                sys.executable,
                "-c",
                "import time; t = time.perf_counter(); import cardfit; print(time.perf_counter() - t)",
            ],
            "",
        )[1]
        for _ in range(RUNS)
    ]
    found.append(("`import cardfit`", f"{1000 * median([float(i) for i in imports]):.0f} ms"))
    found.append(
        (
            "a trace composed from the atlas, warm",
            f"{1000 * median([r[0] for r in rows]):.0f} ms of CPU",
        )
    )
    found.append(
        (
            "one replay through the allocator, FLUX.1-dev, mean of four offloads",
            f"{1000 * median([r[1] for r in rows]):.0f} ms of CPU, {1 / median([r[1] for r in rows]):.0f} a second",
        )
    )
    found.append(
        (
            "whole-catalogue plan of a new request, warm",
            f"{median([r[2] for r in rows]):.2f} s of CPU",
        )
    )
    big: dict[str, object] = {
        "model": "wan2.1-t2v-14b",
        "width": 1280,
        "height": 720,
        "num_frames": 81,
    }
    process, _, second, peak = dry(big)
    found.append(
        (
            "dry run of Wan 2.1 14B 1280x720x81, cold process",
            f"{process:.1f} s, {peak / 2**30:.2f} GiB",
        )
    )
    found.append(("the same, second in one process", f"{second:.1f} s"))
    tiled: dict[str, object] = {
        "model": "hunyuanvideo",
        "width": 768,
        "height": 512,
        "num_frames": 121,
        "tiled": True,
    }
    found.append(
        (
            "dry run of HunyuanVideo 768x512x121, tiled, second in one process",
            f"{dry(tiled, 3)[2]:.1f} s",
        )
    )
    for model in ("wan2.1-t2v-14b", "ltx-video-2b"):
        curve = [
            dry({"model": model, "width": 832, "height": 480, "num_frames": n}, 1)[2]
            for n in FRAMES
        ]
        words = ", ".join(f"{n}: {s:.2f} s" for n, s in zip(FRAMES, curve, strict=True))
        found.append((f"dry run of {model} 832x480 by frames", words))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    rows = measure()
    text = "\n".join(
        ["| what | median of five |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]
    )
    print(text)
    if asked.write is not None:
        page = asked.write.read_text(encoding="utf-8")
        head, _, rest = page.partition("<!-- figures -->\n")
        _, _, tail = rest.partition("<!-- /figures -->")
        asked.write.write_text(
            f"{head}<!-- figures -->\n{text}\n<!-- /figures -->{tail}", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
