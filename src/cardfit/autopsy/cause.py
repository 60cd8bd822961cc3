"""Why a run ended: one cause of a closed list, how sure that is, and the lines and figures that say so.

In: a `Reading` and its `Where`. Out: a `Cause`. The thresholds are rules, not measurements; each says what it rests on.
Nothing here knows the request: what the planner can add is in `diagnose`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cardfit.autopsy.read import Frame, Reading
from cardfit.autopsy.result import CauseName, Confidence, Evidence
from cardfit.autopsy.where import Where
from cardfit.plan.answer import Said
from cardfit.units import MIB, human_bytes

# Another process decides when what it holds would have been enough for the request. Desktops hold about 1 GiB, so
# less than an eighth of the card is only named beside the cause.
OTHER_SHARE = 1 / 8
# PyTorch's own advice names fragmentation when much is reserved and not allocated; here: more than was asked for.
LEAST_FRAGMENTED_BYTES = 256 * MIB
# A request of this share of the card is no ordinary activation (published: 28.9 and 30.3 of 11 to 24 GiB).
ABSURD_SHARE = 1.0
LARGE_SHARE = 0.25
# Almost all of the card is allocated and the last request is small: weights filled it.
FULL_SHARE = 0.93
SLOWED = 4.0  # times; and the step takes longer than SLOW_STEP_S
SLOW_STEP_S = 60.0

_ATTENTION = re.compile(
    r"scaled_dot_product|attention_processor|attention_dispatch|get_attention_scores"
    r"|attention_(?:basic|pytorch|sub_quad|split)"
    r"|\battn\w*\(|baddbmm|sdpa|_attention\(|attention\.py|softmax|torch\.bmm|einsum",
    re.IGNORECASE,
)
_TILED = re.compile(
    r"tiled_decode|decode_tiled|_temporal_tiled|blend_[vht]\b|tiled_scale"
    r"|spatial_tiled|VAEDecodeTiled"
)
_MOVING = re.compile(
    r"accelerate[/\\]hooks\.py|model_management\.py|hooks[/\\]group_offloading\.py"
    r"|mmgp[/\\]offload\.py"
)
_MOVED = re.compile(
    r"^(?:to|cuda|_apply|convert|_move_to|send_to_device|set_module_tensor_to_device"
    r"|load_models_gpu|partially_load|onload_|_process_tensors_\w+|patch_model"
    r"|load)$"
)
_TEXT_LOADED = re.compile(r"T5|text_encoder|umt5|CLIPLoader|LoadWanVideoT5", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause with how sure it is and what says so; ``detail`` tells apart what one word covers."""

    name: CauseName
    confidence: Confidence
    evidence: tuple[Evidence, ...] = ()
    detail: str = ""


def cause(reading: Reading, place: Where) -> Cause:
    """The cause of the end that the text tells of."""
    error = reading.error
    if error is None or (error.kind == "other" and reading.spill_at is not None):
        return _slow(reading)
    told: dict[str, tuple[CauseName, Confidence]] = {
        "host": ("host_ram", "sure"),
        "pinned": ("pinned_memory", "sure"),
        "dtype": ("dtype", "sure"),
        "kernel": ("no_memory_error", "sure"),
        "build": ("no_memory_error", "sure"),
        "other": ("no_memory_error", "likely"),
        "fallback": ("decode_untiled", "sure"),
    }
    if error.kind in told:
        name, confidence = told[error.kind]
        return Cause(
            name, confidence, (_said(reading, error.at, f"autopsy-tells-{error.kind}"),), error.kind
        )
    first = _said(reading, error.at, f"autopsy-tells-{error.kind}")
    found = _on_card(reading, place)
    return Cause(found.name, found.confidence, (first, *found.evidence), found.detail)


def _said(reading: Reading, at: int, code: str, **args: object) -> Evidence:
    return Evidence(line=at + 1, text=reading.line(at), tells=Said.of(code, **args))


def _figure(code: str, **sizes: int) -> Evidence:
    said = Said.of(code, **{name: human_bytes(size) for name, size in sizes.items()})
    return Evidence(line=None, text="", tells=said)


def _on_card(reading: Reading, place: Where) -> Cause:
    for look in (_other_process, _attention, _fragmentation, _by_stage, _by_figures):
        if (found := look(reading, place)) is not None:
            return found
    if reading.error is not None and reading.error.kind == "driver":
        return Cause("pinned_memory", "guess", detail="driver")
    return Cause("unknown", "guess")


def _other_process(reading: Reading, place: Where) -> Cause | None:
    numbers = reading.numbers
    other, capacity, tried = numbers.other_bytes, numbers.capacity_bytes, numbers.tried_bytes
    if other is None or capacity is None or tried is None or numbers.backend == "mps":
        return None
    if other < capacity * OTHER_SHARE or other + (numbers.free_bytes or 0) < tried:
        return None
    said = _figure("autopsy-tells-others", other=other, tried=tried, capacity=capacity)
    return Cause("other_process", "likely", (said,))


