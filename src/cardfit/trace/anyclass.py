"""Any pipeline class as an object without weights: every part built from the class that the constructor declares.

In: a pipeline class of diffusers. Out: an object of it on the meta device, which `trace.own` can call. A part's config
comes from, in this order: the facts, the library entry nearest to the class, any library entry with that part, the
part's own defaults. A part that stands beside the denoiser (a control network) takes the denoiser's sizes. ``depth``
keeps that many layers of every stack, and one of every block of a U-Net: what grows with the picture stays, what is
repeated is left out. Left out: the arguments of a call (`trace.arguments`).
"""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from typing import Any, NoReturn

import torch

from cardfit.errors import DryRunFailed
from cardfit.library.build import build_from
from cardfit.library.load import all_models, load
from cardfit.library.models import ComponentSpec, Model
from cardfit.trace import recipes
from cardfit.trace.declared import Part, parts_of
from cardfit.trace.facts import PartFacts, facts, of_pipeline
from cardfit.trace.tokens import DryImageProcessor

_DENOISERS = ("transformer", "unet", "decoder", "prior", "image_unet")
_BESIDE = re.compile("controlnet|motion_adapter")
_DEPTH = re.compile(r"^(num|n)_(\w+_)?(layers|blocks)$|^depth$|layers_per_block$|_depths?$")
_TEXT_WIDTH = re.compile(
    r"(text|joint|cross|caption|encoder|context|embed)\w*_(dim|size|channels)$|^c_cond$|^clip_embd$"
)
_GENERAL = ("Module", "ModelMixin", "PreTrainedModel", "AutoModel")
_LENGTH = 512  # tokens, where neither the encoder nor an entry says
_SIDE = 224  # pixels, of the vision encoders that took part in no config
_PLAIN_SCHEDULER = "diffusers.DDIMScheduler"


def assemble(pipeline: type[Any], *, depth: int | None = None) -> Any:
    """An object of ``pipeline`` without weights. Raises DryRunFailed with the part that cannot be built, and why."""
    return _Assembly(pipeline, depth).made()


