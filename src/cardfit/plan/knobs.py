"""Settings to try, in the order of their price: free, slower, slightly lossy, lossy.

In: what the model offers (`Knobs`) and the settings a person gave. Out: candidates, cheapest in
quality first. What was given stays; only knobs left open (``None``, or an empty dict) are turned.
The number of candidates is small (at most a few dozen) because combinations that diffusers
refuses are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

from cardfit.messages import say
from cardfit.plan.answer import Price
from cardfit.records.costs import lossy_knobs
from cardfit.request import OFFLOADS, Offload, Quantization, Settings
from cardfit.trace.stream import Trace

LARGE_ENCODER_BYTES = 1_000_000_000  # quantizing a smaller text encoder saves too little to matter
# The sizes tried for `decode_chunk_size`: frames decoded per call (Stable Video Diffusion's knob).
CHUNKS = (8, 2)
# What shapes no trace, as it stands in the settings that do.
_NOT_SHAPING: dict[str, object] = {
    "offload": None,
    "quantization": {},
    "compile": None,
    "use_stream": None,
    "num_blocks_per_group": None,
    "low_cpu_mem_usage": None,
    "offload_to_disk": None,
    "blocks_to_swap": None,
    "alloc_conf": None,
}
_DENOISERS = ("transformer", "unet", "prior")
_TEXT_ENCODERS = ("text_encoder", "mllm")
# What each weight scheme costs, least first, and the offloads it is tried with (diffusers 0.42:
# bitsandbytes weights do not move leaf by leaf; the others are moved as a whole, too).
_SCHEMES: dict[Quantization, tuple[int, tuple[Offload, ...]]] = {
    "none": (0, OFFLOADS),
    "fp8-layerwise": (1, ("none", "model", "group-block", "group-leaf")),
    "bnb-int8": (2, ("none", "model")),
    "bnb-nf4": (3, ("none", "model")),
    "torchao-fp8": (1, ("none", "model")),
    "torchao-fp8dq": (1, ("none", "model")),
    "torchao-int8": (2, ("none", "model")),
    "torchao-int8dq": (2, ("none", "model")),
    "torchao-int4": (3, ("none", "model")),
    "quanto-fp8": (1, ("none", "model")),
    "quanto-int8": (2, ("none", "model")),
    "quanto-int4": (3, ("none", "model")),
    "quanto-int2": (5, ("none", "model")),
    "gguf-q8_0": (1, ("none", "model")),
    "gguf-q6_k": (2, ("none", "model")),
    "gguf-q5_k": (2, ("none", "model")),
    "gguf-q5_1": (2, ("none", "model")),
    "gguf-q5_0": (2, ("none", "model")),
    "gguf-q4_k": (3, ("none", "model")),
    "gguf-q4_1": (3, ("none", "model")),
    "gguf-q4_0": (3, ("none", "model")),
    "gguf-q3_k": (4, ("none", "model")),
    "gguf-q2_k": (5, ("none", "model")),
    "svdq-int4": (3, ("none", "model")),
    "svdq-nvfp4": (3, ("none", "model")),
}
_SEARCHED: tuple[Quantization, ...] = ("none", "fp8-layerwise", "bnb-int8", "bnb-nf4")


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a model offers to turn.

    ``tile`` is the tile side in pixels that the VAE takes by itself, ``None`` where it cannot
    tile or where the picture is no larger than a tile; ``chunked`` whether the pipeline takes
    `decode_chunk_size`; ``always_tiled`` whether the VAE decodes in tiles only,
    which then is its reference and costs nothing.
    """

    denoisers: tuple[str, ...]
    text_encoders: tuple[str, ...]
    tile: int | None = None
    slicing: bool = False
    chunked: bool = False
    always_tiled: bool = False
    num_frames: int = 1
    batch: int = 1
    measured: tuple[tuple[str, float], ...] = ()  # knob -> share of SSIM it cost (`records.costs`)

    def quantized(self, scheme: Quantization) -> dict[str, Quantization]:
        """The components that ``scheme`` is tried on."""
        if scheme == "none":
            return {}
        names = self.denoisers if scheme == "fp8-layerwise" else self.denoisers + self.text_encoders
        return dict.fromkeys(names, scheme)


