"""What can be laid beside a model: ControlNets, T2I-Adapters, IP-Adapters, pictures, optional components.

In: a library entry and a request. Out: the entry as the request runs it: with the pipeline that takes the add-on, and
with the add-on's modules among the components, so that dtypes, offload, disk and code need to know nothing of them.
What a model has no such add-on for raises BadRequest. The facts are in ``data/add-ons.json``. What an IP-Adapter and a
LoRA change inside the denoiser is the business of `cardfit.trace`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import BadRequest, Note
from cardfit.library.load import load
from cardfit.library.lora_file import with_files_read
from cardfit.library.models import ComponentSpec, Model
from cardfit.library.rules import resolve
from cardfit.request import ControlNet, Dtype, ExactRequest, Request, Task

CONTROLNET, ADAPTER, IMAGE_ENCODER = "controlnet", "adapter", "image_encoder"
NETS = "nets"  # in a config: the networks that one class runs side by side
DENOISERS = ("transformer", "unet", "prior")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sized(_Frozen):
    """Parameters of a network: those it always has, and those of each layer by the config key that counts them."""

    fixed: Annotated[int, Field(gt=0)]
    each: dict[str, int] = {}

    def of(self, config: dict[str, Any]) -> int:
        """Parameters with ``config``."""
        return self.fixed + sum(count * int(config[key]) for key, count in self.each.items())


class Network(_Frozen):
    """A ControlNet or T2I-Adapter: its class, the pipeline that takes it for each task, what its config adds.

    ``several`` is the class that runs more than one; ``like`` the entry whose denoiser gives the config, the model's
    own when left out; ``layers`` the config keys that a request may set; ``params`` by model.
    """

    class_path: str
    several: str | None = None
    pipelines: dict[Task, str]
    config: dict[str, Any] = {}
    like: str | None = None
    layers: tuple[Literal["num_layers", "num_single_layers"], ...] = ()
    call: dict[str, Any] = {}
    named: dict[str, dict[str, Any]] = {}
    repo_id: str | None = None
    params: dict[str, Sized] = {}
    source: str = ""

    def called(self, name: str) -> Network:
        """The one that is called ``name``: what it says of itself in place of the general."""
        own = self.named[name]
        config = self.config | own.get("config", {})
        return Network.model_validate(self.model_dump() | {"named": {}} | own | {"config": config})


class ImageEncoder(_Frozen):
    """The network that reads a picture for an IP-Adapter."""

    class_path: str
    config_class: str
    config: dict[str, Any]
    published_dtype: Dtype
    params: Annotated[int, Field(gt=0)]
    source: str


class IpAdapter(_Frozen):
    """A picture as a prompt: its encoder, how it becomes tokens, and how many."""

    repo_id: str
    weights: str
    image_encoder: str
    projection: Literal["linear", "resampler"]
    num_tokens: int
    hidden_size: Annotated[int | None, Field(description="of the resampler")] = None
    load: Annotated[dict[str, str], Field(description="more arguments of load_ip_adapter")] = {}


class Shown(_Frozen):
    """A pipeline that is shown several pictures: in which argument, for which tasks."""

    argument: str
    tasks: tuple[Task, ...]


class AddOns(_Frozen):
    """The data file; by pipeline, image encoders by name."""

    sources: tuple[str, ...]
    controlnets: dict[str, Network]
    t2i_adapters: dict[str, Network]
    image_encoders: dict[str, ImageEncoder]
    ip_adapters: dict[str, dict[str, IpAdapter]]
    reference_images: dict[str, Shown]


@cache
def add_ons() -> AddOns:
    """The shipped facts."""
    text = (files("cardfit.library") / "data" / "add-ons.json").read_text(encoding="utf-8")
    return AddOns.model_validate_json(text)


def resolved(model: Model, request: Request) -> tuple[Model, ExactRequest, tuple[Note, ...]]:
    """The entry and the exact request as the pipeline runs them, and what a reader should know about them.

    Raises BadRequest as `cardfit.library.rules.resolve` and `with_add_ons` do, BadFile for a LoRA that cannot be read.
    """
    exact, notes = resolve(model, with_files_read(request))
    return with_add_ons(model, exact), exact, notes


def with_add_ons(model: Model, request: Request) -> Model:
    """``model`` as ``request`` runs it; the same where it asks for nothing beside it.

    Raises BadRequest for an add-on that the model does not take, naming what it does take.
    """
    task: Task = request.task or model.tasks[0]
    _check_pictures(model, request, task)
    parts = _optional(model, request)
    if request.ip_adapters:
        parts[IMAGE_ENCODER] = _image_encoder(model, ip_adapters_of(model, request))
    taken = dict(model.task_pipelines)
    call = dict(model.call)
    if request.controlnets and request.t2i_adapters:
        raise BadRequest("add-ons-together", one="controlnets", other="t2i_adapters")
    if request.controlnets:
        nets = [_controlnet(model, asked, task) for asked in request.controlnets]
        taken[task] = _one_pipeline(model, nets, task)
        parts[CONTROLNET] = _side_by_side(nets, _denoiser(model))
        call |= _calls(nets)
    if request.t2i_adapters:
        net = _network(model, "t2i_adapters", add_ons().t2i_adapters)
        _check_task(model, "t2i_adapters", net.pipelines, task)
        nets = [(net, dict(net.config), _params(net, model, net.config))] * request.t2i_adapters
        taken[task] = net.pipelines[task]
        parts[ADAPTER] = _side_by_side(nets, _denoiser(model))
    if parts == model.components and call == model.call:
        return model
    return model.model_copy(update={"components": parts, "task_pipelines": taken, "call": call})


def ip_adapters_of(model: Model, request: Request) -> tuple[IpAdapter, ...]:
    """The IP-Adapters that ``request`` names. Raises BadRequest for one that the model does not take."""
    known = add_ons().ip_adapters.get(model.pipeline, {})
    for name in request.ip_adapters:
        if name not in known:
            raise _not_taken(model, "ip_adapters", name, known)
    return tuple(known[name] for name in request.ip_adapters)


def shown_of(model: Model) -> Shown | None:
    """How the model is shown several pictures; None where it is not."""
    return add_ons().reference_images.get(model.pipeline)


_Net = tuple[Network, dict[str, Any], int]  # with its whole config and its parameters


def _optional(model: Model, request: Request) -> dict[str, ComponentSpec]:
    """The components, with the optional ones that the request asks for loaded."""
    parts = dict(model.components)
    allowed = [name for name, part in parts.items() if part.optional]
    for name in request.components:
        if name not in allowed:
            raise _not_taken(model, "components", name, allowed)
        parts[name] = parts[name].model_copy(update={"optional": False})
    return parts


def _check_pictures(model: Model, request: Request, task: Task) -> None:
    if request.reference_images is None:
        return
    found = shown_of(model)
    if found is None:
        raise BadRequest("reference-images-not-taken", model=model.id, pipeline=model.pipeline)
    _check_task(model, "reference_images", found.tasks, task)


def _check_task(model: Model, field: str, tasks: Iterable[Task], task: Task) -> None:
    if task not in tasks:
        allowed = ", ".join(tasks)
        raise BadRequest("add-on-task", model=model.id, field=field, task=task, allowed=allowed)


def _network(model: Model, field: str, known: dict[str, Network]) -> Network:
    net = known.get(model.pipeline)
    if net is None or model.id not in net.params:
        raise BadRequest("no-such-add-on", model=model.id, field=field, pipeline=model.pipeline)
    return net


def _controlnet(model: Model, asked: ControlNet, task: Task) -> _Net:
    net = _network(model, "controlnets", add_ons().controlnets)
    if asked.model is not None:
        if asked.model not in net.named:
            raise _not_taken(model, "controlnets", asked.model, net.named)
        net = net.called(asked.model)
    _check_task(model, "controlnets", net.pipelines, task)
    base = model if net.like is None else load(net.like)
    config = base.components[_denoiser_name(base)].config | net.config
    for key in ("num_layers", "num_single_layers"):
        count = getattr(asked, key)
        if count is not None and key not in net.layers:
            allowed = ", ".join(net.layers) or "-"
            raise BadRequest(
                "controlnet-layers", model=model.id, field=key, asked=count, allowed=allowed
            )
        if count is not None:
            config[key] = count
    return net, config, _params(net, model, config)


def _params(net: Network, model: Model, config: dict[str, Any]) -> int:
    return net.params[model.id].of(config)


def _one_pipeline(model: Model, nets: list[_Net], task: Task) -> str:
    """The pipeline that takes all of ``nets``."""
    names = {net.pipelines[task] for net, *_ in nets}
    if len(names) > 1:
        raise BadRequest("controlnets-apart", model=model.id, pipelines=", ".join(sorted(names)))
    return names.pop()


def _calls(nets: list[_Net]) -> dict[str, Any]:
    """Arguments of the call that the networks want: one value, or one for each of several."""
    if len(nets) == 1:
        return nets[0][0].call
    found: dict[str, Any] = {}
    for name in {name for net, *_ in nets for name in net.call}:
        values = [net.call.get(name) for net, *_ in nets]  # None: this one has no such thing
        found[name] = [v for each in values for v in (each if isinstance(each, list) else [each])]
    return found


def _side_by_side(nets: list[_Net], like: ComponentSpec) -> ComponentSpec:
    """The networks as one component, loaded as the denoiser is."""
    net, config, params = nets[0]
    if len(nets) > 1:
        if net.several is None:
            raise BadRequest(
                "one-add-on-only", kind=net.class_path.rpartition(".")[2], asked=len(nets)
            )
        config = {NETS: [{"class_path": each.class_path, "config": c} for each, c, _ in nets]}
        params = sum(count for *_, count in nets)
    return ComponentSpec(
        class_path=net.class_path if len(nets) == 1 else net.several,
        config=config,
        source=net.source,
        published_dtype=like.recommended_dtype,
        published_dtype_basis="the denoiser's",
        recommended_dtype=like.recommended_dtype,
        params=params,
        expected_source=net.repo_id or net.source,
        basis="none",
        verified=False,
    )


def _image_encoder(model: Model, adapters: tuple[IpAdapter, ...]) -> ComponentSpec:
    """The one encoder that all ``adapters`` read pictures with."""
    names = {each.image_encoder for each in adapters}
    if len(names) > 1:
        raise BadRequest("image-encoders-apart", model=model.id, encoders=", ".join(sorted(names)))
    found = add_ons().image_encoders[names.pop()]
    return ComponentSpec(
        class_path=found.class_path,
        config_class=found.config_class,
        config=found.config,
        source=found.source,
        published_dtype=found.published_dtype,
        published_dtype_basis="repository",
        recommended_dtype=_denoiser(model).recommended_dtype,
        params=found.params,
        expected_source=found.source,
        basis="none",
        verified=False,
    )


def _denoiser_name(model: Model) -> str:
    return next(name for name in model.components if name.startswith(DENOISERS))


def _denoiser(model: Model) -> ComponentSpec:
    return model.components[_denoiser_name(model)]


def _not_taken(model: Model, field: str, asked: str, known: Any) -> BadRequest:
    allowed = ", ".join(known)
    if not allowed:
        return BadRequest("no-such-add-on", model=model.id, field=field, pipeline=model.pipeline)
    return BadRequest("add-on-unknown", model=model.id, field=field, asked=asked, allowed=allowed)
