"""Many dry runs of one model with its components built once and every call seen before remembered.

In: a library model, a task and the settings that shape a trace. Out: a Trace per request, equal to what
`cardfit.trace.dryrun.dry_run` gives, at a fraction of its time.
"""

from __future__ import annotations

import dataclasses
import gc
import warnings
from functools import partial
from typing import Any

import torch

from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.request import ExactRequest, Request, Settings
from cardfit.trace import recipes, standins
from cardfit.trace.dryrun import _DENOISERS, DryRun, _quiet
from cardfit.trace.frame import Frame, Known, Slot
from cardfit.trace.recorder import Recorder
from cardfit.trace.stream import Op, Trace
from cardfit.trace.values import map_tensors, signature, tensors


class _Pool(Recorder):
    """A recorder that lives on from run to run; what a call adds without flash attention is kept by stream.

    With ``made_up`` a component of ``stands_for`` is not run: what it would hand back has the shape that the runs
    before showed, so the timeline and the VAE's calls are the real ones.
    """

    def __init__(self, attention: str) -> None:
        super().__init__(attention=attention)
        self.without_flash: dict[int, int] = {}
        self.examples: dict[Any, list[tuple[list[tuple[int, ...]], Known]]] = {}
        self.stands_for: set[int] = set()
        self.made_up = False
        self._guesses: dict[Any, Known] = {}

    def component_call(
        self, component: int, method: str, version: int, call: Any, args: Any, kwargs: Any
    ) -> Any:
        """As the recorder does; guessed where that was asked for and can be."""
        if component not in self.stands_for:
            return super().component_call(component, method, version, call, args, kwargs)
        with self.pause():
            name = (component, method, version, signature((args, kwargs), standins.LARGE))
            given = tensors((args, kwargs))
        shapes = [tuple(t.shape) for t in given]
        if name not in self.known and self.made_up:
            if name not in self._guesses:
                with self.pause():
                    guess = self._guess(name[:3], shapes)
                if guess is not None:
                    self._guesses[name] = guess
            if name in self._guesses:
                return self._replay(self._guesses[name], given, [], on_meta=False)
        new = name not in self.known
        out = super().component_call(component, method, version, call, args, kwargs)
        if new:
            self.examples.setdefault(name[:3], []).append((shapes, self.known[name]))
        return out

    def _guess(self, kind: Any, shapes: list[tuple[int, ...]]) -> Known | None:
        """What a call with arguments of ``shapes`` hands back, by the example of others; None where they disagree."""
        alike = [each for each in self.examples.get(kind, []) if len(each[0]) == len(shapes)][-6:]
        if len(alike) < 2:
            return None
        known = alike[-1][1]
        if any(len(each.output_bytes) != len(known.output_bytes) for _, each in alike):
            return None
        columns = zip(*[_slots(each) for _, each in alike], strict=True)
        rules = [self._rule([seen for seen, _ in alike], column) for column in columns]
        if any(rule is None for rule in rules):
            return None
        slots = _slots(known)
        made = [self._shaped(slot, rule, shapes) for slot, rule in zip(slots, rules, strict=True)]
        fresh = iter(made)
        result = map_tensors(known.result, lambda _: next(fresh), kind=Slot)
        sizes = list(known.output_bytes)
        for slot in made:
            sizes[slot.index] = slot.shape.numel() * slot.shape.element_size()
        self.streams.append(self.streams[known.stream])  # another call, told apart by its number
        return Known(len(self.streams) - 1, result, tuple(sizes), known.killed)

    @staticmethod
    def _rule(seen: list[list[tuple[int, ...]]], outputs: Any) -> Any:
        """The argument whose shape an output has in every example, but for one fixed dimension."""
        if any(
            o.of_input or o.shape is None or o.index < 0 or o.value is not None for o in outputs
        ):
            return None
        made = [tuple(o.shape.shape) for o in outputs]
        for at in range(len(seen[0])):
            pairs = [(shape, shapes[at]) for shape, shapes in zip(made, seen, strict=True)]
            if len(made[0]) < 3 or any(len(a) != len(b) for a, b in pairs):
                continue
            differ = {
                n for a, b in pairs for n, (x, y) in enumerate(zip(a, b, strict=True)) if x != y
            }
            if len(differ) <= 1 and all(len({a[n] for a in made}) == 1 for n in differ):
                return at, {n: made[0][n] for n in differ}
        return None

    @staticmethod
    def _shaped(slot: Slot, rule: Any, shapes: list[tuple[int, ...]]) -> Slot:
        at, fixed = rule
        shape = [fixed.get(n, size) for n, size in enumerate(shapes[at])]
        meta = torch.empty(shape, dtype=slot.shape.dtype, device="meta")
        return Slot(slot.index, False, meta, None)

    def _trace_component(self, *args: Any) -> Any:
        self.more_without_flash_bytes = 0
        known = super()._trace_component(*args)
        self.without_flash[known.stream] = self.more_without_flash_bytes
        return known

    def forget(self, component: int) -> None:
        """A component's calls are to be run again; the parts nested in them do what they did."""
        for name in [n for n in self.known if len(n) == 4 and n[0] == component]:
            del self.known[name]

    def guessed(self) -> set[int]:
        """Streams that stand for calls that were not run."""
        return {known.stream for known in self._guesses.values()}

    def again(self) -> None:
        """Forget the timeline, keep the calls."""
        self.timeline = Frame(-1, "timeline")
        self.frames = [self.timeline]
        self._live.clear()
        self.path, self.inside, self.paused, self.away = [], False, False, False


