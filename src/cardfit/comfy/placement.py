"""ComfyUI's own placement: what of the weights lies on the card, what is paged, and how a decode gets through.

In: the memory of each stage with one component on the card at a time, the card's usable bytes, and how the workflow
decodes. Out: a `Placed`: fits, pages or does_not_fit, with the bytes behind it. The rules are in `data/runtime.yaml`.
Left out: IP adapters beside the sampler's own model, reference latents, and what a custom node does on its own.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from cardfit.library.models import Model
from cardfit.plan.verdict import Os
from cardfit.predict.estimate import MemoryEstimate, StageMemory
from cardfit.request import ExactRequest
from cardfit.units import GIB, MIB

_LARGE_CARD_BYTES = 15 * GIB
_HALF_ITEM = 2  # bytes of the dtype that denoising computes in


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Factor(_Frozen):
    """ComfyUI's factor for the models whose id matches."""

    match: str
    factor: float
    side: int | None = None


class Rules(_Frozen):
    """The data file."""

    sources: tuple[str, ...]
    reserve_mib: dict[Os, int]
    reserve_large_mib: dict[Os, int]
    minimum_working_mib: int
    bf16_decode_share: float
    bf16_decode_time_share: float
    fallback_tile: int
    fallback_overlap_share: float
    cell_share: float
    move_bytes_per_s: float
    factors: tuple[Factor, ...]


@cache
def rules() -> Rules:
    """The shipped rules."""
    import yaml

    text = (files("cardfit.comfy") / "data" / "runtime.yaml").read_text(encoding="utf-8")
    return Rules.model_validate(yaml.safe_load(text))


@dataclass(frozen=True, slots=True)
class WorkflowFacts:
    """What a workflow says beside request and settings.

    How it decodes: in tiles of its own (pixels, frames), or whole, with ComfyUI's fallback. ``fp8_components`` are
    those whose files bring scales, so that ComfyUI multiplies them in fp8 where the card can.
    """

    tiled: bool = False
    tile: int | None = None
    overlap: int | None = None
    temporal: int | None = None
    fp8_components: tuple[str, ...] = ()


