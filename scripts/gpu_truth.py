"""Measure true-size pipelines with random weights on a CUDA card, as rows for `cardfit accuracy`.

    python scripts/gpu_truth.py --out truth.csv              about a dozen cases, at most ten minutes
    python scripts/gpu_truth.py --out truth.csv --only decode
    python scripts/gpu_truth.py --out tiny.csv --tiny        the same steps with shrunk modules, on a CPU too
    cardfit accuracy truth.csv                               predicted against what was measured

Memory and time do not ask what the weights are: parameters are random, of the right shape and dtype. Every case is
written as it ends, so a run that is cut short keeps what it has. What a CPU cannot measure stays empty. Peaks per stage
and the segments of the allocator stand in a JSON file beside the rows.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from cardfit.accuracy.rows import COLUMNS
from cardfit.library import load
from cardfit.library.build import build
from cardfit.library.models import ComponentSpec, Model
from cardfit.library.rules import resolve
from cardfit.request import ExactRequest, Request, Settings
from cardfit.trace import recipes
from cardfit.trace.dryrun import DryRun
from cardfit.trace.recorder import Recorder
from cardfit.units import GIB

BUDGET_S = 540.0
STEPS = 3
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
# Configs of the shrunk modules: enough of each structure for every line of this script to run on a CPU.
SHRUNK: dict[str, dict[str, Any]] = {
    "AutoencoderKL": {"block_out_channels": (8, 8, 8, 8), "norm_num_groups": 4, "layers_per_block": 1},
    "AutoencoderKLQwenImage": {"base_dim": 4, "num_res_blocks": 1},
    "FluxTransformer2DModel": {
        "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2,
        "pooled_projection_dim": 16, "axes_dims_rope": (4, 6, 6),
    },
    "UNet2DConditionModel": {
        "block_out_channels": (8, 8, 8), "norm_num_groups": 4, "layers_per_block": 1,
        "transformer_layers_per_block": 1, "attention_head_dim": 4, "cross_attention_dim": 32,
        "projection_class_embeddings_input_dim": 6 * 8 + 16, "addition_time_embed_dim": 8,
    },
    "CLIPTextModel": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2},
    "CLIPTextModelWithProjection": {
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "projection_dim": 16,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One configuration: what runs, how large, and how it is written down."""

    name: str
    model: str
    scope: str  # decode_only, denoise_only or full_pipeline
    precision: str
    side: int = 1024
    batch: int = 1
    offload: str = "none"
    attention: str = "sdpa"


CASES = (
    *(Case(f"decode-bf16-{n}", "flux.1-dev", "decode_only", "bf16", batch=n) for n in (1, 2, 4, 8)),
    *(Case(f"decode-fp32-{n}", "flux.1-dev", "decode_only", "fp32", batch=n) for n in (1, 2, 4)),
    Case("decode-qwen", "qwen-image", "decode_only", "fp16"),
    Case("step-flux", "flux.1-dev", "denoise_only", "bf16"),
    Case("step-flux-math", "flux.1-dev", "denoise_only", "bf16", side=512, attention="math"),
    *(
        Case(f"sdxl-{mode}", "sdxl-base", "full_pipeline", "fp16", offload=mode)
        for mode in ("none", "model", "group-leaf", "sequential")
    ),
)


@dataclass
class Measured:
    """What one case took: bytes and seconds; None is what this machine cannot measure."""

    held_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    device_bytes: int | None = None
    seconds: float | None = None
    stages: dict[str, dict[str, float]] = field(default_factory=dict)


