"""Add-ons in a dry run: what they weigh, where they lie, and that diffusers' own shapes are taken."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch

from cardfit.errors import BadFile, BadRequest, MissingExtra
from cardfit.library import load
from cardfit.library.add_ons import CONTROLNET, NETS, add_ons, with_add_ons
from cardfit.library.build import build
from cardfit.library.load import all_models
from cardfit.library.lora_file import FILES_READ, with_files_read
from cardfit.predict.memory import estimate
from cardfit.request import ControlNet, Lora, Request, Settings
from cardfit.trace import lora, source
from cardfit.trace.atlas import domain, find, outside
from cardfit.trace.cache import trace_parts
from cardfit.trace.stream import Trace

Traced = Callable[..., Trace]
SMALL: dict[str, Any] = {"width": 128, "height": 128, "num_inference_steps": 2}
SD = "stable-diffusion-1.5"
GB = 10**9


def resolved(request: Request) -> Any:
    from cardfit.library.rules import resolve

    return resolve(load(request.model), with_files_read(request))[0]


def params(module: Any) -> int:
    return sum(each.numel() for each in module.parameters())


def weights(trace: Trace, name: str) -> int:
    return trace.component(name).weights_bytes


# -- LoRA files as trainers write them: names, shapes and dtypes, with zeros for values

ITEM = {"F32": 4, "F16": 2, "BF16": 2}


def lora_file(path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: str = "F16") -> Path:
    """A safetensors file of zeros."""
    header, at = {}, 0
    for name, shape in shapes.items():
        size = prod(shape) * ITEM[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))
    return path


def in_peft(
    layers: Mapping[str, tuple[int, int]], rank: int, prefix: str
) -> dict[str, tuple[int, ...]]:
    """diffusers' and PEFT's own names; ``layers`` are path -> (inputs, outputs)."""
    found: dict[str, tuple[int, ...]] = {}
    for path, (into, out) in layers.items():
        found[f"{prefix}.{path}.lora_A.weight"] = (rank, into)
        found[f"{prefix}.{path}.lora_B.weight"] = (out, rank)
    return found


def in_kohya(
    layers: Mapping[str, tuple[int, int]], rank: int, prefix: str
) -> dict[str, tuple[int, ...]]:
    """kohya's names, with a scale for each layer."""
    found: dict[str, tuple[int, ...]] = {}
    for path, (into, out) in layers.items():
        stem = f"{prefix}_{path.replace('.', '_')}"
        found[f"{stem}.lora_down.weight"] = (rank, into)
        found[f"{stem}.lora_up.weight"] = (out, rank)
        found[f"{stem}.alpha"] = ()
    return found


