"""How makers' own scripts keep weights, where that differs from a diffusers pipeline.

In: the family of a model. Out: a `Script`: what lies on the card in which stage and in which precision, with the
source. `laid` takes a replay of the diffusers pipeline and puts the script's weights in the place of the pipeline's:
the activations are taken as the same, since both run the same network. Left out: the copies that autocast makes of one
layer's weights, and what a script's own attention or rotary code adds. The habits are recalled from the public code
that ``source`` names; no commit was looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cardfit.predict.estimate import MemoryEstimate, StageMemory
from cardfit.predict.memory import bands
from cardfit.predict.weights import elements, module_weights
from cardfit.request import Dtype, Settings
from cardfit.trace.stream import Component, Trace

LOAD = "load"
_ITEM_BYTES: Mapping[Dtype, int] = {"float32": 4, "float16": 2, "bfloat16": 2}
_HALVES = ("float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class Script:
    """What a script keeps where. Components are named by the beginning of their name.

    ``compute`` is the precision that the network runs in, ``weights`` the one that weights lie in where it is another,
    ``loading`` the one they have when they first come to the card. ``stays`` says what is on the card in a stage when
    the script moves weights; a stage that is not named keeps all. ``one_of`` are components of which one is on the
    card at a time. ``loads_twice`` are components that are read into a second copy on the host.
    ``whole_blocks_up`` says that a number of frames goes up to the next the model makes, not down.
    """

    source: str
    compute: Mapping[str, Dtype]
    weights: Mapping[str, Dtype] = field(default_factory=dict)
    loading: Mapping[str, Dtype] = field(default_factory=dict)
    stays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    moves_by_default: bool = False
    one_of: tuple[str, ...] = ()
    loads_twice: tuple[str, ...] = ()
    stated_dtype: tuple[str, ...] = ()
    whole_blocks_up: bool = False


_WAN_COMPUTE: Mapping[str, Dtype] = {
    "transformer": "bfloat16",
    "text_encoder": "bfloat16",
    "image_encoder": "float16",
    "vae": "float32",
}
# The DiT is loaded by `from_pretrained` without a dtype, which is fp32 whatever the files hold, and runs under
# autocast; `t5_dtype` is bf16, `clip_dtype` fp16. `offload_model` is on for one card unless it was set. The text model
# is built first and its file then read beside it.
_WAN = Script(
    source="Wan-Video/Wan2.1: generate.py, wan/text2video.py, wan/modules/t5.py, wan/configs/shared_config.py (2025)",
    compute=_WAN_COMPUTE,
    weights={"transformer": "float32"},
    stays={
        "encode_prompt": ("text_encoder", "transformer", "vae"),
        "encode_condition": ("image_encoder", "transformer", "vae"),
        "denoise": ("transformer", "vae"),
        "decode": ("vae",),
    },
    moves_by_default=True,
    loads_twice=("text_encoder",),
)
# Image-to-video waits with the DiT on the host until it denoises (`init_on_cpu`).
_WAN_LATE = replace(
    _WAN,
    source="Wan-Video/Wan2.1: wan/image2video.py; Wan-Video/Wan2.2: wan/image2video.py, wan/textimage2video.py (2025)",
    stays={
        "encode_prompt": ("text_encoder", "vae"),
        "encode_condition": ("image_encoder", "vae"),
        "denoise": ("transformer", "vae"),
        "decode": ("vae",),
    },
)
# Wan 2.2 has two experts of which the other one goes to the host.
_WAN22 = replace(_WAN_LATE, one_of=("transformer",))
# Everything is moved to the card as it was read, then cast: the text encoder is read in fp32. The first checkpoint
# (0.9, 9.4 GB) holds the transformer in fp32, later ones in bf16; before 0.9.5 the text encoder was not cast.
_LTX = Script(
    source="Lightricks/LTX-Video: inference.py (2024 to 2025)",
    compute={"*": "bfloat16"},
    loading={"text_encoder": "float32"},
    stated_dtype=("transformer", "vae", "text_encoder"),
    whole_blocks_up=True,
)
_LTX_FIRST = replace(
    _LTX,
    weights={"text_encoder": "float32", "transformer": "float32"},
    loading={},
)
# Everything is on the card unless `--offload` is given, which leaves only what runs; the autoencoder is read in fp32.
_FLUX = Script(
    source="black-forest-labs/flux: src/flux/cli.py, src/flux/util.py (2024)",
    compute={"*": "bfloat16"},
    weights={"vae": "float32"},
    stays={
        "encode_prompt": ("text_encoder",),
        "denoise": ("transformer",),
        "decode": ("vae",),
    },
)
# beginning of an id -> the script of its makers; the first that matches counts
SCRIPTS: tuple[tuple[str, Script], ...] = (
    ("wan2.2-", _WAN22),
    ("wan2.1-i2v-", _WAN_LATE),
    ("wan2.1-", _WAN),
    ("ltx-video-2b-0.9.0", _LTX_FIRST),
    ("ltx-video-2b-0.9.1", replace(_LTX, weights={"text_encoder": "float32"}, loading={})),
    ("ltx-video-", _LTX),
    ("flux.1-dev", _FLUX),
    ("flux.1-schnell", _FLUX),
)


def script_of(model_id: str) -> Script | None:
    """The script of the model's makers; None where its habits are not known.

    >>> script_of("wan2.1-t2v-1.3b").moves_by_default, script_of("mochi-1")
    (True, None)
    """
    return next((script for start, script in SCRIPTS if model_id.startswith(start)), None)


@dataclass(frozen=True, slots=True)
class Habit:
    """A script as one person ran it.

    ``moves`` is whether it sends weights away between stages, ``elsewhere`` what never comes to the card, ``stated``
    the precision that was asked for.
    """

    script: Script
    moves: bool
    elsewhere: tuple[str, ...] = ()
    stated: Dtype | None = None


def laid(trace: Trace, base: MemoryEstimate, settings: Settings, habit: Habit) -> MemoryEstimate:
    """``base``, a replay of the diffusers pipeline, with the weights where the script keeps them.

    A stage whose component is elsewhere is left out. Bands keep their share.
    """
    parts = [each for each in trace.components if not each.name.startswith(habit.elsewhere or "?")]
    sizes = {each.name: _size(each, settings, habit, habit.script.weights) for each in parts}
    arriving = {
        each.name: max(sizes[each.name], _size(each, settings, habit, habit.script.loading))
        for each in parts
    }
    stages = [
        _moved(stage, _resident(stage.name, sizes, habit))
        for stage in base.stages
        if stage.name != LOAD and not stage.component.startswith(habit.elsewhere or "?")
    ]
    if not habit.moves:
        stages.insert(0, _loaded(max(arriving, key=lambda name: arriving[name]), arriving))
    top = max(stages, key=lambda stage: stage.reserved_bytes)
    peak = max(stages, key=lambda stage: stage.allocated_bytes)
    return replace(
        base,
        stages=tuple(stages),
        peak_stage=peak.name,
        allocated_bytes=peak.allocated_bytes,
        reserved_bytes=top.reserved_bytes,
        reserved_low_bytes=top.low_bytes,
        reserved_high_bytes=top.high_bytes,
        host_bytes=_host(trace, base, settings, habit),
        host=(),
    )


def _size(
    component: Component, settings: Settings, habit: Habit, dtypes: Mapping[str, Dtype]
) -> int:
    """Bytes of a component's weights: quantized as asked, else in the script's precision."""
    scheme = settings.quantization.get(component.name, "none")
    weights = module_weights(component, scheme)
    asked = habit.stated if component.name.startswith(habit.script.stated_dtype or "?") else None
    dtype = asked or next(
        (each for name, each in dtypes.items() if component.name.startswith(name)), None
    )
    if scheme != "none" or dtype is None:
        return sum(sum(each.tensors) for each in weights)
    return sum(
        elements(size, kind) * _ITEM_BYTES[dtype] if kind in _HALVES else size
        for module in component.modules
        for _, size, kind in module.tensors
    )


def _resident(stage: str, sizes: Mapping[str, int], habit: Habit) -> int:
    """Bytes on the card in ``stage``; of components that take turns the largest."""
    kept = habit.script.stays.get(stage) if habit.moves else None
    names = [name for name in sizes if kept is None or name.startswith(kept)]
    turns = [name for name in names if name.startswith(habit.script.one_of or "?")]
    others = sum(sizes[name] for name in names if name not in turns)
    return others + max((sizes[name] for name in turns), default=0)


def _moved(stage: StageMemory, resident_bytes: int) -> StageMemory:
    """``stage`` with other weights under the same activations."""
    more = resident_bytes - stage.weights_bytes
    return _banded(stage, resident_bytes, stage.allocated_bytes + more, stage.reserved_bytes + more)


def _banded(stage: StageMemory, weights: int, allocated: int, reserved: int) -> StageMemory:
    band = bands()
    return replace(
        stage,
        weights_bytes=weights,
        activation_bytes=allocated - weights,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        low_bytes=max(allocated, round(reserved * (1 - band["low"]))),
        high_bytes=round(reserved * (1 + band["high"])),
        basis="rule",
    )


def _loaded(largest: str, arriving: Mapping[str, int]) -> StageMemory:
    """All weights as they first come to the card."""
    total = sum(arriving.values())
    empty = StageMemory(LOAD, largest, 0, 0, 0, 0, 0, 0, 0, "rule", LOAD)
    return _banded(empty, total, total, total)


def _host(trace: Trace, base: MemoryEstimate, settings: Settings, habit: Habit) -> int:
    """Host RAM at its worst: the second copy while a file is read, or everything that waits."""

    def total(components: Iterable[Component]) -> int:
        return sum(_size(each, settings, habit, habit.script.weights) for each in components)

    twice = [each for each in trace.components if each.name.startswith(habit.script.loads_twice)]
    waiting = total(trace.components) if habit.moves else base.host_bytes
    return max(2 * total(twice) if habit.script.loads_twice else 0, waiting)
