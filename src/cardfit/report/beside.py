"""The printed lines for what lies beside the denoiser: ControlNets, T2I-Adapters, IP-Adapters and their pictures.

In: the request, the library entry as the request runs it. Out: lines of Python for diffusers 0.42. Repositories of
networks that were not named, and pictures, stand as names to fill in.
"""

from __future__ import annotations

from collections.abc import Mapping

from cardfit.library.add_ons import ADAPTER, CONTROLNET, NETS, add_ons, ip_adapters_of, shown_of
from cardfit.library.models import Model
from cardfit.request import Dtype, ExactRequest

_FILLED_IN = {CONTROLNET: "the ControlNet's repository", ADAPTER: "the T2I-Adapter's repository"}


def classes(model: Model) -> list[str]:
    """The classes of networks to import."""
    return sorted({kind for name in _FILLED_IN for kind, _ in _nets(model, name)})


def load(model: Model, request: ExactRequest, dtypes: Mapping[str, Dtype]) -> list[str]:
    """Lines that load the networks, one name for each component."""
    lines: list[str] = []
    for name, repository in _FILLED_IN.items():
        nets = _nets(model, name)
        known = add_ons().controlnets.get(model.pipeline)
        repos = [repository] * len(nets)
        if name == CONTROLNET and known is not None:
            repos = [
                known.named[each.model].get("repo_id", repository) if each.model else repository
                for each in request.controlnets
            ]
        calls = [
            f'{kind}.from_pretrained("{repo}", dtype=torch.{dtypes[name]})'
            for (kind, _), repo in zip(nets, repos, strict=True)
        ]
        if len(calls) == 1:
            lines.append(f"{name} = {calls[0]}")
        elif calls:
            lines += [f"{name} = [", *(f"    {call}," for call in calls), "]"]
    return lines


def arguments(model: Model) -> list[str]:
    """Arguments of the pipeline's ``from_pretrained``."""
    return [f"    {name}={name}," for name in _FILLED_IN if name in model.components]


def ip_adapters(model: Model, request: ExactRequest) -> list[str]:
    """``load_ip_adapter`` for all at once, which is how diffusers takes several."""
    found = ip_adapters_of(model, request)
    if not found:
        return []
    folders = [each.weights.rpartition("/")[0] for each in found]
    names = [each.weights.rpartition("/")[2] for each in found]
    lines = [
        "pipe.load_ip_adapter(",
        f'    "{found[0].repo_id}",',
        f"    subfolder={_listed(folders)},",
        f"    weight_name={_listed(names)},",
    ]
    lines += [f'    {name}="{value}",' for name, value in found[0].load.items()]
    return [*lines, ")"]


def call(model: Model, request: ExactRequest, takes_image: bool) -> dict[str, str]:
    """Arguments of the call for the add-ons' pictures; ``takes_image``: ``image`` is the picture to change already."""
    values: dict[str, str] = {}
    count = len(request.controlnets) or request.t2i_adapters
    if count:
        control = takes_image or model.pipeline not in _CONTROL_IS_IMAGE
        union = "control_mode" in model.call
        name = "control_image" if control or union else "image"
        name = "conditioning_frames" if model.is_video else name
        values[name] = _pictures("control", count, listed=count > 1)
    if count > 1:
        kind = "controlnet" if request.controlnets else "adapter"
        values[f"{kind}_conditioning_scale"] = str([1.0] * count)
    if request.ip_adapters:
        values["ip_adapter_image"] = _pictures("style", len(request.ip_adapters), listed=True)
    shown = shown_of(model)
    if shown is not None and request.reference_images is not None:
        values[shown.argument] = _pictures("reference", request.reference_images, listed=True)
    return values


# text-to-image pipelines of these take the control picture as ``image``
_CONTROL_IS_IMAGE = frozenset({"StableDiffusionPipeline", "StableDiffusionXLPipeline"})


def _pictures(name: str, count: int, *, listed: bool) -> str:
    each = [f'load_image("{name}-{number + 1}.png")' for number in range(count)]
    return f"[{', '.join(each)}]" if listed else each[0]


def _listed(names: list[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"


def _nets(model: Model, name: str) -> list[tuple[str, str]]:
    """Class and path of each network of a component."""
    part = model.components.get(name)
    if part is None:
        return []
    paths = (
        [net["class_path"] for net in part.config[NETS]]
        if NETS in part.config
        else [part.class_path]
    )
    return [(path.rpartition(".")[2], path) for path in paths]
