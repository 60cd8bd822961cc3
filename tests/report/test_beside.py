"""The printed lines for add-ons: they are Python, and diffusers takes every argument."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from cardfit.library import load
from cardfit.library.add_ons import add_ons, resolved
from cardfit.report import code
from cardfit.request import ControlNet, Lora, Request, Settings


def lines(model: str, **fields: Any) -> str:
    _, exact, _ = resolved(load(model), Request(model=model, **fields))
    recipe = code.Recipe.of(load(model), exact)
    return "\n".join(code.body(exact, Settings(), recipe))


ASKED = [
    *((name, {"controlnets": count * (ControlNet(),)}) for name in (
        "stable-diffusion-1.5", "sdxl-base", "flux.1-dev", "sd3-medium", "qwen-image", "hunyuandit-v1.2",
        "animatediff-sd1.5",
    ) for count in (1, 2)),
    ("sana-1.6b", {"controlnets": (ControlNet(),)}),
    ("sdxl-base", {"controlnets": (ControlNet(model="union"),)}),
    ("flux.1-dev", {"controlnets": (ControlNet(model="union-pro"),) * 2}),
    ("sdxl-base", {"controlnets": (ControlNet(),), "task": "image-to-image"}),
    ("sdxl-base", {"controlnets": (ControlNet(),), "task": "inpainting"}),
    ("sdxl-base", {"t2i_adapters": 1}),
    ("stable-diffusion-1.5", {"t2i_adapters": 2}),
    ("sdxl-base", {"ip_adapters": ("ip-adapter-vit-h", "ip-adapter-plus")}),
    ("flux.1-dev", {"ip_adapters": ("ip-adapter",)}),
    ("qwen-image-edit-plus", {"reference_images": 3}),
    ("flux.2-klein-4b", {"reference_images": 2, "task": "image-editing"}),
    ("wan2.1-vace-1.3b", {"reference_images": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "fields"), ASKED)
def test_every_argument_is_one_that_the_pipeline_takes(model: str, fields: dict[str, Any]) -> None:
    diffusers = pytest.importorskip("diffusers")
    tree = ast.parse(lines(model, **fields))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    imported = next(node for node in tree.body if isinstance(node, ast.ImportFrom))
    pipeline = next(each.name for each in imported.names if each.name.endswith("Pipeline"))
    kind = getattr(diffusers, pipeline)
    call = next(c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "pipe")
    assert {each.arg for each in call.keywords} <= set(inspect.signature(kind.__call__).parameters)
    loading = next(
        c
        for c in calls
        if isinstance(c.func, ast.Attribute)
        and c.func.attr == "from_pretrained"
        and isinstance(c.func.value, ast.Name)
        and c.func.value.id == pipeline
    )
    parts = {each.arg for each in loading.keywords} - {"dtype"}
    assert parts <= set(inspect.signature(kind.__init__).parameters)
    assert all(hasattr(diffusers, each.name) for each in imported.names)


def test_named_networks_come_from_their_repositories() -> None:
    source = lines("flux.1-dev", controlnets=(ControlNet(model="union-pro-2.0"),))
    repo = add_ons().controlnets["FluxPipeline"].named["union-pro-2.0"]["repo_id"]
    assert f'FluxControlNetModel.from_pretrained("{repo}"' in source
    assert 'control_image=load_image("control-1.png")' in source
    assert "    controlnet=controlnet," in source


def test_adapters_are_loaded_before_anything_is_moved() -> None:
    source = lines("sdxl-base", ip_adapters=("ip-adapter-plus",), loras=(Lora(rank=4),))
    assert source.index("load_ip_adapter") < source.index("load_lora") < source.index(".to(")
    assert 'image_encoder_folder="models/image_encoder"' in source


def test_a_request_without_add_ons_prints_what_it_did() -> None:
    model = load("sdxl-base")
    _, exact, _ = resolved(model, Request(model=model.id))
    assert code.Recipe.of(model, exact) == code.Recipe.of(model)