def knobs_of(
    trace: Trace,
    *,
    tile: int | None,
    slicing: bool,
    chunked: bool,
    always_tiled: bool = False,
) -> Knobs:
    """The knobs of a traced pipeline; the VAE's come from the library entry."""
    request = trace.request
    large = [c for c in trace.components if c.weights_bytes >= LARGE_ENCODER_BYTES]
    return Knobs(
        denoisers=tuple(c.name for c in trace.components if c.name.startswith(_DENOISERS)),
        text_encoders=tuple(c.name for c in large if c.name.startswith(_TEXT_ENCODERS)),
        tile=tile if tile is not None and max(request.width, request.height) > tile else None,
        slicing=slicing,
        chunked=chunked,
        always_tiled=always_tiled,
        num_frames=request.num_frames,
        batch=request.batch,
    )


@dataclass(frozen=True)
class Candidate:
    """Settings with nothing left open and what they cost; ``cost`` orders them, least first."""

    settings: Settings
    price: tuple[Price, ...]
    cost: tuple[int, ...]

    @cached_property
    def name(self) -> str:
        """All settings as text."""
        return self.settings.model_dump_json()

    @cached_property
    def shape(self) -> str:
        """The settings that shape a trace, as text."""
        return trace_key(self.settings).model_dump_json()


def closed(settings: Settings) -> Settings:
    """``settings`` with every open knob left alone: nothing offloaded, no tiling, no slicing.

    >>> closed(Settings()).offload
    'none'
    """
    tiled = settings.vae_tile is not None or settings.vae_overlap is not None
    return settings.model_copy(
        update={
            "offload": settings.offload or "none",
            "vae_tiling": tiled if settings.vae_tiling is None else settings.vae_tiling,
            "vae_slicing": bool(settings.vae_slicing),
        }
    )


def trace_key(settings: Settings) -> Settings:
    """The part of ``settings`` that shapes a trace: what says where weights wait, and how, never does."""
    return closed(settings).model_copy(update=_NOT_SHAPING)


def price_of(settings: Settings, knobs: Knobs) -> tuple[Price, ...]:
    """What closed ``settings`` cost: ``slower`` for any offload, ``lossy`` for tiles, chunks and fewer bits."""
    tiled = bool(settings.vae_tiling) and not knobs.always_tiled
    lossy = tiled or bool(_schemes(settings)) or settings.decode_chunk_size is not None
    slower = settings.offload not in (None, "none") or settings.blocks_to_swap is not None
    prices: tuple[Price, ...] = ("slower",) if slower else ()
    return (*prices, "lossy") if lossy else prices


def candidates(given: Settings, knobs: Knobs) -> tuple[Candidate, ...]:
    """All settings worth trying for ``given``, the least costly first; never empty."""
    found = []
    for scheme, offload, tiling, slicing, chunk in product(
        _open_schemes(given, knobs),
        _open_offloads(given),
        _open_tilings(given, knobs),
        _open_slicings(given, knobs),
        _open_chunks(given, knobs),
    ):
        quantization = given.quantization or knobs.quantized(scheme)
        both_given = given.offload is not None and bool(given.quantization)
        if not both_given and any(offload not in _SCHEMES[x][1] for x in quantization.values()):
            continue
        settings = given.model_copy(
            update={
                "quantization": quantization,
                "offload": offload,
                "vae_tiling": tiling,
                "vae_slicing": slicing,
                "decode_chunk_size": chunk,
            }
        )
        found.append(Candidate(settings, price_of(settings, knobs), _cost(settings)))
    return by_measured_cost(tuple(sorted(found, key=lambda each: each.cost)), knobs)


def by_measured_cost(found: tuple[Candidate, ...], knobs: Knobs) -> tuple[Candidate, ...]:
    """``found`` with the candidates whose lossy knobs were all measured in the order of what these cost the picture.

    They trade places among themselves: what was not measured stays where the rule puts it.
    """
    costs = dict(knobs.measured)
    lost = {at: lossy_knobs(each.settings) for at, each in enumerate(found) if costs}
    places = [at for at, names in lost.items() if names and names <= costs.keys()]
    ordered = sorted(places, key=lambda at: (sum(costs[name] for name in lost[at]), found[at].cost))
    moved = dict(zip(places, ordered, strict=True))
    return tuple(found[moved.get(at, at)] for at in range(len(found)))


