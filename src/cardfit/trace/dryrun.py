"""The dry run: the real pipeline, called with the true sizes and steps, without weights and without a GPU.

In: a library model, an exact request, settings that shape the work. Out: a Trace. Components are built on meta, the
scheduler is the real one, and the pipeline's own code decides what is called how often and what is held in between.
"""

from __future__ import annotations

import functools
import gc
import importlib
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch

from cardfit.errors import BadRequest, CardfitError, DryRunFailed
from cardfit.library.add_ons import CONTROLNET
from cardfit.library.build import build
from cardfit.library.load import load
from cardfit.library.models import Model
from cardfit.request import ExactRequest, Post, Settings
from cardfit.trace import addons, lora, post_networks, recipes, tested
from cardfit.trace.cache import Progress, versions
from cardfit.trace.fold import fold
from cardfit.trace.older import keeps_state
from cardfit.trace.patches import patches
from cardfit.trace.recorder import Recorder
from cardfit.trace.stream import Component, Module, Op, Trace

_METHODS = ("forward", "encode", "decode")
_TEXT_ENCODERS = ("text_encoder", "mllm", "prompt_enhancer", "bert", "vision_language_encoder")
_DENOISERS = (
    "transformer", "unet", "prior", "decoder", "image_unet", "text_unet", "unconditional_transformer", "controlnet",
    "super_res", "diffusion_decoder",
)  # fmt: skip
_CPU = torch.device("cpu")


def describe(name: str, module: torch.nn.Module) -> Component:
    """The weights of ``module`` tensor by tensor; tied tensors count once."""
    seen: set[int] = set()
    modules = []
    blocks = {
        f"{parent}.{child}" if parent else child
        for parent, owner in module.named_modules()
        if isinstance(owner, (torch.nn.ModuleList, torch.nn.Sequential))
        and parent.count(".") == 0
        and parent
        for child, _ in owner.named_children()
    }
    dtype = "float32"
    for path, owner in module.named_modules():
        tensors = []
        parameters = list(owner.named_parameters(recurse=False))
        buffers = list(owner.named_buffers(recurse=False))
        kept = 0  # buffers among the tensors
        for label, tensor in [*parameters, *buffers]:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                kind = str(tensor.dtype).removeprefix("torch.")
                tensors.append((label, tensor.numel() * tensor.element_size(), kind))
                kept += not isinstance(tensor, torch.nn.Parameter)
        linear = isinstance(owner, torch.nn.Linear) and not lora.is_factor(path)
        modules.append(
            Module(
                path,
                type(owner).__name__,
                tuple(tensors),
                linear,
                path in blocks,
                kept,
                owner.out_features if linear else 0,
            )
        )
    sizes: dict[str, int] = {}
    for item in modules:
        for _, size, kind in item.tensors:
            sizes[kind] = sizes.get(kind, 0) + size
    if sizes:
        dtype = max(sizes, key=lambda kind: sizes[kind])
    return Component(name, type(module).__name__, dtype, tuple(modules))


def stage_of(name: str, method: str, denoised: bool) -> str:
    """The stage that a call of component ``name`` belongs to."""
    name = name.removeprefix("prior_")  # of the first pipeline of two
    if name.startswith((*_TEXT_ENCODERS, "connectors")):
        return "encode_prompt"
    if method == "encode" or name.startswith(("image_encoder", "feature_extractor")):
        return "encode_condition"
    if name.startswith((*_DENOISERS, CONTROLNET)):
        return "denoise"
    if method == "decode" or name.startswith(("vae", "vocoder", "audio_vae")):
        return "decode" if denoised else "encode_condition"
    return "post" if denoised else "encode_condition"


