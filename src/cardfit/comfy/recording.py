"""`cardfit comfy record`: one prompt on a running server as a record, beside those of cardfit's own runs.

In: a workflow in the API format, a server. Out: a `Record` with the runtime comfyui, kept before the prompt is queued
and again when it has ended, however it did. Memory is what ``/system_stats`` says while it runs: the card's and the
machine's use and torch's reserved bytes, sampled, so that a short peak can be missed. With ``here`` the driver of this
very machine is read too, ten times a second.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cardfit.cards import load
from cardfit.cards.catalog import answers_to
from cardfit.comfy import client, http
from cardfit.comfy.check import devices_of, number, version_of
from cardfit.comfy.client import Seen, Span, Tell, Workflow
from cardfit.comfy.shown import shown
from cardfit.errors import BadRequest, InputError, ServerFailed
from cardfit.measure.keep import Keeper
from cardfit.measure.samplers import nvml
from cardfit.measure.samplers.base import Figure, Figures, peak
from cardfit.records import files
from cardfit.records.models import (
    Call,
    Inputs,
    Machine,
    Outcome,
    Reason,
    Record,
    Repetition,
    Stage,
    Weights,
)
from cardfit.units import GIB, parse_bytes

INTERVAL_S = 1.0
DRIVER_INTERVAL_S = 0.1
MAX_OUTPUT_BYTES = 4 * GIB
FIGURES: dict[str, Figure] = {
    "device_used_peak_bytes": Figure("device", peak, "memory of the card, all processes", True),
    "torch_reserved_peak_bytes": Figure("reserved", peak, "reserved by torch on the card", True),
    "torch_active_peak_bytes": Figure("active", peak, "of that in use", True),
    "host_used_peak_bytes": Figure("host", peak, "memory of the machine, all processes", True),
}
# The stage that a node belongs to, by the first pattern that is in its class.
STAGES: tuple[tuple[str, str], ...] = (
    (r"Load(Image|Video|Audio|Mask)|GetVideoComponents", "ingest"),
    (r"Loader|Load", "load"),
    (r"VAEDecode", "decode"),
    (r"VAEEncode|ImageToVideo|CLIPVisionEncode|FirstLastFrame|Inpaint", "encode_condition"),
    (r"TextEncode", "encode_prompt"),
    (r"KSamplerSelect|Scheduler|Sigmas|Guid", "other"),
    (r"Sampler", "denoise"),
    (r"Save|Preview|CreateVideo|VideoCombine", "export"),
)
_TRIED = re.compile(r"[Tt]ried to allocate ([0-9.]+ ?[KMGT]?i?B)\b")
_OOM = re.compile(r"out of memory|OutOfMemory|Allocation on device", re.IGNORECASE)
_HOST_OOM = re.compile(r"DefaultCPUAllocator|not enough memory|Unable to allocate")
_LONGEST = 600
_CUDA_GAP = 0.08  # of what CUDA calls total, below what the driver does; error correction included


def record(
    workflow: Path,
    server: str = "http://127.0.0.1:8188",
    *,
    allow_remote: bool = False,
    here: int | None = None,
    timeout_s: float | None = None,
    store: str | None = None,
    tell: Tell | None = None,
) -> Record:
    """Run ``workflow`` on ``server`` and keep what was seen. ``here`` is the index of this machine's card that it uses.

    Raises BadFile, BadRequest and ServerFailed for what is wrong before the prompt is queued; afterwards every end is
    an outcome of the record.
    """
    if timeout_s is not None and not timeout_s > 0:
        raise BadRequest("comfy-bad-timeout", asked=timeout_s)
    asked = client.read_api_file(workflow)
    address = http.address_of(server, allow_remote=allow_remote)
    stats = http.get_json(address, "/system_stats")
    if not isinstance(stats, dict) or not isinstance(stats.get("system"), dict):
        raise ServerFailed("comfy-server-not-one", server=address.url(""))
    begun = _begun(workflow, asked, stats)
    keeper = Keeper(begun.id, store)
    watch = _Watch(address, here)
    try:
        begun = keeper.save(begun)
        try:
            seen = client.run(address, asked, timeout_s=timeout_s, tell=tell)
        except (InputError, ServerFailed):
            keeper.drop(begun.id)  # nothing was queued
            raise
        watch.close()
        return keeper.save(_ended(begun, address, asked, seen, watch))
    finally:
        watch.close()
        keeper.close()


def _begun(path: Path, workflow: Workflow, stats: dict[str, Any]) -> Record:
    system = stats["system"]
    versions = {
        "cardfit": files.cardfit_version(),
        "comfyui": version_of(stats),
        "python": shown(str(system.get("python_version", "?")).partition(" ")[0], 40),
        "torch": shown(system.get("pytorch_version", "?"), 40),
    }
    text = json.dumps(workflow, sort_keys=True)
    return Record(
        id=files.new_id(),
        created=datetime.now(UTC),
        finished=False,
        runtime="comfyui",
        model=None,
        request=None,
        settings=None,
        weights=Weights(kind="own", name=shown(path.name)),
        inputs=Inputs(prompt_sha256=hashlib.sha256(text.encode()).hexdigest()),
        versions=versions,
        device=_device(stats),
        machine=_machine(stats),
        predicted=None,
        repetitions=(),
        outcome=Outcome(kind="interrupted", why=Reason.of("run-cut-off")),
    )


def _machine(stats: dict[str, Any]) -> Machine:
    system = stats["system"]
    os = {"posix": "linux", "nt": "windows"}.get(str(system.get("os")), str(system.get("os", "?")))
    machine = Machine(os=shown(os, 40), ram_bytes=number(system.get("ram_total")))
    devices = devices_of(stats)
    if not devices or _device(stats) == "cpu":
        return machine
    # "cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync"
    name, memory_bytes, _ = devices[0]
    plain = re.sub(r"^cuda:\d+ | : \w+$", "", name)
    return machine.model_copy(
        update={
            "card": _card(plain, memory_bytes),
            "card_name": plain,
            "card_memory_bytes": memory_bytes or None,
        }
    )


def _card(name: str, cuda_bytes: int) -> str | None:
    """The catalog's card of that name, by its memory where several share one; CUDA's total is a little below it."""
    near = [
        (abs(each.memory_bytes - cuda_bytes), each.id)
        for each in load().values()
        if each.memory_bytes and answers_to(each, name)
    ]
    off, card = min(near, default=(0, None))
    return card if off <= _CUDA_GAP * cuda_bytes else None


def _device(stats: dict[str, Any]) -> str:
    devices = stats.get("devices")
    first = devices[0] if isinstance(devices, list) and devices else None
    return shown(first.get("type", "?"), 20) if isinstance(first, dict) else "?"


def _ended(
    begun: Record, address: http.Address, workflow: Workflow, seen: Seen, watch: _Watch
) -> Record:
    end = seen.end
    assert end is not None
    notes = [Reason.of("comfy-sampled", seconds=INTERVAL_S)]
    if seen.cached:
        notes.append(Reason.of("comfy-cached", count=len(seen.cached)))
    if seen.breaks:
        notes.append(Reason.of("comfy-broke-off", count=seen.breaks))
    hashed, silent = _hashed(address, seen) if end.kind == "ok" else (None, {})
    figures = watch.figures.of(FIGURES)
    driver = watch.driver.of(nvml.FIGURES) if watch.nvml is not None else {}
    figures |= {name: value for name, value in driver.items() if value is not None}
    silent |= dict.fromkeys(
        (name for name in FIGURES if figures[name] is None), Reason.of("comfy-no-samples")
    )
    silent |= dict.fromkeys(
        ("allocated_peak_bytes", "reserved_peak_bytes"), Reason.of("comfy-no-counters")
    )
    row = Repetition(
        phase="own",
        number=0,
        seconds=seen.seconds,
        stages=_stages(workflow, seen, watch.figures),
        calls=tuple(_call(workflow, span, seen.seconds) for span in seen.spans),
        step_seconds=tuple(seen.steps_s),
        figures=figures,
        silent=silent,
        output_sha256=hashed,
    )
    return begun.model_copy(
        update={
            "finished": True,
            "repetitions": (row,),
            "outcome": _outcome(workflow, seen),
            "notes": (*begun.notes, *notes),
        }
    )


def _call(workflow: Workflow, span: Span, seconds: float) -> Call:
    kind = client.class_of(workflow, span.node)
    ended = seconds if span.ended_s is None else span.ended_s
    return Call(
        stage=stage_of(kind),
        component=shown(kind),
        method=shown(span.node),
        at_seconds=span.began_s,
        seconds=ended - span.began_s,
    )


def stage_of(kind: str) -> str:
    """The stage that a node of class ``kind`` belongs to.

    >>> stage_of("KSamplerAdvanced"), stage_of("VAEDecodeTiled"), stage_of("KSamplerSelect")
    ('denoise', 'decode', 'other')
    """
    return next((stage for pattern, stage in STAGES if re.search(pattern, kind)), "other")


def _stages(workflow: Workflow, seen: Seen, figures: Figures) -> tuple[Stage, ...]:
    """Nodes in a row that belong to one stage, together; the longest gives the component."""
    calls = [(_call(workflow, span, seen.seconds), span) for span in seen.spans]
    groups: list[list[Call]] = []
    for call, _ in calls:
        if groups and groups[-1][-1].stage == call.stage:
            groups[-1].append(call)
        else:
            groups.append([call])
    found = []
    for group in groups:
        begin, last = seen.begin + group[0].at_seconds, group[-1]
        end = seen.begin + last.at_seconds + last.seconds
        found.append(
            Stage(
                name=group[0].stage,
                component=max(group, key=lambda each: each.seconds).component,
                calls=len(group),
                seconds=sum(each.seconds for each in group),
                figures=figures.of(FIGURES, [(begin, end)]),
            )
        )
    return tuple(found)


def _outcome(workflow: Workflow, seen: Seen) -> Outcome:
    end = seen.end
    assert end is not None
    if end.kind == "ok":
        return Outcome(kind="ok")
    where: dict[str, Any] = {"phase": "own"}
    if end.node is not None:
        kind = client.class_of(workflow, end.node)
        where |= {"stage": stage_of(kind), "component": shown(kind), "op": shown(end.node)}
    if end.kind == "interrupted":
        return Outcome(kind="interrupted", why=Reason.of("comfy-interrupted"), **where)
    if end.kind == "timeout":
        return Outcome(kind="timeout", why=Reason.of("comfy-timed-out"), **where)
    if end.kind == "forgotten":
        return Outcome(kind="error", why=Reason.of("comfy-forgotten"), **where)
    if end.kind == "lost":
        why = Reason.of("comfy-server-lost", why=shown(end.text, _LONGEST))
        return Outcome(kind="error", why=why, **where)
    said = f"{end.error} {end.text}"
    tried = _TRIED.search(end.text)
    host = _HOST_OOM.search(said) or end.error == "MemoryError"
    return Outcome(
        kind="host_oom" if host else "oom" if _OOM.search(said) else "error",
        why=Reason.of("run-raised", kind=end.error, text=shown(end.text, _LONGEST)),
        tried_bytes=parse_bytes(tried[1]) if tried else None,
        log=end.log[-_LONGEST * 10 :] or None,
        **where,
    )


def _hashed(address: http.Address, seen: Seen) -> tuple[str | None, dict[str, Reason]]:
    """One hash over all outputs in their order, or why there is none."""
    digest, left = hashlib.sha256(), MAX_OUTPUT_BYTES
    outputs = [each for each in seen.outputs if each["type"] == "output"]
    if not outputs:
        return None, {"output_sha256": Reason.of("comfy-no-outputs")}
    try:
        for each in outputs:
            for piece in http.pieces(address, "/view", left, **each):
                digest.update(piece)
                left -= len(piece)
    except ServerFailed as error:
        return None, {"output_sha256": Reason.of("comfy-output-unread", why=str(error))}
    return digest.hexdigest(), {}


class _Watch:
    """Reads memory from the server, and the driver of this machine where it is asked for, until it is closed."""

    def __init__(self, address: http.Address, here: int | None) -> None:
        self.address = address
        self.figures, self.driver = Figures(), Figures()
        self.nvml = None if here is None else nvml.Nvml(here)
        self._stop = threading.Event()
        self._threads = [self._begin(self._server, INTERVAL_S)]
        if self.nvml is not None:
            self._threads.append(self._begin(self._card, DRIVER_INTERVAL_S))

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self.nvml is not None:
            self.nvml.close()

    def _begin(self, read: Callable[[], None], interval_s: float) -> threading.Thread:
        def go() -> None:
            read()
            while not self._stop.wait(interval_s):
                read()

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        return thread

    def _server(self) -> None:
        try:
            stats = http.get_json(self.address, "/system_stats", timeout_s=5.0)
        except ServerFailed:
            return
        self.figures.samples.append((time.monotonic(), reading_of(stats)))

    def _card(self) -> None:
        assert self.nvml is not None
        self.driver.samples.append((time.monotonic(), self.nvml.read()))


def reading_of(stats: Any) -> dict[str, float]:
    """What ``/system_stats`` says is in use; a figure that is not there is left out."""
    system = stats.get("system") if isinstance(stats, dict) else None
    devices: Sequence[Any] = stats.get("devices") or () if isinstance(stats, dict) else ()
    first = devices[0] if isinstance(devices, list) and devices else None
    found: dict[str, float] = {}
    for name, values, total, free in (
        ("host", system, "ram_total", "ram_free"),
        ("device", first, "vram_total", "vram_free"),
        ("active", first, "torch_vram_total", "torch_vram_free"),
    ):
        if isinstance(values, dict):
            whole, rest = number(values.get(total)), number(values.get(free))
            if whole is not None and rest is not None:
                found[name] = whole - rest
                if name == "active":
                    found["reserved"] = whole
    return found
