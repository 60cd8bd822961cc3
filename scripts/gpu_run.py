"""Measure true-size pipelines with random weights through `cardfit run`, as rows for `cardfit accuracy`.

    python scripts/gpu_run.py --out run.csv                  on a CUDA card, at most ten minutes
    python scripts/gpu_run.py --out run.csv --only sdxl
    python scripts/gpu_run.py --out tiny.csv --configs F     one case from a small folder's configs, on a CPU too
    cardfit accuracy run.csv                                 predicted against what was measured

Nothing is downloaded: components are built from the library's configs with random weights on the card. Every case is a
record of its own (`cardfit records`), written as it ends; the rows repeat its peaks. A case that runs out of memory
gives no row and is told.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cardfit import verbs
from cardfit.accuracy.rows import COLUMNS
from cardfit.library import load
from cardfit.measure.compared import rows as compared
from cardfit.records.models import Record
from cardfit.request import Request, Settings
from cardfit.units import GIB

BUDGET_S = 540.0
PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


@dataclass(frozen=True)
class Case:
    """One request and its settings."""

    name: str
    request: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)


CASES = (
    Case("sdxl", {"model": "sdxl-base", "width": 1024, "height": 1024, "num_inference_steps": 4}),
    Case("flux", {"model": "flux.1-dev", "width": 1024, "height": 1024, "num_inference_steps": 4}),
    Case(
        "flux-model-offload",
        {"model": "flux.1-dev", "width": 1024, "height": 1024, "num_inference_steps": 4},
        {"offload": "model"},
    ),
    Case(
        "wan-1.3b",
        {
            "model": "wan2.1-t2v-1.3b",
            "width": 832,
            "height": 480,
            "num_frames": 81,
            "num_inference_steps": 3,
        },
    ),
    Case(
        "hunyuan",
        {
            "model": "hunyuanvideo",
            "width": 768,
            "height": 512,
            "num_frames": 121,
            "num_inference_steps": 2,
        },
    ),
    Case(
        "hunyuan-tiled",
        {
            "model": "hunyuanvideo",
            "width": 768,
            "height": 512,
            "num_frames": 121,
            "num_inference_steps": 2,
        },
        {"vae_tiling": True},
    ),
)


def row(case: Case, record: Record, kind: str) -> dict[str, str]:
    """One line of the CSV. ``kind``: allocated, reserved or device."""
    figures = {
        "allocated": record.peak("allocated_peak_bytes"),
        "reserved": record.peak("reserved_peak_bytes"),
        "device": record.peak("device_used_peak_bytes"),
    }
    size, request, settings = figures[kind], record.request, record.settings
    assert request is not None and settings is not None
    model = load(request.model)
    steady = record.of_phase("steady")
    dtypes = [part.recommended_dtype for part in model.components.values() if part.counted]
    precision = PRECISIONS[max(set(dtypes), key=dtypes.count)]
    memory = record.machine.card_memory_bytes
    cells = dict.fromkeys(COLUMNS, "") | {
        "id": f"own-run-{case.name}-{kind}",
        "model": request.model,
        "diffusers_pipeline": model.pipeline,
        "gpu": record.machine.card_name or record.versions.get("card", ""),
        "gpu_vram_gib": "" if memory is None else str(round(memory / GIB)),
        "framework": "diffusers",
        "framework_version": f"diffusers {record.versions['diffusers']}, torch {record.versions['torch']}",
        "precision_weights": precision,
        "precision_compute": precision,
        "quantization": "none",
        "width": str(request.width),
        "height": str(request.height),
        "num_frames": str(request.num_frames),
        "batch": str(request.batch),
        "steps": str(request.num_inference_steps),
        "guidance_cfg": "yes" if model.cfg.batched and request.guidance_scale > 1 else "no",
        "offload": (settings.offload or "none").replace("-", "_"),
        "vae_tiling": "yes" if settings.vae_tiling else "no",
        "vae_slicing": "no",
        "compile": "no",
        "attention": "sdpa",
        "scope": "full_pipeline",
        "peak_gib_reported": "" if size is None else f"{size / GIB:.6f}",
        "peak_unit_as_written": "GiB",
        "peak_kind": "nvidia_smi" if kind == "device" else kind,
        "time_s": f"{steady[0].seconds:.4f}" if steady else "",
        "time_kind": "end_to_end",
        "source": "own measurement, scripts/gpu_run.py",
        "source_commit_or_date": record.created.date().isoformat(),
        "notes": f"random weights; seed 0; record {record.id}",
    }
    return {name: cells[name] for name in COLUMNS}


def tell(case: Case, record: Record) -> None:
    """Predicted beside measured, stage by stage, to stderr."""
    print(f"  {case.name}: {record.outcome.kind} {record.id}", file=sys.stderr)
    for each in compared(record):
        if each.predicted_bytes and each.measured_bytes:
            off = 100 * (each.predicted_bytes - each.measured_bytes) / each.measured_bytes
            print(
                f"    {each.name:14} {each.measured_bytes / GIB:8.3f} GiB, off by {off:+.2f} %",
                file=sys.stderr,
            )


def main(arguments: argparse.Namespace) -> int:
    """Run the cases in order until the time is spent."""
    cases = [case for case in CASES if arguments.only in case.name]
    more: dict[str, Any] = {"device": "cuda"}
    if arguments.configs is not None:
        small = {"width": 64, "height": 64, "num_inference_steps": 2, "model": arguments.model}
        quick = {"dtype": {"*": "float32"}}
        cases, more = [Case("tiny", small, quick)], {"device": "cpu", "configs": arguments.configs}
    began = time.monotonic()
    with arguments.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for number, case in enumerate(cases, 1):
            left = arguments.budget - (time.monotonic() - began)
            if left <= 0:
                print(f"stopped: {len(cases) - number + 1} cases left", file=sys.stderr)
                break
            print(f"[{number}/{len(cases)}] {case.name}", file=sys.stderr)
            record = verbs.run(
                Request(**case.request), Settings(**case.settings), timeout_s=left, **more
            )
            tell(case, record)
            if record.ok:
                writer.writerows(
                    row(case, record, kind) for kind in ("allocated", "reserved", "device")
                )
                file.flush()
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure true-size pipelines through cardfit run.")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument(
        "--configs", type=Path, help="a small diffusers folder: tries the script itself"
    )
    parser.add_argument(
        "--model", default="stable-diffusion-1.5", help="with --configs: the model of the folder"
    )
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds in all")
    sys.exit(main(parser.parse_args()))