Verdict = Literal["fits", "pages", "does_not_fit"]
Limit = Literal["denoise", "decode", "host", ""]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where everything lies on one card; bytes. ``paged_bytes`` come over the link at every step."""

    verdict: Verdict
    limit: Limit
    weights_bytes: int
    resident_bytes: int
    paged_bytes: int
    working_bytes: int
    decode_bytes: int
    falls_back: bool
    over_bytes: int
    from_disk: bool
    peak_bytes: int
    peak_stage: str


def reserve_bytes(os: Os, memory_bytes: int | None) -> int:
    """What ComfyUI leaves to other programs.

    >>> reserve_bytes("windows", 24 * GIB) // MIB
    700
    """
    found = rules().reserve_mib[os] * MIB
    if (memory_bytes or 0) > _LARGE_CARD_BYTES:
        found += rules().reserve_large_mib.get(os, 0) * MIB
    return found


def reckoned_bytes(model: Model, request: ExactRequest) -> int | None:
    """The working memory of a denoising step that ComfyUI itself reckons with; None where its factor is not known.

    >>> from cardfit.library import load
    >>> from cardfit.library.rules import resolve
    >>> from cardfit.request import Request
    >>> entry = load("wan2.1-t2v-14b")
    >>> exact, _ = resolve(entry, Request(model=entry.id, width=832, height=480, num_frames=81))
    >>> round(reckoned_bytes(entry, exact) / GIB, 1)
    5.9
    """
    found = next((each for each in rules().factors if re.fullmatch(each.match, model.id)), None)
    if found is None:
        return None
    shape = model.latent_shape(request.width, request.height, request.num_frames, request.batch)
    cells = math.prod(shape) // shape[1]
    if found.side is not None:
        cells = cells * model.vae.spatial_compression**2 // found.side**2
    return round(cells * _HALF_ITEM * rules().cell_share * found.factor * MIB)


def _stage(estimate: MemoryEstimate, name: str) -> StageMemory | None:
    stages = [each for each in estimate.stages if each.name == name]
    return max(stages, key=lambda each: each.allocated_bytes, default=None)


def decode_bytes(
    whole_bytes: int, request: ExactRequest, decoder: WorkflowFacts, *, by_time: bool
) -> int:
    """Working bytes of a decode in the workflow's tiles, as a share of the whole picture's.

    ``by_time``: the decoder takes all frames at once unless told otherwise, so shorter tiles in time help.

    >>> from types import SimpleNamespace
    >>> clip = SimpleNamespace(width=1024, height=1024, num_frames=128)
    >>> decode_bytes(64 * GIB, clip, WorkflowFacts(tiled=True, tile=512, temporal=64), by_time=True) // GIB
    8
    """
    if not decoder.tiled:
        return whole_bytes
    tile = decoder.tile or rules().fallback_tile
    share = min(1.0, tile / request.width) * min(1.0, tile / request.height)
    if by_time and decoder.temporal:
        share *= min(1.0, decoder.temporal / request.num_frames)
    return round(whole_bytes * share)


def place(
    model: Model,
    request: ExactRequest,
    estimate: MemoryEstimate,
    usable_bytes: int,
    *,
    os: Os = "linux",
    memory_bytes: int | None = None,
    ram_bytes: int | None = None,
    decoder: WorkflowFacts | None = None,
    vae_share: float = 1.0,
) -> Placed:
    """Where ComfyUI puts everything on a card with ``usable_bytes``.

    ``estimate`` has one component on the card at a time; ``vae_share`` is what the decode's working memory shrinks to
    where ComfyUI decodes in a smaller dtype than the estimate.
    """
    how = decoder or WorkflowFacts()
    free = max(0, usable_bytes - reserve_bytes(os, memory_bytes))
    denoise, decode = _stage(estimate, "denoise"), _stage(estimate, "decode")
    weights = denoise.weights_bytes if denoise else 0
    working = denoise.activation_bytes if denoise else 0
    if model.cfg.batched and request.guidance_scale > 1:
        working //= 2  # both halves run one after another where they do not fit together
    reckoned = reckoned_bytes(model, request)
    keep = max(rules().minimum_working_mib * MIB, working, reckoned or 0)
    paged = min(weights, max(0, weights + keep - free))
    resident = weights - paged
    decode_whole = round((decode.activation_bytes if decode else 0) * vae_share)
    vae = decode.weights_bytes if decode else 0
    by_time = model.is_video and "AutoencoderKLWan" not in _vae_class(model)
    need = vae + decode_bytes(decode_whole, request, how, by_time=by_time)
    falls_back = False
    if need > free and not how.tiled:
        fallback = WorkflowFacts(
            tiled=True, tile=rules().fallback_tile, temporal=request.num_frames // 4
        )
        need = vae + decode_bytes(decode_whole, request, fallback, by_time=by_time)
        falls_back = True
    limit, over = _limit(model, estimate, working, need, free, ram_bytes)
    from_disk = ram_bytes is not None and estimate.host_bytes > ram_bytes and limit != "host"
    verdict: Verdict = "does_not_fit" if limit else "pages" if paged or from_disk else "fits"
    at_denoise = resident + working >= need
    return Placed(
        verdict=verdict,
        limit=limit,
        weights_bytes=weights,
        resident_bytes=resident,
        paged_bytes=paged,
        working_bytes=working,
        decode_bytes=need,
        falls_back=falls_back,
        over_bytes=over,
        from_disk=from_disk,
        peak_bytes=max(resident + working, need),
        peak_stage="denoise" if at_denoise else "decode",
    )


def _limit(
    model: Model,
    estimate: MemoryEstimate,
    working: int,
    decode: int,
    free: int,
    ram_bytes: int | None,
) -> tuple[Limit, int]:
    """What ends the run, and by how many bytes."""
    if working > free:
        return "denoise", working - free
    if decode > free:
        return "decode", decode - free
    if ram_bytes is not None:
        frames = sum(
            size for each in estimate.host for name, size in each.parts if name == "frames"
        )
        largest = max((stage.weights_bytes for stage in estimate.stages), default=0)
        if largest + frames > ram_bytes:
            return "host", largest + frames - ram_bytes
    return "", 0


def _vae_class(model: Model) -> str:
    return model.components[model.vae.component].class_path.rpartition(".")[2]