class _Assembly:
    """One pipeline object in the making."""

    def __init__(self, pipeline: type[Any], depth: int | None) -> None:
        self.pipeline, self.depth = pipeline, depth
        self.parts = parts_of(pipeline)
        self.facts = of_pipeline(pipeline.__name__)
        self.entry = nearest(pipeline.__name__, self.parts, self.facts.entry)
        self.mine = self.entry is not None and pipeline.__name__ in (
            self.entry.pipeline,
            *self.entry.task_pipelines.values(),
        )
        self.modules: dict[str, torch.nn.Module] = {}

    def made(self) -> Any:
        """Modules first, then what is sized after them."""
        given = dict(self.facts.constructor)
        modules = [each for each in self.parts if each.role == "module"]
        for part in sorted(modules, key=lambda each: each.name not in _DENOISERS):
            if part.name not in given and self._wanted(part):
                try:
                    self.modules[part.name] = self._module(part)
                except Exception as error:
                    self._failed(f"{part.name}: {type(error).__name__}: {error}", error)
        try:
            for part in self.parts:
                if part.name not in self.modules and part.name not in given:
                    given[part.name] = self._other(part)
            made = self.pipeline(**self.modules, **given)
        except Exception as error:
            self._failed(f"{type(error).__name__}: {error}", error)
        if self.entry is not None and self.entry.vae.tiling_required:
            made.vae.enable_tiling()
        return made

    def _wanted(self, part: Part) -> bool:
        """Whether a module stands there: asked for, in the entry of this very class, or named in the facts."""
        spec = self.entry.components.get(part.name) if self.entry is not None else None
        if part.needed or self._fact(part) is not None:
            return True
        own = self.mine or part.name.startswith("text_encoder")
        return own and spec is not None and spec.counted

    def _failed(self, reason: str, error: Exception) -> NoReturn:
        raise DryRunFailed(
            "class-not-built", pipeline=self.pipeline.__name__, reason=reason
        ) from error

    def _fact(self, part: Part) -> PartFacts | None:
        return self.facts.parts.get(part.name)

    # -- modules -----------------------------------------------------------------------------------------------------

    def _module(self, part: Part) -> torch.nn.Module:
        kind, config_kind, config, dtype = self._origin(part)
        fact = self._fact(part)
        config = _laid(config, fact.config if fact is not None else {})
        if self.depth is not None:
            config = thinned(kind, config_kind, config, self.depth)
            config = _laid(config, fact.thinned if fact is not None else {})
        return build_from(kind, config, dtype, config_kind)

    def _origin(self, part: Part) -> tuple[Any, Any, dict[str, Any], str]:
        """Class, config class, config and dtype of ``part``, before what the facts say about its config."""
        fact, dtype = self._fact(part) or PartFacts(), self.facts.dtype
        spec = self._spec(part, fact)
        if spec is not None:
            config_kind = _class(spec.config_class) if spec.config_class else None
            own = self.entry.components.get(part.name) if self.entry is not None else None
            if spec is own and spec.recommended_dtype == "float32":
                dtype = "float32"
            return _class(spec.class_path), config_kind, dict(spec.config), dtype
        kind = _class(fact.kind) if fact.kind else _concrete(part.kinds)
        general = facts().parts.get(kind.__name__) or PartFacts()
        path = fact.config_kind or general.config_kind
        config = dict(general.config)
        if _BESIDE.search(part.name):
            config = self._beside(kind, config)
        return kind, _class(path) if path else None, config, dtype

    def _spec(self, part: Part, fact: PartFacts) -> ComponentSpec | None:
        """The library's component for ``part``: the entry's own by that name, else one of a declared class."""
        if fact.entry is not None:
            entry, _, name = fact.entry.partition("/")
            return load(entry).components[name or part.name]
        if fact.kind is not None:
            return None
        if self.entry is not None:
            spec = self.entry.components.get(part.name)
            if spec is not None and (
                not part.kinds or issubclass(_class(spec.class_path), part.kinds)
            ):
                return spec
        if _BESIDE.search(part.name):  # made to the denoiser's sizes
            return None
        kinds = tuple(kind for kind in part.kinds if kind.__name__ not in _GENERAL)
        known = [spec for kind in kinds for spec in _library_parts().get(kind.__name__, ())]
        if not known and kinds:  # a base class: any that is built on it
            known = [
                each[0]
                for each in _library_parts().values()
                if issubclass(_class(each[0].class_path), kinds)
            ]
        exact, quarter = self._widths()
        return min(
            known,
            key=lambda spec: (not _widths(spec) & exact, not _widths(spec) & quarter),
            default=None,
        )

    def _widths(self) -> tuple[set[int], set[int]]:
        """The widths of text and of latents that the denoiser takes, by the names that denoisers give them."""
        denoiser = self._denoiser()
        config = {} if denoiser is None else dict(denoiser.config)
        found = {v for k, v in config.items() if _TEXT_WIDTH.search(k) and isinstance(v, int)}
        channels = config.get("in_channels")
        if not isinstance(channels, int):
            return found, set()
        return found | {-channels}, {-channels // 4}  # as they are, or four neighbours as one

    def _denoiser(self) -> Any:
        return next((self.modules[name] for name in _DENOISERS if name in self.modules), None)

    def _beside(self, kind: Any, config: dict[str, Any]) -> dict[str, Any]:
        """The sizes of the denoiser, by the names that both classes give them."""
        denoiser = self._denoiser()
        if denoiser is None:
            return config
        names = set(inspect.signature(kind.__init__).parameters)
        shared = {k: v for k, v in dict(denoiser.config).items() if k in names and k[0] != "_"}
        return shared | config

    # -- everything else ---------------------------------------------------------------------------------------------

    def _other(self, part: Part) -> Any:
        if part.role == "tokenizer":
            return self._tokenizer(part)
        if part.role == "processor":
            return self._processor(part)
        if part.role == "scheduler":
            return self._scheduler(part)
        if part.role == "guider":
            kind = importlib.import_module("diffusers").ClassifierFreeGuidance
            return next((k for k in part.kinds if k.__name__ != "BaseGuidance"), kind)()
        if self.entry is not None and self.mine and part.name in self.entry.pipeline_config:
            return self.entry.pipeline_config[part.name]
        if part.name == "safety_checker" and self.pipeline.__name__.startswith("Cosmos"):
            return recipes.DryGuard()
        if part.name == "requires_safety_checker":
            return False
        return None if part.default is inspect.Parameter.empty else part.default

    def _scheduler(self, part: Part) -> Any:
        if self.entry is not None and part.name == "scheduler" and self._fact(part) is None:
            kind = _class(self.entry.scheduler.class_path)
            if self.mine or not part.kinds or kind in part.kinds or not _schedulers(part.kinds):
                return recipes.scheduler(self.entry)
        fact = self._fact(part) or PartFacts()
        kinds = [_class(fact.kind)] if fact.kind else _schedulers(part.kinds)
        kind = (kinds or [_class(_PLAIN_SCHEDULER)])[0]
        general = facts().parts.get(kind.__name__) or PartFacts()
        return kind(**general.config, **fact.config)

    def _tokenizer(self, part: Part) -> Any:
        encoder = self._encoder_of(part.name)
        if encoder is None:
            return None
        limit = self.entry.defaults.max_sequence_length if self.entry is not None else None
        made = recipes.tokenizer(encoder, limit or _LENGTH)
        made.flattens = True
        return made

    def _processor(self, part: Part) -> Any:
        encoder = self._encoder_of(part.name)
        words = [kind.__name__ for kind in part.kinds]
        if any(each.endswith("ImageProcessor") for each in words) or (
            part.name.endswith(("image_processor", "feature_extractor"))
        ):
            side = recipes.image_side(self.modules, part.name) or self._any_side()
            return DryImageProcessor(side)
        made = None if encoder is None else self._tokenizer(part)
        if made is not None:
            made.flattens = False
        return made

    def _any_side(self) -> int:
        """Pixels of the side that some part looks at; the usual one where no part says."""
        for module in self.modules.values():
            config: Any = getattr(module, "config", None)
            side = getattr(getattr(config, "vision_config", config), "image_size", None)
            if isinstance(side, int):
                return side
        return _SIDE

    def _encoder_of(self, name: str) -> Any:
        """The text encoder that tokenizer or processor ``name`` stands before."""
        before, _, after = re.sub("tokenizer|processor", "|", name).partition("|")
        for wanted in (f"{before}text_encoder{after}", f"{before.rstrip('_')}", "text_encoder"):
            if wanted in self.modules:
                return self.modules[wanted]
        texts = [n for n in self.modules if "text" in n or "bert" in n or n == "transformer"]
        return self.modules[texts[0]] if texts else None


def nearest(name: str, parts: tuple[Part, ...], wanted: str | None = None) -> Model | None:
    """The library entry whose parts are most like ``parts``: made for class ``name``, else the same denoiser class and
    the most parts in common; the oldest of equals. None where no entry has the denoiser's class."""
    best: tuple[Any, ...] | None = None
    found: Model | None = None
    declared = {part.name: part.kinds for part in parts if part.role == "module"}
    for entry in all_models():
        if wanted is not None and entry.id != wanted:
            continue
        specs = {n: s for n, s in entry.components.items() if not s.external}
        same = [n for n, s in specs.items() if n in declared and _named(s.class_path, declared[n])]
        mine = name in (entry.pipeline, *entry.task_pipelines.values())
        if not (mine or wanted or any(n in _DENOISERS for n in same)):
            continue
        rank = (not mine, len(declared) + len(specs) - 2 * len(same), entry.released, entry.id)
        if best is None or rank < best:
            best, found = rank, entry
    return found


def _named(path: str, kinds: tuple[type, ...]) -> bool:
    name = path.rpartition(".")[2]
    return any(name == kind.__name__ for kind in kinds)


@cache
def _library_parts() -> dict[str, tuple[ComponentSpec, ...]]:
    """Class name -> the components of that class in the library, those of the oldest entry first."""
    found: dict[str, tuple[ComponentSpec, ...]] = {}
    for entry in sorted(all_models(), key=lambda each: (each.released, each.id)):
        for spec in entry.components.values():
            if not spec.external:
                name = spec.class_path.rpartition(".")[2]
                found[name] = (*found.get(name, ()), spec)
    return found


def _widths(spec: ComponentSpec) -> set[int]:
    """The widths of what an encoder gives, and the channels of an autoencoder's latent as a negative number."""
    config = {**spec.config, **spec.config.get("text_config", {})}
    found = {config.get(name) for name in ("hidden_size", "d_model", "projection_dim")}
    channels = config.get("latent_channels", config.get("z_dim"))
    return {n for n in found if isinstance(n, int)} | ({-channels} if channels else set())


def _laid(config: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``config`` with ``over`` laid upon it, table by table."""
    out = dict(config)
    for name, value in over.items():
        below = out.get(name)
        out[name] = (
            _laid(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return out


def _class(path: str) -> Any:
    library, _, name = path.rpartition(".")
    return getattr(importlib.import_module(library), name)


def _concrete(kinds: tuple[type, ...]) -> Any:
    modules = [kind for kind in kinds if issubclass(kind, torch.nn.Module)]
    single = [kind for kind in modules if "Multi" not in kind.__name__]
    return (single or modules)[0]


def _schedulers(kinds: tuple[type, ...]) -> list[Any]:
    return [k for k in kinds if hasattr(k, "from_config") and k.__name__ != "SchedulerMixin"]


# -- few layers --------------------------------------------------------------------------------------------------------


def thinned(kind: Any, config_kind: Any, config: dict[str, Any], depth: int) -> dict[str, Any]:
    """``config`` with at most ``depth`` layers in every stack that it, or the class's default, names."""
    if hasattr(kind, "from_config"):
        defaults = {
            name: each.default
            for name, each in inspect.signature(kind.__init__).parameters.items()
            if each.default is not inspect.Parameter.empty
        }
        return _few({**defaults, **config}, depth)
    whole = (config_kind or kind.config_class)(
        **{k: v for k, v in config.items() if k != "model_type"}
    )
    return _few(whole.to_dict(), depth)


def _few(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    out: dict[Any, Any] = {}
    for name, each in value.items():
        if isinstance(each, dict):
            out[name] = _few(each, depth)
        elif not isinstance(name, str):  # a table of labels
            out[name] = each
        elif _DEPTH.search(name):
            out[name] = _capped(each, 1 if name.endswith("per_block") else depth)
        elif name == "layer_types" and isinstance(each, (list, tuple)):
            out[name] = each[:depth]
        else:
            out[name] = each
    return out


def _capped(value: Any, depth: int) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_capped(each, depth) for each in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return min(value, depth)
    return value