class Meter:
    """Peaks of the card between two moments; on a CPU only the clock."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"

    def start(self) -> None:
        """Forget earlier peaks."""
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self.began = time.perf_counter()

    def stop(self) -> Measured:
        """Peaks and seconds since `start`."""
        if not self.cuda:
            return Measured(seconds=time.perf_counter() - self.began)
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        return Measured(
            allocated_bytes=torch.cuda.max_memory_allocated(),
            reserved_bytes=torch.cuda.max_memory_reserved(),
            device_bytes=total - free,
            seconds=time.perf_counter() - self.began,
        )

    def held(self) -> int | None:
        """Bytes allocated now."""
        return torch.cuda.memory_allocated() if self.cuda else None


def shrunk(model: Model) -> Model:
    """The model with every component that has a small form in it."""
    parts = {
        name: part.model_copy(update={"config": {**part.config, **SHRUNK.get(_kind(part), {})}})
        for name, part in model.components.items()
    }
    return model.model_copy(update={"components": parts})


def _kind(part: ComponentSpec) -> str:
    return part.class_path.rpartition(".")[2]


def filled(module: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    """``module`` with random parameters on ``device``; buffers keep their values."""
    done: dict[int, torch.nn.Parameter] = {}
    for owner in module.modules():
        for name, parameter in list(owner.named_parameters(recurse=False)):
            if id(parameter) not in done:
                values = torch.empty(parameter.shape, dtype=parameter.dtype, device=device)
                if values.is_floating_point():
                    values.normal_(std=0.02)
                done[id(parameter)] = torch.nn.Parameter(values, requires_grad=False)
            setattr(owner, name, done[id(parameter)])
        for name, buffer in list(owner.named_buffers(recurse=False)):
            setattr(owner, name, buffer.to(device))
    return module


def decode(case: Case, model: Model, request: ExactRequest, device: torch.device) -> Measured:
    """One decode by the autoencoder alone, warmed up; the figure is what it takes beside what was held."""
    part = model.components[model.vae.component]
    dtype = DTYPES[case.precision]
    vae: Any = filled(build(part, dtype), device)
    shape = model.latent_shape(request.width, request.height, 1, request.batch)
    if model.vae.temporal_compression > 1:
        shape = (*shape[:2], 1, *shape[2:])
    latent = torch.randn(shape, dtype=getattr(torch, dtype), device=device)
    meter = Meter(device)
    vae.decode(latent)
    _empty(device)
    held = meter.held()
    meter.start()
    vae.decode(latent)
    found = meter.stop()
    found.held_bytes = held
    return found


def step(case: Case, model: Model, request: ExactRequest, device: torch.device) -> Measured:
    """Calls of the denoiser with the arguments that the pipeline gives it; the second one is measured."""
    settings = Settings(dtype={"*": DTYPES[case.precision]})
    name, args, kwargs = first_call(model, request, settings)
    module: Any = filled(build(model.components[name], settings.dtype["*"]), device)
    generator = torch.Generator(device="cpu").manual_seed(0)
    args, kwargs = _real((args, kwargs), device, generator)
    math = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    meter = Meter(device)
    with math if case.attention == "math" else nullcontext():
        module(*args, **kwargs)
        _empty(device)
        meter.start()
        module(*args, **kwargs)
        return meter.stop()


def first_call(
    model: Model, request: ExactRequest, settings: Settings
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Name of the denoiser and the arguments of its first call: shapes and dtypes as the pipeline hands them over."""
    caught: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    original = Recorder.component_call
    run = DryRun(model, request, settings, None)

    def watching(self: Recorder, component: int, *rest: Any) -> Any:
        name = run.components[component].name
        if name.startswith(("transformer", "unet")) and not caught:
            with self.pause():
                caught.append((name, *_shapes(rest[-2:])))
        return original(self, component, *rest)

    Recorder.component_call = watching  # type: ignore[method-assign]
    try:
        run.run()
    finally:
        Recorder.component_call = original  # type: ignore[method-assign]
    return caught[0]


@dataclass(frozen=True)
class Shape:
    """A tensor by its shape and dtype; small ones keep their values."""

    size: tuple[int, ...]
    dtype: torch.dtype
    values: torch.Tensor | None


