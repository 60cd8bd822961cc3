"""What a trace asks of a card, summed once: work by stage and component, and the weights that may have to move.

In: a Trace. Out: `Totals`, small and independent of any card, from which `cardfit.predict.timing` computes seconds for
each card in microseconds. Left out: what the pipeline does between calls of its components (schedulers, latents),
which the trace does not count as work.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod

from cardfit.library.models import Model
from cardfit.predict.weights import elements
from cardfit.trace.stream import Module, Op, Trace, Work

_HEADS_UNDER_DIM = frozenset(
    {"UNet2DConditionModel", "UNetMotionModel", "UNetSpatioTemporalConditionModel"}
)


@dataclass(frozen=True, slots=True)
class StageWork:
    """What one component does in one stage: its calls, its kernels by kind and dtype."""

    stage: str
    component: str
    calls: int
    work: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """One component: its class, the dtype it computes in, and its weights in bytes as the trace holds them.

    ``linear_elements`` are the weights that quantizers replace, ``blocks`` the length of its lists of blocks.
    """

    name: str
    kind: str
    dtype: str
    weights_bytes: int
    linear_elements: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Work by stage and component in the order of the run; components; what comes out.

    ``visits`` are the components in the order in which the pipeline turns to them, repeats in a row once: what
    model offload brings in. ``steps`` counts denoising iterations.
    """

    stages: tuple[StageWork, ...]
    components: tuple[Parts, ...]
    visits: tuple[str, ...]
    steps: int
    frames: int
    pixels: int
    batch: int
    head_dim: int | None

    def component(self, name: str) -> Parts:
        """The component called ``name``; KeyError when there is none."""
        for part in self.components:
            if part.name == name:
                return part
        raise KeyError(name)

    def calls(self, name: str) -> int:
        """Calls of a component over the whole run."""
        return sum(stage.calls for stage in self.stages if stage.component == name)


def totals(trace: Trace, *, head_dim: int | None = None) -> Totals:
    """The sums of ``trace``: a pass over its timeline; streams bring their sums with them.

    ``head_dim`` is the denoiser's (`head_dim_of`), which decides how fast its attention runs.
    """
    work: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    calls: dict[tuple[str, str], int] = defaultdict(int)
    visits: list[str] = []
    stage = "load"
    for segment in trace.timeline:
        turn: list[str] = []
        for op, a, _, _ in segment.events:
            if op == Op.STAGE:
                stage = trace.stages[a][0]
            elif op == Op.CALL:
                stream = trace.streams[a]
                name = trace.components[stream.component].name
                _add(work.setdefault((stage, name), {}), stream.work, segment.repeat)
                calls[stage, name] += segment.repeat
                if not turn or turn[-1] != name:
                    turn.append(name)
        rounds = segment.repeat if len(set(turn)) > 1 else 1
        for name in turn * rounds:
            if not visits or visits[-1] != name:
                visits.append(name)
    request = trace.request
    stages = tuple(
        StageWork(stage, name, calls[stage, name], _works(kinds))
        for (stage, name), kinds in work.items()
    )
    return Totals(
        stages=stages,
        components=tuple(
            Parts(
                c.name,
                c.kind,
                c.dtype,
                c.weights_bytes,
                sum(_elements(module) for module in c.modules if module.linear),
                sum(module.block for module in c.modules),
            )
            for c in trace.components
        ),
        visits=tuple(visits),
        steps=_steps(stages, request.num_inference_steps),
        frames=request.frames_after_post,
        pixels=prod(request.size_after_post),
        batch=request.batch,
        head_dim=head_dim,
    )


def head_dim_of(model: Model) -> int | None:
    """Channels of one attention head of the denoiser; None where its config does not say.

    The U-Nets of Stable Diffusion write the number of heads under ``attention_head_dim``.
    """
    for name, part in model.components.items():
        if not name.startswith(("transformer", "unet")):
            continue
        config = part.config
        dim = config.get("attention_head_dim")
        if part.class_path.rpartition(".")[2] in _HEADS_UNDER_DIM:
            heads = dim or config.get("num_attention_heads")
            first = heads[0] if isinstance(heads, list) else heads
            channels = config.get("block_out_channels")
            return int(channels[0]) // int(first) if channels and first else None
        if isinstance(dim, int):
            return dim
        width, heads = config.get("hidden_size"), config.get("num_attention_heads")
        return int(width) // int(heads) if width and heads else None
    return None


def _add(kinds: dict[tuple[str, str], list[float]], work: tuple[Work, ...], repeat: int) -> None:
    for each in work:
        entry = kinds.setdefault((each.kind, each.dtype), [0.0, 0.0, 0])
        entry[0] += each.flop * repeat
        entry[1] += each.bytes * repeat
        entry[2] += each.launches * repeat


def _works(kinds: dict[tuple[str, str], list[float]]) -> tuple[Work, ...]:
    return tuple(
        Work(kind, dtype, sums[0], sums[1], int(sums[2]))
        for (kind, dtype), sums in sorted(kinds.items())
    )


def _elements(module: Module) -> int:
    return sum(elements(size, dtype) for name, size, dtype in module.tensors if name == "weight")


def _steps(stages: tuple[StageWork, ...], asked: int) -> int:
    """Iterations of the denoising loop: a scheduler of higher order may add one to those asked for.

    Guidance by two calls an iteration is told apart by a count near twice the steps.
    """
    most = max((each.calls for each in stages if each.stage == "denoise"), default=asked)
    return most if asked <= most < 1.5 * asked else asked