def _attention(reading: Reading, place: Where) -> Cause | None:
    """One request that is large for the card, in attention or where nothing else explains it."""
    numbers = reading.numbers
    tried, capacity = numbers.tried_bytes, numbers.capacity_bytes
    if (
        tried is None
        or capacity is None
        or place.stage in ("decode", "load", "export", "ingest", "post")
    ):
        return None
    frame = _attention_frame(reading.frames)
    share = tried / max(1, capacity)
    figure = _figure("autopsy-tells-one-request", tried=tried, capacity=capacity)
    if frame is not None and share >= LARGE_SHARE:
        said = _said(reading, frame.at, "autopsy-tells-attention-frame")
        return Cause("attention", "sure" if share >= ABSURD_SHARE else "likely", (figure, said))
    if share >= ABSURD_SHARE:
        return Cause("attention", "likely" if place.stage == "denoise" else "guess", (figure,))
    return None


def _attention_frame(frames: tuple[Frame, ...]) -> Frame | None:
    inner = frames[-4:]
    return next(
        (f for f in reversed(inner) if _ATTENTION.search(f"{f.path} {f.function} {f.code}")), None
    )


def _fragmentation(reading: Reading, place: Where) -> Cause | None:
    numbers = reading.numbers
    apart, tried = numbers.reserved_unallocated_bytes, numbers.tried_bytes
    if apart is None or tried is None or apart < max(tried, LEAST_FRAGMENTED_BYTES):
        return None
    return Cause(
        "fragmentation", "likely", (_figure("autopsy-tells-fragmented", apart=apart, tried=tried),)
    )


def _by_stage(reading: Reading, place: Where) -> Cause | None:
    if place.stage is None or place.at is None:
        return None
    sure: Confidence = "sure" if place.firm else "likely"
    said = _said(reading, place.at, f"autopsy-tells-stage-{place.stage}")
    if place.stage == "decode":
        tile = next((at for at, line in enumerate(reading.lines) if _TILED.search(line)), None)
        if tile is None:
            return Cause("decode_untiled", sure, (said,))
        return Cause("decode", sure, (said, _said(reading, tile, "autopsy-tells-tiled")))
    if place.stage == "load":
        text = _TEXT_LOADED.search(reading.line(place.at)) is not None
        return Cause("text_encoder_resident" if text else "load_on_card", sure, (said,))
    if place.stage == "encode_prompt":
        return Cause("text_encoder_resident", sure, (said,))
    if place.stage in ("denoise", "encode_condition") and (moving := _moving(reading.frames)):
        move = _said(reading, moving.at, "autopsy-tells-moving")
        return Cause("weights_do_not_fit", "likely", (said, move))
    if place.stage in ("denoise", "encode_condition"):
        return Cause("activations", "likely" if place.firm else "guess", (said,))
    return Cause("activations", "guess", (said,))


def _moving(frames: tuple[Frame, ...]) -> Frame | None:
    """The frame that was bringing weights to the card when it failed, if the innermost frames were."""
    inner = frames[-6:]
    moved = bool(inner) and any(_MOVED.match(frame.function) for frame in inner[-2:])
    return next((f for f in reversed(inner) if moved and _MOVING.search(f.path)), None)


def _by_figures(reading: Reading, place: Where) -> Cause | None:
    """Without a stage: a card that is full while little is asked for was filled by weights."""
    numbers = reading.numbers
    allocated, capacity, tried = (
        numbers.allocated_bytes,
        numbers.capacity_bytes,
        numbers.tried_bytes,
    )
    if capacity is None or tried is None:
        return None
    used = allocated or numbers.in_use_bytes
    if used is None or used < FULL_SHARE * capacity or tried > capacity / 32:
        return None
    said = _figure("autopsy-tells-full", used=used, capacity=capacity, tried=tried)
    return Cause("weights_do_not_fit", "guess", (said,))


def _slow(reading: Reading) -> Cause:
    """No error: a run that slowed to a crawl or says that it took host memory spilled."""
    if reading.spill_at is not None:
        said = _said(reading, reading.spill_at, "autopsy-tells-spill")
        return Cause("spill", "likely", (said,))
    timed = [bar for bar in reading.bars if bar.seconds_each is not None]
    if len(timed) > 1:
        fastest = min(bar.seconds_each or 0.0 for bar in timed)
        last = timed[-1]
        each = last.seconds_each or 0.0
        if each >= SLOW_STEP_S and each >= SLOWED * fastest:
            args = {"fast": f"{fastest:g}", "slow": f"{each:g}"}
            return Cause(
                "spill", "guess", (_said(reading, last.at, "autopsy-tells-slowed", **args),)
            )
    if reading.error is not None:
        return Cause(
            "no_memory_error",
            "likely",
            (_said(reading, reading.error.at, "autopsy-tells-other"),),
            "other",
        )
    return Cause("unknown", "guess", detail="nothing")