def linears(module: object, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The linear layers of a module that end in one of ``names``."""
    assert isinstance(module, torch.nn.Module)
    return {
        path: (part.in_features, part.out_features)
        for path, part in module.named_modules()
        if isinstance(part, torch.nn.Linear) and path.endswith(tuple(names))
    }


# -- ControlNets


def test_a_controlnet_is_a_component_that_runs_with_the_denoiser(traced: Traced) -> None:
    plain, with_net = traced(SD, **SMALL), traced(SD, controlnets=(ControlNet(),), **SMALL)
    assert with_net.pipeline == "StableDiffusionControlNetPipeline"
    net = with_net.component(CONTROLNET)
    assert net.kind == "ControlNetModel"
    assert net.weights_bytes == 361_279_120 * 2  # the published file in fp32 has 1.445 GB
    assert ("denoise", CONTROLNET) in with_net.stages
    assert weights(with_net, "unet") == weights(plain, "unet")
    note = next(args for code, args in with_net.notes if code == "add-on-weights")
    assert note == {"component": CONTROLNET, "kind": "ControlNetModel", "size": "689.1 MiB"}
    calls = {s.component for s in with_net.streams}
    assert [c.name for c in with_net.components].index(CONTROLNET) in calls


def test_a_controlnet_stays_on_the_card_once_it_was_called(traced: Traced) -> None:
    trace = traced(SD, controlnets=(ControlNet(),), **SMALL)
    rows = estimate(trace, Settings(offload="model")).stages
    denoise = max(row.weights_bytes for row in rows if row.name == "denoise")
    assert denoise >= weights(trace, "unet") + weights(trace, CONTROLNET)


def test_several_controlnets_are_one_component(traced: Traced) -> None:
    trace = traced(SD, controlnets=(ControlNet(),) * 2, **SMALL)
    assert trace.component(CONTROLNET).kind == "MultiControlNetModel"
    assert weights(trace, CONTROLNET) == 2 * 361_279_120 * 2


def test_a_picture_to_change_and_a_control_picture_go_together(traced: Traced) -> None:
    trace = traced(SD, task="image-to-image", controlnets=(ControlNet(),), **SMALL)
    assert trace.pipeline == "StableDiffusionControlNetImg2ImgPipeline"
    assert "encode_condition" in {stage for stage, _ in trace.stages}


@pytest.mark.parametrize("name", sorted(add_ons().controlnets))
def test_configs_are_those_that_diffusers_derives_from_the_denoiser(name: str) -> None:
    import diffusers

    network = add_ons().controlnets[name]
    for model_id, size in network.params.items():
        fitted = with_add_ons(load(model_id), Request(model=model_id, controlnets=(ControlNet(),)))
        ours = build(fitted.components[CONTROLNET], "float16")
        assert params(ours) == fitted.components[CONTROLNET].params == size.of(network.config)
        if network.class_path != "diffusers.ControlNetModel" or network.like or network.config:
            continue
        unet = build(load(model_id).components["unet"], "float16")
        with torch.device("meta"):
            theirs = diffusers.ControlNetModel.from_unet(unet, load_weights_from_unet=False)
        assert {n: p.shape for n, p in ours.named_parameters()} == {
            n: p.shape for n, p in theirs.named_parameters()
        }


@pytest.mark.parametrize(
    ("model", "name", "published"),
    [
        ("sdxl-base", None, 2.50 * GB),
        ("flux.1-dev", "union-pro", 6.60 * GB),
        ("flux.1-dev", "union-pro-2.0", 4.28 * GB),
        ("flux.1-dev", "upscaler", 3.58 * GB),
        ("qwen-image", "union", 3.54 * GB),
    ],
)
def test_known_controlnets_have_the_size_of_their_published_files(
    model: str, name: str | None, published: float
) -> None:
    asked = Request(model=model, controlnets=(ControlNet(model=name),))
    part = with_add_ons(load(model), asked).components[CONTROLNET]
    assert part.params * 2 == pytest.approx(published, rel=0.003)


def test_layers_may_be_given_where_a_network_has_its_own() -> None:
    flux = load("flux.1-dev")

    def params_of(**layers: int) -> int:
        asked = Request(model=flux.id, controlnets=(ControlNet(**layers),))
        return with_add_ons(flux, asked).components[CONTROLNET].params

    one = params_of(num_layers=1, num_single_layers=0)
    assert params_of(num_layers=3, num_single_layers=0) - one == 2 * 349_271_552
    assert params_of(num_layers=1, num_single_layers=2) - one == 2 * 151_032_064
    with pytest.raises(BadRequest, match="num_layers 3"):
        with_add_ons(load(SD), Request(model=SD, controlnets=(ControlNet(num_layers=3),)))


def test_pipelines_are_those_that_diffusers_maps_to_the_task() -> None:
    from diffusers.pipelines import auto_pipeline as auto

    maps = {
        "text-to-image": auto.AUTO_TEXT2IMAGE_PIPELINES_MAPPING,
        "image-to-image": auto.AUTO_IMAGE2IMAGE_PIPELINES_MAPPING,
        "inpainting": auto.AUTO_INPAINT_PIPELINES_MAPPING,
    }
    checked = 0
    for base, network in add_ons().controlnets.items():
        keys = [key for key, kind in maps["text-to-image"].items() if kind.__name__ == base]
        for task, pipeline in network.pipelines.items():
            mapping = maps.get(task, {})
            for key in keys:
                if f"{key}-controlnet" in mapping:
                    assert mapping[f"{key}-controlnet"].__name__ == pipeline
                    checked += 1
    assert checked >= 10


def test_every_pipeline_of_the_data_takes_its_add_on() -> None:
    import inspect

    import diffusers

    facts = add_ons()
    for field, networks in (("controlnet", facts.controlnets), ("adapter", facts.t2i_adapters)):
        for network in networks.values():
            for each in (network, *map(network.called, network.named)):
                for pipeline in each.pipelines.values():
                    kind = getattr(diffusers, pipeline)
                    assert field in inspect.signature(kind.__init__).parameters
    for base in facts.ip_adapters:
        assert hasattr(getattr(diffusers, base), "load_ip_adapter")
    for base, shown in facts.reference_images.items():
        names = inspect.signature(getattr(diffusers, base).__call__).parameters
        assert shown.argument in names


# -- T2I-Adapters, IP-Adapters, pictures, optional components


@pytest.mark.parametrize("count", [1, 2])
def test_an_adapter_reads_its_picture_before_denoising(traced: Traced, count: int) -> None:
    trace = traced(SD, t2i_adapters=count, **SMALL)
    assert trace.pipeline == "StableDiffusionAdapterPipeline"
    assert weights(trace, "adapter") == count * 77_369_280 * 2  # published: 309 MB in fp32
    stages = list(trace.stages)
    assert stages.index(("encode_condition", "adapter")) < stages.index(("denoise", "unet"))


def test_an_ip_adapter_brings_an_encoder_and_layers_of_its_own(traced: Traced) -> None:
    plain, adapted = traced(SD, **SMALL), traced(SD, ip_adapters=("ip-adapter",), **SMALL)
    positions = 257 * 8  # a buffer of whole numbers
    assert weights(adapted, "image_encoder") == 632_076_800 * 2 + positions
    more = weights(adapted, "unet") - weights(plain, "unet")
    assert more == pytest.approx(44.6e6, rel=0.002)  # ip-adapter_sd15.safetensors, in fp16
    assert ("encode_condition", "image_encoder") in adapted.stages
    assert any(code == "ip-adapter-weights" for code, _ in adapted.notes)


def test_ip_adapters_of_one_encoder_go_together(traced: Traced) -> None:
    plain = traced(SD, **SMALL)
    both = traced(SD, ip_adapters=("ip-adapter", "ip-adapter-plus"), **SMALL)
    more = weights(both, "unet") - weights(plain, "unet")
    assert more == pytest.approx((44.6 + 98.2) * 1e6, rel=0.002)
    asked = Request(model="sdxl-base", ip_adapters=("ip-adapter", "ip-adapter-plus"))
    with pytest.raises(BadRequest, match="clip-vit-bigg-14, clip-vit-h-14"):
        with_add_ons(load("sdxl-base"), asked)


def test_the_safety_checker_runs_when_it_is_asked_for(traced: Traced) -> None:
    trace = traced(SD, components=("safety_checker",), **SMALL)
    assert weights(trace, "safety_checker") >= 303_981_588 * 2
    assert ("post", "safety_checker") in trace.stages


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"controlnets": ({},)}, "controlnets: diffusers has none"),
        ({"t2i_adapters": 1}, "t2i_adapters"),
        ({"ip_adapters": ("x",)}, "ip_adapters"),
        ({"components": ("safety_checker",)}, "components"),
        ({"reference_images": 2}, "shown one picture"),
    ],
)
def test_a_model_that_takes_no_such_thing_says_so(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        with_add_ons(load("mochi-1"), Request(model="mochi-1", **fields))


@pytest.mark.parametrize(
    ("model", "fields", "words"),
    [
        ("sdxl-base", {"controlnets": ({"model": "x"},)}, "It takes: union, union-promax"),
        ("sdxl-base", {"ip_adapters": ("x",)}, "ip-adapter, ip-adapter-vit-h"),
        ("sdxl-base", {"controlnets": ({}, {"model": "union"})}, "different pipelines"),
        ("sdxl-base", {"controlnets": ({},), "t2i_adapters": 1}, "at once"),
        ("sana-1.6b", {"controlnets": ({}, {})}, "its pipeline takes one"),
        ("flux.2-dev", {"reference_images": 2}, "image-editing"),
    ],
)
def test_what_does_not_go_together_says_what_does(
    model: str, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadRequest, match=words):
        with_add_ons(load(model), Request(model=model, **fields))


def test_add_ons_that_no_pipeline_takes_together_are_refused(traced: Traced) -> None:
    with pytest.raises(BadRequest, match="ip_adapter_image"):
        traced(SD, t2i_adapters=1, ip_adapters=("ip-adapter",), **SMALL)
    asked = Request(model=SD, t2i_adapters=1, task="image-to-image")
    with pytest.raises(BadRequest, match="for text-to-image only"):
        with_add_ons(load(SD), asked)


def test_each_of_several_networks_has_its_own_argument() -> None:
    flux = load("flux.1-dev")
    both = (ControlNet(model="union-pro"), ControlNet())
    fitted = with_add_ons(flux, Request(model=flux.id, controlnets=both))
    assert fitted.call["control_mode"] == [0, None]
    union = Request(model="sdxl-base", controlnets=(ControlNet(model="union"),) * 2)
    assert with_add_ons(load("sdxl-base"), union).call["control_mode"] == [0, 0]


def test_nothing_asked_for_changes_nothing() -> None:
    for model in all_models():
        assert with_add_ons(model, Request(model=model.id)) is model
    fitted = with_add_ons(load(SD), Request(model=SD, controlnets=(ControlNet(), ControlNet())))
    assert len(fitted.components[CONTROLNET].config[NETS]) == 2
    assert CONTROLNET not in load(SD).components


# -- LoRAs from files


@pytest.fixture(scope="module")
def attention() -> dict[str, tuple[int, int]]:
    unet = build(load(SD).components["unet"], "float16")
    return linears(unet, ("to_q", "to_k", "to_v", "to_out.0"))


def test_the_factors_of_a_rank_are_the_sum_over_the_layers(
    traced: Traced, attention: dict[str, tuple[int, int]]
) -> None:
    plain, adapted = traced(SD, **SMALL), traced(SD, loras=(Lora(rank=16),), **SMALL)
    expected = sum(16 * (into + out) * 2 for into, out in attention.values())
    assert weights(adapted, "unet") - weights(plain, "unet") == expected


@pytest.mark.parametrize("form", ["peft", "kohya"])
def test_a_file_is_laid_over_what_diffusers_finds(
    traced: Traced, tmp_path: Path, attention: dict[str, tuple[int, int]], form: str
) -> None:
    prefix = {"peft": "unet", "kohya": "lora_unet"}[form]
    shapes = {"peft": in_peft, "kohya": in_kohya}[form](attention, 16, prefix)
    file = lora_file(tmp_path / "a.safetensors", shapes)
    by_file = traced(SD, loras=(told(file),), **SMALL)
    by_rank = traced(SD, loras=(Lora(rank=16),), **SMALL)
    assert weights(by_file, "unet") == weights(by_rank, "unet")
    assert (
        estimate(by_file, Settings()).allocated_bytes
        == estimate(by_rank, Settings()).allocated_bytes
    )
    (args,) = [args for code, args in by_file.notes if code == "lora-from-file"]
    assert args == {"file": "a.safetensors", "rank": 16, "size": "6.1 MiB"}


def test_a_file_has_its_own_layers_in_the_dtype_of_what_they_lie_over(
    traced: Traced, tmp_path: Path
) -> None:
    unet = build(load(SD).components["unet"], "float16")
    ahead = linears(unet, ("ff.net.2",))
    file = lora_file(tmp_path / "a.safetensors", in_peft(ahead, 4, "unet"), dtype="F32")
    modules = traced(SD, loras=(told(file), Lora(rank=2)), **SMALL).component("unet").modules
    of_file = [m for m in modules if m.path.endswith("lora_0") and lora.is_factor(m.path)]
    assert {kind for m in of_file for _, _, kind in m.tensors} == {"float16"}  # peft moves them
    assert sum(size for m in of_file for _, size, _ in m.tensors) == sum(
        4 * (into + out) * 2 for into, out in ahead.values()
    )
    named = traced(SD, loras=(Lora(rank=4, targets=("ff.net.2",)),), **SMALL)
    (args,) = [args for code, args in named.notes if code == "lora-named"]
    assert args["layers"] == len(ahead) == 16


def told(file: Path) -> Lora:
    """What the file says, read from its header."""
    return with_files_read(Request(model=SD, loras=(Lora(file=str(file)),))).loras[0]


def test_a_request_after_reading_needs_no_file_to_be_known(tmp_path: Path) -> None:
    shapes = {"unet.x.to_q.lora_A.weight": (8, 4), "unet.x.to_q.lora_B.weight": (4, 8)}
    here = told(lora_file(tmp_path / "a.safetensors", shapes))
    there = told(lora_file(tmp_path / "b.safetensors", shapes))
    assert (here.rank, here.size_bytes) == (8, 128)
    assert here.header_sha256 == there.header_sha256
    exact = resolved(Request(model=SD, loras=(here,)))
    other = resolved(Request(model=SD, loras=(there,)))
    parts = [trace_parts(load(SD), each, Settings(), {}) for each in (exact, other)]
    assert json.dumps(parts[0]) == json.dumps(parts[1])  # one trace for both
    Path(there.file or "").unlink()
    assert with_files_read(Request(model=SD, loras=(there,))).loras == (there,)
    lora_file(Path(here.file or ""), shapes, dtype="F32")
    with pytest.raises(BadFile, match="not what was planned"):
        lora.weights_of(here)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not safetensors"),
        (b"\xff" * 64, "not safetensors"),
        (b"\x02\0\0\0\0\0\0\0[]", "not safetensors"),
        (b"\x02\0\0\0\0\0\0\0{}", "no pair of low-rank factors"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_lora_is_refused(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "a.safetensors"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadFile, match=words):
        told(file)


def test_a_file_of_another_model_is_refused(traced: Traced, tmp_path: Path) -> None:
    layers = {"blocks.0.self_attn.q": (64, 64)}
    file = lora_file(tmp_path / "a.safetensors", in_peft(layers, 4, "diffusion_model"))
    with pytest.raises(BadFile, match=r"a\.safetensors: StableDiffusionPipeline"):
        traced(SD, loras=(told(file),), **SMALL)


def test_a_server_reads_no_files(tmp_path: Path) -> None:
    token = FILES_READ.set(False)
    try:
        with pytest.raises(BadRequest, match=r"loras: a\.safetensors is a file"):
            told(tmp_path / "a.safetensors")
    finally:
        FILES_READ.reset(token)


def test_an_adapter_is_of_a_rank_or_of_a_file() -> None:
    with pytest.raises(BadRequest, match="needs a rank"):
        with_files_read(Request(model=SD, loras=(Lora(),)))
    both = Lora(file="a.safetensors", targets=("to_q",))
    with pytest.raises(BadRequest, match="says its own layers"):
        with_files_read(Request(model=SD, loras=(both,)))


# -- the atlas


@pytest.mark.parametrize(
    "fields",
    [
        {"loras": (Lora(rank=8),)},
        {"controlnets": (ControlNet(),)},
        {"t2i_adapters": 1},
        {"ip_adapters": ("ip-adapter",)},
        {"components": ("safety_checker",)},
    ],
)
def test_the_atlas_never_answers_without_the_add_on(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = resolved(Request(model=SD, width=512, height=512, **fields))
    fitted = with_add_ons(load(SD), exact)
    (name,) = fields
    assert getattr(find(fitted, exact, Settings()), "field", None) == name
    assert outside(fitted, exact, Settings()) == name
    assert domain(fitted, exact) is None
    monkeypatch.setattr(source, "installed", dict)
    with pytest.raises(MissingExtra, match=name):
        source.traced(fitted, exact, Settings())
    assert not source.can_trace(fitted, exact, Settings())
    plain = resolved(Request(model=SD, width=512, height=512))  # the entry's hash is its own again
    assert isinstance(find(load(SD), plain, Settings()), Trace)
