"""What recording costs in time: the same pipeline with and without cardfit, in turn, in processes of their own.

    python benchmarks/recorder_overhead.py --pairs 5 --steps 12

Each pair runs the pipeline once bare and once as `cardfit run` does (wrapped components, samplers in the parent). The
figure is the median over pairs of recorded over bare wall time of the steady call, in percent above one. The pipeline
is real diffusers code of some twenty seconds a call on two cores; run it on a machine that has nothing else to do.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from cardfit import verbs
from cardfit.library.rules import resolve
from cardfit.measure.job import Job
from cardfit.measure.runner.assemble import assemble
from cardfit.request import Request, Settings
from cardfit.trace import recipes

MODEL = "stable-diffusion-1.5"
FP32 = Settings(dtype={"*": "float32"})  # what a processor is quick at
_spec = importlib.util.spec_from_file_location(
    "tiny", Path(__file__).parents[1] / "tests" / "measure" / "tiny.py"
)
assert _spec is not None and _spec.loader is not None
tiny: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tiny)


def request(arguments: argparse.Namespace) -> Request:
    """What both sides run."""
    side = arguments.side
    return Request(model=MODEL, width=side, height=side, num_inference_steps=arguments.steps)


def bare(arguments: argparse.Namespace) -> float:
    """Seconds of the second call, nothing wrapped; in this process."""
    warnings.simplefilter("ignore")
    model = tiny.shrunk(MODEL, tiny.WIDE)
    exact, _ = resolve(model, request(arguments))
    job = Job(model=model, request=exact, settings=FP32, weights="random", device="cpu")
    pipeline, _ = assemble(job, torch.device("cpu"))
    given = recipes.call_arguments(model, pipeline, exact, FP32)
    with torch.no_grad():
        for _ in range(2):
            generator = torch.Generator("cpu").manual_seed(0)
            began = time.perf_counter()
            pipeline(**given, generator=generator)
            took = time.perf_counter() - began
    return took


def bare_apart(arguments: argparse.Namespace) -> float:
    """The same in a process of its own."""
    words = ["--bare", "--steps", str(arguments.steps), "--side", str(arguments.side)]
    ran = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, check=True
    )
    return float(ran.stdout)


def recorded(arguments: argparse.Namespace, folder: Path) -> float:
    """Seconds of the steady call of a recorded run."""
    record = verbs.run(
        request(arguments),
        FP32,
        configs=folder,
        device="cpu",
        repeats=1,
        memory=False,
        predict=False,
    )
    return record.of_phase("steady")[0].seconds


def main(arguments: argparse.Namespace) -> int:
    """All pairs, and the median."""
    if arguments.bare:
        print(bare(arguments))
        return 0
    with tempfile.TemporaryDirectory() as place:
        os.environ["CARDFIT_DATA"] = place
        folder = tiny.save(MODEL, Path(place) / "folder", tiny.WIDE)
        ratios = []
        for number in range(arguments.pairs):
            if number % 2:  # neither side always comes second
                one = recorded(arguments, folder)
                other = bare_apart(arguments)
            else:
                other = bare_apart(arguments)
                one = recorded(arguments, folder)
            ratios.append(one / other)
            print(
                json.dumps({"pair": number, "bare_seconds": other, "recorded_seconds": one}),
                file=sys.stderr,
            )
    middle = statistics.median(ratios)
    print(json.dumps({"pairs": len(ratios), "overhead_pct": 100 * (middle - 1), "ratios": ratios}))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What recording costs in time.")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    sys.exit(main(parser.parse_args()))
