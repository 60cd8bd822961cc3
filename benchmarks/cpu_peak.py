"""Predicted activation peaks against torch's memory profiler, on a CPU, of pipelines that nothing of cardfit wraps.

    python benchmarks/cpu_peak.py                 tiny pipelines, and one of some hundred megabytes
    python benchmarks/cpu_peak.py --only tiny

Every pipeline is real diffusers code with random weights. The profiler sees every tensor; what only a CPU's kernels
hold (oneDNN's blocked copies and im2col in convolutions, buffers of CPU attention) is told apart by
`cardfit.measure.runner.profile.CPU_ONLY` and shown beside it. The prediction is the dry run's births and deaths.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from cardfit.library.add_ons import with_add_ons
from cardfit.library.rules import resolve
from cardfit.measure.cpu_peak import cpu_peaks
from cardfit.measure.job import Job
from cardfit.measure.runner.assemble import assemble
from cardfit.measure.runner.profile import Profile, read
from cardfit.request import Request, Settings
from cardfit.trace import recipes
from cardfit.trace.dryrun import dry_run

_spec = importlib.util.spec_from_file_location(
    "tiny", Path(__file__).parents[1] / "tests" / "measure" / "tiny.py"
)
assert _spec is not None and _spec.loader is not None
tiny = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tiny)

SIDE = {"width": 128, "height": 128}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "tiny SD": ("stable-diffusion-1.5", "SHRUNK", SIDE),
    "tiny FLUX": ("flux.1-dev", "SHRUNK", SIDE),
    "tiny Wan": ("wan2.1-t2v-1.3b", "SHRUNK", {"width": 128, "height": 128, "num_frames": 9}),
    "tiny SD, LoRA": (
        "stable-diffusion-1.5",
        "SHRUNK",
        {**SIDE, "loras": ({"rank": 8}, {"rank": 4})},
    ),
    "tiny SD, ControlNets": ("stable-diffusion-1.5", "SHRUNK", {**SIDE, "controlnets": ({}, {})}),
    "tiny SD, IP-Adapter": (
        "stable-diffusion-1.5",
        "SHRUNK",
        {**SIDE, "ip_adapters": ("ip-adapter-plus",)},
    ),
    "mid SD": ("stable-diffusion-1.5", "WIDE", {"width": 512, "height": 512}),
}


def measure(name: str, sizes: str, fields: dict[str, Any]) -> dict[str, Any]:
    """One pipeline: bytes predicted and seen."""
    model = tiny.shrunk(name, getattr(tiny, sizes))
    request, _ = resolve(model, Request(model=name, num_inference_steps=2, **fields))
    model = tiny.shrink(with_add_ons(model, request), getattr(tiny, sizes))
    settings = Settings(dtype={"*": "float32"})
    predicted = max(cpu_peaks(dry_run(model, request, settings)).values())
    job = Job(model=model, request=request, settings=settings, weights="random", device="cpu")
    pipeline, _ = assemble(job, torch.device("cpu"))
    arguments = recipes.call_arguments(model, pipeline, request, settings)
    with torch.no_grad():
        pipeline(**arguments)  # what the first call alone makes is not the run's
        profiled = Profile()
        with profiled:
            pipeline(**arguments)
    seen = read(profiled._profiler)
    tensors = max(total for _, total in seen.tensors)
    return {
        "predicted_bytes": predicted,
        "tensors_bytes": tensors,
        "with_cpu_only_bytes": max(total for _, total in seen.everything),
        "off_pct": 100 * (predicted - tensors) / tensors,
    }


def main(arguments: argparse.Namespace) -> int:
    """Every case in turn, one line each."""
    warnings.simplefilter("ignore")
    for label, case in CASES.items():
        if arguments.only in label:
            print(json.dumps({"case": label, **measure(*case)}))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Predicted activation peaks against torch's profiler."
    )
    parser.add_argument("--only", default="", help="cases whose name holds this")
    sys.exit(main(parser.parse_args()))