def _tables(module: torch.nn.Module) -> list[Any]:
    """Objects of diffusers that a module holds and that are no modules: they keep positions once computed."""
    return [
        value
        for value in vars(module).values()
        if type(value).__module__.startswith("diffusers.models") and hasattr(value, "__dict__")
    ]


def _memories(module: torch.nn.Module) -> list[Any]:
    """What makes the tables that modules keep from call to call what a new process finds."""
    found = []
    for owner in module.modules():
        for name, value in vars(owner).items():
            if isinstance(value, dict) and "cache" in name:
                found.append(partial(_restore, value, dict(value)))
        for name in dir(type(owner)):
            method = getattr(type(owner), name, None)
            inner = [c.cell_contents for c in getattr(method, "__closure__", None) or ()]
            for each in (method, *inner):  # a decorator may keep its table out of sight
                if (clear := getattr(each, "cache_clear", None)) is not None:
                    found.append(clear)
    return found


def _restore(table: dict[Any, Any], before: dict[Any, Any]) -> None:
    table.clear()
    table.update(before)


def _slots(known: Known) -> list[Slot]:
    found: list[Slot] = []

    def note(slot: Slot) -> Slot:
        found.append(slot)
        return slot

    map_tensors(known.result, note, kind=Slot)
    return found


class Session:
    """The components of ``model`` for ``task``, ready to be called at any size."""

    def __init__(self, model: Model, request: ExactRequest, settings: Settings) -> None:
        _quiet()
        self.model = model
        self.run = DryRun(model, request, settings, None)
        self.pool = _Pool(settings.attention)
        self.run.recorder = self.pool
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.kind = self.run._pipeline_class()
            self.run._build(self.run._names())
        self.weights = tuple(self.run.components)
        # what every module is before a run: wrappers, VAE knobs and tables that a first call keeps are undone by it
        self.before = [
            (owner, {name: value for name, value in vars(owner).items() if name[0] != "_"})
            for module in self.run.modules.values()
            for part in module.modules()
            for owner in (part, *_tables(part))
        ]
        self.forgets = [each for module in self.run.modules.values() for each in _memories(module)]
        self.shape: str | None = None  # the settings that the VAE's calls are remembered for
        names = list(self.run.modules)
        self.pool.stands_for = {n for n, name in enumerate(names) if name.startswith(_DENOISERS)}
        gc.collect()
        gc.freeze()
        self.dtypes = {
            name: [(t, t.dtype) for t in (*module.parameters(), *module.buffers())]
            for name, module in self.run.modules.items()
        }

    def trace(
        self, request: ExactRequest, settings: Settings | None = None, *, made_up: bool = False
    ) -> Trace:
        """What ``request`` does; with ``made_up`` the denoiser's calls are guessed (its streams are not to be read)."""
        run = self.run
        self.pool.made_up = made_up
        run.request = request
        if settings is not None:
            run.settings = settings
        shape = run.settings.model_dump_json()
        if shape != self.shape:
            self.shape = shape
            self.pool.forget(list(run.modules).index(self.model.vae.component))
        self._reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline = run._assemble(self.kind)
        arguments = recipes.call_arguments(self.model, pipeline, request, run.settings)
        run._call(lambda: pipeline(**arguments), type(pipeline.scheduler))
        sequence = tuple((self.kind.model_cpu_offload_seq or "").split("->"))
        excluded = tuple(n for n in self.kind._exclude_from_cpu_offload if n in run.modules)
        trace = run._trace(self.kind.__name__, sequence, excluded)
        gc.freeze()  # what is kept for the next run need not be looked through again
        called = {a for s in trace.timeline for op, a, _, _ in s.events if op == Op.CALL}
        more = max((self.pool.without_flash.get(each, 0) for each in called), default=0)
        return dataclasses.replace(trace, more_without_flash_bytes=more)

    def _reset(self) -> None:
        run = self.run
        for name in run.modules:
            if run.version[name]:
                with self.pool.pause():
                    for tensor, dtype in self.dtypes[name]:
                        tensor.data = tensor.data.to(dtype)
            run.version[name] = 0
        for owner, plain in self.before:
            for name in [n for n in vars(owner) if n[0] != "_" and n not in plain]:
                del owner.__dict__[name]
            owner.__dict__.update(plain)
        for forget in self.forgets:
            forget()
        run.components = list(self.weights)
        run.recasts, run.stages, run.step_ends = [], [], []
        run.denoised, run.clock = False, None
        self.pool.again()


def exact(model: Model, **fields: Any) -> ExactRequest:
    """The request as the model makes it."""
    return resolve(model, Request(model=model.id, **fields))[0]