class DryRun:
    """One dry run in progress."""

    def __init__(
        self, model: Model, request: ExactRequest, settings: Settings, progress: Progress | None
    ) -> None:
        self.model, self.request, self.settings = model, request, settings
        self.progress = progress or (lambda _what, _share: None)
        self.recorder = Recorder(attention=settings.attention)
        self.modules: dict[str, torch.nn.Module] = {}
        self.components: list[Component] = []
        self.recasts: list[Component] = []
        self.version: dict[str, int] = {}
        self.stages: list[tuple[str, str]] = []
        self.denoised = False
        self.step_ends: list[int] = []
        self.clock: Any = None  # the scheduler that steps first
        self.owner: dict[int, str] = {}  # id(module) -> component
        self.elsewhere: frozenset[str] = frozenset()  # components that are on another card

    def dtype_of(self, name: str) -> str:
        """The dtype a component is loaded in."""
        given = self.settings.dtype
        return given.get(name) or given.get("*") or self.model.components[name].recommended_dtype

    def run(self) -> Trace:
        """Build the pipeline, call it, fold the timeline."""
        with self._own_words(ModuleNotFoundError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = self._pipeline_class()
            self._build(self._names())
            pipeline = self._assemble(kind)
            if lora.load_files(pipeline, self.request.loras):
                self._describe_anew()
            arguments = recipes.call_arguments(self.model, pipeline, self.request, self.settings)
        self.progress("dry-run", None)
        self._call(lambda: pipeline(**arguments), type(pipeline.scheduler))
        sequence = tuple((kind.model_cpu_offload_seq or "").split("->"))
        sequence = tuple(name for name in sequence if name not in self.elsewhere)
        excluded = tuple(n for n in kind._exclude_from_cpu_offload if n in self.modules)
        return self._trace(kind.__name__, sequence, excluded)

    def _names(self) -> tuple[str, ...]:
        """The components to build; those that are on another card last, so that the others' numbers stay in order."""
        names = tuple(n for n, spec in self.model.components.items() if spec.counted)
        if self.settings.prompt_embeds:
            self.elsewhere = frozenset(n for n in names if n.startswith(_TEXT_ENCODERS))
        return tuple(sorted(names, key=lambda name: name in self.elsewhere))

    def run_part(self, component: str, method: str, shape: tuple[int, ...]) -> Trace:
        """One call of one component on a tensor of ``shape``: a decode from saved latents, say."""
        self._build((component,))
        module: Any = self.modules[component]
        if component == self.model.vae.component:
            recipes.set_vae(module, self.settings)
        given = torch.zeros(shape, dtype=getattr(torch, self.dtype_of(component)))
        self.denoised = method == "decode"
        self._call(lambda: getattr(module, method)(given), None)
        return self._trace(type(module).__name__, ())

    def run_post(self, step: Post) -> Trace:
        """One call of a step after the pipeline."""
        with torch.device("meta"):
            name, network = post_networks.network_of(step)
            network = network.to(post_networks.dtype_of(step)).requires_grad_(False)
        self._adopt(name, network)
        size = self.request.height, self.request.width
        self.denoised = True
        self._call(lambda: post_networks.once(step, network, size), None)
        return self._trace(type(network).__name__, ())

    def _call(self, call: Callable[[], Any], scheduler: type | None) -> None:
        with (
            self._own_words(),
            warnings.catch_warnings(),
            self._watching(scheduler),
            torch.no_grad(),
        ):
            warnings.simplefilter("ignore")
            result = call()
            del result
        gc.collect()

    @contextmanager
    def _own_words(self, *through: type[Exception]) -> Iterator[None]:
        """Raise DryRunFailed with what the pipeline's own code says; errors of cardfit and ``through`` as they are."""
        try:
            yield
        except Exception as error:
            if isinstance(error, (CardfitError, *through)):
                raise
            if "divisible by chunk size" in str(error):
                raise self._chunk_refused(error) from error
            reason = f"{type(error).__name__}: {error}"
            raise DryRunFailed("dry-run-failed", model=self.model.id, reason=reason) from error

    def _chunk_refused(self, error: Exception) -> BadRequest:
        length = "".join(
            c for c in str(error).partition("chunked:")[2].partition("has")[0] if c.isdigit()
        )
        asked = self.settings.forward_chunking
        return BadRequest("chunk-does-not-divide", model=self.model.id, asked=asked, length=length)

    def _trace(
        self, pipeline: str, sequence: tuple[str, ...], excluded: tuple[str, ...] = ()
    ) -> Trace:
        installed = versions(adapters=bool(self.request.loras))
        return Trace(
            request=self.request,
            settings=self.settings,
            versions=installed,
            pipeline=pipeline,
            offload_sequence=sequence,
            excluded=excluded,
            components=tuple(c for c in self.components if c.name not in self.elsewhere),
            recasts=tuple(self.recasts),
            stages=tuple(self.stages),
            streams=tuple(self.recorder.streams),
            timeline=fold(self.recorder.timeline, self.step_ends),
            sites=tuple(self.recorder.sites),
            notes=(*tested.notes(installed), *self._said()),
            more_without_flash_bytes=self.recorder.more_without_flash_bytes,
        )

    def _pipeline_class(self) -> Any:
        import diffusers

        name = self.model.pipeline_for(self.request.task)
        if not self.model.pipeline_in_diffusers or not hasattr(diffusers, name):
            raise DryRunFailed(
                "pipeline-missing",
                model=self.model.id,
                pipeline=name,
                version=diffusers.__version__,
            )
        return getattr(diffusers, name)

    def _build(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.progress(name, None)
            module = build(self.model.components[name], self.dtype_of(name))
            if name.startswith(_DENOISERS):
                self._set_denoiser(name, module)
            self._adopt(name, module)

    def _adopt(self, name: str, module: torch.nn.Module) -> None:
        """Take ``module`` in as the next component."""
        self.modules[name] = module
        self.components.append(describe(name, module))
        self.version[name] = 0
        self._number(name, module)

    def _describe_anew(self) -> None:
        """The components with the layers that a loader laid into them."""
        self.components = [describe(name, module) for name, module in self.modules.items()]
        for name, module in self.modules.items():
            self._number(name, module)

    def _number(self, name: str, module: torch.nn.Module) -> None:
        for index, (path, owner) in enumerate(module.named_modules()):
            self.recorder.module_index[id(owner)] = (index, path)
            self.owner[id(owner)] = name

    def _set_denoiser(self, name: str, module: Any) -> None:
        """Adapters, chunks and the attention kernel that was asked for, on one denoiser."""
        addons.fit(name, module, self.model, self.request, self.dtype_of(name))
        if self.settings.forward_chunking is not None:
            module.enable_forward_chunking(chunk_size=self.settings.forward_chunking, dim=1)
        if self.settings.fuse_qkv:
            self._fuse(name, module)
        if self.settings.attention == "flash":
            self.recorder.flash_on[len(self.modules)] = name

    def _fuse(self, name: str, module: Any) -> None:
        """``fuse_qkv_projections``: the fused layers stand beside the ones they are made of."""
        kind = type(module).__name__
        fuse = getattr(module, "fuse_qkv_projections", None)
        before = sum(1 for _ in module.parameters())
        if fuse is not None:
            with torch.no_grad():
                fuse()
            module.requires_grad_(False)
        if sum(1 for _ in module.parameters()) == before:
            raise BadRequest("no-fused-qkv", model=self.model.id, component=name, kind=kind)

    def _said(self) -> tuple[addons.Said, ...]:
        dtypes = {c.name: c.dtype for c in self.components if c.name.startswith(_DENOISERS)}
        return addons.notes(self.request, self.modules, self.components, dtypes)

    def _assemble(self, kind: Any) -> Any:
        import inspect

        dry = type(
            kind.__name__,
            (kind,),
            {"_execution_device": property(lambda _self: _CPU), "__module__": kind.__module__},
        )
        asked = inspect.signature(kind.__init__).parameters
        mine = {name: module for name, module in self.modules.items() if name in asked}
        pipeline = dry(**mine, **recipes.parts(self.model, kind, self.modules, self.request))
        pipeline.set_progress_bar_config(disable=True)
        vae = self.modules.get(self.model.vae.component)
        settings = self.settings
        if self.model.vae.tiling_required and not settings.vae_tiling:
            settings = settings.model_copy(update={"vae_tiling": True})
        if vae is not None:
            recipes.set_vae(vae, settings)
        if self.elsewhere:
            self._hand_in(pipeline)
        return pipeline

    def _hand_in(self, pipeline: Any) -> None:
        """Let prompts arrive encoded: what ``encode_prompt`` returns is held here, how it came about is not."""
        original = pipeline.encode_prompt

        @functools.wraps(original)
        def encode_prompt(*args: Any, **kwargs: Any) -> Any:
            with self.recorder.elsewhere():
                result = original(*args, **kwargs)
            self.recorder.handed_in(result, "prompt_embeds")
            return result

        pipeline.__dict__["encode_prompt"] = encode_prompt

    # -- watching --------------------------------------------------------------------------------------------------

    @contextmanager
    def _watching(self, scheduler: Any) -> Iterator[None]:
        hooks = torch.nn.modules.module
        with ExitStack() as stack:
            for name, module in self.modules.items():
                for method in _METHODS:
                    if hasattr(module, method):
                        self._wrap(name, module, method)
                if name.startswith("vae") and not keeps_state(module):
                    for part in ("encoder", "decoder"):
                        if hasattr(module, part):
                            self._wrap_part(name, getattr(module, part), part)
            if hasattr(scheduler, "step"):
                stack.enter_context(patch.object(scheduler, "step", self._stepping(scheduler.step)))
            handle = hooks.register_module_forward_pre_hook(self._enter)
            stack.callback(handle.remove)
            handle = hooks.register_module_forward_hook(self._leave)
            stack.callback(handle.remove)
            stack.enter_context(
                patch.object(torch.nn.Module, "to", self._recasting(torch.nn.Module.to))
            )
            called = self._reached_into(torch.nn.Module.__call__)
            stack.enter_context(patch.object(torch.nn.Module, "__call__", called))
            stack.enter_context(patches(self.recorder))
            stack.enter_context(self.recorder)
            yield

    def _enter(self, module: torch.nn.Module, _args: Any) -> None:
        recorder = self.recorder
        entry = recorder.module_index.get(id(module)) if recorder.inside else None
        if entry is not None and entry[1]:
            recorder.path.append(entry[1])
            recorder.frame.events.append((Op.ENTER, entry[0], 0, 0))

    def _leave(self, module: torch.nn.Module, _args: Any, _out: Any) -> None:
        recorder = self.recorder
        entry = recorder.module_index.get(id(module)) if recorder.inside else None
        if entry is not None and entry[1]:
            recorder.path.pop()
            recorder.frame.events.append((Op.EXIT, entry[0], 0, 0))

    def _wrap(self, name: str, module: torch.nn.Module, method: str) -> None:
        original = getattr(module, method)
        number = list(self.modules).index(name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            recorder = self.recorder
            if recorder.inside:
                return original(*args, **kwargs)
            if name in self.elsewhere:
                return self._run_elsewhere(name, method, number, original, args, kwargs)
            self._begin(name, method, number)
            out = recorder.component_call(
                number, method, self.version[name], original, args, kwargs
            )
            recorder.timeline.events.append((Op.OFF, number, 0, 0))
            return out

        module.__dict__[method] = call

    def _reached_into(self, original: Any) -> Any:
        """A pipeline may call a part of a component past the component: that is a call of the component too."""
        run = self

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            name = None if run.recorder.inside else run.owner.get(id(module))
            if name is None or module is run.modules[name] or name in run.elsewhere:
                return original(module, *args, **kwargs)
            number = list(run.modules).index(name)
            path = run.recorder.module_index[id(module)][1]
            run._begin(name, "forward", number)
            bound = functools.partial(original, module)
            out = run.recorder.component_call(number, path, run.version[name], bound, args, kwargs)
            run.recorder.timeline.events.append((Op.OFF, number, 0, 0))
            return out

        return call

    def _run_elsewhere(
        self, name: str, method: str, number: int, original: Any, args: Any, kwargs: Any
    ) -> Any:
        if not self.recorder.away:
            raise BadRequest("prompt-embeds-not-enough", model=self.model.id, component=name)
        return self.recorder.component_call(number, method, 0, original, args, kwargs)

    def _wrap_part(self, name: str, module: torch.nn.Module, part: str) -> None:
        """A VAE runs its encoder or decoder once per tile or frame: each distinct one is traced once."""
        original = module.forward
        number = list(self.modules).index(name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.recorder.inside:
                return original(*args, **kwargs)
            label = f"{part}.{self.version[name]}"
            return self.recorder.nested_call(number, label, original, args, kwargs)

        module.__dict__["forward"] = call

    def _begin(self, name: str, method: str, number: int) -> None:
        stage = (stage_of(name, method, self.denoised), name)
        if stage[0] == "denoise":
            self.denoised = True
        if stage not in self.stages:
            self.stages.append(stage)
            self.progress(stage[0], None)
        events = self.recorder.timeline.events
        events.append((Op.STAGE, self.stages.index(stage), 0, 0))
        events.append((Op.ON, number, 0, 0))

    def _stepping(self, original: Any) -> Any:
        """Note where every step ends. A pipeline may copy its scheduler: the first one that steps keeps time."""

        @functools.wraps(original)
        def step(*args: Any, **kwargs: Any) -> Any:
            out = original(*args, **kwargs)
            if self.clock is None:  # a scheduler may have a length, and be empty
                self.clock = args[0]
            if args[0] is not self.clock:
                return out
            self.step_ends.append(len(self.recorder.timeline.events))
            self.progress(
                "denoise", min(1.0, len(self.step_ends) / self.request.num_inference_steps)
            )
            return out

        return step

    def _recasting(self, original: Any) -> Any:
        run = self

        def to(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            name = run.owner.get(id(module))
            if name is None or run.recorder.inside or name in run.elsewhere:
                return original(module, *args, **kwargs)
            dtype = kwargs.get("dtype") or next(
                (a for a in args if isinstance(a, torch.dtype)), None
            )
            if dtype is None:
                return module
            with run.recorder.pause():
                original(module, dtype=dtype)
            run._recast(name)
            return module

        return to

    def _recast(self, name: str) -> None:
        before = self._current(name)
        after = describe(name, self.modules[name])
        if after == before:
            return
        self.recasts.append(after)
        self.version[name] += 1
        number = list(self.modules).index(name)
        self.recorder.timeline.events.append((Op.RECAST, number, len(self.recasts) - 1, 0))

    def _current(self, name: str) -> Component:
        for component in reversed(self.recasts):
            if component.name == name:
                return component
        return next(c for c in self.components if c.name == name)


def _quiet() -> None:
    """The libraries' own remarks on missing tokenizers and processors are not about the reader's question."""
    for name in ("diffusers", "transformers"):
        importlib.import_module(name)  # which sets its own level
        logging.getLogger(name).setLevel(logging.ERROR)


def dry_run(
    model: Model, request: ExactRequest, settings: Settings, *, progress: Progress | None = None
) -> Trace:
    """The Trace of ``request`` with ``settings``; raises DryRunFailed with the pipeline's own words."""
    _quiet()
    return DryRun(model, request, settings, progress).run()


def dry_part(
    model: Model,
    request: ExactRequest,
    settings: Settings,
    component: str,
    method: str,
    shape: tuple[int, ...],
) -> Trace:
    """The Trace of one call of one component: what a decode from saved latents or a single forward takes."""
    _quiet()
    return DryRun(model, request, settings, None).run_part(component, method, shape)


def dry_post(request: ExactRequest, step: Post) -> Trace:
    """The Trace of one call of a step after the pipeline, at ``request``'s size."""
    _quiet()
    return DryRun(load(request.model), request, Settings(offload="none"), None).run_post(step)
