"""The books of a walk: how every pipeline and component stands when a pipeline is called.

In: the events of a walk, in their order, and what is known of names. Out: a `Run` for every call of a pipeline: what it
was loaded from, how its components stand, the knobs that were turned, all with their lines, and what was asked of it
that nothing here follows. It knows no library and no defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cardfit.request import Quantization
from cardfit.script.books import Part, Pipe, Run, Told, device_named, dtype_named, knob, leave
from cardfit.script.effects import RULES, Done, valued
from cardfit.script.known import Known, Take, signatures
from cardfit.script.schemes import config_scheme, named_scheme, scheme_of
from cardfit.script.scopes import Event
from cardfit.script.things import repo_of
from cardfit.script.values import LOADERS, Ref, Thing, kind_of, path_of, word_of

_NO_MODEL = re.compile(
    r"(?:Tokenizer(?:Fast)?|Processor|Scheduler|Extractor|Guider|Guidance|Config)$"
)
_SDP = {
    "enable_flash_sdp": "flash",
    "enable_mem_efficient_sdp": "efficient",
    "enable_math_sdp": "math",
}
_SHORT_SCHEMES: dict[str, Quantization] = {"load_in_4bit": "bnb-nf4", "load_in_8bit": "bnb-int8"}
ALLOC_CONF = "PYTORCH_CUDA_ALLOC_CONF"


_LEFT_OUT = frozenset({"safety_checker", "image_encoder", "vae", "transformer", "unet"})
_QUIET_THINGS = frozenset({"quantization_config", "torch_dtype", "dtype", "device_map"})


def _is_no_model(name: str, kind: str) -> bool:
    """Whether an argument is no network: a tokenizer, a processor."""
    return name.startswith("tokenizer") or _NO_MODEL.search(kind) is not None


def is_pipeline(made: str) -> bool:
    """Whether a call makes a pipeline."""
    kind = kind_of(made)
    last = made.rpartition(".")[2]
    if last not in (*LOADERS, kind):
        return False
    return kind in signatures() or kind.endswith("Pipeline") or kind.startswith("AutoPipelineFor")


class Ledger:
    """Keeps the books; `runs` are the calls of pipelines in their order."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.runs: list[Run] = []
        self._pipes: dict[int, Pipe] = {}
        self._parts: dict[int, Part] = {}
        self._outputs: dict[int, Run] = {}
        self._off = set[str]()  # attention kernels that torch may not take
        self._alloc: Told | None = None
        self._all: Told | None = None  # attention for everything

    def take(self, events: Iterable[Event]) -> Ledger:
        """Enter ``events``."""
        for event in events:
            if event.receiver is None:
                self._function(event)
            elif event.name == "__call__" and id(event.receiver) in self._pipes:
                self._run(event, self._pipes[id(event.receiver)])
            else:
                self._on(event, event.receiver)
        self._afterwards()
        return self

    def _afterwards(self) -> None:
        """What is done to a pipeline after its last call belongs to that call: a decode by hand."""
        for thing, pipe in self._pipes.items():
            last = next((r for r in self.runs[::-1] if id(r.event.receiver) == thing), None)
            if last is not None:
                last.pipe.left = list(pipe.left)

    # --- what an event is about

    def _function(self, event: Event) -> None:
        """A function or a constructor of another package."""
        made, result = event.name, event.result
        if isinstance(result, Thing) and result.made == made and is_pipeline(made):
            self._open_pipe(event, result)
            return
        if made.rpartition(".")[2] in LOADERS and isinstance(result, Thing):
            self._parts[id(result)] = self._loaded(event, result)
            return
        effect = self.known.effects.get(event.last)
        if effect is None:
            return
        if effect.does == "environ":
            if event.args[:1] == (ALLOC_CONF,) and isinstance(event.args[1], str):
                self._alloc = Told(event.args[1], (event.line,))
        elif effect.does == "sdp":
            self._sdp(event)
        elif effect.sets:
            self._exported(event)
        else:
            subject = event.argument(0, "module", "model")
            if isinstance(subject, Thing):
                shifted = replace(event, args=event.args[1:])
                self._on(shifted, subject)

    def _on(self, event: Event, subject: Thing) -> None:
        """A method of a pipeline or component, or a function that was handed one."""
        pipe, part = self._found(subject)
        if pipe is None and part is None:
            return
        effect = self.known.effects.get(event.last)
        if part is not None:
            part.lines.add(event.line)
        if effect is None and event.name.startswith("=") and pipe is not None and part is None:
            self._put(event, pipe)
        elif effect is None or effect.not_modelled:
            leave(pipe, part, event.line, f"{path_of(subject)}.{event.last.lstrip('=')}")
        elif effect.does is not None:
            if effect.does == "part" and pipe is not None:
                self._put(event, pipe)
            elif (rule := RULES.get(effect.does)) is not None:
                rule(Done(event, subject, pipe, part, self.known))
        else:
            for name, value in effect.sets.items():
                found = valued(event, value) if isinstance(value, Take) else value
                if isinstance(found, (Thing, Ref)):
                    leave(pipe, part, event.line, f"{path_of(subject)}.{event.last}")
                else:
                    knob(pipe, part, name, Told(found, (event.line,)))

    def _found(self, subject: Thing) -> tuple[Pipe | None, Part | None]:
        """The pipeline that a thing is or belongs to, and the component that it is."""
        if id(subject) in self._pipes:
            return self._pipes[id(subject)], None
        if id(subject) in self._parts:
            owner = next(
                (
                    p
                    for p in self._pipes.values()
                    if any(x is self._parts[id(subject)] for x in p.parts.values())
                ),
                None,
            )
            return owner, self._parts[id(subject)]
        owner_thing = subject.owner
        if owner_thing is not None and id(owner_thing) in self._pipes:
            pipe = self._pipes[id(owner_thing)]
            part = pipe.parts.get(subject.name)
            if part is None:
                part = pipe.parts[subject.name] = Part()
            self._parts[id(subject)] = part
            return pipe, part
        return None, None

    # --- loading

    def _open_pipe(self, event: Event, result: Thing) -> None:
        base = self._pipes.get(id(result.base)) if result.base is not None else None
        kind = kind_of(event.name)
        made = Pipe(kind=kind, repo=repo_of(result), line=event.line)
        if base is not None:
            made = replace(base.copy(), kind=kind, line=event.line)
            made.parts, made.repo = dict(base.parts), base.repo
        variant = event.kwargs.get("variant")
        made.variant = variant if isinstance(variant, str) else made.variant
        if event.last in LOADERS and event.last != "from_pipe":
            made.dtype = self._dtype_of(event) or Told(None, (event.line,))
        device = event.kwargs.get("device_map")
        if device is not None:
            word = device_named(device)
            if word in ("cuda", "cpu"):
                made.device = Told(word, (event.line,))
            else:
                made.device = Told("cuda", (event.line,))
                made.left.append((event.line, f"device_map={word or '?'}"))
        self._pipes[id(result)] = made
        for name, value in event.kwargs.items():
            self._argument(made, event, name, value)
        config = event.kwargs.get("quantization_config")
        if isinstance(config, Thing):
            self._pipeline_config(made, config)

    def _argument(self, pipe: Pipe, event: Event, name: str, value: Any) -> None:
        """One argument that a pipeline is made with: a component, None in its place, or an option."""
        if isinstance(value, Thing) and id(value) in self._parts:
            self._adopt(pipe, name, self._parts[id(value)])
        elif value is None:
            if name in _LEFT_OUT or name.startswith("text_encoder"):
                pipe.parts[name] = Part(removed=True, lines={event.line})
        elif isinstance(value, Thing):
            kind = kind_of(value.made)
            if name == "scheduler":
                pipe.knobs["scheduler"] = Told(kind, (event.line,))
            elif name not in _QUIET_THINGS and not _is_no_model(name, kind):
                pipe.left.append((event.line, f"{name}={kind}"))
        elif name not in self.known.quiet_loads and name != "device_map":
            pipe.left.append((event.line, f"{name}={word_of(value)}"))

    def _adopt(self, pipe: Pipe, name: str, part: Part) -> None:
        """A component of its own loading comes into a pipeline, with what was said of it before."""
        if name == "scheduler":
            pipe.knobs["scheduler"] = Told(part.kind, tuple(sorted(part.lines)))
            return
        if _is_no_model(name, part.kind or ""):
            return
        pipe.parts[name] = part
        pipe.knobs |= part.knobs
        pipe.left += part.left

    def _loaded(self, event: Event, result: Thing) -> Part:
        """A component that is loaded by a call of its own."""
        part = Part(kind=kind_of(event.name), source=repo_of(result), own=True, lines={event.line})
        part.package = event.name.partition(".")[0]
        part.dtype = self._dtype_of(event)
        config = event.kwargs.get("quantization_config")
        if isinstance(config, Thing):
            scheme = config_scheme(self.known, config)
            if scheme is not None:
                part.scheme = Told(scheme, (event.line, config.line))
            elif kind_of(config.made) != "GGUFQuantizationConfig":
                part.left.append((config.line, kind_of(config.made)))
        if part.scheme is None and (named := named_scheme(self.known, part.source)) is not None:
            part.scheme = Told(named, (event.line,))
        for name, scheme in _SHORT_SCHEMES.items():
            if event.kwargs.get(name) is True:
                part.scheme = Told(scheme, (event.line,))
        place = event.kwargs.get("device_map")
        if place is not None and device_named(place) not in ("cuda", "cpu"):
            part.left.append((event.line, f"device_map={word_of(place)}"))
        if "max_memory" in event.kwargs:
            part.left.append((event.line, "max_memory"))
        return part

    def _dtype_of(self, event: Event) -> Told | None:
        for name in ("torch_dtype", "dtype"):
            if name in event.kwargs:
                lines = tuple(sorted({event.line, *event.lines.get(name, ())}))
                return Told(dtype_named(event.kwargs[name], self.known), lines)
        return None

    # --- quantization

    def _pipeline_config(self, pipe: Pipe, config: Thing) -> None:
        """A PipelineQuantizationConfig: a mapping of configs, or one backend for named components."""
        mapping = config.argument(3, "quant_mapping")
        if isinstance(mapping, dict):
            for name, each in mapping.items():
                scheme = config_scheme(self.known, each) if isinstance(each, Thing) else None
                self._quantized(
                    pipe, str(name), scheme, each if isinstance(each, Thing) else config
                )
            return
        backend, kwargs = config.argument(0, "quant_backend"), config.argument(1, "quant_kwargs")
        names = config.argument(2, "components_to_quantize")
        names = [names] if isinstance(names, str) else names
        scheme = scheme_of(self.known, str(backend), (), kwargs if isinstance(kwargs, dict) else {})
        if not isinstance(names, (list, tuple)):
            pipe.left.append((config.line, kind_of(config.made)))
            return
        for name in names:
            self._quantized(pipe, str(name), scheme, config)

    def _quantized(self, pipe: Pipe, name: str, scheme: Quantization | None, config: Thing) -> None:
        if scheme is None:
            pipe.left.append((config.line, f"{kind_of(config.made)} ({name})"))
            return
        part = pipe.parts.setdefault(name, Part())
        part.scheme = Told(scheme, (config.line,))
        part.lines.add(config.line)

    # --- the rest

    def _sdp(self, event: Event) -> None:
        kernel = _SDP.get(event.last)
        if kernel is None:
            return
        (self._off.discard if event.args[:1] != (False,) else self._off.add)(kernel)
        kind = "efficient" if "flash" in self._off else "sdpa"
        kind = "math" if {"flash", "efficient"} <= self._off else kind
        self._all = Told(kind, (event.line,))

    def _put(self, event: Event, pipe: Pipe) -> None:
        """``pipe.vae = AutoencoderTiny...``: another component, or none."""
        name, value = event.name.lstrip("="), event.args[0]
        if value is None:
            pipe.parts[name] = Part(removed=True, lines={event.line})
        elif isinstance(value, Thing) and id(value) in self._parts:
            self._adopt(pipe, name, self._parts[id(value)])
        elif not isinstance(value, Thing) or value.owner is None:
            pipe.left.append((event.line, f"{name}={word_of(value)}"))

    # --- calls and outputs

    def _run(self, event: Event, pipe: Pipe) -> None:
        stands = pipe.copy()
        if self._alloc is not None:
            stands.knobs["alloc_conf"] = self._alloc
        if self._all is not None:
            stands.knobs.setdefault("attention", self._all)
        run = Run(stands, event)
        for value in event.kwargs.values():
            source = self._output_of(value)
            if source is not None:
                run.before.append(source.event)
        if isinstance(event.result, Thing):
            self._outputs[id(event.result)] = run
        self.runs.append(run)

    def _output_of(self, value: Any) -> Run | None:
        """The call whose output a value is a part of, or was made from by functions."""
        waiting, seen = [value], 0
        while waiting and seen < 200:
            found = waiting.pop()
            seen += 1
            if isinstance(found, (list, tuple)):
                waiting += found[:8]
            while isinstance(found, Thing):
                if id(found) in self._outputs:
                    return self._outputs[id(found)]
                waiting += [*found.args[:4], *list(found.kwargs.values())[:8]]
                found = found.owner
        return None

    def _exported(self, event: Event) -> None:
        """A file of the output, at so many frames a second."""
        take = self.known.effects[event.last].sets.get("fps")
        if not isinstance(take, Take):
            return
        fps = valued(event, take)
        run = self._output_of(event.args[:1]) or (self.runs[-1] if self.runs else None)
        if run is None or isinstance(fps, (Thing, Ref)):
            return
        lines = event.lines.get(take.arg, ())
        run.fps = Told(fps, tuple(sorted({event.line, *lines})))