def _shapes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        small = value.numel() <= 1_000_000 and not value.is_floating_point()
        return Shape(tuple(value.shape), value.dtype, value.clone() if small else None)
    return _mapped(value, _shapes)


def _real(value: Any, device: torch.device, generator: torch.Generator) -> Any:
    if isinstance(value, Shape):
        if value.values is not None:
            return value.values.to(device)
        made = torch.randn(value.size, generator=generator, dtype=torch.float32)
        return made.to(device=device, dtype=value.dtype)
    return _mapped(value, lambda item: _real(item, device, generator))


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: change(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(change(item) for item in value)
    return value


def pipeline(case: Case, model: Model, request: ExactRequest, device: torch.device) -> Measured:
    """The whole pipeline under an offload, peaks per stage."""
    import diffusers

    kind = getattr(diffusers, model.pipeline_for(request.task))
    settings = Settings(dtype={"*": DTYPES[case.precision]})
    home = device if case.offload == "none" else torch.device("cpu")
    modules = {
        name: filled(build(part, settings.dtype["*"]), home)
        for name, part in model.components.items()
        if part.counted
    }
    whole: Any = kind(**modules, **recipes.parts(model, kind, modules, request))
    whole.set_progress_bar_config(disable=True)
    _offload(whole, case.offload, device)
    arguments = recipes.call_arguments(model, whole, request, settings)
    stages: dict[str, dict[str, float]] = {}
    meter = Meter(device)
    held = meter.held()
    with torch.no_grad():
        meter.start()
        with _watched(modules, stages, device):
            whole(**arguments)
        found = meter.stop()
    found.held_bytes = held
    found.stages = stages
    return found


def _offload(whole: Any, mode: str, device: torch.device) -> None:
    if mode == "none":
        return
    if device.type != "cuda":
        return  # accelerate and diffusers move weights to a card only
    if mode == "model":
        whole.enable_model_cpu_offload()
    elif mode == "sequential":
        whole.enable_sequential_cpu_offload()
    else:
        whole.enable_group_offload(
            onload_device=device,
            offload_device=torch.device("cpu"),
            offload_type="leaf_level",
            use_stream=True,
        )


@contextmanager
def _watched(
    modules: dict[str, torch.nn.Module], stages: dict[str, dict[str, float]], device: torch.device
) -> Iterator[None]:
    """Note allocated and reserved peaks after every call of a component, without resetting them in between."""
    handles = []
    began: dict[str, float] = {}

    def before(name: str) -> Callable[..., None]:
        return lambda *_: began.update({name: time.perf_counter()})

    def after(name: str) -> Callable[..., None]:
        def note(*_: Any) -> None:
            if device.type == "cuda":
                torch.cuda.synchronize()
            row = stages.setdefault(name, {"calls": 0, "seconds": 0.0})
            row["calls"] += 1
            row["seconds"] += time.perf_counter() - began[name]
            if device.type == "cuda":
                row["allocated_bytes_so_far"] = torch.cuda.max_memory_allocated()
                row["reserved_bytes_so_far"] = torch.cuda.max_memory_reserved()

        return note

    for name, module in modules.items():
        inner = getattr(module, "decoder", module) if name.startswith("vae") else module
        handles += [
            inner.register_forward_pre_hook(before(name)),
            inner.register_forward_hook(after(name)),
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _empty(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def row(
    case: Case, model: Model, request: ExactRequest, found: Measured, kind: str
) -> dict[str, str]:
    """One line of the CSV. ``kind``: allocated, reserved or device."""
    sizes = {
        "allocated": found.allocated_bytes,
        "reserved": found.reserved_bytes,
        "device": found.device_bytes,
    }
    size = sizes[kind]
    notes = f"random weights; seed 0; case {case.name}"
    if case.scope == "decode_only":
        if kind == "allocated" and size is not None and found.held_bytes is not None:
            size -= found.held_bytes
            notes += "; working memory (peak minus what was held before)"
        else:
            notes += "; weights included"
    cuda = torch.cuda.is_available()
    cells = dict.fromkeys(COLUMNS, "") | {
        "id": f"own-{case.name}-{kind}",
        "model": model.id,
        "diffusers_pipeline": model.pipeline,
        "gpu": torch.cuda.get_device_name() if cuda else "",
        "gpu_vram_gib": str(round(torch.cuda.mem_get_info()[1] / GIB)) if cuda else "",
        "framework": "diffusers",
        "framework_version": f"diffusers {version('diffusers')}, torch {torch.__version__}",
        "precision_weights": case.precision,
        "precision_compute": case.precision,
        "quantization": "none",
        "width": str(request.width),
        "height": str(request.height),
        "num_frames": str(request.num_frames),
        "batch": str(request.batch),
        "steps": str(request.num_inference_steps),
        "guidance_cfg": "yes" if model.cfg.batched and request.guidance_scale > 1 else "no",
        "offload": case.offload.replace("-", "_"),
        "vae_tiling": "no",
        "vae_slicing": "no",
        "compile": "no",
        "attention": "unfused (math)" if case.attention == "math" else "sdpa",
        "scope": case.scope,
        "peak_gib_reported": "" if size is None else f"{size / GIB:.6f}",
        "peak_unit_as_written": "GiB",
        "peak_kind": "nvidia_smi" if kind == "device" else kind,
        "time_s": "" if found.seconds is None else f"{found.seconds:.4f}",
        "time_kind": "end_to_end",
        "source": "own measurement, scripts/gpu_truth.py",
        "source_commit_or_date": date.today().isoformat(),
        "notes": notes,
    }
    return {name: cells[name] for name in COLUMNS}


RUNS = {"decode_only": decode, "denoise_only": step, "full_pipeline": pipeline}


def run(
    case: Case, device: torch.device, tiny: bool
) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """Measure one case: its rows and its JSON entry."""
    model = load(case.model)
    asked = Request(
        model=model.id,
        width=64 if tiny else case.side,
        height=64 if tiny else case.side,
        batch=case.batch,
        num_inference_steps=STEPS,
    )
    request, _ = resolve(model, asked)
    model = shrunk(model) if tiny else model
    with torch.no_grad():
        found = RUNS[case.scope](case, model, request, device)
    _empty(device)
    kinds = ("allocated", "reserved", "device")
    entry = {"case": asdict(case), **asdict(found)}
    return [row(case, model, request, found, kind) for kind in kinds], entry


def main(arguments: argparse.Namespace) -> int:
    """Run the cases in order until the time is spent."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu" and not arguments.tiny:
        print("no CUDA card here; --tiny runs the same steps with shrunk modules", file=sys.stderr)
        return 2
    chosen = [case for case in CASES if arguments.only in case.name]
    began = time.perf_counter()
    entries = []
    with arguments.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for number, case in enumerate(chosen, 1):
            spent = time.perf_counter() - began
            if spent > arguments.budget:
                print(
                    f"stopped after {spent:.0f} s: {len(chosen) - number + 1} cases left",
                    file=sys.stderr,
                )
                break
            print(f"[{number}/{len(chosen)}] {case.name} ({spent:.0f} s)", file=sys.stderr)
            try:
                rows, entry = run(case, device, arguments.tiny)
            except torch.OutOfMemoryError as error:
                rows, entry = [], {"case": asdict(case), "error": str(error)[:400]}
                _empty(device)
            writer.writerows(rows)
            file.flush()
            entries.append(entry)
            arguments.out.with_suffix(".json").write_text(json.dumps(entries, indent=1))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure true-size pipelines with random weights.")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument(
        "--tiny", action="store_true", help="shrunk modules: tries the script itself"
    )
    parser.add_argument(
        "--budget", type=float, default=BUDGET_S, help="seconds after which no case starts"
    )
    sys.exit(main(parser.parse_args()))