def settings_text(settings: Settings, knobs: Knobs) -> str:
    """The knobs that are turned, in words: ``group offload, VAE tiling 256``."""
    parts = []
    if settings.dtype:
        parts.append(_per_component(dict(settings.dtype)))
    if schemes := _schemes(settings):
        parts.append(_per_component(schemes))
    if settings.offload not in (None, "none"):
        parts.append(say(f"plan-offload-{settings.offload}"))
    parts += offload_details(settings)
    if settings.vae_tiling:
        tile = settings.vae_tile or knobs.tile
        parts.append(say("plan-tiling-size", {"tile": tile}) if tile else say("plan-tiling"))
    if settings.vae_slicing:
        parts.append(say("plan-slicing"))
    if settings.decode_chunk_size is not None:
        parts.append(say("plan-chunk", {"frames": settings.decode_chunk_size}))
    parts += _trace_details(settings)
    if parts == [say("plan-offload-group-leaf")]:
        parts = [say("plan-offload-group-leaf-alone")]
    return ", ".join(parts) or say("plan-as-is")


def _trace_details(settings: Settings) -> list[str]:
    """The knobs of the denoiser and the prompt that were turned, in words."""
    parts = []
    if settings.attention != "sdpa":
        parts.append(say("plan-attention", {"kernel": settings.attention}))
    if settings.prompt_embeds:
        parts.append(say("plan-embeds"))
    if settings.forward_chunking is not None:
        parts.append(say("plan-forward-chunks", {"tokens": settings.forward_chunking}))
    if settings.fuse_qkv:
        parts.append(say("plan-fuse-qkv"))
    return parts


def _schemes(settings: Settings) -> dict[str, str]:
    return {name: scheme for name, scheme in settings.quantization.items() if scheme != "none"}


def _per_component(values: dict[str, str]) -> str:
    """``bnb-int8 (transformer, text_encoder_2)``; the ``*`` of a bare value says nothing more."""
    by_value: dict[str, list[str]] = {}
    for name, value in values.items():
        by_value.setdefault(value, []).append(name)
    return ", ".join(
        value if names == ["*"] else f"{value} ({', '.join(names)})"
        for value, names in by_value.items()
    )


def _open_schemes(given: Settings, knobs: Knobs) -> tuple[Quantization, ...]:
    return ("none",) if given.quantization or not knobs.denoisers else _SEARCHED


def offload_details(settings: Settings) -> list[str]:
    """What was said of the offload beside its name, in words."""
    count, swapped = settings.num_blocks_per_group, settings.blocks_to_swap
    said = [
        (settings.use_stream is False, say("plan-group-unstreamed")),
        (count not in (None, 1), say("plan-group-blocks", {"count": count})),
        (settings.low_cpu_mem_usage, say("plan-group-low")),
        (settings.offload_to_disk, say("plan-group-disk")),
        (swapped is not None, say("plan-swap", {"count": swapped})),
    ]
    return [text for holds, text in said if holds]


def _open_offloads(given: Settings) -> tuple[Offload, ...]:
    """The offloads that go with what was given: swapped blocks lie beside whole components, group knobs in groups."""
    if given.offload is not None:
        return (given.offload,)
    if given.blocks_to_swap is not None:
        return ("none", "model")
    if given.num_blocks_per_group is not None:
        return ("group-block",)
    group_knobs = (given.use_stream, given.low_cpu_mem_usage, given.offload_to_disk)
    return (
        ("group-block", "group-leaf") if any(knob is not None for knob in group_knobs) else OFFLOADS
    )


def _open_tilings(given: Settings, knobs: Knobs) -> tuple[bool, ...]:
    if given.vae_tiling is not None:
        return (given.vae_tiling,)
    if knobs.always_tiled:
        return (True,)
    if given.vae_tile is not None or given.vae_overlap is not None:
        return (True,)
    return (False,) if knobs.tile is None else (False, True)


def _open_slicings(given: Settings, knobs: Knobs) -> tuple[bool, ...]:
    if given.vae_slicing is not None:
        return (given.vae_slicing,)
    return (False, True) if knobs.slicing and knobs.batch > 1 else (False,)


def _open_chunks(given: Settings, knobs: Knobs) -> tuple[int | None, ...]:
    if given.decode_chunk_size is not None:
        return (given.decode_chunk_size,)
    if not knobs.chunked:
        return (None,)
    return (None, *(size for size in CHUNKS if size < knobs.num_frames))


def _cost(settings: Settings) -> tuple[int, ...]:
    """Lossy first, then slightly lossy, then slower, then free: a class outweighs everything below it."""
    lossy = max((_SCHEMES[each][0] for each in settings.quantization.values()), default=0)
    chunk = settings.decode_chunk_size
    smaller = 0 if chunk is None else 1 + sum(chunk < size for size in CHUNKS)
    return (
        lossy,
        int(bool(settings.vae_tiling)) + smaller,
        OFFLOADS.index(settings.offload or "none"),
        int(bool(settings.vae_slicing)),
    )
